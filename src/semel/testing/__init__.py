"""Kafka for tests: a real broker in this process, faults on demand, and time under control.

    with semel.testing.Kafka() as kafka:
        kafka.produce("orders", b"one")
        assert [record.value for record in kafka.committed("orders")] == [b"one"]

In pytest the fixture `kafka` is one of these. Names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from semel.lazy import lazy

if TYPE_CHECKING:
    from semel.testing.faults.faults import Fault as Fault
    from semel.testing.faults.faults import Faults as Faults
    from semel.testing.faults.faults import UnusedFault as UnusedFault
    from semel.testing.kafka import Kafka as Kafka
    from semel.testing.kafka import UnknownTopic as UnknownTopic
    from semel.testing.records import StoredRecord as StoredRecord
    from semel.testing.transactions import OpenTransaction as OpenTransaction
    from semel.testing.waiting import NotInTime as NotInTime

#: Public name → module that has it.
_PUBLIC = {
    "Fault": "semel.testing.faults.faults",
    "Faults": "semel.testing.faults.faults",
    "Kafka": "semel.testing.kafka",
    "NotInTime": "semel.testing.waiting",
    "OpenTransaction": "semel.testing.transactions",
    "StoredRecord": "semel.testing.records",
    "UnknownTopic": "semel.testing.kafka",
    "UnusedFault": "semel.testing.faults.faults",
}
__all__ = [*_PUBLIC]

if not TYPE_CHECKING:  # a checker that saw it would believe in any name
    __getattr__, __dir__ = lazy(__name__, _PUBLIC)
