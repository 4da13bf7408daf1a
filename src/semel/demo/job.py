"""The Spark job of `semel demo`: orders in, enriched orders and totals by country out, exactly
once; and the enriched ones once more through Spark's usual sink, if its jars are there.

Runs as a process of its own, because the demonstration kills it:
`python -m semel.demo.job '{"bootstrap_servers": …}'`. Prints one line of JSON per event.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from semel.spark import ExactlyOnceSink, session

ORDERS, ENRICHED, TOTALS = "orders", "orders-enriched", "country-totals"
USUAL = "orders-usual"
COUNTRIES = ("Brazil", "Canada", "France", "Ghana", "India", "Japan", "Kenya", "Norway")
CUSTOMERS = 200
_SMALL_BATCH = 64 << 10
_LONGEST_WAIT_S = 10.0
_TOPIC_OF = {"enrich": ENRICHED, "totals": TOTALS}
_ORDER = "order long, customer int, quantity int, cents long"


@dataclass(frozen=True)
class KillOnce:
    """A step that lets rows pass, and kills the worker it runs in, once.

    If `after` is given it waits for that file: then the rows have begun to arrive at the broker.
    """

    flag: str
    after: str | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen = 0
        for batch in batches:
            yield batch
            seen += batch.num_rows
        if seen and os.path.exists(self.flag):
            self._wait()
            # Two tasks may have got here: one of them dies.
            with suppress(FileNotFoundError):
                os.unlink(self.flag)
                os.kill(os.getpid(), signal.SIGKILL)

    def _wait(self) -> None:
        deadline = time.monotonic() + _LONGEST_WAIT_S
        while self.after and not os.path.exists(self.after) and time.monotonic() < deadline:
            time.sleep(0.01)


def main() -> None:
    plan = json.loads(sys.argv[1])
    more = {"spark__jars": ",".join(plan["jars"])} if plan["jars"] else {}
    spark = session(
        "semel demo",
        # Four tries per task, as on a cluster; a plain local master has one.
        "local[2,4]",
        spark__ui__enabled=False,
        spark__sql__shuffle__partitions=2,
        # Rows move on in small steps, so that some have arrived when a task dies.
        spark__sql__execution__arrow__maxRecordsPerBatch=1000,
        quiet=True,
        **more,
    )
    say("spark", version=spark.version)
    killing = _Killing(plan["die_at"], _writing(plan))
    queries = [_begun(_start(plan, killing, "enrich", enrich(spark, plan), "append"))]
    queries.append(_begun(_start(plan, killing, "totals", totals(spark, plan), "update")))
    if plan["jars"]:
        queries.append(_start_usual(plan, enrich(spark, plan, "usual")))
    for query in queries:
        query.awaitTermination()
    say("finished")


def orders(spark: SparkSession, plan: dict[str, Any]) -> DataFrame:
    """Orders with the customer's country, which comes from a table."""
    stream = (
        spark.readStream.format("semel")
        .option("kafka.bootstrap.servers", plan["bootstrap_servers"])
        .option("subscribe", ORDERS)
        .option("maxOffsetsPerTrigger", plan["rows_per_batch"])
        .load()
    )
    parsed = stream.select(f.from_json(f.col("value").cast("string"), _ORDER).alias("o")).select(
        "o.*"
    )
    table = [(number, country_of(number)) for number in range(CUSTOMERS)]
    customers = spark.createDataFrame(table, "customer int, country string")
    return parsed.join(f.broadcast(customers), "customer").withColumn(
        "total", f.col("quantity") * f.col("cents")
    )


def enrich(spark: SparkSession, plan: dict[str, Any], query: str = "enrich") -> DataFrame:
    rows = orders(spark, plan).select(
        f.col("order").cast("string").alias("key"),
        f.to_json(f.struct("order", "customer", "country", "total")).alias("value"),
    )
    flag = str(flag_of(Path(plan["directory"]), query))
    after = str(_writing(plan)) if query == "enrich" else None
    return rows.mapInArrow(KillOnce(flag, after), "key string, value string")


def totals(spark: SparkSession, plan: dict[str, Any]) -> DataFrame:
    by_country = orders(spark, plan).groupBy("country")
    return by_country.agg(f.count("*").alias("orders"), f.sum("total").alias("cents")).select(
        f.col("country").alias("key"),
        f.to_json(f.struct("country", "orders", "cents")).alias("value"),
    )


def flag_of(directory: Path, query: str) -> Path:
    """While it is there, the first task of the query that sees it removes it and dies."""
    return directory / f"kill-a-task-of-{query}"


def _writing(plan: dict[str, Any]) -> Path:
    """Is there as soon as a task has been allowed to write."""
    return Path(plan["directory"]) / "writing"


def country_of(customer: int) -> str:
    return COUNTRIES[customer * 7 % len(COUNTRIES)]


def _start(
    plan: dict[str, Any], killing: _Killing, name: str, rows: DataFrame, mode: str
) -> StreamingQuery:
    # Small batches leave early, so that a task dies with half of its work already at the broker.
    sink = ExactlyOnceSink(
        plan["bootstrap_servers"],
        _TOPIC_OF[name],
        application=f"demo-{name}",
        batch_size=_SMALL_BATCH,
    )
    sink.committer.at = killing
    watch = _Watch(name, sink)
    writer = rows.writeStream.foreachBatch(watch).outputMode(mode).trigger(availableNow=True)
    where = str(Path(plan["directory"]) / f"checkpoint-{name}")
    return writer.option("checkpointLocation", where).start()


def _begun(query: StreamingQuery) -> StreamingQuery:
    """Each starts a Python of its own: all at once they are slower than one after the other."""
    while query.isActive and query.status["message"].startswith("Initializing"):
        time.sleep(0.05)
    return query


def _start_usual(plan: dict[str, Any], rows: DataFrame) -> StreamingQuery:
    """Spark's own sink in foreachBatch, only so that its batches can be told of as well."""

    def write(batch: DataFrame, batch_id: int) -> None:
        writer = batch.write.format("kafka").option("topic", USUAL)
        writer.option("kafka.bootstrap.servers", plan["bootstrap_servers"]).save()
        say("batch", query="usual", batch=batch_id, rows=plan["rows_per_batch"])

    where = str(Path(plan["directory"]) / "checkpoint-usual")
    writer = rows.writeStream.foreachBatch(write).trigger(availableNow=True)
    return writer.option("checkpointLocation", where).start()


class _Watch:
    """Tells of every batch."""

    def __init__(self, name: str, sink: ExactlyOnceSink) -> None:
        self._name = name
        self._sink = sink

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        before, retries = self._sink.rows, self._sink.committer.retries
        self._sink(batch, batch_id)
        say(
            "batch",
            query=self._name,
            batch=batch_id,
            rows=self._sink.rows - before,
            retries=self._sink.committer.retries - retries,
            skipped=self._sink.rows == before,
        )


class _Killing:
    """Kills this driver when its queries have come to a place for the nth time."""

    def __init__(self, die_at: list[Any] | None, writing: Path) -> None:
        self._writing = writing
        self._point: str = die_at[0] if die_at else ""
        self._times: int = die_at[1] if die_at else 0
        self._lock = threading.Lock()

    def __call__(self, point: str, batch: int) -> None:
        if point == "grant":
            self._writing.touch()
        with self._lock:
            if point != self._point:
                return
            self._times -= 1
            if self._times == 0:
                say("dying", point=point)
                os.kill(os.getpid(), signal.SIGKILL)


def say(event: str, **more: Any) -> None:
    print(json.dumps({"event": event, **more}), flush=True)


if __name__ == "__main__":
    main()
