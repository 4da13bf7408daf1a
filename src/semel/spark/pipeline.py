"""A whole pipeline in one value: topics in, a transformation, a topic out, exactly once.

Pipeline(
    application="totals",
    bootstrap="localhost:9092",
    source="orders",
    transform="SELECT key, upper(value) AS value FROM source",
    sink="shouted",
    checkpoint="checkpoints/totals",
).run()
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from semel.spark.sessions import session
from semel.spark.sink import ExactlyOnceSink
from semel.spark.source import register

Transform = Callable[[DataFrame], DataFrame] | str
_VIEW = "source"
# Rows as SQL wants them: bytes are seldom what one calculates with.
_TEXT = ("cast(key AS string) AS key", "cast(value AS string) AS value")
_REST = ("topic", "partition", "offset", "timestamp")


@dataclass(frozen=True, slots=True)
class Progress:
    """What one micro-batch did."""

    application: str
    batch: int
    rows: int
    seconds: float
    lag: int

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass
class Pipeline:
    """`transform` is SQL over the view `source`, or a function of a DataFrame.

    It sees key and value as strings, and topic, partition, offset and timestamp; its result needs a
    column value, and may have key, headers, partition, timestamp, and topic if no `sink` is named.
    """

    application: str
    bootstrap: str
    source: str
    transform: Transform
    checkpoint: str
    sink: str | None = None
    mode: str = "append"
    options: Mapping[str, str] = field(default_factory=dict)
    sink_options: Mapping[str, Any] = field(default_factory=dict)
    master: str = "local[*]"

    def start(
        self,
        spark: SparkSession | None = None,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        **trigger: Any,
    ) -> StreamingQuery:
        """Start the query in the background; `trigger` is Spark's, such as availableNow=True."""
        spark = spark or session(self.application, self.master)
        register(spark)
        sink = ExactlyOnceSink(self.bootstrap, self.sink, self.application, **self.sink_options)
        watched = _Watched(sink, on_progress)
        writer = self._rows(spark).writeStream.foreachBatch(watched).outputMode(self.mode)
        writer = writer.option("checkpointLocation", self.checkpoint).queryName(self.application)
        return (writer.trigger(**trigger) if trigger else writer).start()

    def run(
        self,
        spark: SparkSession | None = None,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        **trigger: Any,
    ) -> None:
        """Run until the query ends: with availableNow=True when all that is there is done."""
        self.start(spark, on_progress, **trigger).awaitTermination()

    def _rows(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("semel").option("kafka.bootstrap.servers", self.bootstrap)
        reader = reader.option("subscribe", self.source)
        reader = reader.option("tasks", spark.sparkContext.defaultParallelism)
        for name, value in self.options.items():
            reader = reader.option(name, value)
        rows = reader.load()
        headers = ["headers"] if "headers" in rows.columns else []
        rows = rows.selectExpr(*_TEXT, *_REST, *headers)
        if callable(self.transform):
            return self.transform(rows)
        rows.createOrReplaceTempView(_VIEW)
        return spark.sql(self.transform)


class _Watched:
    """The sink, with a word about each batch."""

    def __init__(self, sink: ExactlyOnceSink, on_progress: Callable[[Progress], None]) -> None:
        self._sink = sink
        self._on_progress = on_progress

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        began, before = time.monotonic(), self._sink.rows
        self._sink(batch, batch_id)
        self._on_progress(
            Progress(
                application=self._sink.application,
                batch=batch_id,
                rows=self._sink.rows - before,
                seconds=time.monotonic() - began,
                lag=self._sink.lag(),
            )
        )
