"""What a reading task does: Fetch answers decoded straight into Arrow, aborted data left out."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import DataType

from semel.client.consumer.records import ConsumerRecord
from semel.columnar.decode import HEADERS_TYPE, Columns, to_columns
from semel.columnar.kernels import load
from semel.errors import DataLostError, DeserializationError, FatalError
from semel.spark.kafka.client import (
    EARLIEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    BlockingCluster,
    check,
    patiently,
)
from semel.spark.kafka.settings import SparkSettings
from semel.spark.source.offsets import Range, offsets_at
from semel.spark.source.options import SourceOptions
from semel.wire.batches.committed import committed_only, fetched_batches
from semel.wire.errors import ErrorCode
from semel.wire.messages.fetch import FetchRequest

if TYPE_CHECKING:
    from semel.spark.source.values import Decoder

log = logging.getLogger(__name__)

_KERNELS = load()  # at import: workers are forked with the kernels loaded
_PATIENCE_S = 120.0
_NOTHING = memoryview(b"")
_VALUE = 1
_FIELDS = [
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("us", tz="UTC")),
    ("timestampType", pa.int32()),
]


class RangeReader:
    """Reads ranges one after the other, fetching the next piece while this one is decoded."""

    def __init__(self, options: SourceOptions, value_type: DataType | None = None) -> None:
        self._options = options
        self._cluster = _cluster(options.settings)
        self._decoder = _decoder(options, value_type) if value_type is not None else None
        fields = [*_FIELDS, ("headers", HEADERS_TYPE)] if options.headers else list(_FIELDS)
        if self._decoder is not None:
            fields[_VALUE] = ("value", self._decoder.type)
        self._schema = pa.schema(fields)

    def read(self, wanted: tuple[Range, ...]) -> Iterator[pa.RecordBatch]:
        with ThreadPoolExecutor(1, "semel-fetch") as ahead:
            for entry in wanted:
                yield from self._read_range(entry, ahead)

    def bytes_per_offset(self, wanted: Range) -> float:
        """How large records are around the beginning of a range."""
        part = self._fetch(wanted, wanted.low)
        batches = list(fetched_batches(part.records or _NOTHING)) if part else []
        if not batches:
            return 1.0
        size = sum(batch.size for batch in batches)
        return size / (batches[-1].next_offset - batches[0].base_offset)

    def _read_range(self, wanted: Range, ahead: ThreadPoolExecutor) -> Iterator[pa.RecordBatch]:
        position = wanted.low
        pending = ahead.submit(self._fetch, wanted, position)
        while position < wanted.high:
            part = pending.result()
            if part is None:
                # The oldest records are gone, and that was declared acceptable.
                position = self._first_offset(wanted, position)
                pending = ahead.submit(self._fetch, wanted, position)
                continue
            batches = list(fetched_batches(part.records or _NOTHING))
            start, position = position, batches[-1].next_offset if batches else wanted.high
            if position < wanted.high:
                pending = ahead.submit(self._fetch, wanted, position)
            aborted = [(a.producer_id, a.first_offset) for a in part.aborted_transactions or ()]
            kept = committed_only(batches, aborted) if self._options.committed_only else batches
            columns = to_columns(
                kept, max(start, wanted.low), wanted.high, self._options.headers, _KERNELS
            )
            if columns.count:
                yield self._batch(wanted, columns)

    def _fetch(self, wanted: Range, offset: int) -> Any:
        """One partition's answer, None if the offset is gone and that is allowed.

        An empty answer although the range is stable means that compaction has left nothing in it.
        """
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                part = self._ask(wanted, offset)
            except FatalError as error:
                if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                self._lost(wanted, offset)
                return None
            stable = self._options.committed_only
            end = part.last_stable_offset if stable else part.high_watermark
            if part.records or end >= wanted.high:
                return part
            if time.monotonic() > deadline:
                raise DataLostError(
                    f"{wanted.topic}-{wanted.partition} ends at {end}, before offset"
                    f" {wanted.high} which was there when the batch was planned"
                )

    def _ask(self, wanted: Range, offset: int) -> Any:
        limit = self._options.fetch_bytes
        part = FetchRequest.FetchPartition(
            partition=wanted.partition, fetch_offset=offset, partition_max_bytes=limit
        )
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=limit,
            isolation_level=READ_COMMITTED if self._options.committed_only else READ_UNCOMMITTED,
            topics=[FetchRequest.FetchTopic(topic=wanted.topic, partitions=[part])],
        )

        def attempt() -> Any:
            leader = self._cluster.leader(wanted.topic, wanted.partition)
            answer = leader.call(request)
            check(answer.error_code, "fetching")
            part = answer.responses[0].partitions[0]
            check(part.error_code, f"fetching {wanted.topic}-{wanted.partition} at {offset}")
            return part

        doing = f"fetching {wanted.topic}-{wanted.partition}"
        return patiently(attempt, doing, _PATIENCE_S, self._cluster.forget_leaders)

    def _lost(self, wanted: Range, offset: int) -> None:
        sentence = (
            f"{wanted.topic}-{wanted.partition}: offset {offset} is gone, by retention or because"
            " the topic was made anew"
        )
        if self._options.fail_on_data_loss:
            raise DataLostError(f"{sentence}; failOnDataLoss=false goes on with what is left")
        log.warning("%s; going on with what is left", sentence)

    def _first_offset(self, wanted: Range, offset: int) -> int:
        target = (wanted.topic, wanted.partition)
        first = offsets_at(self._cluster, {target: EARLIEST}, False)[target]
        return max(first, offset) if first > offset else wanted.high

    def _decode(self, wanted: Range, columns: Columns) -> pa.Array:
        from semel.spark.source.values import BadValue

        assert self._decoder is not None
        try:
            return self._decoder.decode(columns.values)
        except BadValue as bad:
            record = _record(wanted, columns, bad.place)
            raise DeserializationError(
                f"{record.topic_partition}, offset {record.offset}: the value does not fit"
                f" valueSchema: {bad}; badValues=null reads such values as null",
                record,
            ) from bad

    def _batch(self, wanted: Range, columns: Columns) -> pa.RecordBatch:
        count = columns.count
        arrays = [
            columns.keys,
            columns.values if self._decoder is None else self._decode(wanted, columns),
            pa.repeat(wanted.topic, count),
            pa.repeat(pa.scalar(wanted.partition, pa.int32()), count),
            columns.offsets,
            columns.timestamps_ms.cast(pa.timestamp("ms", tz="UTC")).cast(_FIELDS[5][1]),
            columns.timestamp_types,
        ]
        if columns.headers is not None:
            arrays.append(columns.headers)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _record(wanted: Range, columns: Columns, place: int) -> ConsumerRecord[bytes, bytes]:
    return ConsumerRecord(
        wanted.topic,
        wanted.partition,
        columns.offsets[place].as_py(),
        columns.timestamps_ms[place].as_py(),
        columns.keys[place].as_py(),
        columns.values[place].as_py(),
    )


def _decoder(options: SourceOptions, value_type: DataType) -> Decoder | None:
    # Arrow's JSON reader is loaded by those who need it.
    from semel.spark.source.values import decoder_of

    return decoder_of(options, value_type)


_CLUSTERS: dict[SparkSettings, BlockingCluster] = {}


def _cluster(settings: SparkSettings) -> BlockingCluster:
    """Connections outlive a task: the worker process is used again."""
    if settings not in _CLUSTERS:
        _CLUSTERS[settings] = BlockingCluster(settings)
    return _CLUSTERS[settings]
