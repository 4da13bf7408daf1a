"""The audit of topics as a Spark job, for topics that are larger than memory.

Each partition is read by a task, one answer at a time. Values that must be unique are compared by
Spark, which sorts on disk what does not fit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from semel.audit.findings import EXAMPLES, Anomaly, AuditReport, Findings
from semel.audit.partition_scan import PartitionScan
from semel.audit.reading import LogReader
from semel.audit.topics import Span, TopicAudit, spans_of
from semel.client.admin.transactions import DEFAULT_MAX_TRANSACTION_MS
from semel.errors import UsageError
from semel.spark import session


class SparkTopicAudit(TopicAudit):
    """As `TopicAudit`, but `unique` is an expression of Spark's SQL over the columns of
    `spark.read.format("semel")`, as `key` or `get_json_object(cast(value as string), '$.id')`."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        topics: Iterable[str],
        *,
        unique: str | None = None,
        open_longer_than_ms: int = DEFAULT_MAX_TRANSACTION_MS,
        spark: SparkSession | None = None,
    ) -> None:
        super().__init__(settings, topics, open_longer_than_ms=open_longer_than_ms)
        self.expression = unique
        self._spark = spark

    async def run(self) -> AuditReport:
        async with LogReader(self.settings) as reader:
            self.spans = await spans_of(reader.admin, self.topics)
            spark = self._spark or session("semel-audit", quiet=True)
            try:
                self.scans = await asyncio.to_thread(self._scan_all, spark)
                await self.look_at_open(reader.admin)
                if self.expression is not None:
                    await asyncio.to_thread(self._compare, spark, self.expression)
            finally:
                if self._spark is None:
                    spark.stop()
        self.complete = True
        return self.report()

    def _scan_all(self, spark: SparkSession) -> list[PartitionScan]:
        settings, spans = self.settings, self.spans
        parts = spark.sparkContext.parallelize(spans, max(len(spans), 1))
        found: list[PartitionScan] = parts.map(lambda span: scan_one(settings, span)).collect()
        return found

    def _compare(self, spark: SparkSession, expression: str) -> None:
        try:
            repeated = self._repeated_values(spark, expression).cache()
        except PySparkException as problem:
            said = str(problem).partition("\n")[0]
            raise UsageError(f"--unique {expression!r} is no expression of Spark: {said}") from None
        total = repeated.agg(F.sum(F.col("times") - 1)).first()
        count = int(total[0] or 0) if total is not None else 0
        findings = Findings()
        for row in repeated.limit(EXAMPLES).collect():
            places = [f"{p.topic}-{p.partition} offset {p.offset}" for p in (row.first, row.last)]
            said = f"{expression} {_shown(row.value)} is at {places[0]} already"
            findings.found(Anomaly.DUPLICATE_VALUE, places[1], said)
        if count:
            findings.counts[Anomaly.DUPLICATE_VALUE] = count
        self.findings.merge(findings)

    def _repeated_values(self, spark: SparkSession, expression: str) -> DataFrame:
        reader = spark.read.format("semel").option("subscribe", ",".join(self.topics))
        for name, value in self.settings.items():
            reader = reader.option(f"kafka.{name}", str(value))
        rows = reader.load().withColumn("value_", F.expr(expression))
        place = F.struct("topic", "partition", "offset")
        return (
            rows.where(F.col("value_").isNotNull())
            .groupBy(F.col("value_").alias("value"))
            .agg(
                F.count("*").alias("times"), F.min(place).alias("first"), F.max(place).alias("last")
            )
            .where(F.col("times") > 1)
        )


def scan_one(settings: Mapping[str, Any], span: Span) -> PartitionScan:
    """What a task does."""

    async def scan() -> PartitionScan:
        found = PartitionScan(str(span.partition), compacted=span.compacted)
        async with LogReader(settings) as reader:
            async for batch in reader.every(span.partition, span.start, span.end):
                found.look(batch)
        return found

    return asyncio.run(scan())


def _shown(value: Any) -> str:
    text = bytes(value).decode(errors="replace") if isinstance(value, bytearray) else str(value)
    return repr(text[:60])
