"""The exactly-once sink: one Kafka transaction per micro-batch; and `write`, one per DataFrame.

    sink = ExactlyOnceSink("localhost:9092", topic="totals", application="totals-job")
    query = df.writeStream.foreachBatch(sink).option("checkpointLocation", where).start()

On the first batch of a run the driver fences any earlier one, and only then reads the ledger,
which says of each batch whether it is committed already, comes next, or belongs elsewhere.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from semel.client.settings import Servers
from semel.spark.kafka.client import LATEST
from semel.spark.query_batch import BatchVerdict, QueryBatch, judge, source_positions
from semel.spark.sink.committer import Committer, refuse_connect
from semel.spark.sink.options import sink_options, write_options
from semel.spark.sink.streams import RunningBatch, running_batch
from semel.spark.sink.triggers import Trigger, triggered
from semel.spark.source.offsets import offsets_at

if TYPE_CHECKING:
    from semel.spark.sink.keywords import SinkKeywords, WriteKeywords

log = logging.getLogger(__name__)


class ExactlyOnceSink:
    """A callable for `foreachBatch`: one Kafka transaction per micro-batch. One per query."""

    def __init__(
        self,
        bootstrap_servers: Servers | Mapping[str, Any],
        topic: str | None = None,
        *,
        application: str,
        **options: Unpack[SinkKeywords],
    ) -> None:
        """`application` is the query's identity: what it has committed is kept by this name.

        `topic` may be left out if the rows have a column `topic`. All options of `SinkOptions` are
        keywords; `settings` are the clients', for TLS and SASL, in any of their spellings.
        """
        chosen = sink_options(options)
        self.committer = Committer(bootstrap_servers, topic, application, chosen)
        self.application = application
        self.group_id = chosen.group_id or application
        self._begin_anew = chosen.begin_anew
        self._run_id: str | None = None

    @property
    def rows(self) -> int:
        """Rows committed by this object so far."""
        return self.committer.rows

    @property
    def committed(self) -> QueryBatch | None:
        """The last batch that is known to be committed."""
        return self.committer.committed

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        refuse_connect(batch)
        running = running_batch(batch, batch_id)
        if running.run_id != self._run_id:
            self.committer.take_over(batch, batch_id, self.group_id)
            self._run_id = running.run_id
        verdict = judge(self.application, self.committed, running.identity, self._begin_anew)
        if verdict is BatchVerdict.SKIP:
            self._replay(batch, running)
            return
        if verdict is BatchVerdict.NEW_LINEAGE:
            log.warning(
                "%s: a new checkpoint (query %s) begins a new lineage after %s",
                self.application,
                running.identity.query_id,
                self.committed,
            )
        positions = self._positions(running.identity)
        self.committer.commit(batch, running.identity, self.group_id, positions)

    def lag(self) -> int:
        """Offsets of the source that are stable and not yet committed by this sink."""
        positions = {} if self.committed is None else self._positions(self.committed)
        ends = offsets_at(self.committer.cluster, dict.fromkeys(positions, LATEST), True)
        return sum(max(0, ends[target] - offset) for target, offset in positions.items())

    def _replay(self, batch: DataFrame, running: RunningBatch) -> None:
        """A committed batch that Spark runs again. Its state stores still need to see it."""
        log.info("%s: batch %d is committed already", self.application, running.identity.batch)
        if running.is_stateful:
            batch.write.format("noop").mode("overwrite").save()

    def _positions(self, batch: QueryBatch) -> dict[tuple[str, int], int]:
        return self.committer.positions_here(source_positions(batch.end))


def start(
    df: DataFrame, sink: ExactlyOnceSink, checkpoint: str, **trigger: Unpack[Trigger]
) -> StreamingQuery:
    """Start a query into the sink: `start(df, sink, where, availableNow=True)`."""
    writer = df.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint)
    return triggered(writer.queryName(sink.application), trigger).start()


def write(
    df: DataFrame,
    bootstrap_servers: Servers | Mapping[str, Any],
    topic: str | None = None,
    *,
    name: str,
    **options: Unpack[WriteKeywords],
) -> int:
    """Write a whole DataFrame in one transaction: it is seen whole, or not at all.

    `name` makes it idempotent: what was written once under a name is not written again. Returns
    the rows written, 0 if they were there already. All options of `WriteOptions` are keywords.
    """
    refuse_connect(df)
    committer = Committer(bootstrap_servers, topic, f"write-{name}", write_options(options))
    committer.take_over(df, 0)
    if committer.committed is not None:
        log.info("%r is written already", name)
        return 0
    committer.commit(df, QueryBatch(query_id=name, batch=0, start=(), end=()))
    return committer.rows
