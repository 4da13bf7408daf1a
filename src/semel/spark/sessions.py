"""A Spark session that works out of the box: a Java is found, tasks run on this very Python."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from semel.spark.java import use_java
from semel.spark.source import register


def session(
    application: str = "semel", master: str = "local[*]", **settings: str | int | bool
) -> SparkSession:
    """Dots of a setting's name are written as double underscores: `spark__ui__enabled=False`."""
    use_java()
    # Spark's default is whatever `python3` is on the PATH: seldom the one with the packages.
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings.setdefault("spark__python__daemon__module", "semel.spark.daemon")
    builder = SparkSession.builder.appName(application).master(master)
    for name, value in settings.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        builder = builder.config(name.replace("__", "."), text)
    found: SparkSession = builder.getOrCreate()
    register(found)
    return found
