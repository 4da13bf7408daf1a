"""The client: producer, consumer, admin, `transact` and the ledger; `blocking` has their twins.

Names are loaded when first used: a producer does not pay for the admin client's messages.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semel.client.admin.admin import Admin as Admin
    from semel.client.admin.topics import NewTopic as NewTopic
    from semel.client.consumer.consumer import Consumer as Consumer
    from semel.client.consumer.records import ConsumerRecord as ConsumerRecord
    from semel.client.ledger import Ledger as Ledger
    from semel.client.machines.types import GroupMetadata as GroupMetadata
    from semel.client.machines.types import OffsetAndMetadata as OffsetAndMetadata
    from semel.client.machines.types import TopicPartition as TopicPartition
    from semel.client.producer.producer import Delivery as Delivery
    from semel.client.producer.producer import Producer as Producer
    from semel.client.producer.producer import RecordMetadata as RecordMetadata
    from semel.client.transacting import transact as transact
    from semel.errors import AbortableError as AbortableError
    from semel.errors import FatalError as FatalError
    from semel.errors import FencedError as FencedError
    from semel.errors import RetriableError as RetriableError
    from semel.errors import SemelError as SemelError
    from semel.errors import TruncatedError as TruncatedError
    from semel.errors import UsageError as UsageError

#: Public name → module that has it.
_PUBLIC = {
    "AbortableError": "semel.errors",
    "Admin": "semel.client.admin.admin",
    "SemelError": "semel.errors",
    "Consumer": "semel.client.consumer.consumer",
    "ConsumerRecord": "semel.client.consumer.records",
    "Delivery": "semel.client.producer.producer",
    "FatalError": "semel.errors",
    "FencedError": "semel.errors",
    "GroupMetadata": "semel.client.machines.types",
    "Ledger": "semel.client.ledger",
    "NewTopic": "semel.client.admin.topics",
    "OffsetAndMetadata": "semel.client.machines.types",
    "Producer": "semel.client.producer.producer",
    "RecordMetadata": "semel.client.producer.producer",
    "RetriableError": "semel.errors",
    "TopicPartition": "semel.client.machines.types",
    "TruncatedError": "semel.errors",
    "UsageError": "semel.errors",
    "transact": "semel.client.transacting",
}
__all__ = [*_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'semel.client' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
