"""The transactions of the format: each is filled from the messages of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from semel.spark.format.messages import TaskMessage
from semel.spark.format.sending import TransactionSender
from semel.spark.kafka.transactions import Lent
from semel.spark.query_batch import QueryBatch
from semel.spark.sink.claims import Target
from semel.spark.sink.transaction import BatchTransactions
from semel.wire.compression import Compression


class FormatTransactions(BatchTransactions):
    """Of one application, in the process that commits."""

    def send(
        self,
        batch: QueryBatch,
        messages: list[TaskMessage],
        group: str | None = None,
        positions: Mapping[Target, int] | None = None,
    ) -> None:
        """Send everything, enter it in the ledger, and end the transaction."""
        sender = TransactionSender(self._settings, Compression.named(self.options.compression_type))

        def before(targets: Iterable[Target]) -> None:
            self._lender.add_partitions(targets)
            self.at("sending", batch.batch)

        def write(lent: Lent) -> int:
            self.at("before sending", batch.batch)
            return sender.send(messages, lent, before)

        self.end(batch, write, group, positions)

    def application_of(self, query_id: str) -> str | None:
        """Under which other name a query has committed something."""
        return self._ledger.application_of(query_id)
