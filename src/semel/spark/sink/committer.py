"""One DataFrame, one transaction: lends it to the tasks and accounts for every row.

Used by the streaming sink (a micro-batch each) and by `write` (a whole DataFrame).
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame

from semel.errors import RefusedError
from semel.spark.kafka.transactions import Lent
from semel.spark.query_batch import QueryBatch
from semel.spark.sink.claim_service import ClaimService
from semel.spark.sink.claims import Target, TaskReport
from semel.spark.sink.columns import columns_of
from semel.spark.sink.transaction import BatchTransactions, RunAgain
from semel.spark.sink.writer import STATISTICS, TaskWriter
from semel.wire.compression import Compression

# How Spark says that somebody has stopped the query, or the whole session.
_STOPPED = ("SPARK_JOB_CANCELLED", "InterruptedException", "SparkContext was shut down")
_TASKS_ASKED = 1000


class Committer(BatchTransactions):
    """The transactions of the claim sink, on the driver: each is filled by one Spark job."""

    def take_over(self, frame: DataFrame, batch: int, group: str | None = None) -> None:
        refuse_speculation(frame)
        self.fence(batch, group)

    def commit(
        self,
        frame: DataFrame,
        batch: QueryBatch,
        group: str | None = None,
        positions: Mapping[Target, int] | None = None,
    ) -> None:
        """Write the rows, their entry and the source's positions: all are visible, or nothing."""
        columns = sink_columns(frame, self.topic)
        self.end(batch, lambda lent: self._write(columns, lent, batch.batch), group, positions)

    def _write(self, columns: DataFrame, lent: Lent, batch: int) -> int:
        """Run the job and account for every row."""

        def before_grant(targets: Iterable[Target]) -> None:
            self.at("grant", batch)
            self._lender.add_partitions(targets)

        self.at("before job", batch)
        job = _Job(columns)
        service = ClaimService(lent.token, job.bind_address, before_grant, job.cancel)
        try:
            reports = job.run(self._writer(lent, job.address, service.port))
            reason = service.close(reports)
        except Exception as error:
            service.close([])
            if service.claims.abort_reason:
                raise RunAgain(job.explain(service.claims.abort_reason)) from error
            if _is_spark_s_own(error):
                raise RunAgain(job.explain(sentence(str(error)))) from error
            raise
        finally:
            service.stop()
        if reason:
            raise RunAgain(reason)
        return sum(report.rows for report in reports)

    def _writer(self, lent: Lent, host: str, port: int) -> TaskWriter:
        return TaskWriter(
            lent=lent,
            settings=self._settings,
            claims_host=host,
            claims_port=port,
            topic=self.topic,
            compression=Compression.named(self.options.compression_type),
            batch_size=self.options.batch_size,
        )


def _is_spark_s_own(error: Exception) -> bool:
    """Whether a job failed by neither the query's Python nor its data, nor was it cancelled.

    Those would fail again, and PySpark knows their kinds; of all else it hands on Java's error.
    """
    return isinstance(error, Py4JJavaError) and not any(word in str(error) for word in _STOPPED)


class _Job:
    """The one Spark job of an attempt, which can be cancelled from another thread."""

    def __init__(self, columns: DataFrame) -> None:
        self._columns = columns
        self._tag = f"semel-{uuid.uuid4().hex}"
        self._context = columns.sparkSession.sparkContext
        # One by one: SparkContext.getConf() fetches every setting there is, for each batch.
        settings = columns.sparkSession.conf
        self.address = settings.get("spark.driver.host", "localhost") or "localhost"
        self.bind_address = settings.get("spark.driver.bindAddress", self.address) or self.address

    def run(self, writer: TaskWriter) -> list[TaskReport]:
        self._context.addJobTag(self._tag)
        try:
            rows = self._columns.mapInArrow(writer, STATISTICS).collect()
        finally:
            self._context.removeJobTag(self._tag)
        return [TaskReport(row.partition, row.attempt, row.rows) for row in rows]

    def cancel(self, reason: str) -> None:
        self._context.cancelJobsWithTag(self._tag)

    def explain(self, reason: str) -> str:
        """With what a task died of, if Spark knows: the job itself says that it was cancelled."""
        failure = ""
        # Spark's store of states is its own business: without it, the reason is only shorter.
        with contextlib.suppress(Exception):
            failure = next(self._failures(), "")
        return f"{reason}: {failure}" if failure not in reason else reason

    def _failures(self) -> Iterator[str]:
        spark = self._context._jsc.sc()
        tracker, store = spark.statusTracker(), spark.statusStore()
        for job in tracker.getJobIdsForTag(self._tag):
            for stage in tracker.getJobInfo(job).get().stageIds():
                tasks = store.taskList(stage, 0, _TASKS_ASKED)
                for task in map(tasks.apply, range(tasks.size())):
                    if task.status() == "FAILED" and task.errorMessage().isDefined():
                        yield sentence(task.errorMessage().get())


def sentence(failure: str) -> str:
    """What a failure says, without the traces of two languages that Spark wraps it in."""
    lines = [line.strip() for line in failure.splitlines() if line.strip()]
    traces = [place for place, line in enumerate(lines) if "Traceback (most recent" in line]
    for line in lines[traces[-1] + 1 :] if traces else []:
        name, colon, words = line.partition(": ")
        if colon and " " not in name and not line.startswith("File "):
            return words
    return lines[0] if lines else ""


def sink_columns(frame: DataFrame, topic: str | None) -> DataFrame:
    """The columns that Spark's own Kafka sink takes, in their types."""
    chosen = []
    for name, kind in columns_of(frame.schema, topic).items():
        chosen.append(name if kind is None else f"cast({name} AS {kind}) AS {name}")
    # Texts, because each operation on a column is a conversation with the JVM.
    return frame.selectExpr(*chosen)


def refuse_connect(frame: Any) -> None:
    if not hasattr(frame, "_jdf"):
        raise RefusedError(
            "Spark Connect has no driver in this process to lend a transaction: use classic PySpark"
        )


def refuse_speculation(frame: DataFrame) -> None:
    settings = frame.sparkSession.sparkContext.getConf()
    if settings.get("spark.speculation", "false") == "true":
        raise RefusedError(
            "spark.speculation runs a task twice at once: switch it off for this query"
        )
