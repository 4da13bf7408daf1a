"""Semel: exactly-once streaming for Python.

    async with semel.Broker(data="data") as broker: ...     # or plain `with`, outside asyncio

Names are loaded when first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from semel.lazy import lazy

if TYPE_CHECKING:
    from semel.broker.server import Broker as Broker
    from semel.client import Admin as Admin
    from semel.client import Consumer as Consumer
    from semel.client import Ledger as Ledger
    from semel.client import NewTopic as NewTopic
    from semel.client import Producer as Producer
    from semel.client import TopicPartition as TopicPartition
    from semel.client import transact as transact

__version__ = "0.1.0"

#: Public name → module that has it.
_PUBLIC = {
    "Admin": "semel.client",
    "Broker": "semel.broker.server",
    "Consumer": "semel.client",
    "Ledger": "semel.client",
    "NewTopic": "semel.client",
    "Producer": "semel.client",
    "TopicPartition": "semel.client",
    "transact": "semel.client",
}
__all__ = [*_PUBLIC, "__version__"]

if not TYPE_CHECKING:  # a checker that saw it would believe in any name
    __getattr__, __dir__ = lazy(__name__, _PUBLIC)
