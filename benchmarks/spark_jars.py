"""Spark with its own Kafka connector on board, where that can be had."""

from typing import Any

from semel.demo.spark_connector import connector_jars
from semel.spark import session

# Spark's word for: no limit, so nothing to measure after each row (docs/guides/spark.md).
_UNMEASURED = 2**31 - 1


def benchmark_session(small_rows: bool = False) -> tuple[Any, bool]:
    """A quiet session, and whether `format("kafka")` works in it."""
    jars = connector_jars()
    more: dict[str, Any] = {"spark__jars": ",".join(map(str, jars))} if jars else {}
    if small_rows:
        more["spark__sql__execution__arrow__maxBytesPerBatch"] = _UNMEASURED
    spark = session(
        "benchmark",
        "local[2]",
        quiet=True,
        spark__ui__enabled=False,
        spark__driver__memory="3g",
        **more,
    )
    return spark, jars is not None
