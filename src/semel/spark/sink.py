"""The exactly-once sink: one Kafka transaction per micro-batch.

    sink = ExactlyOnceSink("localhost:9092", topic="totals", application="totals-job")
    query = df.writeStream.foreachBatch(sink).option("checkpointLocation", where).start()

On the first batch of a run the driver fences any earlier one, and only then reads the ledger.
Each batch is lent to the tasks; it is committed, with its ledger entry and the source's offsets,
when every row that was granted is acknowledged. Whatever is unclear is aborted and run again.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.streaming.query import StreamingQuery

from semel.client.lent import Lender, Lent, Outcome, Refused
from semel.client.lent_wire import Cluster, KafkaError, Security, Unreachable
from semel.spark.claim_service import ClaimService
from semel.spark.claims import Report, Target
from semel.spark.ledger import LEDGER_TOPIC, Entry, Ledger, Verdict, judge
from semel.spark.streams import RunningBatch, running_batch, source_positions
from semel.spark.writer import STATISTICS, TaskWriter
from semel.wire.columnar.encode import BATCH_BYTES
from semel.wire.compression import Compression

log = logging.getLogger(__name__)

# The broker's own default limit: a batch that takes longer needs a setting on both sides.
TRANSACTION_TIMEOUT_MS = 900_000
ATTEMPTS = 4
_HEADERS = "array<struct<key:string,value:binary>>"
_CASTS = {"headers": _HEADERS, "partition": "int", "topic": "string", "timestamp": "timestamp"}


class BatchFailed(Exception):
    """A batch could not be committed in the attempts allowed. Nothing of it is visible."""


class _Again(Exception):
    """This attempt is aborted; the batch may run again."""


def _nothing(point: str, batch: int) -> None:
    """A place in a batch's life, named so that tests can strike there."""


@dataclass
class ExactlyOnceSink:
    """A callable for `foreachBatch`. One per query; the application name is its identity."""

    bootstrap: str
    topic: str | None = None
    application: str = ""
    group: str | None = None
    compression: str = "none"
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    ledger_topic: str = LEDGER_TOPIC
    batch_bytes: int = BATCH_BYTES
    attempts: int = ATTEMPTS
    allow_unverified: bool = False
    settings: dict[str, str] = field(default_factory=dict, repr=False)
    at: Callable[[str, int], None] = field(default=_nothing, repr=False)

    def __post_init__(self) -> None:
        if not self.application:
            raise ValueError(
                "the sink needs an application name: it is what its batches are kept by"
            )
        if self.topic == self.ledger_topic:
            raise ValueError(f"{self.topic!r} is the ledger's topic: write to another one")
        self._codec = Compression.named(self.compression)
        self._security = Security.of(self.settings)
        self._cluster = Cluster(self.bootstrap, self._security)
        self._ledger = Ledger(self._cluster, self.application, self.ledger_topic)
        self._lender = Lender(
            self._cluster,
            f"semel-{self.application}",
            self.transaction_timeout_ms,
            self.allow_unverified,
        )
        self._run_id: str | None = None
        self._committed: Entry | None = None
        self._unknown_topics: set[str] = set()
        self.rows = 0

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        refuse_connect(batch)
        running = running_batch(batch, batch_id)
        if running.run_id != self._run_id:
            self._take_over(batch, batch_id)
            self._run_id = running.run_id
        verdict = judge(self.application, self._committed, running.entry)
        if verdict is Verdict.SKIP:
            self._replay(batch, running)
            return
        if verdict is Verdict.NEW_LINEAGE:
            log.warning(
                "%s: a new checkpoint (query %s) begins a new lineage after %s",
                self.application,
                running.entry.query_id,
                self._committed,
            )
        self._commit(batch, running.entry)

    # ------------------------------------------------------------------ once per run

    def _take_over(self, batch: DataFrame, batch_id: int) -> None:
        """Fence first, then look: what is read earlier may be overtaken by the former driver."""
        refuse_speculation(batch)
        self.at("before fence", batch_id)
        self._ledger.create()
        self._lender.fence()
        self.at("after fence", batch_id)
        self._committed = self._ledger.read()
        log.info("%s: last committed: %s", self.application, self._committed)

    def _replay(self, batch: DataFrame, running: RunningBatch) -> None:
        """A committed batch that Spark runs again. Its state stores still need to see it."""
        log.info("%s: batch %d is committed already", self.application, running.entry.batch)
        if running.is_stateful:
            batch.write.format("noop").mode("overwrite").save()

    # ------------------------------------------------------------------ one batch

    def _commit(self, batch: DataFrame, entry: Entry) -> None:
        columns = sink_columns(batch, self.topic)
        reason: Exception | None = None
        for attempt in range(self.attempts):
            try:
                self._attempt(columns, entry)
            except _Again as again:
                reason = again
                log.warning(
                    "%s: batch %d, attempt %d aborted: %s",
                    self.application,
                    entry.batch,
                    attempt + 1,
                    again,
                )
                continue
            self._committed = entry
            return
        raise BatchFailed(
            f"{self.application}: batch {entry.batch} failed {self.attempts} times: {reason}"
        ) from reason

    def _attempt(self, columns: DataFrame, entry: Entry) -> None:
        lent = self._lender.lend()
        try:
            self._write(columns, lent, entry.batch)
            self._finish(entry)
        except _Again:
            self._lender.abort()
            raise
        except (KafkaError, Unreachable) as error:
            # Written by the driver itself, which can only mean that the transaction is over:
            # timed out, or taken by another driver, which `abort` finds out.
            self._lender.abort()
            raise _Again(str(error)) from error
        except BaseException:
            self._lender.abort()
            raise
        self._settle(entry)

    def _write(self, columns: DataFrame, lent: Lent, batch: int) -> None:
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
            if service.claims.doomed:
                raise _Again(service.claims.doomed) from error
            raise
        finally:
            service.stop()
        if reason:
            raise _Again(reason)
        self.rows += sum(report.rows for report in reports)

    def _finish(self, entry: Entry) -> None:
        self.at("before ledger", entry.batch)
        self._ledger.write(self._lender, entry)
        self._lender.commit_offsets(self.group or self.application, self._positions(entry))
        self.at("before commit", entry.batch)

    def _settle(self, entry: Entry) -> None:
        outcome = self._lender.commit()
        self.at("after commit", entry.batch)
        if outcome is Outcome.COMMITTED:
            return
        # Ends whatever is open, or says that another driver has taken over; then the ledger knows.
        self._lender.recover()
        if self._ledger.read() != entry:
            raise _Again("the transaction was not committed: it timed out, or its answer was lost")

    def _writer(self, lent: Lent, host: str, port: int) -> TaskWriter:
        return TaskWriter(
            lent=lent,
            bootstrap=self.bootstrap,
            security=self._security,
            claims_host=host,
            claims_port=port,
            topic=self.topic,
            compression=self._codec,
            batch_bytes=self.batch_bytes,
        )

    def _positions(self, entry: Entry) -> dict[tuple[str, int], int]:
        """Of topics in this cluster: the source may read from another one."""
        positions = source_positions(entry)
        for topic in {topic for topic, _ in positions} - self._unknown_topics:
            try:
                self._cluster.partitions(topic)
            except KafkaError:
                log.info("%s: %r is in another cluster, its offsets stay there", self, topic)
                self._unknown_topics.add(topic)
        return {
            target: offset
            for target, offset in positions.items()
            if target[0] not in self._unknown_topics
        }


class _Job:
    """The one Spark job of an attempt, which can be cancelled from another thread."""

    def __init__(self, columns: DataFrame) -> None:
        self._columns = columns
        self._tag = f"semel-{uuid.uuid4().hex}"
        self._context = columns.sparkSession.sparkContext
        settings = self._context.getConf()
        self.address = settings.get("spark.driver.host", "localhost") or "localhost"
        self.bind_address = settings.get("spark.driver.bindAddress", self.address) or self.address

    def run(self, writer: TaskWriter) -> list[Report]:
        self._context.addJobTag(self._tag)
        try:
            rows = self._columns.mapInArrow(writer, STATISTICS).collect()
        finally:
            self._context.removeJobTag(self._tag)
        return [Report(row.partition, row.attempt, row.rows) for row in rows]

    def cancel(self, reason: str) -> None:
        self._context.cancelJobsWithTag(self._tag)


def start(df: DataFrame, sink: ExactlyOnceSink, checkpoint: str, **trigger: Any) -> StreamingQuery:
    """Start a query into the sink: `start(df, sink, where, availableNow=True)`."""
    writer = df.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint)
    writer = writer.queryName(sink.application)
    return (writer.trigger(**trigger) if trigger else writer).start()


def sink_columns(batch: DataFrame, topic: str | None) -> DataFrame:
    """The columns that Spark's own Kafka sink takes, in their types."""
    fields = {field.name: field.dataType for field in batch.schema.fields}
    if "value" not in fields:
        raise ValueError(f"the sink needs a column `value`; there are {', '.join(fields)}")
    if topic is None and "topic" not in fields:
        raise ValueError("give the sink a topic, or the rows a column `topic`")
    chosen = []
    for name in ("key", "value"):
        if name in fields:
            if not isinstance(fields[name], (T.StringType, T.BinaryType, T.NullType)):
                raise TypeError(
                    f"column `{name}` must be string or binary, not {fields[name].simpleString()}"
                )
            chosen.append(batch[name])
    for name, kind in _CASTS.items():
        if name in fields and not (name == "topic" and topic):
            chosen.append(batch[name].cast(kind).alias(name))
    return batch.select(*chosen)


def refuse_connect(frame: Any) -> None:
    if not hasattr(frame, "_jdf"):
        raise Refused(
            "Spark Connect has no driver in this process to lend a transaction: use classic PySpark"
        )


def refuse_speculation(frame: DataFrame) -> None:
    settings = frame.sparkSession.sparkContext.getConf()
    if settings.get("spark.speculation", "false") == "true":
        raise Refused("spark.speculation runs a task twice at once: switch it off for this query")
