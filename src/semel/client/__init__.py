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
    from semel.client.consumer.fetcher import ConsumerRecord as ConsumerRecord
    from semel.client.errors import AbortableError as AbortableError
    from semel.client.errors import ClientError as ClientError
    from semel.client.errors import FatalError as FatalError
    from semel.client.errors import FencedError as FencedError
    from semel.client.errors import RetriableError as RetriableError
    from semel.client.errors import TruncatedError as TruncatedError
    from semel.client.errors import UsageError as UsageError
    from semel.client.ledger import Ledger as Ledger
    from semel.client.machines.types import GroupMetadata as GroupMetadata
    from semel.client.machines.types import OffsetAndMetadata as OffsetAndMetadata
    from semel.client.machines.types import TopicPartition as TopicPartition
    from semel.client.producer.producer import Delivery as Delivery
    from semel.client.producer.producer import Producer as Producer
    from semel.client.producer.producer import RecordMetadata as RecordMetadata
    from semel.client.transacting import transact as transact

#: Public name → module that has it.
_PUBLIC = {
    "AbortableError": "semel.client.errors",
    "Admin": "semel.client.admin.admin",
    "ClientError": "semel.client.errors",
    "Consumer": "semel.client.consumer.consumer",
    "ConsumerRecord": "semel.client.consumer.fetcher",
    "Delivery": "semel.client.producer.producer",
    "FatalError": "semel.client.errors",
    "FencedError": "semel.client.errors",
    "GroupMetadata": "semel.client.machines.types",
    "Ledger": "semel.client.ledger",
    "NewTopic": "semel.client.admin.topics",
    "OffsetAndMetadata": "semel.client.machines.types",
    "Producer": "semel.client.producer.producer",
    "RecordMetadata": "semel.client.producer.producer",
    "RetriableError": "semel.client.errors",
    "TopicPartition": "semel.client.machines.types",
    "TruncatedError": "semel.client.errors",
    "UsageError": "semel.client.errors",
    "transact": "semel.client.transacting",
}
__all__ = [*_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'semel.client' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
