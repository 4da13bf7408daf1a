"""Whether a client's record batch may be appended, judged by its 61-byte header alone.

A batch is opaque to the broker: nothing here looks at a record. What producers, sequences and
transactions have to say comes after this, in `producers` and `state`.
"""

from dataclasses import dataclass
from typing import NamedTuple

from semel.wire.batches import HEADER_SIZE, NO_PRODUCER_ID, NO_TIMESTAMP, BatchHeader
from semel.wire.errors import ErrorCode

# Plain ints: these are asked for every batch, and an IntFlag operation costs ten times as much.
COMPRESSION = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
CODECS = range(5)  # none, gzip, snappy, lz4, zstd
CLIENTS_ATTRIBUTES = frozenset(flag | codec for flag in (0, TRANSACTIONAL) for codec in CODECS)

# Length, attributes, two deltas, key, value and header count take a byte each at least.
SMALLEST_RECORD_BYTES = 7

MAX_INT64 = 2**63 - 1


class RecordFault(NamedTuple):
    """A record that is the reason why its batch was refused (KIP-467)."""

    number: int
    message: str


class Refusal(NamedTuple):
    """Why nothing was appended: the code the client acts on and the sentence a person reads."""

    error: ErrorCode
    message: str
    records: tuple[RecordFault, ...] = ()  # those at fault, where it is not the batch as a whole


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What a topic's configuration allows in a batch."""

    max_message_bytes: int = 1_048_588
    log_append_time: bool = False
    timestamp_before_max_ms: int = MAX_INT64
    timestamp_after_max_ms: int = 3_600_000


def refusal(header: BatchHeader, limits: BatchLimits, now_ms: int) -> Refusal | None:
    """The reason to refuse a client's batch, or None. The caller has checked the CRC.

    Nearly every batch passes one condition. Its twin is `refusal_by_rules`, which judges all others
    and gives the reasons.
    """
    size, count, attributes = header.size, header.count, header.attributes
    if (
        size <= limits.max_message_bytes
        and header.base_offset == 0
        and count > 0
        and count == header.last_offset_delta + 1
        and (count * SMALLEST_RECORD_BYTES <= size - HEADER_SIZE or attributes & COMPRESSION)
        and attributes in CLIENTS_ATTRIBUTES
        and (
            (header.producer_id >= 0 and header.producer_epoch >= 0 and header.base_sequence >= 0)
            or (header.producer_id == NO_PRODUCER_ID and not attributes & TRANSACTIONAL)
        )
        and now_ms - limits.timestamp_before_max_ms <= header.base_timestamp
        and header.base_timestamp <= header.max_timestamp
        and header.max_timestamp <= now_ms + limits.timestamp_after_max_ms
    ):
        return None
    return refusal_by_rules(header, limits, now_ms)


def refusal_by_rules(header: BatchHeader, limits: BatchLimits, now_ms: int) -> Refusal | None:
    """The same rule by rule, the first that is broken; see `refusal`, its twin."""
    return (
        _size_refusal(header, limits)
        or _shape_refusal(header)
        or _flags_refusal(header.attributes)
        or _producer_refusal(header)
        or _timestamp_refusal(header, limits, now_ms)
    )


def _size_refusal(header: BatchHeader, limits: BatchLimits) -> Refusal | None:
    if header.size <= limits.max_message_bytes:
        return None
    return Refusal(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The batch has {header.size} bytes, max.message.bytes is {limits.max_message_bytes}.",
    )


def _shape_refusal(header: BatchHeader) -> Refusal | None:
    count, body_size = header.count, header.size - HEADER_SIZE
    if header.base_offset != 0:
        return _invalid(f"The base offset must be 0, not {header.base_offset}.")
    if count <= 0:
        return _invalid(f"The batch declares {count} records.")
    if count != header.last_offset_delta + 1:
        return _invalid(
            f"The batch declares {count} records, but its last offset delta is"
            f" {header.last_offset_delta}."
        )
    if count * SMALLEST_RECORD_BYTES > body_size and not header.attributes & COMPRESSION:
        return _invalid(f"The batch declares {count} records, but has {body_size} bytes of them.")
    return None


def _flags_refusal(attributes: int) -> Refusal | None:
    if attributes & CONTROL:
        return _invalid("Clients may not write control batches.")
    if attributes & ~(COMPRESSION | TRANSACTIONAL | LOG_APPEND_TIME):
        return _invalid(f"Clients may not set the batch attributes {attributes & 0xFFFF:#06x}.")
    if attributes & LOG_APPEND_TIME:
        return Refusal(
            ErrorCode.INVALID_TIMESTAMP, "Only the broker may stamp a batch with its append time."
        )
    codec = attributes & COMPRESSION
    if codec not in CODECS:
        return Refusal(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"There is no compression type {codec}."
        )
    return None


def _producer_refusal(header: BatchHeader) -> Refusal | None:
    producer_id = header.producer_id
    if producer_id == NO_PRODUCER_ID:
        # Kafka lets this one through, visible to read_committed readers at once.
        if header.attributes & TRANSACTIONAL:
            return _invalid("A transactional batch needs a producer id.")
        return None
    if producer_id < 0:
        return _invalid(f"There is no producer id {producer_id}.")
    if header.producer_epoch < 0:
        return _invalid(
            f"Producer {producer_id} sent the epoch {header.producer_epoch} in a batch."
        )
    if header.base_sequence < 0:
        return _invalid(
            f"Producer {producer_id} sent the sequence {header.base_sequence} in a batch."
        )
    return None


def _timestamp_refusal(header: BatchHeader, limits: BatchLimits, now_ms: int) -> Refusal | None:
    """The bounds of Kafka's LogValidator, held against the first and the largest timestamp: the
    only two a header carries."""
    if limits.log_append_time:
        return None
    earliest = now_ms - limits.timestamp_before_max_ms
    latest = now_ms + limits.timestamp_after_max_ms
    for timestamp in (header.max_timestamp, header.base_timestamp):
        if timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
            return Refusal(
                ErrorCode.INVALID_TIMESTAMP,
                f"The timestamp {timestamp} is outside of [{earliest}, {latest}].",
            )
    return None


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_RECORD, message)
