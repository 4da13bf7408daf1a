"""The header of a record batch: all that a broker reads of it, and all that it changes in it."""

from collections.abc import Iterator
from enum import IntFlag
from struct import Struct

from semel.wire.checksum import crc32c
from semel.wire.compression import Buffer
from semel.wire.errors import ProtocolError

HEADER_SIZE = 61
NO_PRODUCER_ID = NO_EPOCH = NO_SEQUENCE = NO_TIMESTAMP = -1

# `length` counts the bytes behind itself: offset (8) and length (4) come before them.
_BEFORE_LENGTH_COUNTS = 12
_MAGIC_AT = 16
_CRC_AT = 17
_CRC_COVERS_FROM = 21
_ATTRIBUTES_AT = 21
_MAX_TIMESTAMP_AT = 35
_PRODUCER_AT = 43

CRC_COVERED = ">hiqqqhii"  # attributes to count: the fields behind the checksum
_HEADER = Struct(">qiibI" + CRC_COVERED[1:])
_CRC_AND_BEFORE = Struct(">qiibI")
_COVERED = Struct(CRC_COVERED)
_LENGTH = Struct(">i")
_OFFSET_LENGTH_EPOCH = Struct(">qii")
_CRC = Struct(">I")
_PRODUCER = Struct(">qhi")
_ATTRIBUTES = Struct(">h")
_TIMESTAMP = Struct(">q")


class Attribute(IntFlag):
    COMPRESSION = 0x07
    LOG_APPEND_TIME = 0x08
    TRANSACTIONAL = 0x10
    CONTROL = 0x20
    DELETE_HORIZON = 0x40


# Plain ints: an IntFlag operation costs ten times as much, and these are asked for every batch.
_COMPRESSION = int(Attribute.COMPRESSION)
_LOG_APPEND_TIME = int(Attribute.LOG_APPEND_TIME)
_TRANSACTIONAL = int(Attribute.TRANSACTIONAL)
_CONTROL = int(Attribute.CONTROL)
_DELETE_HORIZON = int(Attribute.DELETE_HORIZON)


class OldFormatError(ProtocolError):
    """Messages of format 0 or 1, from before Kafka 0.11: they cannot carry transactions."""

    def __init__(self, magic: int) -> None:
        super().__init__(
            f"message format {magic} is not supported, only record batches of format 2"
        )
        self.magic = magic


class BatchHeader:
    """One batch inside a buffer. The fields are Kafka's, in the order of the wire."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "buffer",
        "count",
        "crc",
        "last_offset_delta",
        "leader_epoch",
        "length",
        "magic",
        "max_timestamp",
        "position",
        "producer_epoch",
        "producer_id",
        "size",
    )

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        """Reads the header without a check: `header_at` is the one for bytes of others."""
        self.buffer = buffer
        self.position = position
        (
            self.base_offset,
            self.length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = _HEADER.unpack_from(buffer, position)
        self.size = self.length + _BEFORE_LENGTH_COUNTS

    def __repr__(self) -> str:
        flags = [name for name in ("transactional", "control") if getattr(self, f"is_{name}")]
        return (
            f"<batch {self.base_offset}..{self.last_offset} {' '.join(flags)} producer "
            f"{self.producer_id}/{self.producer_epoch} sequence {self.base_sequence}>"
        )

    @property
    def view(self) -> memoryview:
        """The whole batch, not copied."""
        return memoryview(self.buffer)[self.position : self.position + self.size]

    @property
    def whole(self) -> Buffer:
        """The same: the buffer itself, where nothing else is in it."""
        return self.buffer if len(self.buffer) == self.size else self.view

    @property
    def is_transactional(self) -> bool:
        return self.attributes & _TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & _CONTROL != 0

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & _LOG_APPEND_TIME != 0

    @property
    def has_producer(self) -> bool:
        return self.producer_id >= 0

    @property
    def compression(self) -> int:
        """The codec's number; a `Compression` if it is one that exists."""
        return self.attributes & _COMPRESSION

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop its tombstones or marker; kept in the base timestamp."""
        return self.base_timestamp if self.attributes & _DELETE_HORIZON else None

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return advance_sequence(self.base_sequence, self.last_offset_delta)


def advance_sequence(sequence: int, by: int) -> int:
    """Sequence numbers go on at 0 after 2³¹ − 1 (Kafka's DefaultRecordBatch.incrementSequence)."""
    return (sequence + by) & 0x7FFF_FFFF


def header_at(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The batch at `position`, after checking that all of it is there and of format 2."""
    available = len(buffer) - position
    if available < HEADER_SIZE:
        raise _no_header(buffer, position)
    batch = BatchHeader(buffer, position)
    if (
        batch.magic != 2
        or not HEADER_SIZE <= batch.size <= available
        or batch.count < 0
        or batch.last_offset_delta < 0
    ):
        raise _malformed(batch, available)
    return batch


def _no_header(buffer: Buffer, position: int) -> ProtocolError:
    available = len(buffer) - position
    if available <= _MAGIC_AT:
        return ProtocolError(f"{available} bytes are too few for a record batch")
    return _wrong_format(buffer, position) or ProtocolError(
        f"a batch header has {HEADER_SIZE} bytes, only {available} are there"
    )


def _malformed(batch: BatchHeader, available: int) -> ProtocolError:
    wrong_format = _wrong_format(batch.buffer, batch.position)
    if wrong_format is not None:
        return wrong_format
    if batch.size < HEADER_SIZE:
        return ProtocolError(f"a batch cannot have the length {batch.length}: its header is longer")
    if batch.size > available:
        return ProtocolError(f"a batch of {batch.size} bytes, but only {available} are there")
    return ProtocolError(
        f"a batch of {batch.count} records with last offset delta {batch.last_offset_delta}"
    )


def _wrong_format(buffer: Buffer, position: int) -> ProtocolError | None:
    magic = buffer[position + _MAGIC_AT]
    if magic == 2:
        return None
    return OldFormatError(magic) if magic < 2 else ProtocolError(f"unknown format {magic}")


def headers(records: Buffer, *, partial_tail: bool = False) -> Iterator[BatchHeader]:
    """Every batch of a records field. A fetch may end within one: `partial_tail` allows that."""
    position, end = 0, len(records)
    while position < end:
        if partial_tail and _is_partial(records, position, end):
            return
        batch = header_at(records, position)
        yield batch
        position += batch.size


def _is_partial(records: Buffer, position: int, end: int) -> bool:
    if end - position < HEADER_SIZE:
        return True
    length: int = _LENGTH.unpack_from(records, position + 8)[0]
    return length > end - position - _BEFORE_LENGTH_COUNTS


def verify_crc(batch: BatchHeader) -> bool:
    """Whether the checksum, which covers everything behind itself, is right. Copies nothing."""
    start = batch.position
    covered = memoryview(batch.buffer)[start + _CRC_COVERS_FROM : start + batch.size]
    return crc32c(covered) == batch.crc


def patch(batch: BatchHeader, base_offset: int, leader_epoch: int) -> None:
    """Gives the batch its place in the log, in place. The checksum does not cover these two."""
    _OFFSET_LENGTH_EPOCH.pack_into(
        batch.buffer,
        batch.position,
        base_offset,
        batch.length,
        leader_epoch,
    )
    batch.base_offset = base_offset
    batch.leader_epoch = leader_epoch


def stamp_append_time(batch: BatchHeader, timestamp: int) -> None:
    """Makes the broker's time the one of all records (a topic with LogAppendTime), in place."""
    batch.attributes |= _LOG_APPEND_TIME
    batch.max_timestamp = timestamp
    _write_fields(batch)


def replace_body(batch: BatchHeader, body: Buffer, codec: int) -> BatchHeader:
    """The same batch in a buffer of its own, its records compressed otherwise."""
    buffer = bytearray(HEADER_SIZE) + body
    buffer[:HEADER_SIZE] = batch.view[:HEADER_SIZE]
    _LENGTH.pack_into(buffer, 8, len(buffer) - _BEFORE_LENGTH_COUNTS)
    replaced = BatchHeader(buffer)
    replaced.attributes = batch.attributes & ~_COMPRESSION | codec
    _write_fields(replaced)
    return replaced


def _write_fields(batch: BatchHeader) -> None:
    """Attributes, largest timestamp and the checksum that covers them."""
    buffer, position = batch.buffer, batch.position
    _ATTRIBUTES.pack_into(buffer, position + _ATTRIBUTES_AT, batch.attributes)
    _TIMESTAMP.pack_into(buffer, position + _MAX_TIMESTAMP_AT, batch.max_timestamp)
    batch.crc = crc32c(memoryview(buffer)[position + _CRC_COVERS_FROM : position + batch.size])
    _CRC.pack_into(buffer, position + _CRC_AT, batch.crc)


def restamp(buffer: bytearray, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
    """Gives a built batch another producer and sequence, and so another checksum.

    A producer needs it when its epoch was bumped while batches waited to be sent again (KIP-360).
    """
    _PRODUCER.pack_into(buffer, _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    _CRC.pack_into(buffer, _CRC_AT, crc32c(memoryview(buffer)[_CRC_COVERS_FROM:]))


def batch_of(covered: bytes, base_offset: int, leader_epoch: int) -> bytearray:
    """The batch of all that its checksum covers: the fields `CRC_COVERED`, and its records. For
    small batches: it copies them. Its twin is `write_header`."""
    length = len(covered) + _CRC_COVERS_FROM - _BEFORE_LENGTH_COUNTS
    start = _CRC_AND_BEFORE.pack(base_offset, length, leader_epoch, 2, crc32c(covered))
    return bytearray(start + covered)


def write_header(
    buffer: bytearray,
    *,
    attributes: int,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    base_offset: int = 0,
    leader_epoch: int = NO_EPOCH,
    last_offset_delta: int | None = None,
) -> None:
    """Fills the first 61 bytes of a buffer whose records are in place already.

    Compaction leaves fewer records than offsets and says where the offsets end. `batch_of` and
    `header_before` are its twins.
    """
    length = len(buffer) - _BEFORE_LENGTH_COUNTS
    last_delta = count - 1 if last_offset_delta is None else last_offset_delta
    _HEADER.pack_into(
        buffer, 0, base_offset, length, leader_epoch, 2, 0, attributes, last_delta,
        base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count,
    )  # fmt: skip
    _CRC.pack_into(buffer, _CRC_AT, crc32c(memoryview(buffer)[_CRC_COVERS_FROM:]))


def header_before(
    records: Buffer,
    *,
    attributes: int,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
) -> bytes:
    """The header of a batch whose records stay where they are, however large. Its twin is
    `write_header`, which takes half as long where the records lie behind room for a header."""
    covered = _COVERED.pack(
        attributes, count - 1, base_timestamp, max_timestamp, producer_id, producer_epoch,
        base_sequence, count,
    )  # fmt: skip
    length = HEADER_SIZE - _BEFORE_LENGTH_COUNTS + len(records)
    crc = crc32c(records, crc32c(covered))
    return _CRC_AND_BEFORE.pack(0, length, NO_EPOCH, 2, crc) + covered
