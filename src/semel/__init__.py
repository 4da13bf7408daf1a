"""Semel: exactly-once streaming for Python.

    async with semel.Broker(data="data") as broker: ...     # or plain `with`, outside asyncio

Names are loaded when first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

    def __getattr__(name: str) -> Any:
        if name not in _PUBLIC:
            raise AttributeError(f"module 'semel' has no attribute {name!r}")
        value = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
