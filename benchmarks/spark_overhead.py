"""What a micro-batch of one row costs beyond Spark: the sink beside an identity `mapInArrow`.

python -m benchmarks.spark_overhead [--batches 30]

Both run in foreachBatch over the same stream of one-row batches; the difference is the ledger, the
claims, one record and the commit of a transaction. The goal is at most 100 ms.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.spark_measure import stage
from benchmarks.spark_sink import new_topic
from semel.spark import ExactlyOnceSink

GOAL_MS = 100
WARM_UP = 5


def identity(batches: Iterator) -> Iterator:
    yield from batches


def run(batches: int = 30) -> None:
    with stage() as where:
        topic = new_topic(where.bootstrap, 6)
        sink = ExactlyOnceSink(where.bootstrap, topic, application=topic)

        def plain(batch, number: int) -> None:
            batch.mapInArrow(identity, "key string, value string").collect()

        times = one_row_batches(where.spark, {"identity": plain, "semel": sink}, batches)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    over = medians["semel"] - medians["identity"]
    shown = {name: round(value, 1) for name, value in medians.items()}
    print(json.dumps({"ms": shown, "overhead_ms": round(over, 1), "goal_ms": GOAL_MS}))


def one_row_batches(spark, contestants: dict[str, Callable], count: int) -> dict[str, list[float]]:
    """Milliseconds inside foreachBatch; the queries take turns, a batch each."""
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    with tempfile.TemporaryDirectory() as directory:
        queries = [
            _start(spark, Path(directory), n, run, taken[n]) for n, run in contestants.items()
        ]
        for number in range(WARM_UP + count):
            for name, query in zip(contestants, queries, strict=True):
                source = Path(directory) / f"{name}-in" / f"{number}.txt"
                source.with_suffix(".new").write_text("row\n")
                source.with_suffix(".new").rename(source)
                query.processAllAvailable()
        for query in queries:
            query.stop()
    return {name: each[WARM_UP:] for name, each in taken.items()}


def _start(spark, directory: Path, name: str, run: Callable, taken: list[float]):
    (directory / f"{name}-in").mkdir()
    rows = spark.readStream.schema("value string").option("pathGlobFilter", "*.txt")
    rows = rows.text(str(directory / f"{name}-in")).selectExpr("value AS key", "value")

    def timed(batch, number: int) -> None:
        began = time.perf_counter()
        run(batch, number)
        taken.append((time.perf_counter() - began) * 1e3)

    writer = rows.writeStream.foreachBatch(timed)
    return writer.option("checkpointLocation", str(directory / f"{name}-checkpoint")).start()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=30)
    run(parser.parse_args().batches)


if __name__ == "__main__":
    main()
