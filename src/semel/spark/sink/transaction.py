"""One batch, one transaction: taken over, filled, entered in the ledger, ended, and tried again.

What both sinks share. How the rows come into the transaction is theirs: the claim sink runs a
Spark job (`committer`), the format sends what its tasks have encoded (`spark/format`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from semel.client.settings import Servers
from semel.errors import BatchFailedError, RefusedError, SemelError, UnreachableError, UsageError
from semel.spark.kafka.client import BlockingCluster, is_an_answer, patiently
from semel.spark.kafka.ledger import SparkLedger
from semel.spark.kafka.settings import SparkSettings
from semel.spark.kafka.transactions import CommitOutcome, Lender, Lent
from semel.spark.query_batch import QueryBatch
from semel.spark.sink.claims import Target
from semel.spark.sink.options import WriteOptions

log = logging.getLogger(__name__)

_TOPIC_S = 10.0
At = Callable[[str, int], None]


class RunAgain(Exception):
    """This attempt is aborted; the batch may run again."""


def nothing(point: str, batch: int) -> None:
    """A place in a batch's course, named so that the demonstration and tests can fail there."""


@dataclass
class BatchTransactions:
    """The application's transactions and its ledger."""

    bootstrap_servers: Servers | Mapping[str, Any] | SparkSettings
    topic: str | None
    application: str
    options: WriteOptions = WriteOptions()  # noqa: RUF009  (frozen)
    at: At = field(default=nothing, repr=False)

    def __post_init__(self) -> None:
        options = self.options
        if not self.application:
            raise UsageError("give an application name: it is what committed batches are kept by")
        if self.topic == options.ledger_topic:
            raise UsageError(f"{self.topic!r} is the ledger's topic: write to another one")
        servers = self.bootstrap_servers
        self._settings = (
            servers
            if isinstance(servers, SparkSettings)
            else SparkSettings.of(servers, options.settings)
        )
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
        self._elsewhere: set[str] = set()

    def fence(self, batch: int, group: str | None = None) -> None:
        """Fence first, then look: what is read earlier may be overtaken by the former driver."""
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

    def end(
        self,
        batch: QueryBatch,
        write: Callable[[Lent], int],
        group: str | None = None,
        positions: Mapping[Target, int] | None = None,
    ) -> None:
        """Let `write` send the rows; they, their entry and the source's positions become visible
        together, or not at all.
        """
        reason: Exception | None = None
        for attempt in range(1, self.options.attempts + 1):
            try:
                self._attempt(write, batch, group, positions or {})
            except RunAgain as again:
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

    def positions_here(self, positions: Mapping[Target, int]) -> dict[Target, int]:
        """Of topics in this cluster: the source may read from another one."""
        for topic in {topic for topic, _ in positions} - self._elsewhere:
            try:
                self.cluster.partitions(topic)
            except SemelError as error:
                if not is_an_answer(error):
                    raise
                log.info("%s: %r is in another cluster", self.application, topic)
                self._elsewhere.add(topic)
        return {
            target: offset
            for target, offset in positions.items()
            if target[0] not in self._elsewhere
        }

    def _find_topic(self, topic: str) -> None:
        """As any producer does: a missing topic is created if the broker is set to do so."""
        try:
            patiently(
                lambda: self.cluster.refresh([topic], create=True), f"topic {topic!r}", _TOPIC_S
            )
        except SemelError as error:
            raise RefusedError(f"topic {topic!r} cannot be written to: {error}") from error

    def _attempt(
        self,
        write: Callable[[Lent], int],
        batch: QueryBatch,
        group: str | None,
        positions: Mapping[Target, int],
    ) -> None:
        lent = self._lender.lend()
        try:
            rows = write(lent)
            self.at("before ledger", batch.batch)
            self._ledger.write(self._lender, batch)
            if group is not None:
                self._lender.commit_offsets(group, positions)
            self.at("before commit", batch.batch)
        except RunAgain:
            self._lender.abort()
            raise
        except BaseException as error:
            self._lender.abort()
            # The driver's own requests fail when the transaction is over: it timed out, or another
            # driver has taken it, which `abort` finds out.
            if isinstance(error, UnreachableError) or (
                isinstance(error, SemelError) and is_an_answer(error)
            ):
                raise RunAgain(str(error)) from error
            raise
        self._settle(batch)
        self.rows += rows

    def _settle(self, batch: QueryBatch) -> None:
        outcome = self._lender.commit()
        self.at("after commit", batch.batch)
        if outcome is CommitOutcome.COMMITTED:
            return
        # Ends whatever is open, or says that another driver has taken over; then the ledger knows.
        self._lender.recover()
        if self._ledger.read() != batch:
            raise RunAgain(
                "the transaction was not committed: it timed out, or its answer was lost"
            )
