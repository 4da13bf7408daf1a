"""The kernel that turns a record-batch body into Arrow's buffers."""

from __future__ import annotations

from typing import Any

import numpy as np

from semel.columnar.compiled import helper, kernel
from semel.columnar.primitives import BYTES, copy, get_varint
from semel.columnar.shapes import HEADER_BYTES, HEADERS, KEY_BYTES, NAME_BYTES, ROWS, VALUE_BYTES


@helper
def set_valid(bitmap: Any, bit: Any) -> Any:
    bitmap[bit >> 3] |= np.uint8(1 << (bit & 7))


@kernel(
    f"int64({BYTES}, int64, int64, int64, int64, boolean, int64, int64, boolean, int64[::1],"
    " int64[::1], int64[::1], int32[::1], uint8[::1], uint8[::1], int32[::1], uint8[::1],"
    " uint8[::1], int32[::1], int32[::1], uint8[::1], int32[::1], uint8[::1], uint8[::1])"
)
def decode_records(
    data: Any,
    count: Any,
    base_offset: Any,
    base_ms: Any,
    max_ms: Any,
    append_time: Any,
    low: Any,
    high: Any,
    with_headers: Any,
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
) -> Any:
    """Append the records with low <= offset < high; 0, or -1 where the body is malformed."""
    size = len(data)
    at = np.int64(0)
    for _ in range(count):
        length, at = get_varint(data, at, size)
        if at < 0 or length < 0 or length > size - at:
            return -1
        end = at + length
        delta_ms, at = get_varint(data, at + 1, end)
        if at < 0:
            return -1
        delta, at = get_varint(data, at, end)
        if at < 0:
            return -1
        key_length, key_at = get_varint(data, at, end)
        if key_at < 0 or key_length > end - key_at:
            return -1
        at = key_at + max(key_length, 0)
        value_length, value_at = get_varint(data, at, end)
        if value_at < 0 or value_length > end - value_at:
            return -1
        at = value_at + max(value_length, 0)
        header_count, at = get_varint(data, at, end)
        if at < 0 or header_count < 0 or header_count > end - at:
            return -1
        offset = base_offset + delta
        if offset < low or offset >= high:
            at = end
            continue
        row = cursor[ROWS]
        offsets[row] = offset
        timestamps[row] = max_ms if append_time else base_ms + delta_ms
        if key_length >= 0:
            copy(key_data, cursor[KEY_BYTES], data, key_at, key_length)
            cursor[KEY_BYTES] += key_length
            set_valid(key_valid, row)
        keys[row + 1] = cursor[KEY_BYTES]
        if value_length >= 0:
            copy(value_data, cursor[VALUE_BYTES], data, value_at, value_length)
            cursor[VALUE_BYTES] += value_length
            set_valid(value_valid, row)
        values[row + 1] = cursor[VALUE_BYTES]
        if with_headers:
            for _ in range(header_count):
                name_length, name_at = get_varint(data, at, end)
                if name_at < 0 or name_length < 0 or name_length > end - name_at:
                    return -1
                at = name_at + name_length
                header_length, header_at = get_varint(data, at, end)
                if header_at < 0 or header_length > end - header_at:
                    return -1
                at = header_at + max(header_length, 0)
                header = cursor[HEADERS]
                copy(name_data, cursor[NAME_BYTES], data, name_at, name_length)
                cursor[NAME_BYTES] += name_length
                names[header + 1] = cursor[NAME_BYTES]
                if header_length >= 0:
                    copy(header_data, cursor[HEADER_BYTES], data, header_at, header_length)
                    cursor[HEADER_BYTES] += header_length
                    set_valid(header_valid, header)
                header_values[header + 1] = cursor[HEADER_BYTES]
                cursor[HEADERS] += 1
            header_lists[row + 1] = cursor[HEADERS]
        cursor[ROWS] += 1
        at = end
    return 0
