"""What compaction does with one batch: it is kept, rebuilt with fewer records, emptied, or dropped.

The rules are those of Kafka's Cleaner and MemoryRecords.filterTo, with KIP-534's delete horizon:
when a tombstone or a marker without a transaction is first seen, its batch is stamped with the time
at which it may go (attribute 0x40, the time in place of the base timestamp).
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from semel.store.interface import Buffer
from semel.wire.batches import (
    HEADER_SIZE,
    NO_TIMESTAMP,
    Attribute,
    BatchHeader,
    Record,
    encode_record,
    records_of,
    write_header,
)
from semel.wire.compression import Compression, compress

_KEPT_FLAGS = int(Attribute.LOG_APPEND_TIME | Attribute.TRANSACTIONAL | Attribute.CONTROL)
_DELETE_HORIZON = int(Attribute.DELETE_HORIZON)

# A dict's slot, an integer and a bytes object, measured.
_ENTRY_BYTES = 170
_LONGEST_KEY = 32


class OffsetMap:
    """The last offset of every key, within a bounded amount of memory.

    Short keys stand for themselves; of long ones a SHA-256 is kept, longer by one byte than any
    short key, so that the two never meet.
    """

    def __init__(self, max_bytes: int = 64 << 20) -> None:
        self._offsets: dict[bytes, int] = {}
        self._room = max_bytes
        self.latest = -1

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        return self._room <= 0

    def put(self, key: bytes, offset: int) -> None:
        short = _shortened(key)
        if short not in self._offsets:
            self._room -= _ENTRY_BYTES + len(short)
        self._offsets[short] = offset

    def get(self, key: bytes) -> int:
        return self._offsets.get(_shortened(key), -1)


def _shortened(key: bytes) -> bytes:
    return key if len(key) <= _LONGEST_KEY else b"#" + sha256(key).digest()


class BatchRetention(NamedTuple):
    """What is known of a batch before its records are looked at."""

    is_dead: bool  # aborted data, or a marker of whose transaction nothing is left
    keep_emptied: bool  # its header is needed even if no record is


class Times(NamedTuple):
    now_ms: int
    delete_retention_ms: int


def clean(
    batch: BatchHeader, verdict: BatchRetention, latest: OffsetMap, times: Times
) -> Buffer | None:
    """The batch as it goes into the cleaned segment, or None if nothing of it does."""
    horizon = batch.delete_horizon_ms
    drop_all = verdict.is_dead
    if batch.is_control:
        drop_all = drop_all and horizon is not None and horizon <= times.now_ms
    if drop_all:
        return _emptied(batch) if verdict.keep_emptied else None
    records = records_of(batch)
    kept = records if batch.is_control else _living(batch, records, latest, times.now_ms)
    if not kept:
        return _emptied(batch) if verdict.keep_emptied else None
    needs_horizon = horizon is None and (
        verdict.is_dead if batch.is_control else any(record.value is None for record in kept)
    )
    if needs_horizon:
        horizon = times.now_ms + times.delete_retention_ms
    elif len(kept) == len(records):
        return batch.view
    return _rebuilt(batch, kept, horizon)


def _living(
    batch: BatchHeader, records: Sequence[Record], latest: OffsetMap, now_ms: int
) -> list[Record]:
    """Records that are the last of their key; tombstones among them until their time is over.

    A record without a key cannot be the last of it: producers are refused it, so it comes from a
    time before the topic was compacted, and Kafka drops it too.
    """
    horizon = batch.delete_horizon_ms
    keeps_tombstones = horizon is None or now_ms < horizon
    return [
        record
        for record in records
        if record.offset > latest.latest
        or (
            record.key is not None
            and record.offset >= latest.get(record.key)
            and (record.value is not None or keeps_tombstones)
        )
    ]


def _rebuilt(batch: BatchHeader, kept: Sequence[Record], horizon: int | None) -> bytearray:
    """The batch with fewer records: offsets, sequence numbers and compression stay as they were."""
    base_timestamp = batch.base_timestamp if horizon is None else horizon
    body = bytearray()
    for record in kept:
        body += encode_record(record, batch.base_offset, base_timestamp)
    if batch.is_log_append_time:
        max_timestamp = batch.max_timestamp
    else:
        max_timestamp = max(record.timestamp for record in kept)
    codec = Compression(batch.compression)
    packed = body if codec is Compression.NONE else compress(codec, body)
    flags = batch.attributes & _KEPT_FLAGS | (_DELETE_HORIZON if horizon is not None else 0)
    return _with_header(batch, packed, codec | flags, len(kept), base_timestamp, max_timestamp)


def _emptied(batch: BatchHeader) -> bytearray:
    """Only the header: it keeps the producer's last sequence and epoch, and the offsets' end."""
    flags = batch.attributes & _KEPT_FLAGS
    return _with_header(batch, b"", flags, 0, NO_TIMESTAMP, batch.max_timestamp)


def _with_header(
    batch: BatchHeader,
    body: Buffer,
    attributes: int,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
) -> bytearray:
    buffer = bytearray(HEADER_SIZE)
    buffer += body
    write_header(
        buffer,
        attributes=attributes,
        count=count,
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        base_offset=batch.base_offset,
        leader_epoch=batch.leader_epoch,
    )
    return buffer
