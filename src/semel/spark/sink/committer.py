"""One DataFrame, one transaction: lends it to the tasks, accounts for every row, commits or runs
again.

Used by the streaming sink (a micro-batch each) and by `write` (a whole DataFrame).
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from semel.client.settings import Servers
from semel.errors import BatchFailedError, RefusedError, SemelError, UnreachableError, UsageError
from semel.spark.kafka.client import BlockingCluster, is_an_answer, patiently
from semel.spark.kafka.ledger import SparkLedger
from semel.spark.kafka.settings import SparkSettings
from semel.spark.kafka.transactions import CommitOutcome, Lender, Lent
from semel.spark.query_batch import QueryBatch
from semel.spark.sink.claim_service import ClaimService
from semel.spark.sink.claims import Target, TaskReport
from semel.spark.sink.options import WriteOptions
from semel.spark.sink.writer import STATISTICS, TaskWriter
from semel.wire.compression import Compression

log = logging.getLogger(__name__)

_TOPIC_S = 10.0
_TASKS_ASKED = 1000
_HEADERS = "array<struct<key:string,value:binary>>"
_CASTS = {"headers": _HEADERS, "partition": "int", "topic": "string", "timestamp": "timestamp"}


class _Again(Exception):
    """This attempt is aborted; the batch may run again."""


def _nothing(point: str, batch: int) -> None:
    """A place in a batch's course, named so that the demonstration and tests can fail there."""


@dataclass
class Committer:
    """The application's transactions and its ledger, on the driver."""

    bootstrap_servers: Servers | Mapping[str, Any]
    topic: str | None
    application: str
    options: WriteOptions = WriteOptions()  # noqa: RUF009  (frozen)
    at: Callable[[str, int], None] = field(default=_nothing, repr=False)

    def __post_init__(self) -> None:
        options = self.options
        if not self.application:
            raise UsageError("give an application name: it is what committed batches are kept by")
        if self.topic == options.ledger_topic:
            raise UsageError(f"{self.topic!r} is the ledger's topic: write to another one")
        self._settings = SparkSettings.of(self.bootstrap_servers, options.settings)
        self.cluster = BlockingCluster(self._settings)
        self._ledger = SparkLedger(self.cluster, self.application, options.ledger_topic)
        self._lender = Lender(
            self.cluster,
            f"semel-{self.application}",
            options.transaction_timeout_ms,
            options.allow_unverified,
        )
        self.committed: QueryBatch | None = None
        self.rows = 0
        self.retries = 0

    def take_over(self, frame: DataFrame, batch: int, group: str | None = None) -> None:
        """Fence first, then look: what is read earlier may be overtaken by the former driver."""
        refuse_speculation(frame)
        if self.topic is not None:
            self._find_topic(self.topic)
        self.at("before fence", batch)
        self._ledger.create()
        self._lender.fence()
        if group is not None:
            self._lender.refuse_live_group(group)
        self.at("after fence", batch)
        self.committed = self._ledger.read()
        log.info("%s: last committed: %s", self.application, self.committed)

    def _find_topic(self, topic: str) -> None:
        """As any producer does: a missing topic is created if the broker is set to do so."""
        try:
            patiently(
                lambda: self.cluster.refresh([topic], create=True), f"topic {topic!r}", _TOPIC_S
            )
        except SemelError as error:
            raise RefusedError(f"topic {topic!r} cannot be written to: {error}") from error

    def commit(
        self,
        frame: DataFrame,
        batch: QueryBatch,
        group: str | None = None,
        positions: Mapping[Target, int] | None = None,
    ) -> None:
        """Write the rows, their entry and the source's positions: all are visible, or nothing."""
        columns = sink_columns(frame, self.topic)
        reason: Exception | None = None
        for attempt in range(1, self.options.attempts + 1):
            try:
                self._attempt(columns, batch, group, positions or {})
            except _Again as again:
                reason = again
                self.retries += 1
                log.warning(
                    "%s: batch %d, attempt %d was aborted: %s",
                    self.application,
                    batch.batch,
                    attempt,
                    again,
                )
                continue
            self.committed = batch
            return
        raise BatchFailedError(
            f"{self.application}: batch {batch.batch} failed {self.options.attempts} times:"
            f" {reason}"
        ) from reason

    def _attempt(
        self,
        columns: DataFrame,
        batch: QueryBatch,
        group: str | None,
        positions: Mapping[Target, int],
    ) -> None:
        lent = self._lender.lend()
        try:
            rows = self._write(columns, lent, batch.batch)
            self.at("before ledger", batch.batch)
            self._ledger.write(self._lender, batch)
            if group is not None:
                self._lender.commit_offsets(group, positions)
            self.at("before commit", batch.batch)
        except _Again:
            self._lender.abort()
            raise
        except BaseException as error:
            self._lender.abort()
            # The driver's own requests fail when the transaction is over: it timed out, or another
            # driver has taken it, which `abort` finds out.
            if isinstance(error, UnreachableError) or (
                isinstance(error, SemelError) and is_an_answer(error)
            ):
                raise _Again(str(error)) from error
            raise
        self._settle(batch)
        self.rows += rows

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
                raise _Again(job.explain(service.claims.abort_reason)) from error
            raise
        finally:
            service.stop()
        if reason:
            raise _Again(reason)
        return sum(report.rows for report in reports)

    def _settle(self, batch: QueryBatch) -> None:
        outcome = self._lender.commit()
        self.at("after commit", batch.batch)
        if outcome is CommitOutcome.COMMITTED:
            return
        # Ends whatever is open, or says that another driver has taken over; then the ledger knows.
        self._lender.recover()
        if self._ledger.read() != batch:
            raise _Again("the transaction was not committed: it timed out, or its answer was lost")

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
    fields = {field.name: field.dataType for field in frame.schema.fields}
    if "value" not in fields:
        raise UsageError(f"the sink needs a column `value`; there are {', '.join(fields)}")
    if topic is None and "topic" not in fields:
        raise UsageError("give the sink a topic, or the rows a column `topic`")
    chosen: list[str] = []
    for name in ("key", "value"):
        if name in fields:
            if not isinstance(fields[name], (T.StringType, T.BinaryType, T.NullType)):
                raise UsageError(
                    f"column `{name}` must be string or binary, not {fields[name].simpleString()}"
                )
            chosen.append(name)
    for name, kind in _CASTS.items():
        if name in fields and not (name == "topic" and topic):
            chosen.append(f"cast({name} AS {kind}) AS {name}")
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
