"""The writers that Spark calls: tasks encode and hand over, the commit sends all at once.

Nothing is in Kafka before Spark has chosen one attempt of each task, so that retries, speculation
and late tasks are harmless. Spark makes a writer before the tasks of every batch and again for the
commit, in another process, which it keeps: connections and the producer's epoch live there, and
only there is anything fenced.
"""

from __future__ import annotations

import logging
import tempfile
import uuid
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from semel.errors import RefusedError, StaleCheckpointError, UsageError
from semel.spark.format.files import Checkpoint, delete_directory, empty_directory
from semel.spark.format.messages import TaskMessage, TaskOutput
from semel.spark.format.options import FormatOptions
from semel.spark.format.transaction import FormatTransactions
from semel.spark.query_batch import BatchVerdict, QueryBatch, judge, source_positions
from semel.spark.sink.columns import columns_of
from semel.spark.sink.transaction import At, nothing
from semel.wire.compression import Compression

log = logging.getLogger(__name__)

_QUERY_ID = "sql.streaming.queryId"
_RUN_ID = "spark.jobGroup.id"
_STAGED = "semel-staged"
_TYPES = {
    "headers": "array<struct<key:string,value:binary>>",
    "partition": "int",
    "topic": "string",
    "timestamp": "timestamp",
}


class _Writing:
    """What a stream and a single write share."""

    def __init__(self, options: FormatOptions, schema: T.StructType, at: At = nothing) -> None:
        check_columns(schema, options.topic)
        self.options = options
        self.at = at

    @abstractmethod
    def _directory(self, query_id: str, run_id: str) -> str:
        """Where tasks stage what they cannot carry: nothing else is there."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        # Only tasks encode: the processes of the driver start without the kernels.
        from pyspark import TaskContext

        from semel.spark.sessions.worker import freeze_imports
        from semel.spark.sink.encoding import RowEncoder, cluster_of
        from semel.wire.compression import compress

        context = TaskContext.get()
        assert context is not None
        freeze_imports()
        options = self.options
        codec = Compression.named(options.sink.compression_type)
        query_id = context.getLocalProperty(_QUERY_ID)
        run_id = context.getLocalProperty(_RUN_ID)
        output = TaskOutput(self._directory(query_id or "", run_id or ""), options.carried_bytes)
        encoder: RowEncoder | None = None

        def emit(body: Any) -> None:
            output.add(body, compress(codec, body.records))
            assert encoder is not None
            encoder.give_back(body.slot)

        rows = 0
        try:
            for batch in iterator:
                if batch.num_rows and encoder is None:
                    cluster = cluster_of(options.settings)
                    encoder = RowEncoder(cluster, options.topic, options.sink.batch_size, emit)
                if encoder is not None:
                    encoder.add(batch)
                rows += batch.num_rows
            if encoder is not None:
                encoder.finish()
                encoder.keep()
            output.close()
        except BaseException:
            output.discard()
            raise
        return TaskMessage(
            partition=context.partitionId(),
            attempt=context.taskAttemptId(),
            query_id=query_id,
            run_id=run_id,
            rows=rows,
            batches=tuple(output.batches),
            staged=output.staged,
        )

    def _forget(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """The directories of what is staged, with what other attempts have left there."""
        staged = [m.staged for m in messages if isinstance(m, TaskMessage) and m.staged]
        for directory in {location.rpartition("/")[0] for location in staged}:
            delete_directory(directory)

    def _transactions(self, application: str) -> FormatTransactions:
        options = self.options
        return FormatTransactions(
            options.settings, options.topic, application, options.sink, self.at
        )


class StreamWriter(_Writing, DataSourceStreamArrowWriter):
    """One transaction for each micro-batch."""

    def __init__(self, options: FormatOptions, schema: T.StructType, at: At = nothing) -> None:
        if options.checkpoint is None:
            raise UsageError(
                "the sink needs the option checkpointLocation: it knows a batch by what Spark has"
                " written there"
            )
        super().__init__(options, schema, at)
        self._staging = f"{options.staging or options.checkpoint}/{_STAGED}"

    def _directory(self, query_id: str, run_id: str) -> str:
        return f"{self._staging}/{query_id}/{run_id}"

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        options = self.options
        assert options.checkpoint is not None
        batch = Checkpoint(options.checkpoint).batch(batchId)
        found = _complete(messages)
        run_id = next((message.run_id for message in found), None)
        application = options.application or batch.query_id
        running = _RUNNING.pop(application, None)
        if running is None or run_id is None or running[0] != run_id:
            running = (run_id, self._take_over(application, batch))
            # What earlier runs of this query have left behind, killed or not.
            empty_directory(f"{self._staging}/{batch.query_id}", but=run_id)
        transactions = running[1]
        transactions.at = self.at
        verdict = judge(application, transactions.committed, batch, options.sink.begin_anew)
        if verdict is BatchVerdict.SKIP:
            log.info("%s: batch %d is committed already", application, batchId)
        else:
            self._commit(transactions, batch, found)
        # Not if anything has failed: the next batch then takes over anew.
        _RUNNING[application] = running
        self._forget(found)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing of it is in Kafka, or all of it is: Spark also calls this when the process of a
        successful commit died."""
        self._forget(messages)

    def _take_over(self, application: str, batch: QueryBatch) -> FormatTransactions:
        transactions = self._transactions(application)
        transactions.fence(batch.batch, self._group(application))
        if transactions.committed is None:
            other = transactions.application_of(batch.query_id)
            if other is not None:
                raise StaleCheckpointError(
                    f"query {batch.query_id} has committed batches as application {other!r}; now it"
                    f" comes as {application!r}, which knows nothing of them. Give the sink the"
                    f" option application={other}"
                )
        return transactions

    def _commit(
        self, transactions: FormatTransactions, batch: QueryBatch, messages: list[TaskMessage]
    ) -> None:
        positions = transactions.positions_here(source_positions(batch.end))
        group = self._group(transactions.application)
        transactions.send(batch, messages, group, positions)

    def _group(self, application: str) -> str:
        return self.options.sink.group_id or application


class BatchWriter(_Writing, DataSourceArrowWriter):
    """One transaction for a whole DataFrame, idempotent under its name."""

    def __init__(
        self, options: FormatOptions, schema: T.StructType, overwrite: bool, at: At = nothing
    ) -> None:
        if overwrite:
            raise RefusedError('a topic cannot be overwritten: use mode("append")')
        super().__init__(options, schema, at)
        self._name = options.name or uuid.uuid4().hex
        where = options.staging or tempfile.gettempdir()
        self._staging = f"{where}/{_STAGED}/{uuid.uuid4().hex}"

    def _directory(self, query_id: str, run_id: str) -> str:
        return self._staging

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        found = _complete(messages)
        transactions = self._transactions(f"write-{self._name}")
        transactions.fence(0)
        if transactions.committed is None:
            batch = QueryBatch(query_id=self._name, batch=0, start=(), end=())
            transactions.send(batch, found)
        else:
            log.info("%r is written already", self._name)
        self._forget(found)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._forget(messages)


#: Of this process: what runs under an application's name, with the run that fenced the others.
_RUNNING: dict[str, tuple[str | None, FormatTransactions]] = {}


def check_columns(schema: T.StructType, topic: str | None) -> None:
    """Before the first batch: columns that are missing, or of another type."""
    chosen = columns_of(schema, topic)
    for name, kind in _TYPES.items():
        if name in chosen:
            given = schema[name].dataType
            if not isinstance(given, T.NullType) and given.simpleString() != kind:
                raise UsageError(f"column `{name}` must be {kind}, not {given.simpleString()}")


def _complete(messages: Sequence[WriterCommitMessage | None]) -> list[TaskMessage]:
    """One message of each task: Spark has chosen them."""
    found = [message for message in messages if isinstance(message, TaskMessage)]
    partitions = {message.partition for message in found}
    if len(found) != len(messages) or len(partitions) != len(found):
        raise RefusedError(
            f"Spark came with {len(messages)} messages of tasks, of which {len(partitions)} speak"
            " for a partition of their own: nothing was written"
        )
    return found
