"""Spark imports every module named `pyspark_…`: so any session knows `format("semel")`."""

from contextlib import suppress

# Where semel is installed without its extra `spark`, other formats must go on to work.
with suppress(ImportError):
    from semel.spark.source.source import SemelSource as DefaultSource  # noqa: F401
