"""A driver of its own process that a test kills: python crash_driver.py '{"bootstrap": …}'."""

import json
import os
import signal
import sys
from pathlib import Path

from semel.spark import ExactlyOnceSink, session, start


def main() -> None:
    plan = json.loads(sys.argv[1])
    strikes = {"die": die, "delete shuffle": delete_shuffle_files, "kill executor": kill_executor}
    struck = []

    def at(point: str, batch: int) -> None:
        if [point, batch] == plan.get("strike_at") and not struck:
            struck.append(True)
            strikes[plan["strike"]](plan)

    spark = session(
        plan["application"],
        plan.get("master", "local[2,3]"),
        spark__ui__enabled=False,
        spark__sql__shuffle__partitions=2,
        spark__local__dir=plan["scratch"],
        # Adaptive planning would merge the small stages that the strikes aim at.
        spark__sql__adaptive__enabled=False,
    )
    spark.sparkContext.setLogLevel("ERROR")
    sink = ExactlyOnceSink(
        plan["bootstrap"],
        topic=plan["topic"],
        application=plan["application"],
        at=at,
        **plan.get("sink", {}),
    )
    lines = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1)
    rows = lines.text(plan["input"]).selectExpr("value AS key", "value")
    if "tasks" in plan:
        rows = rows.repartition(plan["tasks"])
    start(rows, sink, plan["checkpoint"], availableNow=True).awaitTermination()
    print(f"committed {sink.rows} rows, {sink.committer.retries} retries", flush=True)


def die(plan: dict) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def delete_shuffle_files(plan: dict) -> None:
    """Tasks that have yet to fetch them meet a FetchFailed, and their stage is run again."""
    for path in Path(plan["scratch"]).rglob("shuffle_*"):
        path.unlink(missing_ok=True)


def kill_executor(plan: dict) -> None:
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            ours = os.getpgid(int(process.name)) == os.getpgrp()
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if ours and b"CoarseGrainedExecutorBackend" in command and b"java" in command[:200]:
            os.kill(int(process.name), signal.SIGKILL)
            return
    raise AssertionError("there is no executor to kill")


main()
