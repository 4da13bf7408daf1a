"""Record batches into Arrow columns: key, value, headers, offset, timestamp."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from semel.columnar.kernels import Kernels, load
from semel.columnar.shapes import HEADERS, ROWS
from semel.wire.batches import HEADER_SIZE, BatchHeader
from semel.wire.compression import decompress
from semel.wire.errors import ProtocolError

HEADERS_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_LARGEST = (1 << 31) - 1  # Arrow's binary columns count their bytes in 32 bits


@dataclass(frozen=True, slots=True)
class Columns:
    """Decoded rows."""

    count: int
    keys: pa.Array
    values: pa.Array
    offsets: pa.Array
    timestamps_ms: pa.Array
    timestamp_types: pa.Array
    headers: pa.Array | None


def to_columns(
    batches: Iterable[BatchHeader],
    low: int,
    high: int,
    with_headers: bool = False,
    kernels: Kernels | None = None,
) -> Columns:
    """Records of data batches with low <= offset < high, as Arrow arrays."""
    kept = [batch for batch in batches if not batch.is_control]
    bodies = [decompress(batch.compression, batch.view[HEADER_SIZE:]) for batch in kept]
    size = sum(len(body) for body in bodies)
    if size > _LARGEST:
        raise ProtocolError("more than 2 GiB of records at once: fetch fewer bytes at a time")
    for batch, body in zip(kept, bodies, strict=True):
        # Before anything is allocated by a number off the wire.
        if batch.count > len(body):
            raise ProtocolError("a record batch that counts more records than it has bytes")
    rows = sum(batch.count for batch in kept)
    target = _Target(rows, size, with_headers, kernels or load())
    for batch, body in zip(kept, bodies, strict=True):
        target.append(batch, body, low, high)
    return target.columns()


class _Target:
    """Arrow buffers large enough for any split of the bytes, cut to size when they are filled."""

    def __init__(self, rows: int, size: int, with_headers: bool, kernels: Kernels) -> None:
        self._decode_records = kernels.decode_records
        self.with_headers = with_headers
        self.cursor = np.zeros(6, np.int64)
        self.offsets = _Memory(rows, np.int64)
        self.timestamps = _Memory(rows, np.int64)
        self.types = _Memory(rows, np.int32)
        self.keys = _Growing(rows, size)
        self.values = _Growing(rows, size)
        # A header takes two bytes at least.
        headers = size // 2 if with_headers else 0
        self.lists = _Memory(rows + 1 if with_headers else 1, np.int32)
        self.lists.array[0] = 0
        self.names = _Growing(headers, size if with_headers else 0)
        self.header_values = _Growing(headers, size if with_headers else 0)

    def append(self, batch: BatchHeader, body: Any, low: int, high: int) -> None:
        before = int(self.cursor[ROWS])
        status = self._decode_records(
            np.frombuffer(body, np.uint8),
            batch.count,
            batch.base_offset,
            batch.base_timestamp,
            batch.max_timestamp,
            batch.is_log_append_time,
            low,
            high,
            self.with_headers,
            self.cursor,
            self.offsets.array,
            self.timestamps.array,
            self.keys.starts.array,
            self.keys.data.array,
            self.keys.valid,
            self.values.starts.array,
            self.values.data.array,
            self.values.valid,
            self.lists.array,
            self.names.starts.array,
            self.names.data.array,
            self.header_values.starts.array,
            self.header_values.data.array,
            self.header_values.valid,
        )
        if status:
            raise ProtocolError(f"malformed records in the batch at offset {batch.base_offset}")
        self.types.array[before : self.cursor[ROWS]] = batch.is_log_append_time

    def columns(self) -> Columns:
        rows, headers = int(self.cursor[ROWS]), int(self.cursor[HEADERS])
        lists = None
        if self.with_headers:
            names = _checked_names(self.names.cut(headers, pa.string(), nullable=False))
            values = self.header_values.cut(headers, pa.binary())
            pairs = pa.StructArray.from_arrays(
                [names, values], fields=list(HEADERS_TYPE.value_type)
            )
            starts = self.lists.cut(rows + 1)
            lists = pa.Array.from_buffers(HEADERS_TYPE, rows, [None, starts], children=[pairs])
        return Columns(
            count=rows,
            keys=self.keys.cut(rows, pa.binary()),
            values=self.values.cut(rows, pa.binary()),
            offsets=_numbers(pa.int64(), rows, self.offsets),
            timestamps_ms=_numbers(pa.int64(), rows, self.timestamps),
            timestamp_types=_numbers(pa.int32(), rows, self.types),
            headers=lists,
        )


def _checked_names(names: pa.Array) -> pa.Array:
    """The kernel copies bytes; Arrow would believe them to be UTF-8."""
    try:
        names.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ProtocolError(f"a header's name is not UTF-8: {error}") from None
    return names


def _numbers(kind: pa.DataType, rows: int, memory: _Memory) -> pa.Array:
    return pa.Array.from_buffers(kind, rows, [None, memory.cut(rows)])


class _Memory:
    """From Arrow's pool, which has the pages of tables that are gone: fresh ones cost more than
    all of the decoding.
    """

    def __init__(self, count: int, kind: Any) -> None:
        self._buffer = pa.allocate_buffer(count * np.dtype(kind).itemsize, resizable=True)
        self.array: Any = np.frombuffer(self._buffer, kind)

    def cut(self, count: int) -> pa.Buffer:
        """What was filled; a table that is kept holds no more. The array must not be used after."""
        size = count * self.array.itemsize
        self.array = None
        self._buffer.resize(size, shrink_to_fit=True)
        return self._buffer


class _Growing:
    def __init__(self, rows: int, size: int) -> None:
        self.starts = _Memory(rows + 1, np.int32)
        self.starts.array[0] = 0
        self.data = _Memory(size, np.uint8)
        self.valid = np.zeros(rows // 8 + 1, np.uint8)

    def cut(self, rows: int, kind: pa.DataType, nullable: bool = True) -> pa.Array:
        filled = int(self.starts.array[rows])
        valid = pa.py_buffer(self.valid[: rows // 8 + 1]) if nullable else None
        return pa.Array.from_buffers(
            kind, rows, [valid, self.starts.cut(rows + 1), self.data.cut(filled)]
        )
