"""Values decoded by a schema while they are read: JSON by Arrow, Avro by fastavro.

A value that does not fit is an error that names its place, or null, as chosen (`badValues`).
"""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from semel.errors import UsageError
from semel.spark.source.options import SourceOptions


class BadValue(ValueError):
    """A value that its schema does not fit; `place` is its row."""

    def __init__(self, place: int, reason: object) -> None:
        super().__init__(str(reason))
        self.place = place


class Decoder(ABC):
    """Binary values into values of one type."""

    def __init__(self, options: SourceOptions, kind: DataType) -> None:
        self.type = to_arrow_type(kind, timezone="UTC")
        self._may_be_bad = options.bad_values == "null"

    @abstractmethod
    def decode(self, values: pa.Array) -> pa.Array:
        """Nulls stay null."""

    def _bad(self, place: int, reason: object) -> None:
        if not self._may_be_bad:
            raise BadValue(place, reason)


class JsonDecoder(Decoder):
    """All values of a fetch are parsed at once; if that fails, halves are, down to the bad ones."""

    def __init__(self, options: SourceOptions, kind: DataType) -> None:
        super().__init__(options, kind)
        fields = [("v", _as_parsed(self.type)), ("i", pa.int64())]
        self._parsing = pj.ParseOptions(
            explicit_schema=pa.schema(fields),
            newlines_in_values=True,
            unexpected_field_behavior="ignore",
        )

    def decode(self, values: pa.Array, first: int = 0) -> pa.Array:
        if not len(values):
            return pa.nulls(0, self.type)
        try:
            return self._parse(values)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            if len(values) == 1:
                self._bad(first, error)
                return pa.nulls(1, self.type)
        half = len(values) // 2
        parts = [self.decode(values[:half], first), self.decode(values[half:], first + half)]
        return pa.concat_arrays(parts)

    def _parse(self, values: pa.Array) -> pa.Array:
        """The parser sees one text. Each value is wrapped with its number, so that no value can
        pass for two, or for a part of its neighbour.
        """
        texts = pc.fill_null(values, b"null").cast(pa.string())
        numbers = np.arange(len(values))
        wrapped = pc.binary_join_element_wise(
            '{"v":', texts, ',"i":', pa.array(numbers).cast(pa.string()), "}\n", ""
        )
        text = wrapped.buffers()[2]
        whole = pj.ReadOptions(use_threads=False, block_size=len(text) + 1)
        table = pj.read_json(pa.BufferReader(text), whole, self._parsing)
        if not np.array_equal(table.column("i").to_numpy(), numbers):
            raise pa.ArrowInvalid("not one JSON value")
        return table.column("v").combine_chunks().cast(self.type)


class AvroDecoder(Decoder):
    """Avro's binary encoding without a container, one value at a time."""

    def __init__(self, options: SourceOptions, kind: DataType) -> None:
        super().__init__(options, kind)
        import fastavro

        from semel.spark.source.avro import readable

        assert options.value_schema is not None
        self._schema = fastavro.parse_schema(readable(json.loads(options.value_schema)))
        self._read = fastavro.schemaless_reader

    def decode(self, values: pa.Array) -> pa.Array:
        rows = [self._one(place, value) for place, value in enumerate(values.to_pylist())]
        return pa.array(rows, self.type)

    def _one(self, place: int, value: bytes | None) -> Any:
        if value is None:
            return None
        stream = io.BytesIO(value)
        try:
            found = self._read(stream, self._schema)
        # Bytes of another schema fail in many ways, EOFError and MemoryError among them.
        except Exception as error:
            self._bad(place, f"{type(error).__name__}: {error}")
            return None
        if stream.tell() != len(value):
            left = len(value) - stream.tell()
            self._bad(place, f"{left} bytes are left over after the value")
            return None
        return found


def decoder_of(options: SourceOptions, kind: DataType) -> Decoder | None:
    if options.value_format is None:
        return None
    return {"json": JsonDecoder, "avro": AvroDecoder}[options.value_format](options, kind)


def _as_parsed(kind: pa.DataType) -> pa.DataType:
    """Arrow's JSON reader takes dates as numbers of days; everybody writes them as text."""
    if pa.types.is_date(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_as_parsed(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_as_parsed(kind.value_type))
    if pa.types.is_map(kind):
        raise UsageError("valueFormat=json has no maps: name their keys as fields of a struct")
    return kind
