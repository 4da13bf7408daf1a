"""The kernels in plain Python: the same arguments, the same bytes, some hundred times slower.

They serve until the compiled ones are ready (`kernels.ready`), and are the reference that these are
tested against.
"""

from __future__ import annotations

from typing import Any

from semel.columnar.shapes import (
    DONE,
    FULL,
    HEADER_BYTES,
    HEADERS,
    KEY_BYTES,
    NAME_BYTES,
    NO_BUFFER,
    ROWS,
    VALUE_BYTES,
)
from semel.wire.batches.builder import encode_varint
from semel.wire.murmur2 import murmur2

#: A turn of the event loop is kept to some milliseconds.
ROWS_PER_TURN = 1_000

_NULL = encode_varint(-1)
_BITS_64 = (1 << 64) - 1


def assign_lanes(
    topics: Any,
    first_lanes: Any,
    partition_counts: Any,
    keys: Any,
    key_data: Any,
    key_valid: Any,
    key_bit: int,
    wanted: Any,
    wanted_valid: Any,
    wanted_bit: int,
    lanes: Any,
) -> int:
    data = memoryview(key_data)
    starts = keys.tolist()
    for row in range(len(lanes)):
        topic = int(topics[row]) if len(topics) else 0
        partitions = int(partition_counts[topic])
        if len(wanted) and _is_valid(wanted_valid, wanted_bit + row):
            partition = int(wanted[row])
            if not 0 <= partition < partitions:
                return row
        elif len(starts) > 1 and _is_valid(key_valid, key_bit + row):
            key = data[starts[row] : starts[row + 1]]
            partition = (murmur2(key) & 0x7FFF_FFFF) % partitions
        else:
            partition = partitions
        lanes[row] = int(first_lanes[topic]) + partition
    return -1


def scatter(
    row: int,
    lanes: Any,
    keys: Any,
    key_data: Any,
    key_valid: Any,
    key_bit: int,
    values: Any,
    value_data: Any,
    value_valid: Any,
    value_bit: int,
    header_lists: Any,
    header_names: Any,
    header_name_data: Any,
    header_values: Any,
    header_value_data: Any,
    header_valid: Any,
    header_bit: int,
    timestamps: Any,
    now_ms: int,
    pool: Any,
    capacity: int,
    slots: Any,
    ends: Any,
    counts: Any,
    base_ms: Any,
    max_ms: Any,
) -> tuple[int, int, int]:
    memory = memoryview(pool)
    while row < len(lanes):
        lane = int(lanes[row])
        slot = int(slots[lane])
        if slot < 0:
            return row, lane, NO_BUFFER
        timestamp = int(timestamps[row]) if len(timestamps) else now_ms
        count, end = int(counts[lane]), int(ends[lane])
        if not count:
            base_ms[lane] = max_ms[lane] = timestamp
        parts = [
            b"\0",
            encode_varint(timestamp - int(base_ms[lane])),
            encode_varint(count),
            _put(keys, key_data, key_valid, key_bit, row),
            _put(values, value_data, value_valid, value_bit, row),
        ]
        if len(header_lists) > 1:
            first, last = int(header_lists[row]), int(header_lists[row + 1])
            parts.append(encode_varint(last - first))
            for header in range(first, last):
                parts.append(_put(header_names, header_name_data, b"", 0, header))
                parts.append(
                    _put(header_values, header_value_data, header_valid, header_bit, header)
                )
        else:
            parts.append(b"\0")
        body = b"".join(parts)
        record = encode_varint(len(body)) + body
        if end + len(record) > capacity:
            return row, lane, FULL
        start = slot * capacity + end
        memory[start : start + len(record)] = record
        ends[lane] = end + len(record)
        counts[lane] = count + 1
        max_ms[lane] = max(int(max_ms[lane]), timestamp)
        row += 1
    return row, -1, DONE


def decode_records(
    data: Any,
    count: int,
    base_offset: int,
    base_ms: int,
    max_ms: int,
    append_time: bool,
    low: int,
    high: int,
    with_headers: bool,
    cursor: Any,
    offsets: Any,
    timestamps: Any,
    keys: Any,
    key_data: Any,
    key_valid: Any,
    values: Any,
    value_data: Any,
    value_valid: Any,
    header_lists: Any,
    names: Any,
    name_data: Any,
    header_values: Any,
    header_data: Any,
    header_valid: Any,
) -> int:
    body = memoryview(data)
    at = 0
    try:
        for _ in range(count):
            length, at = _varint(body, at, len(body))
            if not 0 <= length <= len(body) - at:
                return -1
            end = at + length
            delta_ms, at = _varint(body, at + 1, end)
            delta, at = _varint(body, at, end)
            key, at = _field(body, at, end)
            value, at = _field(body, at, end)
            header_count, at = _varint(body, at, end)
            if not 0 <= header_count <= end - at:
                return -1
            offset = _wrapped(base_offset + delta)
            if low <= offset < high:
                row = int(cursor[ROWS])
                offsets[row] = offset
                timestamps[row] = max_ms if append_time else _wrapped(base_ms + delta_ms)
                _append(cursor, KEY_BYTES, row, key, keys, key_data, key_valid)
                _append(cursor, VALUE_BYTES, row, value, values, value_data, value_valid)
                if with_headers:
                    for _ in range(header_count):
                        name, at = _field(body, at, end)
                        if name is None:
                            return -1
                        content, at = _field(body, at, end)
                        header = int(cursor[HEADERS])
                        _append(cursor, NAME_BYTES, header, name, names, name_data, None)
                        _append(
                            cursor, HEADER_BYTES, header, content, header_values, header_data,
                            header_valid,
                        )  # fmt: skip
                        cursor[HEADERS] += 1
                    header_lists[row + 1] = cursor[HEADERS]
                cursor[ROWS] += 1
            at = end
    except _Malformed:
        return -1
    return 0


class _Malformed(Exception):
    """The bytes end inside a field, or a number is too long."""


def _is_valid(bitmap: Any, bit: int) -> bool:
    return not len(bitmap) or bool(bitmap[bit >> 3] >> (bit & 7) & 1)


def _put(starts: Any, data: Any, valid: Any, bit: int, index: int) -> bytes:
    """A length and its bytes, or null."""
    if len(starts) < 2 or not _is_valid(valid, bit + index):
        return _NULL
    content = bytes(memoryview(data)[int(starts[index]) : int(starts[index + 1])])
    return encode_varint(len(content)) + content


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= _BITS_64
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    raise _Malformed


def _field(data: memoryview, at: int, end: int) -> tuple[memoryview | None, int]:
    length, at = _varint(data, at, end)
    if length > end - at:
        raise _Malformed
    return (data[at : at + length], at + length) if length >= 0 else (None, at)


def _append(
    cursor: Any, filled: int, index: int, content: Any, starts: Any, data: Any, valid: Any
) -> None:
    start = int(cursor[filled])
    if content is not None:
        end = start + len(content)
        memoryview(data)[start:end] = content
        cursor[filled] = end
        if valid is not None:
            valid[index >> 3] |= 1 << (index & 7)
    starts[index + 1] = cursor[filled]


def _wrapped(number: int) -> int:
    """As 64-bit arithmetic has it."""
    number &= _BITS_64
    return number - (1 << 64) if number >> 63 else number
