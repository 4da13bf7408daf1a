"""An Arrow batch of rows to write, laid out as the flat arrays that the kernels read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Array = np.ndarray[Any, Any]

_NO_INTS = np.zeros(0, np.int64)
_NO_INTS32 = np.zeros(0, np.int32)
_NO_BYTES = np.zeros(0, np.uint8)
_SMALL = (pa.types.is_string, pa.types.is_binary)
_LARGE = (pa.types.is_large_string, pa.types.is_large_binary)


@dataclass(frozen=True, slots=True)
class BinaryColumn:
    """Variable-length bytes: row i is data[starts[i]:starts[i + 1]], null where its validity bit is
    0.
    """

    starts: Array
    data: Array
    valid: Array
    bit: int


ABSENT = BinaryColumn(_NO_INTS, _NO_BYTES, _NO_BYTES, 0)


@dataclass(frozen=True, slots=True)
class Headers:
    """Row i has the headers lists[i] … lists[i + 1] of `names` and `values`."""

    lists: Array
    names: BinaryColumn
    values: BinaryColumn


NO_HEADERS = Headers(_NO_INTS, ABSENT, ABSENT)


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns of a table to send; they are those of Spark's Kafka sink."""

    count: int
    keys: BinaryColumn
    values: BinaryColumn
    headers: Headers
    timestamps: Array
    partitions: Array
    partitions_valid: Array
    partitions_bit: int
    topic_names: tuple[str, ...]
    topics: Array

    @classmethod
    def of(cls, batch: pa.RecordBatch, topic: str | None, now_ms: int) -> Rows:
        """`topic` is given, or each row names its own in the column `topic`."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        partitions, valid, bit = _partitions(columns.get("partition"))
        names, codes = ((topic,), _NO_INTS32) if topic else _topics(columns.get("topic"))
        return cls(
            count=batch.num_rows,
            keys=field(columns.get("key")),
            values=field(columns.get("value")),
            headers=_headers(columns.get("headers")),
            timestamps=_timestamps(columns.get("timestamp"), now_ms),
            partitions=partitions,
            partitions_valid=valid,
            partitions_bit=bit,
            topic_names=names,
            topics=codes,
        )

    def bounds(self, first: int, stop: int) -> Array:
        """Upper bounds of the encoded sizes of some rows."""
        sizes = np.full(stop - first, 64, np.int64)
        for part in (self.keys, self.values):
            if len(part.starts):
                sizes += np.diff(part.starts[first : stop + 1])
        if len(self.headers.lists):
            lists = self.headers.lists[first : stop + 1]
            sizes += 10 * np.diff(lists)
            for part in (self.headers.names, self.headers.values):
                sizes += np.diff(part.starts[lists])
        return sizes


def field(array: pa.Array | None) -> BinaryColumn:
    if array is None or pa.types.is_null(array.type) or len(array) == 0:
        return ABSENT
    if any(is_type(array.type) for is_type in _SMALL):
        width: Any = np.int32
    elif any(is_type(array.type) for is_type in _LARGE):
        width = np.int64
    else:
        raise TypeError(f"expected a string or binary column, got {array.type}")
    valid, starts, data = array.buffers()
    window = np.frombuffer(starts, width)[array.offset : array.offset + len(array) + 1]
    return BinaryColumn(
        starts=np.ascontiguousarray(window, np.int64),
        data=_bytes(data),
        valid=_bytes(valid) if array.null_count else _NO_BYTES,
        bit=array.offset,
    )


def _bytes(buffer: pa.Buffer | None) -> Array:
    return np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else _NO_BYTES


def _timestamps(array: pa.Array | None, now_ms: int) -> Array:
    if array is None or pa.types.is_null(array.type) or len(array) == 0:
        return _NO_INTS
    if pa.types.is_timestamp(array.type):
        # Spark counts microseconds.
        array = (
            pc.floor_temporal(array, unit="millisecond").cast(pa.timestamp("ms")).cast(pa.int64())
        )
    if array.null_count:
        array = array.fill_null(now_ms)
    times = np.ascontiguousarray(array.to_numpy(zero_copy_only=False), np.int64)
    # Brokers let it in and fail later: whoever copies such a record, as compaction does, throws
    # (Kafka's MemoryRecordsBuilder). Java's ProducerRecord refuses it too.
    if times.min() < 0:
        raise ValueError("a timestamp before 1970: Kafka's begin there")
    return times


def _partitions(array: pa.Array | None) -> tuple[Array, Array, int]:
    if array is None or pa.types.is_null(array.type) or len(array) == 0:
        return _NO_INTS32, _NO_BYTES, 0
    array = array.cast(pa.int32())
    valid, numbers = array.buffers()
    window = np.frombuffer(numbers, np.int32)[array.offset : array.offset + len(array)]
    return window, _bytes(valid) if array.null_count else _NO_BYTES, array.offset


def _topics(array: pa.Array | None) -> tuple[tuple[str, ...], Array]:
    if array is None or array.null_count:
        raise ValueError("a row without a topic: give the sink a topic, or fill the column `topic`")
    encoded = array.dictionary_encode()
    codes = np.ascontiguousarray(encoded.indices.to_numpy(), np.int32)
    return tuple(encoded.dictionary.to_pylist()), codes


def _headers(array: pa.Array | None) -> Headers:
    if array is None or pa.types.is_null(array.type) or len(array) == 0:
        return NO_HEADERS
    # `flatten` leaves out what null lists may still cover, so the lists are counted anew.
    flat = array.flatten()
    lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    lists = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths, out=lists[1:])
    names, values = pc.struct_field(flat, 0), pc.struct_field(flat, 1)
    if names.null_count:
        raise ValueError("a header without a key")
    return Headers(lists=lists, names=_filled(names), values=_filled(values))


def _filled(array: pa.Array) -> BinaryColumn:
    """A header field is indexed by position even when every list is empty."""
    return (
        field(array) if len(array) else BinaryColumn(np.zeros(1, np.int64), _NO_BYTES, _NO_BYTES, 0)
    )
