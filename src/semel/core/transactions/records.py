"""A `Transaction` as the bytes of a record of __transaction_state, exactly as Kafka writes them.

Kafka's TransactionLog: key version 0 holds the transactional id; value version 1, flexible, is what
brokers with transaction version 2 write; version 0, of older ones, is read. No value: a tombstone.
"""

from functools import lru_cache
from struct import Struct

from semel.core.machine import LogEntry
from semel.core.transactions.states import DEAD, EMPTY, TxnState
from semel.core.transactions.transaction import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    TV_0,
    TopicPartition,
    Transaction,
)
from semel.wire.records.transaction_state import TransactionLogKey, TransactionLogValue

VALUE_VERSION = 1

_VERSION = Struct(">h")
_KEY_VERSION = 0

# Two or three values are written per transaction, so their fixed layout is packed by hand. The twin
# is the encoder of TransactionLogValue, which takes three times as long.
_HEAD = Struct(">hqhib")  # version, producer id, epoch, timeout, state
_TIMES = Struct(">qq")  # last update, start
_LONG_TAG = Struct(">bbq")  # tag, size, value
_SHORT_TAG = Struct(">bbh")
_NO_PARTITIONS_AT_ALL = b"\0"  # null: an empty transaction has not even an empty list


def encode(txn: Transaction) -> LogEntry:
    # All at once: a named tuple's fields cost a look into its class each.
    (
        name, producer_id, epoch, timeout_ms, state, partitions, started_at_ms, updated_at_ms,
        previous_producer_id, next_producer_id, next_epoch, client_version, _, _,
    ) = txn  # fmt: skip
    key = encode_key(name)
    if state is DEAD:
        return LogEntry(key, None)
    value = (
        _HEAD.pack(VALUE_VERSION, producer_id, epoch, timeout_ms, state),
        _NO_PARTITIONS_AT_ALL if state is EMPTY else _encode_partitions(partitions),
        _TIMES.pack(updated_at_ms, started_at_ms),
        _encode_tags(previous_producer_id, next_producer_id, next_epoch, client_version),
    )
    return LogEntry(key, b"".join(value))


@lru_cache(maxsize=1 << 12)  # the same from one transaction of a producer to its next
def _encode_tags(
    previous_producer_id: int, next_producer_id: int, next_epoch: int, client_version: int
) -> bytes:
    """The tagged fields that are not at their defaults, in the order of their tags."""
    tags = []
    if previous_producer_id != NO_PRODUCER_ID:
        tags.append(_LONG_TAG.pack(0, 8, previous_producer_id))
    if next_producer_id != NO_PRODUCER_ID:
        tags.append(_LONG_TAG.pack(1, 8, next_producer_id))
    if client_version != TV_0:
        tags.append(_SHORT_TAG.pack(2, 2, client_version))
    if next_epoch != NO_EPOCH:
        tags.append(_SHORT_TAG.pack(3, 2, next_epoch))
    return bytes((len(tags),)) + b"".join(tags)


@lru_cache(maxsize=1 << 12)  # producers write to the same few partitions again and again
def _encode_partitions(partitions: frozenset[TopicPartition]) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        by_topic.setdefault(topic, []).append(index)
    value = TransactionLogValue(
        transaction_partitions=[
            TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=indexes)
            for topic, indexes in by_topic.items()
        ]
    )
    out = bytearray()
    value.encode(out, VALUE_VERSION)
    return bytes(out[_HEAD.size - 2 : -_TIMES.size - 1])


@lru_cache(maxsize=1 << 12)
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


class TransactionCodec:
    """For `broker/coordinators/runtime`. This log has no transactions of its own: no markers."""

    encode = staticmethod(encode)

    def decode(self, entry: LogEntry) -> Transaction | None:
        return decode(entry.key, entry.value)

    def decode_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        return None
