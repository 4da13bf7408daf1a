"""Kafka for tests: a real broker in this process, faults on demand, and time under control.

    with semel.testing.Kafka() as kafka:
        kafka.produce("orders", b"one")
        assert [record.value for record in kafka.committed("orders")] == [b"one"]

In pytest the fixture `kafka` is one of these. Names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semel.testing.kafka import Kafka as Kafka

#: Public name → module that has it.
_PUBLIC = {
    "Kafka": "semel.testing.kafka",
}
__all__ = [*_PUBLIC]

if not TYPE_CHECKING:  # a checker that saw it would believe in any name

    def __getattr__(name: str) -> Any:
        if name not in _PUBLIC:
            raise AttributeError(f"module 'semel.testing' has no attribute {name!r}")
        value = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
