"""Record batches into Arrow columns: key, value, headers, offset, timestamp."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from semel.wire.batches import HEADER_SIZE, BatchHeader
from semel.wire.columnar.kernels import Kernels, load
from semel.wire.columnar.shapes import HEADERS, ROWS
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
    """Arrow buffers large enough for any split of the bytes; pages never touched cost nothing."""

    def __init__(self, rows: int, size: int, with_headers: bool, kernels: Kernels) -> None:
        self._decode_records = kernels.decode_records
        self.with_headers = with_headers
        self.cursor = np.zeros(6, np.int64)
        self.offsets = np.empty(rows, np.int64)
        self.timestamps = np.empty(rows, np.int64)
        self.types = np.empty(rows, np.int32)
        self.keys = _Growing(rows, size)
        self.values = _Growing(rows, size)
        # A header takes two bytes at least.
        count = size // 2 if with_headers else 0
        self.lists = np.zeros(rows + 1 if with_headers else 1, np.int32)
        self.names = _Growing(count, size if with_headers else 0)
        self.header_values = _Growing(count, size if with_headers else 0)

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
            self.offsets,
            self.timestamps,
            self.keys.starts,
            self.keys.data,
            self.keys.valid,
            self.values.starts,
            self.values.data,
            self.values.valid,
            self.lists,
            self.names.starts,
            self.names.data,
            self.header_values.starts,
            self.header_values.data,
            self.header_values.valid,
        )
        if status:
            raise ProtocolError(f"malformed records in the batch at offset {batch.base_offset}")
        self.types[before : self.cursor[ROWS]] = batch.is_log_append_time

    def columns(self) -> Columns:
        rows, headers = int(self.cursor[ROWS]), int(self.cursor[HEADERS])
        lists = None
        if self.with_headers:
            names = _checked_names(self.names.array(headers, pa.string(), nullable=False))
            values = self.header_values.array(headers, pa.binary())
            pairs = pa.StructArray.from_arrays(
                [names, values], fields=list(HEADERS_TYPE.value_type)
            )
            lists = pa.ListArray.from_arrays(pa.array(self.lists[: rows + 1]), pairs)
        return Columns(
            count=rows,
            keys=self.keys.array(rows, pa.binary()),
            values=self.values.array(rows, pa.binary()),
            offsets=pa.array(self.offsets[:rows]),
            timestamps_ms=pa.array(self.timestamps[:rows]),
            timestamp_types=pa.array(self.types[:rows]),
            headers=lists,
        )


def _checked_names(names: pa.Array) -> pa.Array:
    """The kernel copies bytes; Arrow would believe them to be UTF-8."""
    try:
        names.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ProtocolError(f"a header's name is not UTF-8: {error}") from None
    return names


class _Growing:
    def __init__(self, rows: int, size: int) -> None:
        self.starts = np.zeros(rows + 1, np.int32)
        self.data = np.empty(size, np.uint8)
        self.valid = np.zeros(rows // 8 + 1, np.uint8)

    def array(self, rows: int, kind: pa.DataType, nullable: bool = True) -> pa.Array:
        filled = int(self.starts[rows])
        buffers = [
            pa.py_buffer(self.valid) if nullable else None,
            pa.py_buffer(self.starts),
            pa.py_buffer(self.data[:filled]),
        ]
        return pa.Array.from_buffers(kind, rows, buffers)
