"""What a Spark task runs: Arrow batches in, records to Kafka, one row of statistics out.

A value of an importable class, so that Spark pickles a name and a few fields instead of a closure
with its module's globals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from semel.columnar.encode import BATCH_BYTES, Body
from semel.spark.kafka.settings import SparkSettings
from semel.spark.kafka.transactions import Lent
from semel.spark.sessions.worker import freeze_imports
from semel.spark.sink.claim_service import ClaimClient
from semel.spark.sink.encoding import RowEncoder, cluster_of
from semel.spark.sink.sending import BatchQueue, BatchSender
from semel.wire.compression import Compression

STATISTICS = "partition int, attempt long, rows long, bytes long, batches long, requests long"
_SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        *((name, pa.int64()) for name in ("attempt", "rows", "bytes", "batches", "requests")),
    ]
)
_SENDERS = 4
_LAST_WORDS_S = 5.0


@dataclass(frozen=True, slots=True)
class TaskWriter:
    """The function given to `mapInArrow`."""

    lent: Lent
    settings: SparkSettings
    claims_host: str
    claims_port: int
    topic: str | None
    compression: Compression
    batch_size: int = BATCH_BYTES
    timeout_s: float = 120.0

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        freeze_imports()
        partition, attempt = context.partitionId(), context.taskAttemptId()
        sent = self._write(batches, partition, attempt)
        counts = [sent[name] for name in ("rows", "bytes", "batches", "requests")]
        row = [partition, attempt, *counts]
        columns = [pa.array([value], kind.type) for value, kind in zip(row, _SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

    def _write(self, batches: Iterator[pa.RecordBatch], partition: int, attempt: int) -> Any:
        task = None
        try:
            for batch in batches:
                if batch.num_rows == 0:
                    continue
                # An empty task opens no connection: most micro-batches are small.
                if task is None:
                    task = _Task(self, partition, attempt)
                task.add(batch)
        except BaseException as error:
            if task is not None:
                task.fail(error)
            raise
        return task.finish() if task is not None else dict.fromkeys(_SCHEMA.names, 0)


class _Task:
    """One task's writing: this thread encodes, the senders send."""

    def __init__(self, writer: TaskWriter, partition: int, attempt: int) -> None:
        cluster = cluster_of(writer.settings)
        self._encoder = RowEncoder(cluster, writer.topic, writer.batch_size, self._emit)
        self._queue = BatchQueue(cluster, writer.compression, self._encoder.give_back)
        if writer.topic is not None:
            cluster.refresh([writer.topic])
        self._senders = []
        for number in range(max(1, min(len(cluster.node_ids()), _SENDERS))):
            claims = ClaimClient(
                writer.claims_host, writer.claims_port, writer.lent.token, partition, attempt
            )
            self._senders.append(
                BatchSender(
                    self._queue,
                    cluster_of(writer.settings, 1 + number),
                    claims,
                    writer.lent,
                    writer.compression,
                    writer.timeout_s,
                )
            )
        for sender in self._senders:
            sender.start()

    def add(self, batch: pa.RecordBatch) -> None:
        self._encoder.add(batch)

    def finish(self) -> Any:
        try:
            self._encoder.finish()
        except BaseException as error:
            self.fail(error)
            raise
        self._queue.finish()
        for sender in self._senders:
            sender.join()
        if self._queue.error is not None:
            raise self._queue.error
        self._encoder.keep()
        return self._queue.sent

    def fail(self, error: BaseException) -> None:
        self._queue.fail(error)
        self._encoder.close()
        # The process may end with this task: let the senders tell the driver why.
        for sender in self._senders:
            sender.join(_LAST_WORDS_S)

    def _emit(self, body: Body) -> None:
        self._queue.put(body)
