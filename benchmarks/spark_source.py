"""Rows per second out of Kafka into Spark, and through it: our source and sink beside Spark's own.

python -m benchmarks.spark_source                                      the whole grid
python -m benchmarks.spark_source --rows 1000000 --size 100 --partitions 6 --rounds 3 [--through]

`--through` reads, turns values to upper case and writes them to another topic, as a streaming
query: ours exactly once, Spark's at least once. `--batches` divides it into micro-batches.
"""

import argparse
import sys
import tempfile

from benchmarks.spark_measure import Report, Stage, interleave, stage
from benchmarks.spark_sink import GRID, TUNED, delete_topic, make_rows, new_topic
from semel.spark import ExactlyOnceSink, write

PARTITIONS = 6
SOURCE_GOALS = {100: 2.5, 1024: 1.5}
#: By the size of a value and the number of batches.
THROUGH_GOALS = {(100, 1): 1.3, (1024, 1): 1.05, (100, 8): 1.0, (1024, 8): 1.0}
_FORMATS = {"semel": "semel", "spark": "kafka"}


def run(rounds: int = 3) -> None:
    report = Report("Spark source and pipeline")
    with stage() as where:
        for size, rows in GRID.items():
            bench = Bench(where, rows, size, PARTITIONS)
            bench.measure_reading(report, rounds)
            for batches in (1, 8):
                bench.measure_through(report, batches, rounds)
            bench.close()
    report.finish()


class Bench:
    """One topic full of rows, read again and again."""

    def __init__(self, where: Stage, rows: int, size: int, partitions: int) -> None:
        self.where, self.rows, self.size, self.partitions = where, rows, size, partitions
        self.topic = new_topic(where.bootstrap, partitions)
        write(make_rows(where.spark, rows, size), where.bootstrap, self.topic, name=self.topic)

    def close(self) -> None:
        delete_topic(self.where.bootstrap, self.topic)

    def measure_reading(self, report: Report, rounds: int) -> None:
        measured = interleave({n: lambda n=n: self.read(n) for n in self._names()}, rounds)
        report.add(f"read {self.size} B", self.rows, measured, SOURCE_GOALS.get(self.size))

    def measure_through(self, report: Report, batches: int, rounds: int) -> None:
        contestants = {n: lambda n=n: self.through(n, batches) for n in self._names()}
        measured = interleave(contestants, rounds, self.rows * (self.size + 40) // 500_000)
        name = f"Kafka → upper() → Kafka, {self.size} B, {batches} batches"
        report.add(name, self.rows, measured, THROUGH_GOALS.get((self.size, batches)))

    def read(self, name: str) -> None:
        frame = self._options(self.where.spark.read.format(_FORMATS[name])).load()
        frame.selectExpr("key", "value").write.format("noop").mode("overwrite").save()

    def through(self, name: str, batches: int) -> None:
        output = new_topic(self.where.bootstrap, self.partitions)
        stream = self._options(self.where.spark.readStream.format(_FORMATS[name]))
        # Control records take an offset each: a little more than the rows alone.
        rows = stream.option("maxOffsetsPerTrigger", -(-self.rows // batches) + 100).load()
        rows = rows.selectExpr("key", "upper(cast(value AS string)) AS value")
        with tempfile.TemporaryDirectory() as checkpoint:
            writer = rows.writeStream.trigger(availableNow=True)
            writer = writer.option("checkpointLocation", checkpoint)
            if name == "semel":
                writer = writer.foreachBatch(
                    ExactlyOnceSink(self.where.bootstrap, output, application=output)
                )
            else:
                writer = writer.format("kafka").options(**TUNED).option("topic", output)
                writer = writer.option("kafka.bootstrap.servers", self.where.bootstrap)
            writer.start().awaitTermination()
        delete_topic(self.where.bootstrap, output)

    def _names(self) -> list[str]:
        return ["semel", "spark"] if self.where.compares else ["semel"]

    def _options(self, reader):
        reader = reader.option("kafka.bootstrap.servers", self.where.bootstrap)
        reader = reader.option("startingOffsets", "earliest")
        return reader.option("subscribe", self.topic)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=100, help="bytes of a value")
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=1)
    parser.add_argument("--broker", choices=("semel", "apache"), default="semel")
    parser.add_argument("--through", action="store_true")
    parser.add_argument("--small-rows", action="store_true", help="as docs/guides/spark.md advises")
    given = parser.parse_args()
    report = Report("Spark source and pipeline")
    with stage(given.broker, given.small_rows) as where:
        bench = Bench(where, given.rows, given.size, given.partitions)
        if given.through:
            bench.measure_through(report, given.batches, given.rounds)
        else:
            bench.measure_reading(report, given.rounds)


if __name__ == "__main__":
    main() if len(sys.argv) > 1 else run()
