"""Rows per second into Kafka: the exactly-once sink beside Spark's own at-least-once one.

python -m benchmarks.spark_sink --rows 1000000 --size 100 --partitions 6 --rounds 3
"""

import argparse
import json
import statistics
import time
import uuid

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.spark_jars import connector_jars
from semel.spark import session, write
from semel.testing.apache_kafka import ApacheKafka
from semel.testing.process import SemelProcess

# Spark's sink at its best: few large requests.
TUNED = {"kafka.linger.ms": "20", "kafka.batch.size": "262144", "kafka.acks": "all"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=100, help="bytes of a value")
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--broker", choices=("semel", "apache"), default="semel")
    parser.add_argument("--unkeyed", action="store_true")
    arguments = parser.parse_args()
    jars = connector_jars()
    more = {"spark__jars": ",".join(map(str, jars))} if jars else {}
    spark = session("benchmark", "local[2]", spark__ui__enabled=False,
                    spark__driver__memory="3g", **more)  # fmt: skip
    spark.sparkContext.setLogLevel("OFF")
    key = "NULL" if arguments.unkeyed else "cast(id AS string)"
    rows = spark.range(arguments.rows, numPartitions=2).selectExpr(
        f"cast({key} AS string) AS key", f"rpad(cast(id AS string), {arguments.size}, 'x') AS value"
    )
    broker = SemelProcess() if arguments.broker == "semel" else ApacheKafka()
    with broker:
        contestants = {"semel": lambda topic: write(rows, broker.bootstrap, topic, name=topic)}
        if jars:
            contestants["spark"] = lambda topic: usual(rows, broker.bootstrap, topic)
        seconds = {name: [] for name in contestants}
        for number in range(arguments.rounds + 1):
            for name, run in contestants.items():
                took = timed(run, new_topic(broker.bootstrap, arguments.partitions))
                if number:  # the first round warms up
                    seconds[name].append(took)
    spark.stop()
    report(arguments, seconds)


def usual(rows, bootstrap: str, topic: str) -> None:
    writer = rows.write.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    writer.options(**TUNED).option("topic", topic).save()


def new_topic(bootstrap: str, partitions: int) -> str:
    name = f"bench-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result()
    return name


def timed(run, topic: str) -> float:
    began = time.perf_counter()
    run(topic)
    return time.perf_counter() - began


def report(arguments, seconds: dict[str, list[float]]) -> None:
    medians = {name: statistics.median(took) for name, took in seconds.items()}
    result = {
        "rows": arguments.rows,
        "size": arguments.size,
        "partitions": arguments.partitions,
        "keyed": not arguments.unkeyed,
        "broker": arguments.broker,
        "rows_per_second": {name: round(arguments.rows / took) for name, took in medians.items()},
        "seconds": {name: [round(s, 2) for s in took] for name, took in seconds.items()},
    }
    if "spark" in medians:
        result["times_spark"] = round(medians["spark"] / medians["semel"], 2)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
