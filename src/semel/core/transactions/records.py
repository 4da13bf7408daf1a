"""A `Transaction` as the bytes of a record of __transaction_state, exactly as Kafka writes them.

Kafka's TransactionLog: key version 0 holds the transactional id; value version 1, flexible, is what
brokers with transaction version 2 write, version 0 what older ones wrote. No value is a tombstone.
"""

from struct import Struct

from semel.core.machine import LogEntry
from semel.core.transactions.states import DEAD, EMPTY, TxnState
from semel.core.transactions.transaction import NO_PRODUCER_ID, TopicPartition, Transaction
from semel.wire.records.transaction_state import TransactionLogKey, TransactionLogValue

VALUE_VERSION = 1

_VERSION = Struct(">h")
_KEY_VERSION = 0


def encode(txn: Transaction, version: int = VALUE_VERSION) -> tuple[bytes, bytes | None]:
    """Key and value. Version 0 has no room for the fields that version 1 keeps as tags."""
    key = encode_key(txn.transactional_id)
    if txn.state is DEAD:
        return key, None
    value = TransactionLogValue(
        producer_id=txn.producer_id,
        producer_epoch=txn.epoch,
        transaction_timeout_ms=txn.timeout_ms,
        transaction_status=txn.state,
        transaction_partitions=None if txn.state is EMPTY else _grouped(txn.partitions),
        transaction_last_update_timestamp_ms=txn.updated_at_ms,
        transaction_start_timestamp_ms=txn.started_at_ms,
    )
    if version >= 1:
        value.previous_producer_id = txn.previous_producer_id
        value.next_producer_id = txn.next_producer_id
        value.next_producer_epoch = txn.next_epoch
        value.client_transaction_version = txn.client_version
    out = bytearray(_VERSION.pack(version))
    value.encode(out, version)
    return key, bytes(out)


def encode_key(transactional_id: str) -> bytes:
    out = bytearray(_VERSION.pack(_KEY_VERSION))
    TransactionLogKey(transactional_id=transactional_id).encode(out, _KEY_VERSION)
    return bytes(out)


def decode(key: bytes | None, value: bytes | None) -> Transaction | None:
    """The record, or None for one of a version we do not know: left alone, as Kafka does."""
    if key is None or _VERSION.unpack_from(key)[0] != _KEY_VERSION:
        return None
    transactional_id = TransactionLogKey.decode(key, 2, _KEY_VERSION)[0].transactional_id
    if value is None:
        return Transaction(transactional_id, NO_PRODUCER_ID, epoch=0, timeout_ms=0, state=DEAD)
    version = _VERSION.unpack_from(value)[0]
    if version not in TransactionLogValue.VERSIONS:
        return None
    log_value = TransactionLogValue.decode(value, 2, version)[0]
    return Transaction(
        transactional_id,
        log_value.producer_id,
        log_value.producer_epoch,
        log_value.transaction_timeout_ms,
        TxnState(log_value.transaction_status),  # type: ignore[call-arg]
        frozenset(
            (group.topic, index)
            for group in log_value.transaction_partitions or ()
            for index in group.partition_ids
        ),
        log_value.transaction_start_timestamp_ms,
        log_value.transaction_last_update_timestamp_ms,
        log_value.previous_producer_id,
        log_value.next_producer_id,
        log_value.next_producer_epoch,
        log_value.client_transaction_version,
    )


def _grouped(partitions: frozenset[TopicPartition]) -> list[TransactionLogValue.PartitionsSchema]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        by_topic.setdefault(topic, []).append(index)
    return [
        TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=indexes)
        for topic, indexes in by_topic.items()
    ]


class TransactionCodec:
    """For `broker/runtime`. Transactions of this log's own do not exist: no markers."""

    def encode(self, record: Transaction) -> LogEntry:
        return LogEntry(*encode(record))

    def decode(self, entry: LogEntry) -> Transaction | None:
        return decode(entry.key, entry.value)

    def decode_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        return None
