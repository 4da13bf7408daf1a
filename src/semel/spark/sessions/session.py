"""A Spark session that works out of the box: a Java is found, tasks run on this very Python."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from pyspark.sql import SparkSession

from semel.spark.sessions.java import use_java
from semel.spark.sessions.scripts import worker_python
from semel.spark.source.source import register

_QUIET = Path(__file__).with_name("quiet.properties")
_LOOPBACK = "127.0.0.1"
# Rows on their way to Python: with Spark's own 64 MiB, 1 KiB rows took a seventh more CPU time.
_ARROW_BATCH_BYTES = 2 << 20
# What spark.task.maxFailures is on a cluster; local masters do not look at it.
_TASK_FAILURES = 4


def session(
    application: str = "semel",
    master: str = "local[*]",
    *,
    quiet: bool = False,
    **settings: str | int | bool,
) -> SparkSession:
    """Dots of a setting's name are written as double underscores: `spark__ui__enabled=False`.

    `quiet` keeps Spark's own log and progress bar off the screen.
    """
    use_java()
    # Spark's default is whatever `python3` is on the PATH: seldom the one with the packages.
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", worker_python())
        # Nobody else needs to reach this driver, nor the claims that it serves.
        settings.setdefault("spark__driver__host", _LOOPBACK)
        settings.setdefault("spark__driver__bindAddress", _LOOPBACK)
    if quiet:
        _be_quiet(settings)
    settings.setdefault("spark__python__daemon__module", "semel.spark.sessions.daemon")
    settings.setdefault("spark__sql__execution__arrow__maxBytesPerBatch", _ARROW_BATCH_BYTES)
    builder = SparkSession.builder.appName(application).master(with_retries(master))
    for name, value in settings.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        builder = builder.config(name.replace("__", "."), text)
    found: SparkSession = builder.getOrCreate()
    register(found)
    return found


def with_retries(master: str) -> str:
    """`local[4]` lets a query die of one failed task; a cluster tries each four times."""
    cores = {"local": "1"}.get(master) or master.removeprefix("local[").removesuffix("]")
    if master.startswith("local") and (cores == "*" or cores.isdigit()):
        return f"local[{cores},{_TASK_FAILURES}]"
    return master


def _be_quiet(settings: dict[str, str | int | bool]) -> None:
    warnings.filterwarnings("ignore", module="pyspark")
    settings.setdefault("spark__ui__showConsoleProgress", False)
    chosen = settings.get("spark__driver__extraJavaOptions", "")
    logging = f"-Dlog4j2.configurationFile={_QUIET.as_uri()}"
    settings["spark__driver__extraJavaOptions"] = f"{chosen} {logging}".strip()
