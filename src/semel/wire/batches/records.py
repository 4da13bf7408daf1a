"""Records out of a batch: decompressed within a limit, decoded one after another, counted."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from semel.wire.batches.header import HEADER_SIZE, BatchHeader
from semel.wire.compression import DECOMPRESSED_LIMIT, decompress
from semel.wire.errors import ProtocolError

Header = tuple[str, bytes | None]

# Length, attributes, timestamp, offset, key, value and header count take one byte each at least.
_SMALLEST_RECORD = 7

_decoded = 0


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def decoded_records() -> int:
    """How many records this process has decoded so far."""
    return _decoded


def records_of(batch: BatchHeader, limit: int = DECOMPRESSED_LIMIT) -> list[Record]:
    """All records of a batch. `limit` bounds what they may unpack to."""
    data = body_of(batch, limit)
    records, position = _decoded_part(batch, data, 0, batch.count)
    _refuse_rest(data, position)
    return records


def record_chunks(batch: BatchHeader, data: bytes, size: int) -> Iterator[list[Record]]:
    """The records of a batch whose body is `data`, so many at a time: for batches whose records
    are too many to have all of them at once."""
    position = 0
    for first in range(0, batch.count, size):
        records, position = _decoded_part(batch, data, position, min(size, batch.count - first))
        yield records
    _refuse_rest(data, position)


def body_of(batch: BatchHeader, limit: int = DECOMPRESSED_LIMIT) -> bytes:
    """The bytes of a batch's records, unpacked; they have room for as many as it declares."""
    data = bytes(decompress(batch.compression, batch.view[HEADER_SIZE:], limit))
    if batch.count < 0 or batch.count * _SMALLEST_RECORD > len(data):
        raise ProtocolError(f"{batch.count} records do not fit into {len(data)} bytes")
    return data


def check_lengths(data: bytes, count: int, pause: Callable[[], None], every: int) -> None:
    """Whether `data` is exactly `count` records, one behind the other, judged by their lengths.
    `pause` is called again and again in between."""
    size, position = len(data), 0
    try:
        for first in range(0, count, every):
            for _ in range(min(every, count - first)):
                raw = data[position]
                position += 1
                if raw & 0x80:
                    raw, position = _longer_varint(data, position, raw)
                position += (raw >> 1) ^ -(raw & 1)
                if raw & 1 or position > size:
                    raise ProtocolError("a record ends beyond its batch")
            pause()
    except IndexError:
        raise ProtocolError(f"the batch declares {count} records and has fewer") from None
    _refuse_rest(data, position)


def _refuse_rest(data: bytes, position: int) -> None:
    if position != len(data):
        raise ProtocolError(f"{len(data) - position} bytes are left behind the last record")


def _decoded_part(
    batch: BatchHeader, data: bytes, position: int, count: int
) -> tuple[list[Record], int]:
    global _decoded
    try:
        records, position = _decode(batch, data, position, count)
    except IndexError:
        raise ProtocolError("a record ends beyond its batch") from None
    except UnicodeDecodeError as error:
        raise ProtocolError(f"a header's name is not UTF-8: {error.reason}") from None
    _decoded += len(records)
    return records, position


def _decode(batch: BatchHeader, data: bytes, position: int, count: int) -> tuple[list[Record], int]:
    """So many records from a position on, and the position behind them."""
    # Varints of one byte are by far the most frequent, hence the same test in line for each field;
    # a short field that leaves its record is noticed where the record ends.
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    append_time = batch.max_timestamp if batch.is_log_append_time else None
    size = len(data)
    records: list[Record] = []
    append, make = records.append, tuple.__new__
    key: bytes | None
    value: bytes | None
    for _ in range(count):
        raw = data[position]
        position += 1
        if raw & 0x80:
            raw, position = _longer_varint(data, position, raw)
        end = position + ((raw >> 1) ^ -(raw & 1))
        if end > size or end < position:
            raise ProtocolError(f"a record of {end - position} bytes, {size - position} are left")
        position += 1  # attributes: no bit of them is in use
        raw = data[position]
        position += 1
        if raw & 0x80:
            raw, position = _longer_varint(data, position, raw)
        timestamp = base_timestamp + ((raw >> 1) ^ -(raw & 1))
        raw = data[position]
        position += 1
        if raw & 0x80:
            raw, position = _longer_varint(data, position, raw)
        offset = base_offset + ((raw >> 1) ^ -(raw & 1))
        raw = data[position]
        position += 1
        if raw & 0x81:
            key, position = _nullable_bytes(data, position - 1, end)
        else:
            stop = position + (raw >> 1)
            key, position = data[position:stop], stop
        raw = data[position]
        position += 1
        if raw & 0x81:
            value, position = _nullable_bytes(data, position - 1, end)
        else:
            stop = position + (raw >> 1)
            value, position = data[position:stop], stop
        headers: tuple[Header, ...] = ()
        raw = data[position]
        position += 1
        if raw:
            headers, position = _headers(data, position - 1, end)
        if position != end:
            raise ProtocolError(f"a record says to end at {end}, its fields end at {position}")
        if append_time is not None:
            timestamp = append_time
        append(make(Record, (offset, timestamp, key, value, headers)))
    return records, position


def _nullable_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    raw = data[position]
    position += 1
    if raw & 0x80:
        raw, position = _longer_varint(data, position, raw)
    if raw & 1:  # negative: -1 is null
        if raw != 1:
            raise ProtocolError(f"a field of {-(raw + 1) // 2} bytes")
        return None, position
    stop = position + (raw >> 1)
    if stop > end:
        raise ProtocolError(f"a field of {raw >> 1} bytes, {end - position} are left of its record")
    return data[position:stop], stop


def _headers(data: bytes, position: int, end: int) -> tuple[tuple[Header, ...], int]:
    raw = data[position]
    position += 1
    if raw & 0x80:
        raw, position = _longer_varint(data, position, raw)
    count = (raw >> 1) ^ -(raw & 1)
    if not 0 <= 2 * count <= end - position:
        raise ProtocolError(f"{count} headers do not fit into {end - position} bytes")
    headers: list[Header] = []
    for _ in range(count):
        name, position = _nullable_bytes(data, position, end)
        if name is None:
            raise ProtocolError("a header without a name")
        value, position = _nullable_bytes(data, position, end)
        headers.append((name.decode(), value))
    return tuple(headers), position


def _longer_varint(data: bytes, position: int, first: int) -> tuple[int, int]:
    """The rest of a varint whose first byte said that more follow; still zig-zag encoded."""
    byte = data[position]
    position += 1
    value = first & 0x7F | (byte & 0x7F) << 7
    if not byte & 0x80:
        return value, position
    for shift in range(14, 70, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, position
    raise ProtocolError("a varint of more than ten bytes")
