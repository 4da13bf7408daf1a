"""The client's half of transactions: what to ask of coordinators, and what their answers mean."""

from semel.client.machines.transactions.manager import NotAllowed, TransactionManager
from semel.client.machines.transactions.requests import Target, TxnRequestHandler
from semel.client.machines.transactions.states import MOVES, State, diagram

__all__ = [
    "MOVES",
    "NotAllowed",
    "State",
    "Target",
    "TransactionManager",
    "TxnRequestHandler",
    "diagram",
]
