"""The client's half of transactions: what to ask of coordinators, and what their answers mean."""

from semel.core.client.transactions.manager import NotAllowed, TransactionManager
from semel.core.client.transactions.requests import Target, TransactionalRequest
from semel.core.client.transactions.states import MOVES, State, diagram

__all__ = [
    "MOVES",
    "NotAllowed",
    "State",
    "Target",
    "TransactionManager",
    "TransactionalRequest",
    "diagram",
]
