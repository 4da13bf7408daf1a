"""The source: `spark.readStream.format("semel")` and `spark.read.format("semel")`.

    register(spark)
    df = (spark.readStream.format("semel")
          .option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders").load())

An offset of the stream carries its *origin*, where the query once began: Spark logs only where a
batch ends, and would ask anew for the beginning of a first batch that it has to repeat.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType
from pyspark.sql.udf import _wrap_function

from semel.errors import NoCommittedOffsetsError
from semel.spark.kafka.client import EARLIEST, LATEST, BlockingCluster
from semel.spark.sessions.worker import freeze_imports
from semel.spark.source.offsets import (
    Range,
    from_ledger,
    limit_to,
    offsets_at,
    pack,
    ranges,
    resolve,
)
from semel.spark.source.options import Positions, SourceOptions, as_json, positions_of

_JVM_SOURCE = "org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource"


@dataclass
class Work(InputPartition):
    """The ranges that one task reads."""

    ranges: tuple[Range, ...]


class SemelSource(DataSource):
    """Kafka topics as rows, in the columns of Spark's own Kafka source."""

    @classmethod
    def name(cls) -> str:
        return "semel"

    def schema(self) -> str:
        return SourceOptions.of(self.options).columns()

    def reader(self, schema: StructType) -> DataSourceReader:
        return BatchReader(SourceOptions.of(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamReader(SourceOptions.of(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from semel.spark.format.options import FormatOptions
        from semel.spark.format.writers import BatchWriter

        return BatchWriter(FormatOptions.of(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        # `overwrite` is the output mode "complete": every batch has all rows, as Kafka's sink has.
        from semel.spark.format.options import FormatOptions
        from semel.spark.format.writers import StreamWriter

        return StreamWriter(FormatOptions.of(self.options), schema)


def register(spark: SparkSession) -> None:
    """Make `format("semel")` known to a session."""
    if not hasattr(spark, "_jsparkSession"):  # Spark Connect: the server registers it
        spark.dataSource.register(SemelSource)
        return
    jvm: Any = spark.sparkContext._jvm
    made = getattr(jvm, _JVM_SOURCE)(
        _shareable(jvm, _wrap_function(spark.sparkContext, SemelSource))
    )
    spark._jsparkSession.dataSource().registerPython(SemelSource.name(), made)


def _shareable(jvm: Any, function: Any) -> Any:
    """The function, with an environment that may be changed while it is read.

    All queries of a session share it. A query that starts puts names into it (Spark's
    PythonStreamingSourceRunner), and if a task of another query was serialised meanwhile, that task
    could not be read (OptionalDataException) and the other query died.
    """
    environment = jvm.java.util.concurrent.ConcurrentHashMap(function.envVars())
    return jvm.SimplePythonFunction(
        function.command(),
        environment,
        function.pythonIncludes(),
        function.pythonExec(),
        function.pythonVer(),
        function.broadcastVars(),
        function.accumulator(),
    )


class _Reading:
    """What both readers share."""

    def __init__(self, options: SourceOptions, schema: StructType | None = None) -> None:
        self.options = options
        #: What values are decoded to, if they are.
        self.value_type = schema["value"].dataType if schema and options.value_format else None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark reads once even where there is nothing, with no partition at all.
        if not isinstance(partition, Work):
            return iter(())
        # Only tasks decode: the processes that plan for the driver start without the kernels.
        from semel.spark.source.reading import RangeReader

        freeze_imports()
        return RangeReader(self.options, self.value_type).read(partition.ranges)

    def _pack(self, start: Positions, end: Positions) -> list[Work]:
        options = self.options
        tasks = options.tasks or os.cpu_count() or 1
        found = pack(ranges(start, end), tasks, options.min_partitions, options.max_per_task)
        return [Work(entry) for entry in found]

    def _start(self, cluster: BlockingCluster) -> tuple[Positions, bool]:
        """Where to begin, and whether that comes from the ledger."""
        options, choice = self.options, self.options.starting
        if choice == "committed" and options.starting_times is None:
            try:
                return from_ledger(cluster, options), True
            except NoCommittedOffsetsError:
                if options.committed_fallback is None:
                    raise
                choice = options.committed_fallback
        targets = options.partitions(cluster)
        return _by_topic(resolve(cluster, options, targets, choice, options.starting_times)), False

    def _with_new_partitions(
        self, cluster: BlockingCluster, begin: Positions, end: Positions
    ) -> Positions:
        """Partitions that appeared since are read from their beginning."""
        new = [(t, p) for t, parts in end.items() for p in parts if p not in begin.get(t, {})]
        if not new:
            return begin
        first = offsets_at(cluster, dict.fromkeys(new, EARLIEST), False)
        known = {(t, p): offset for t, parts in begin.items() for p, offset in parts.items()}
        return _by_topic({**known, **first})


class BatchReader(_Reading, DataSourceReader):
    """A bounded read."""

    def partitions(self) -> Sequence[InputPartition]:
        options, cluster = self.options, self.options.cluster()
        start, _ = self._start(cluster)
        targets = options.partitions(cluster)
        end = _by_topic(resolve(cluster, options, targets, options.ending, options.ending_times))
        return self._pack(self._with_new_partitions(cluster, start, end), end)


class StreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An unbounded one."""

    def __init__(self, options: SourceOptions, schema: StructType | None = None) -> None:
        super().__init__(options, schema)
        self._cluster: BlockingCluster | None = None
        self._initial: dict[str, Any] | None = None
        self._final: Positions | None = None

    def initialOffset(self) -> dict[str, Any]:
        # Asked more than once; "latest" and "committed" must not move between.
        if self._initial is None:
            self._initial = self._find_origin()
        return self._initial

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        latest = self._final or self._ends()
        begin = self._with_new_partitions(self._connected(), positions_of(start["topics"]), latest)
        # A topic made anew may end before where the query is: its loss is noticed when it is read.
        latest = {
            t: {p: max(end, begin[t][p]) for p, end in parts.items()} for t, parts in latest.items()
        }
        if not isinstance(limit, ReadAllAvailable):
            latest = self._limited(begin, latest)
        return {"topics": as_json(latest), "origin": start["origin"]}

    def getDefaultReadLimit(self) -> ReadLimit:
        # Spark only hands it back; with both limits, the smaller of them counts.
        if self.options.max_offsets is not None:
            return ReadMaxRows(self.options.max_offsets)
        if self.options.max_bytes is not None:
            return ReadMaxBytes(self.options.max_bytes)
        return ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return {"topics": as_json(self._ends())}

    def prepareForTriggerAvailableNow(self) -> None:
        self._final = self._ends()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin = positions_of(start["topics"])
        if start["origin"] != end["origin"]:
            begin = positions_of(end["origin"]["topics"])
        finish = positions_of(end["topics"])
        return self._pack(self._with_new_partitions(self._connected(), begin, finish), finish)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: the sink commits the offsets inside its transaction."""

    def _find_origin(self) -> dict[str, Any]:
        start, from_the_ledger = self._start(self._connected())
        origin: dict[str, Any] = {"topics": as_json(start)}
        if from_the_ledger:
            origin["ledger"] = self.options.application
        return {"topics": origin["topics"], "origin": origin}

    def _ends(self) -> Positions:
        cluster = self._connected()
        wanted = dict.fromkeys(self.options.partitions(cluster), LATEST)
        return _by_topic(offsets_at(cluster, wanted, self.options.committed_only))

    def _limited(self, begin: Positions, latest: Positions) -> Positions:
        allowed = self.options.max_offsets
        if self.options.max_bytes is not None:
            by_size = self._offsets_in(self.options.max_bytes, begin, latest)
            allowed = by_size if allowed is None else min(allowed, by_size)
        return latest if allowed is None else limit_to(begin, latest, allowed)

    def _offsets_in(self, size: int, begin: Positions, latest: Positions) -> int:
        """About how many: by the records at the start of the largest partition."""
        largest = max(ranges(begin, latest), key=lambda entry: entry.size, default=None)
        if largest is None:
            return 1
        from semel.spark.source.reading import RangeReader

        return max(1, int(size / RangeReader(self.options).bytes_per_offset(largest)))

    def _connected(self) -> BlockingCluster:
        if self._cluster is None:
            self._cluster = self.options.cluster()
        return self._cluster

    def __getstate__(self) -> dict[str, Any]:
        # The reader is pickled into every task; its connections stay behind.
        return {**self.__dict__, "_cluster": None}


def _by_topic(offsets: dict[tuple[str, int], int]) -> Positions:
    found: Positions = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[partition] = offset
    return found
