"""A driver of its own process that a test kills: python crash_driver.py '{"bootstrap": …}'."""

import json
import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession

from semel.spark import ExactlyOnceSink, session, start
from semel.spark.format.options import FormatOptions
from semel.spark.format.writers import StreamWriter
from semel.spark.source.source import SemelSource


def main() -> None:
    plan = json.loads(sys.argv[1])
    comings: Counter[tuple[str, int]] = Counter()

    def at(point: str, batch: int) -> None:
        comings[point, batch] += 1
        if [point, batch, comings[point, batch]] == plan.get("strike_at"):
            STRIKES[plan["strike"]](plan)

    spark = session(
        plan["application"],
        plan.get("master", "local[2,3]"),
        **event_log(plan),
        **plan.get("spark", {}),
        spark__ui__enabled=False,
        spark__sql__shuffle__partitions=2,
        spark__local__dir=plan["scratch"],
        # Adaptive planning would merge the small stages that the strikes aim at.
        spark__sql__adaptive__enabled=False,
    )
    spark.sparkContext.setLogLevel(plan.get("log_level", "ERROR"))
    if plan.get("format"):
        write_by_format(spark, plan)
        return
    sink = ExactlyOnceSink(
        plan["bootstrap"],
        topic=plan["topic"],
        application=plan["application"],
        **plan.get("sink", {}),
    )
    sink.committer.at = at
    rows = lines(spark, plan)
    start(rows, sink, plan["checkpoint"], availableNow=True).awaitTermination()
    print(f"committed {sink.rows} rows, {sink.committer.retries} retries", flush=True)


def lines(spark: SparkSession, plan: dict) -> DataFrame:
    reader = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1)
    rows = reader.text(plan["input"]).selectExpr("value AS key", "value")
    return rows.repartition(plan["tasks"]) if "tasks" in plan else rows


class Struck(SemelSource):
    """The format, with a place at which it is struck, in the process that commits."""

    plan: ClassVar[dict] = {}

    @classmethod
    def name(cls) -> str:
        return "struck"

    def streamWriter(self, schema, overwrite):
        plan = dict(self.plan)

        def at(point: str, batch: int) -> None:
            if [point, batch] == plan.get("strike_at", [])[:2]:
                COMMIT_STRIKES[plan["strike"]](plan)

        return StreamWriter(FormatOptions.of(self.options), schema, at)


def write_by_format(spark: SparkSession, plan: dict) -> None:
    Struck.plan = {**plan, "driver": os.getpid()}
    spark.dataSource.register(Struck)
    options = {
        "kafka.bootstrap.servers": plan["bootstrap"],
        "topic": plan["topic"],
        "application": plan["application"],
        "checkpointLocation": plan["checkpoint"],
        **plan.get("options", {}),
    }
    writer = lines(spark, plan).writeStream.format("struck").options(**options)
    writer.trigger(availableNow=True).start().awaitTermination()
    print("all is written", flush=True)


def kill_driver(plan: dict) -> None:
    """From the process that commits: it is a fork of PySpark's daemon, which is the JVM's child."""
    daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
    for pid in (int(daemon.rpartition(")")[2].split()[1]), plan["driver"], os.getpid()):
        os.kill(pid, signal.SIGKILL)


def kill_commit(plan: dict) -> None:
    """The process that commits, alone."""
    os.kill(os.getpid(), signal.SIGKILL)


COMMIT_STRIKES = {"die": kill_driver, "kill commit": kill_commit}


def event_log(plan: dict) -> dict[str, str | bool]:
    """Spark's own account of what happened, as plain text."""
    if "events" not in plan:
        return {}
    return {
        "spark__eventLog__enabled": True,
        "spark__eventLog__dir": f"file://{plan['events']}",
        "spark__eventLog__compress": False,
        "spark__eventLog__rolling__enabled": False,
    }


def die(plan: dict) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop(plan: dict) -> None:
    """All of this process is frozen until somebody sends it SIGCONT. The signal goes to this very
    thread: if another one took it, this one would run on for a moment, past the place."""
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def delete_shuffle_files(plan: dict) -> None:
    """Tasks that have yet to fetch them meet a FetchFailed, and their stage is run again."""
    for path in Path(plan["scratch"]).rglob("shuffle_*"):
        path.unlink(missing_ok=True)


def kill_executor(plan: dict) -> None:
    """One of this process's session, or of the sessions in the plan (a cluster's workers)."""
    sessions = plan.get("sessions", [os.getsid(0)])
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            ours = os.getsid(int(process.name)) in sessions
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if ours and b"CoarseGrainedExecutorBackend" in command and b"java" in command[:200]:
            os.kill(int(process.name), signal.SIGKILL)
            return
    raise AssertionError("there is no executor to kill")


STRIKES = {
    "die": die,
    "stop": stop,
    "delete shuffle": delete_shuffle_files,
    "kill executor": kill_executor,
}

if __name__ == "__main__":
    main()
