"""Rows per second into Kafka: the exactly-once sink beside Spark's own at-least-once one.

python -m benchmarks.spark_sink                                        the whole grid
python -m benchmarks.spark_sink --rows 1000000 --size 100 --partitions 6 --rounds 3 [--unkeyed]

Spark's own is tuned: few large requests, the same compression (none).
"""

import argparse
import sys
import uuid

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.spark_measure import Report, Stage, interleave, stage
from semel.spark import write

TUNED = {"kafka.linger.ms": "20", "kafka.batch.size": "262144", "kafka.acks": "all"}
KEYED_GOAL, UNKEYED_GOAL = 1.2, 1.3
#: Rows of each size, so that a round takes seconds.
GRID = {100: 2_000_000, 1024: 500_000}


def run(rounds: int = 3) -> None:
    report = Report("Spark sink")
    with stage() as where:
        for size, rows in GRID.items():
            for partitions in (6, 24):
                for keyed in (True, False):
                    measure(where, report, rows, size, partitions, keyed, rounds)
    report.finish()


def measure(
    where: Stage, report: Report, rows: int, size: int, partitions: int, keyed: bool, rounds: int
) -> None:
    frame = make_rows(where.spark, rows, size, keyed)

    def ours() -> None:
        topic = new_topic(where.bootstrap, partitions)
        write(frame, where.bootstrap, topic, name=topic)
        delete_topic(where.bootstrap, topic)

    def usual() -> None:
        topic = new_topic(where.bootstrap, partitions)
        writer = frame.write.format("kafka").option("kafka.bootstrap.servers", where.bootstrap)
        writer.options(**TUNED).option("topic", topic).save()
        delete_topic(where.bootstrap, topic)

    contestants = {"semel": ours, **({"spark": usual} if where.compares else {})}
    measured = interleave(contestants, rounds, megabytes=rows * (size + 40) // 500_000)
    name = f"{size} B, {partitions} partitions, {'keyed' if keyed else 'unkeyed'}"
    report.add(name, rows, measured, KEYED_GOAL if keyed else UNKEYED_GOAL)


def make_rows(spark, rows: int, size: int, keyed: bool = True):
    """Numbered rows that cost Spark little: its `rpad` alone took longer than either sink."""
    key = "cast(id AS string)" if keyed else "cast(NULL AS string)"
    number = "cast(1000000000 + id AS string)"  # ten digits
    return spark.range(rows, numPartitions=2).selectExpr(
        f"{key} AS key", f"concat({number}, '{'x' * (size - 10)}') AS value"
    )


def new_topic(bootstrap: str, partitions: int) -> str:
    name = f"bench-{uuid.uuid4().hex[:8]}"
    admin = _admin(bootstrap)
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result()
    return name


def delete_topic(bootstrap: str, name: str) -> None:
    """The logs are in memory: it is needed for the next round."""
    admin = _admin(bootstrap)
    for future in admin.delete_topics([name]).values():
        future.result()


def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=100, help="bytes of a value")
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--broker", choices=("semel", "apache"), default="semel")
    parser.add_argument("--unkeyed", action="store_true")
    parser.add_argument("--small-rows", action="store_true", help="as docs/guides/spark.md advises")
    given = parser.parse_args()
    report = Report("Spark sink")
    with stage(given.broker, given.small_rows) as where:
        measure(
            where, report, given.rows, given.size, given.partitions, not given.unkeyed, given.rounds
        )


if __name__ == "__main__":
    main() if len(sys.argv) > 1 else run()
