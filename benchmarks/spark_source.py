"""Rows per second out of Kafka into Spark, and through it: our source and sink beside Spark's own.

python -m benchmarks.spark_source --rows 1000000 --size 100 --partitions 6 --rounds 3 [--through]

`--through` reads, turns values to upper case and writes them to another topic, as a streaming
query: ours exactly once, Spark's at least once. `--batches` divides it into micro-batches.
"""

import argparse
import json
import statistics
import tempfile
import time

from benchmarks.spark_jars import connector_jars
from benchmarks.spark_sink import TUNED, new_topic
from semel.spark import ExactlyOnceSink, session, write
from semel.testing.apache_kafka import ApacheKafka
from semel.testing.process import SemelProcess


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=100, help="bytes of a value")
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=1)
    parser.add_argument("--broker", choices=("semel", "apache"), default="semel")
    parser.add_argument("--through", action="store_true")
    arguments = parser.parse_args()
    jars = connector_jars()
    more = {"spark__jars": ",".join(map(str, jars))} if jars else {}
    spark = session("benchmark", "local[2]", spark__ui__enabled=False,
                    spark__driver__memory="3g", **more)  # fmt: skip
    spark.sparkContext.setLogLevel("OFF")
    with SemelProcess() if arguments.broker == "semel" else ApacheKafka() as broker:
        bench = Bench(arguments, spark, broker.bootstrap)
        names = ["semel", "kafka"] if jars else ["semel"]
        seconds = {name: [] for name in names}
        for number in range(arguments.rounds + 1):
            for name in names:
                began = time.perf_counter()
                bench.through(name) if arguments.through else bench.read(name)
                if number:  # the first round warms up
                    seconds[name].append(time.perf_counter() - began)
    spark.stop()
    medians = {name: statistics.median(took) for name, took in seconds.items()}
    result = {
        **vars(arguments),
        "rows_per_second": {name: round(arguments.rows / took) for name, took in medians.items()},
        "seconds": {name: [round(s, 2) for s in took] for name, took in seconds.items()},
    }
    if "kafka" in medians:
        result["times_spark"] = round(medians["kafka"] / medians["semel"], 2)
    print(json.dumps(result, indent=1))


class Bench:
    """One topic full of rows, read again and again."""

    def __init__(self, arguments, spark, bootstrap: str) -> None:
        self.arguments, self.spark, self.bootstrap = arguments, spark, bootstrap
        self.topic = new_topic(bootstrap, arguments.partitions)
        rows = spark.range(arguments.rows, numPartitions=2).selectExpr(
            "cast(id AS string) AS key", f"rpad(cast(id AS string), {arguments.size}, 'x') AS value"
        )
        write(rows, bootstrap, self.topic, name=self.topic)

    def read(self, name: str) -> None:
        frame = self._options(self.spark.read.format(name)).load()
        frame.selectExpr("key", "value").write.format("noop").mode("overwrite").save()

    def through(self, name: str) -> None:
        output = new_topic(self.bootstrap, self.arguments.partitions)
        stream = self._options(self.spark.readStream.format(name))
        share = -(-self.arguments.rows // self.arguments.batches)
        # Control records take an offset each: a little more than the rows alone.
        rows = stream.option("maxOffsetsPerTrigger", share + 100).load()
        rows = rows.selectExpr("key", "upper(cast(value AS string)) AS value")
        with tempfile.TemporaryDirectory() as checkpoint:
            writer = rows.writeStream.trigger(availableNow=True)
            writer = writer.option("checkpointLocation", checkpoint)
            if name == "semel":
                writer = writer.foreachBatch(ExactlyOnceSink(self.bootstrap, output, output))
            else:
                writer = writer.format("kafka").options(**TUNED).option("topic", output)
                writer = writer.option("kafka.bootstrap.servers", self.bootstrap)
            writer.start().awaitTermination()

    def _options(self, reader):
        reader = reader.option("kafka.bootstrap.servers", self.bootstrap)
        reader = reader.option("startingOffsets", "earliest")
        return reader.option("subscribe", self.topic)


if __name__ == "__main__":
    main()
