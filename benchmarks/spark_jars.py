"""Spark with its own Kafka connector on board, where that can be had."""

from typing import Any

from semel.spark import session
from semel.testing.spark_connector import connector_jars


def benchmark_session() -> tuple[Any, bool]:
    """A quiet session, and whether `format("kafka")` works in it."""
    jars = connector_jars()
    more = {"spark__jars": ",".join(map(str, jars))} if jars else {}
    spark = session(
        "benchmark",
        "local[2]",
        quiet=True,
        spark__ui__enabled=False,
        spark__driver__memory="3g",
        **more,
    )
    return spark, jars is not None
