"""Blocking twins of the clients, for scripts and notebooks: the same names, without await.

    from semel.client.blocking import Producer

    with Producer("localhost:9092", transactional_id="t") as producer:
        with producer.transaction():
            producer.send("topic", b"value")

One event loop in a thread of its own serves all of them. Every method that the asyncio client has
is here; what it awaits is awaited there, and its exceptions are raised here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from semel.lazy import lazy

if TYPE_CHECKING:
    from semel.client.blocking.admin import Admin as Admin
    from semel.client.blocking.consumer import Consumer as Consumer
    from semel.client.blocking.ledger import Ledger as Ledger
    from semel.client.blocking.producer import Producer as Producer
    from semel.client.blocking.transacting import Transact as Transact
    from semel.client.blocking.transacting import TransactBatch as TransactBatch
    from semel.client.blocking.transacting import transact as transact
    from semel.client.blocking.wrapping import Delivery as Delivery

#: Public name → module that has it.
_PUBLIC = {
    "Admin": "semel.client.blocking.admin",
    "Consumer": "semel.client.blocking.consumer",
    "Delivery": "semel.client.blocking.wrapping",
    "Ledger": "semel.client.blocking.ledger",
    "Producer": "semel.client.blocking.producer",
    "Transact": "semel.client.blocking.transacting",
    "TransactBatch": "semel.client.blocking.transacting",
    "transact": "semel.client.blocking.transacting",
}
__all__ = [*_PUBLIC]

if not TYPE_CHECKING:  # a checker that saw it would believe in any name
    __getattr__, __dir__ = lazy(__name__, _PUBLIC)
