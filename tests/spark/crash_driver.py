"""A driver of its own process that a test kills: python crash_driver.py '{"bootstrap": …}'."""

import json
import os
import signal
import sys

from semel.spark import ExactlyOnceSink, session, start


def main() -> None:
    plan = json.loads(sys.argv[1])

    def strike(point: str, batch: int) -> None:
        if [point, batch] == plan.get("die_at"):
            os.kill(os.getpid(), signal.SIGKILL)

    spark = session(
        plan["application"],
        plan.get("master", "local[2,3]"),
        spark__ui__enabled=False,
        spark__sql__shuffle__partitions=2,
        **plan.get("spark", {}),
    )
    spark.sparkContext.setLogLevel("ERROR")
    sink = ExactlyOnceSink(
        plan["bootstrap"],
        topic=plan["topic"],
        application=plan["application"],
        at=strike,
        **plan.get("sink", {}),
    )
    lines = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1)
    rows = lines.text(plan["input"]).selectExpr("value AS key", "value")
    start(rows, sink, plan["checkpoint"], availableNow=True).awaitTermination()
    print(f"committed {sink.rows} rows", flush=True)


main()
