"""Kernels that turn rows into record-batch bodies: where a row goes, and its bytes.

A *lane* is one stream of batches: a topic's partition, or the topic's lane for rows that may go to
any partition.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semel.columnar.compiled import helper, kernel
from semel.columnar.primitives import (
    BYTES,
    INTS,
    INTS32,
    copy,
    is_valid,
    put_varint,
    varint_size,
    zigzag,
)
from semel.columnar.shapes import DONE, FULL, NO_BUFFER

_M = np.uint32(0x5BD1E995)
_NULL = np.uint64(1)  # zigzag of the length -1


@helper
def murmur2(data: Any, start: Any, length: Any) -> Any:
    """Kafka's Utils.murmur2; its positive part modulo the partition count places a record."""
    digest = np.uint32(0x9747B28C) ^ np.uint32(length)
    at = start
    end = start + (length & ~np.int64(3))
    while at < end:
        word = (
            np.uint32(data[at])
            | (np.uint32(data[at + 1]) << np.uint32(8))
            | (np.uint32(data[at + 2]) << np.uint32(16))
            | (np.uint32(data[at + 3]) << np.uint32(24))
        )
        word = np.uint32(word * _M)
        word ^= word >> np.uint32(24)
        digest = np.uint32(digest * _M) ^ np.uint32(word * _M)
        at += 4
    rest = length & 3
    if rest == 3:
        digest ^= np.uint32(data[at + 2]) << np.uint32(16)
    if rest >= 2:
        digest ^= np.uint32(data[at + 1]) << np.uint32(8)
    if rest >= 1:
        digest = np.uint32((digest ^ np.uint32(data[at])) * _M)
    digest ^= digest >> np.uint32(13)
    digest = np.uint32(digest * _M)
    return digest ^ (digest >> np.uint32(15))


@kernel(
    f"int64({INTS32}, {INTS}, {INTS}, {INTS}, {BYTES}, {BYTES}, int64, {INTS32}, {BYTES}, int64,"
    " int32[::1])"
)
def assign_lanes(
    topics: Any,
    first_lanes: Any,
    partition_counts: Any,
    keys: Any,
    key_data: Any,
    key_valid: Any,
    key_bit: Any,
    wanted: Any,
    wanted_valid: Any,
    wanted_bit: Any,
    lanes: Any,
) -> Any:
    """Each row's lane. Empty `topics` or `wanted` mean one topic, or no partition column.

    Returns -1, or the row whose wanted partition does not exist.
    """
    for row in range(len(lanes)):
        topic = topics[row] if len(topics) else 0
        partitions = partition_counts[topic]
        if len(wanted) and is_valid(wanted_valid, wanted_bit + row):
            partition = np.int64(wanted[row])
            if partition < 0 or partition >= partitions:
                return row
        elif is_valid(key_valid, key_bit + row) and len(keys) > 1:
            digest = murmur2(key_data, keys[row], keys[row + 1] - keys[row])
            partition = np.int64(digest & np.uint32(0x7FFFFFFF)) % partitions
        else:
            partition = partitions
        lanes[row] = first_lanes[topic] + partition
    return -1


@helper
def headers_size(
    first: Any, last: Any, names: Any, values: Any, value_valid: Any, value_bit: Any
) -> Any:
    size = 0
    for header in range(first, last):
        length = names[header + 1] - names[header]
        size += varint_size(zigzag(length)) + length
        if is_valid(value_valid, value_bit + header):
            length = values[header + 1] - values[header]
            size += varint_size(zigzag(length)) + length
        else:
            size += 1
    return size


@helper
def put_field(out: Any, at: Any, data: Any, start: Any, length: Any) -> Any:
    """A length and its bytes; a length of -1 is null."""
    at = put_varint(out, at, zigzag(length))
    if length > 0:
        copy(out, at, data, start, length)
        at += length
    return at


@kernel(
    f"Tuple((int64, int32, int64))(int64, {INTS32}, {INTS}, {BYTES}, {BYTES}, int64, {INTS},"
    f" {BYTES}, {BYTES}, int64, {INTS}, {INTS}, {BYTES}, {INTS}, {BYTES}, {BYTES}, int64, {INTS},"
    " int64,"
    " uint8[::1], int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])"
)
def scatter(
    row: Any,
    lanes: Any,
    keys: Any,
    key_data: Any,
    key_valid: Any,
    key_bit: Any,
    values: Any,
    value_data: Any,
    value_valid: Any,
    value_bit: Any,
    header_lists: Any,
    header_names: Any,
    header_name_data: Any,
    header_values: Any,
    header_value_data: Any,
    header_valid: Any,
    header_bit: Any,
    timestamps: Any,
    now_ms: Any,
    pool: Any,
    capacity: Any,
    slots: Any,
    ends: Any,
    counts: Any,
    base_ms: Any,
    max_ms: Any,
) -> Any:
    """Append rows in order to their lanes' open buffers; stop at (row, lane, reason) when one is
    full or missing.
    """
    while row < len(lanes):
        lane = lanes[row]
        if slots[lane] < 0:
            return row, lane, NO_BUFFER
        timestamp = timestamps[row] if len(timestamps) else now_ms
        if counts[lane] == 0:
            base_ms[lane] = timestamp
            max_ms[lane] = timestamp
        key_length = np.int64(-1)
        key_start = np.int64(0)
        if len(keys) > 1 and is_valid(key_valid, key_bit + row):
            key_start = keys[row]
            key_length = keys[row + 1] - key_start
        value_length = np.int64(-1)
        value_start = np.int64(0)
        if len(values) > 1 and is_valid(value_valid, value_bit + row):
            value_start = values[row]
            value_length = values[row + 1] - value_start
        first = np.int64(0)
        last = np.int64(0)
        header_bytes = np.int64(0)
        if len(header_lists) > 1:
            first = header_lists[row]
            last = header_lists[row + 1]
            header_bytes = headers_size(
                first, last, header_names, header_values, header_valid, header_bit
            )
        delta_ms = zigzag(timestamp - base_ms[lane])
        delta = zigzag(counts[lane])
        size = (
            1
            + varint_size(delta_ms)
            + varint_size(delta)
            + varint_size(zigzag(key_length))
            + max(key_length, 0)
            + varint_size(zigzag(value_length))
            + max(value_length, 0)
            + varint_size(zigzag(last - first))
            + header_bytes
        )
        if ends[lane] + size + varint_size(zigzag(size)) > capacity:
            return row, lane, FULL
        start = slots[lane] * capacity
        at = put_varint(pool, start + ends[lane], zigzag(size))
        pool[at] = 0
        at = put_varint(pool, at + 1, delta_ms)
        at = put_varint(pool, at, delta)
        at = put_field(pool, at, key_data, key_start, key_length)
        at = put_field(pool, at, value_data, value_start, value_length)
        at = put_varint(pool, at, zigzag(last - first))
        for header in range(first, last):
            name = header_names[header]
            at = put_field(pool, at, header_name_data, name, header_names[header + 1] - name)
            if is_valid(header_valid, header_bit + header):
                value = header_values[header]
                length = header_values[header + 1] - value
                at = put_field(pool, at, header_value_data, value, length)
            else:
                at = put_varint(pool, at, _NULL)
        ends[lane] = at - start
        counts[lane] += 1
        max_ms[lane] = max(max_ms[lane], timestamp)
        row += 1
    return row, np.int32(-1), DONE
