"""A whole pipeline in one value: topics in, a transformation, topics out, exactly once.

Pipeline(
    application="totals",
    bootstrap_servers="localhost:9092",
    source="orders",
    transform="SELECT key, upper(value) AS value FROM source",
    sink="shouted",
    checkpoint="checkpoints/totals",
).run()
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import BinaryType

from semel.client.settings import Servers
from semel.errors import SemelError, StoppedError
from semel.spark.kafka.settings import SparkSettings
from semel.spark.query_batch import source_positions
from semel.spark.sessions.session import session
from semel.spark.sink.keywords import SinkKeywords
from semel.spark.sink.options import sink_options
from semel.spark.sink.sink import ExactlyOnceSink
from semel.spark.sink.triggers import Trigger, triggered
from semel.spark.source.keywords import SourceKeywords
from semel.spark.source.source import register

Transform = Callable[..., DataFrame] | str
Topics = str | Sequence[str]
OutputMode = Literal["append", "update", "complete"]
#: What a pipeline may fail with: a sentence says enough.
FAILURES = (PySparkException, SemelError)
_VIEW = "source"
_REST = ("topic", "partition", "offset", "timestamp")
_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Progress:
    """What one micro-batch did."""

    application: str
    batch: int
    rows: int
    seconds: float
    #: Where the next batch begins, by (topic, partition); committed with the rows.
    committed: Mapping[tuple[str, int], int]
    lag: int
    #: Attempts that were aborted and run again.
    retries: int = 0

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass
class Pipeline:
    """Topics in, SQL or a function, topics out: every micro-batch is one Kafka transaction."""

    application: str
    """Its identity: what it has committed is kept by this name."""
    bootstrap_servers: Servers
    """Brokers to ask first: `host:port`, several separated by commas or in a list."""
    source: Topics | Mapping[str, Topics]
    """One topic, several, or a mapping from names to them: then each name is a view, or an argument
    of the function, so that streams can be joined."""
    transform: Transform
    """SQL over the view `source`, or a function of a DataFrame.

    It sees key and value as strings (or what `valueSchema` says), and topic, partition, offset and
    timestamp. Its result needs a column value, and may have key, headers, partition, timestamp, and
    topic if no `sink` is named.
    """
    checkpoint: str
    """The directory in which Spark keeps where the query stands."""
    sink: str | None = None
    """The topic to write to; left out, each row names its own in a column `topic`."""
    mode: OutputMode = "append"
    """Spark's output mode; aggregations need `update`."""
    watermark: str | None = None
    """How late a timestamp may be ("10 minutes"), for joins and deduplication."""
    options: SourceKeywords = field(default_factory=lambda: SourceKeywords())
    """Options of the source."""
    sink_options: SinkKeywords = field(default_factory=lambda: SinkKeywords())
    """Options of the sink."""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """How both sides reach the brokers, TLS and SASL: settings of the clients, in any of their
    spellings."""
    spark: Mapping[str, str | int | bool] = field(default_factory=dict)
    """Spark's own settings, for the session that `run` makes."""
    master: str = "local[*]"
    """Where Spark runs: on this machine, or `spark://…`."""

    def __post_init__(self) -> None:
        """What makes no sense is refused before anything is started."""
        SparkSettings.of(self.bootstrap_servers, self.settings)
        sink_options(self.sink_options)

    def start(
        self,
        spark: SparkSession | None = None,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        until: threading.Event | None = None,
        **trigger: Unpack[Trigger],
    ) -> StreamingQuery:
        """Start the query in the background; `trigger` is Spark's, such as availableNow=True.

        Whoever stops the query sets `until` first: a batch that is then cut short says so briefly.
        """
        spark = spark or self.session()
        register(spark)
        chosen: SinkKeywords = {"settings": self.settings, **self.sink_options}
        sink = ExactlyOnceSink(
            self.bootstrap_servers, self.sink, application=self.application, **chosen
        )
        watched = _Watched(sink, on_progress, until or threading.Event())
        writer = self._rows(spark).writeStream.foreachBatch(watched).outputMode(self.mode)
        writer = writer.option("checkpointLocation", self.checkpoint).queryName(self.application)
        return triggered(writer, trigger).start()

    def run(
        self,
        spark: SparkSession | None = None,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        until: threading.Event | None = None,
        **trigger: Unpack[Trigger],
    ) -> None:
        """Run until the query ends (with availableNow=True when all that is there is done), or
        until the event is set: by a signal's handler, or by another thread.
        """
        until = until or threading.Event()
        query = self.start(spark, on_progress, until, **trigger)
        try:
            # Not in one call of Java's: a signal would tear the connection to it.
            while query.isActive and not until.wait(_LOOK_S):
                pass
            if not until.is_set():
                query.awaitTermination()
        finally:
            # It is left between two batches or inside one, which is aborted: both are fine.
            if query.isActive:
                until.set()
                query.stop()

    def session(self, quiet: bool = False) -> SparkSession:
        """The Spark session that `run` uses if it is given none."""
        chosen = dict(self.spark)
        if self.master.startswith("local"):
            # Spark's 200 are meant for a cluster; every one of them costs a task and a state store.
            chosen.setdefault("spark.sql.shuffle.partitions", os.cpu_count() or 1)
        named = {name.replace(".", "__"): value for name, value in chosen.items()}
        return session(self.application, self.master, quiet=quiet, **named)

    def _rows(self, spark: SparkSession) -> DataFrame:
        named = isinstance(self.source, Mapping)
        sources = self.source if isinstance(self.source, Mapping) else {_VIEW: self.source}
        frames = {name: self._read(spark, topics) for name, topics in sources.items()}
        if callable(self.transform):
            return self.transform(**frames) if named else self.transform(frames[_VIEW])
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        return spark.sql(self.transform)

    def _read(self, spark: SparkSession, topics: Topics) -> DataFrame:
        names = topics if isinstance(topics, str) else ",".join(topics)
        chosen: dict[str, Any] = {f"kafka.{name}": value for name, value in self.settings.items()}
        servers = SparkSettings.of(self.bootstrap_servers).endpoints()
        chosen["kafka.bootstrap.servers"] = ",".join(map(str, servers))
        chosen["subscribe"] = names
        chosen["tasks"] = spark.sparkContext.defaultParallelism
        if self.options.get("startingOffsets") == "committed":
            chosen["application"] = self.application
        chosen.update(self.options)
        rows = spark.readStream.format("semel").options(**chosen).load()
        if self.watermark is not None:
            rows = rows.withWatermark("timestamp", self.watermark)
        headers = ["headers"] if "headers" in rows.columns else []
        return rows.selectExpr(_text(rows, "key"), _text(rows, "value"), *_REST, *headers)


def _text(rows: DataFrame, name: str) -> str:
    """Bytes as SQL wants them: text is what one calculates with."""
    is_bytes = isinstance(rows.schema[name].dataType, BinaryType)
    return f"cast({name} AS string) AS {name}" if is_bytes else name


class _Watched:
    """The sink, with a word about each batch."""

    def __init__(
        self,
        sink: ExactlyOnceSink,
        on_progress: Callable[[Progress], None],
        until: threading.Event,
    ) -> None:
        self._sink = sink
        self._on_progress = on_progress
        self._until = until

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        sink = self._sink
        began, rows, retries = time.monotonic(), sink.rows, sink.committer.retries
        try:
            sink(batch, batch_id)
        except Exception:
            if not self._until.is_set():
                raise
            # Spark looks into the trace of an interrupted job with a regular expression, which
            # overflows its stack: it gets a short one.
            raise StoppedError(f"batch {batch_id} was aborted: the pipeline was stopped") from None
        self._on_progress(
            Progress(
                application=sink.application,
                batch=batch_id,
                rows=sink.rows - rows,
                seconds=time.monotonic() - began,
                committed=source_positions(sink.committed.end) if sink.committed else {},
                lag=sink.lag(),
                retries=sink.committer.retries - retries,
            )
        )
