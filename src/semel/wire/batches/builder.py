"""Builds a record batch: append records, then build it for a producer, compressed if wished."""

from collections.abc import Iterable
from struct import Struct
from typing import Any

from semel.wire.batches.header import (
    CRC_COVERED,
    HEADER_SIZE,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Attribute,
    batch_of,
    write_header,
)
from semel.wire.batches.records import Record
from semel.wire.compression import Compression, compress
from semel.wire.primitives import uvarint

_CRC_COVERED = Struct(CRC_COVERED)
_TRANSACTIONAL = int(Attribute.TRANSACTIONAL)
_CONTROL = int(Attribute.CONTROL)


def encode_varint(number: int) -> bytes:
    """Zig-zag, seven bits a byte, least significant first."""
    return uvarint((number << 1) ^ (number >> 63))


class _Varints(dict[int, bytes]):
    """The numbers that occur in nearly every record (lengths, deltas), encoded once; any other is
    encoded when it is asked for."""

    def __missing__(self, number: int) -> bytes:
        return encode_varint(number)


_VARINT = _Varints((number, encode_varint(number)) for number in range(-1, 2048))
_NULL = _VARINT[-1]
_NO_HEADERS = _VARINT[0]


class BatchBuilder:
    """Collects records in wire format. Offsets count from 0; the broker sets the base offset."""

    __slots__ = ("base_timestamp", "body", "compression", "count", "max_timestamp")

    def __init__(self, compression: Compression = Compression.NONE) -> None:
        self.compression = compression
        self.body = bytearray(HEADER_SIZE)
        self.count = 0
        self.base_timestamp = NO_TIMESTAMP
        self.max_timestamp = NO_TIMESTAMP

    @property
    def size(self) -> int:
        """The size of the batch so far, were it not compressed."""
        return len(self.body)

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> int:
        """Adds a record; returns its offset within the batch."""
        count = self.count
        delta = timestamp - self.base_timestamp if count else 0
        record = b"".join(
            (
                b"\0",  # attributes: no bit of them is in use
                _VARINT[delta],
                _VARINT[count],
                _NULL if key is None else _VARINT[len(key)],
                key or b"",
                _NULL if value is None else _VARINT[len(value)],
                value or b"",
                _encode_headers(headers) if headers else _NO_HEADERS,
            )
        )
        # Nothing was changed up to here: what cannot be encoded leaves no trace.
        if not count:
            self.base_timestamp = timestamp
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        body = self.body
        body += _VARINT[len(record)]
        body += record
        self.count = count + 1
        return count

    def build(
        self,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        transactional: bool = False,
        control: bool = False,
        base_offset: int = 0,
        leader_epoch: int = NO_EPOCH,
    ) -> bytearray:
        """The finished batch; the builder is used up, it may be the same memory."""
        if not self.count:
            raise ValueError("a batch needs at least one record")
        buffer = self.body
        if self.compression is not Compression.NONE:
            with memoryview(self.body) as body:
                packed = compress(self.compression, body[HEADER_SIZE:])
            buffer = bytearray(HEADER_SIZE)
            buffer += packed
        flags = (_TRANSACTIONAL if transactional else 0) | (_CONTROL if control else 0)
        write_header(
            buffer,
            attributes=self.compression | flags,
            count=self.count,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
        )
        return buffer


def build_few(
    records: Iterable[tuple[bytes | None, bytes | None, *tuple[Any, ...]]],
    timestamp: int,
    *,
    attributes: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_EPOCH,
    base_offset: int = 0,
    leader_epoch: int = NO_EPOCH,
) -> bytearray:
    """A batch of records of one time, each a tuple that begins with its key and value: what
    coordinators write. Its twin is `BatchBuilder`, which takes 1.6 times as long."""
    varint = _VARINT
    parts: list[bytes] = []
    count = 0
    for given in records:
        key, value = given[0], given[1]
        record = b"".join(
            (
                b"\0\0",  # attributes, timestamp delta
                varint[count],
                varint[-1 if key is None else len(key)],
                key or b"",
                varint[-1 if value is None else len(value)],
                value or b"",
                _NO_HEADERS,
            )
        )
        parts += varint[len(record)], record
        count += 1
    fields = _CRC_COVERED.pack(
        attributes, count - 1, timestamp, timestamp, producer_id, producer_epoch, NO_SEQUENCE, count
    )
    return batch_of(fields + b"".join(parts), base_offset, leader_epoch)


def encode_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    """A record as it lies in a batch of that base: for compaction, which keeps offsets."""
    fields = b"".join(
        (
            b"\0",
            encode_varint(record.timestamp - base_timestamp),
            encode_varint(record.offset - base_offset),
            _NULL if record.key is None else _VARINT[len(record.key)],
            record.key or b"",
            _NULL if record.value is None else _VARINT[len(record.value)],
            record.value or b"",
            _encode_headers(record.headers),
        )
    )
    return _VARINT[len(fields)] + fields


def _encode_headers(headers: Iterable[tuple[str, bytes | None]]) -> bytes:
    items = list(headers)
    parts = [encode_varint(len(items))]
    for name, value in items:
        encoded = name.encode()
        parts += (
            _VARINT[len(encoded)],
            encoded,
            _NULL if value is None else _VARINT[len(value)],
            value or b"",
        )
    return b"".join(parts)
