"""The client: producer, consumer, admin, `transact` and the ledger; `blocking` has their twins.

Names are loaded when first used: a producer does not pay for the admin client's messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from semel.lazy import lazy

if TYPE_CHECKING:
    from semel.client.admin.acls import Acl as Acl
    from semel.client.admin.acls import AclFilter as AclFilter
    from semel.client.admin.admin import Admin as Admin
    from semel.client.admin.groups import GroupDescription as GroupDescription
    from semel.client.admin.groups import GroupListing as GroupListing
    from semel.client.admin.groups import GroupMember as GroupMember
    from semel.client.admin.groups import Lag as Lag
    from semel.client.admin.quotas import Quota as Quota
    from semel.client.admin.topics import ClusterInfo as ClusterInfo
    from semel.client.admin.topics import NewTopic as NewTopic
    from semel.client.admin.transactions import ActiveProducer as ActiveProducer
    from semel.client.admin.transactions import TransactionDescription as TransactionDescription
    from semel.client.admin.transactions import TransactionListing as TransactionListing
    from semel.client.admin.users import ScramUser as ScramUser
    from semel.client.consumer.consumer import Consumer as Consumer
    from semel.client.consumer.records import ConsumerRecord as ConsumerRecord
    from semel.client.ledger import Ledger as Ledger
    from semel.client.machines.ledger import LedgerEntry as LedgerEntry
    from semel.client.machines.metadata import TopicMetadata as TopicMetadata
    from semel.client.machines.types import GroupMetadata as GroupMetadata
    from semel.client.machines.types import Node as Node
    from semel.client.machines.types import OffsetAndMetadata as OffsetAndMetadata
    from semel.client.machines.types import TopicPartition as TopicPartition
    from semel.client.metrics import ConsumerMetrics as ConsumerMetrics
    from semel.client.metrics import ProducerMetrics as ProducerMetrics
    from semel.client.offsets import FoundOffset as FoundOffset
    from semel.client.producer.deliveries import Delivery as Delivery
    from semel.client.producer.deliveries import RecordMetadata as RecordMetadata
    from semel.client.producer.producer import Producer as Producer
    from semel.client.transacting import Transact as Transact
    from semel.client.transacting import TransactBatch as TransactBatch
    from semel.client.transacting import transact as transact
    from semel.errors import AbortableError as AbortableError
    from semel.errors import DeserializationError as DeserializationError
    from semel.errors import FatalError as FatalError
    from semel.errors import FencedError as FencedError
    from semel.errors import RetriableError as RetriableError
    from semel.errors import SemelError as SemelError
    from semel.errors import TruncatedError as TruncatedError
    from semel.errors import UnreachableError as UnreachableError
    from semel.errors import UsageError as UsageError

#: Public name → module that has it.
_PUBLIC = {
    "AbortableError": "semel.errors",
    "Acl": "semel.client.admin.acls",
    "AclFilter": "semel.client.admin.acls",
    "ActiveProducer": "semel.client.admin.transactions",
    "Admin": "semel.client.admin.admin",
    "ClusterInfo": "semel.client.admin.topics",
    "Consumer": "semel.client.consumer.consumer",
    "ConsumerMetrics": "semel.client.metrics",
    "ConsumerRecord": "semel.client.consumer.records",
    "Delivery": "semel.client.producer.deliveries",
    "DeserializationError": "semel.errors",
    "FatalError": "semel.errors",
    "FencedError": "semel.errors",
    "FoundOffset": "semel.client.offsets",
    "GroupDescription": "semel.client.admin.groups",
    "GroupListing": "semel.client.admin.groups",
    "ScramUser": "semel.client.admin.users",
    "GroupMember": "semel.client.admin.groups",
    "GroupMetadata": "semel.client.machines.types",
    "Lag": "semel.client.admin.groups",
    "Ledger": "semel.client.ledger",
    "LedgerEntry": "semel.client.machines.ledger",
    "NewTopic": "semel.client.admin.topics",
    "Node": "semel.client.machines.types",
    "OffsetAndMetadata": "semel.client.machines.types",
    "Producer": "semel.client.producer.producer",
    "ProducerMetrics": "semel.client.metrics",
    "Quota": "semel.client.admin.quotas",
    "RecordMetadata": "semel.client.producer.deliveries",
    "RetriableError": "semel.errors",
    "SemelError": "semel.errors",
    "TopicMetadata": "semel.client.machines.metadata",
    "TopicPartition": "semel.client.machines.types",
    "Transact": "semel.client.transacting",
    "TransactBatch": "semel.client.transacting",
    "TransactionDescription": "semel.client.admin.transactions",
    "TransactionListing": "semel.client.admin.transactions",
    "TruncatedError": "semel.errors",
    "UnreachableError": "semel.errors",
    "UsageError": "semel.errors",
    "transact": "semel.client.transacting",
}
__all__ = [*_PUBLIC]

if not TYPE_CHECKING:  # a checker that saw it would believe in any name
    __getattr__, __dir__ = lazy(__name__, _PUBLIC)
