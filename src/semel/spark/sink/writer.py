"""What a Spark task runs: Arrow batches in, records to Kafka, one row of statistics out.

A value of an importable class, so that Spark pickles a name and a few fields instead of a closure
with its module's globals.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from semel.columnar.columns import Rows
from semel.columnar.encode import BATCH_BYTES, Body, BufferPool, Lanes
from semel.columnar.kernels import load
from semel.errors import SemelError
from semel.spark.kafka.client import BlockingCluster, patiently
from semel.spark.kafka.settings import SparkSettings
from semel.spark.kafka.transactions import Lent
from semel.spark.sessions.worker import freeze_imports
from semel.spark.sink.claim_service import ClaimClient
from semel.spark.sink.sending import BatchQueue, BatchSender
from semel.wire.compression import Compression
from semel.wire.errors import ErrorCode

STATISTICS = "partition int, attempt long, rows long, bytes long, batches long, requests long"
_SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        *((name, pa.int64()) for name in ("attempt", "rows", "bytes", "batches", "requests")),
    ]
)
# At import: the driver fills the cache by it, and workers are forked with the kernels loaded.
_KERNELS = load()
_POOL_BYTES = 128 << 20
_SMALLEST_BUFFER = 64 << 10
_SENDERS = 4
_TOPIC_S = 10.0
_SPARE_BUFFERS = 8
# Full batches that may wait for the sender: with all of the pool, encoding ran ahead by a hundred
# megabytes, which are memory and, when all is encoded, one thing left to do for two cores.
_WAITING = 16
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
        self._topic = writer.topic
        self._cluster = _cluster(writer, 0)
        self._pool = self._make_pool(writer)
        self._queue = BatchQueue(self._cluster, writer.compression, self._pool.give_back)
        self._lanes = Lanes(self._partitions_of, self._emit, self._pool, _KERNELS)
        if writer.topic is not None:
            self._cluster.refresh([writer.topic])
        self._senders = []
        for number in range(max(1, min(len(self._cluster.node_ids()), _SENDERS))):
            claims = ClaimClient(
                writer.claims_host, writer.claims_port, writer.lent.token, partition, attempt
            )
            cluster = _cluster(writer, 1 + number)
            self._senders.append(
                BatchSender(
                    self._queue,
                    cluster,
                    claims,
                    writer.lent,
                    writer.compression,
                    writer.timeout_s,
                )
            )
        for sender in self._senders:
            sender.start()

    def add(self, batch: pa.RecordBatch) -> None:
        now_ms = int(time.time() * 1000)
        self._lanes.add(Rows.of(batch, self._topic, now_ms), now_ms)

    def finish(self) -> Any:
        try:
            self._lanes.finish()
        except BaseException as error:
            self.fail(error)
            raise
        self._queue.finish()
        for sender in self._senders:
            sender.join()
        if self._queue.error is not None:
            raise self._queue.error
        _POOLS[self._pool.buffers, self._pool.capacity] = self._pool
        return self._queue.sent

    def fail(self, error: BaseException) -> None:
        self._queue.fail(error)
        self._pool.close()
        # The process may end with this task: let the senders tell the driver why.
        for sender in self._senders:
            sender.join(_LAST_WORDS_S)

    def _partitions_of(self, topic: str) -> int:
        """As any producer does: a topic that a row names is created if the broker is set to."""
        try:
            return self._cluster.partitions(topic)
        except SemelError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
        make = partial(self._cluster.refresh, [topic], create=True)
        patiently(make, f"topic {topic!r}", _TOPIC_S)
        return self._cluster.partitions(topic)

    def _emit(self, body: Body) -> None:
        self._queue.put(body)

    def _make_pool(self, writer: TaskWriter) -> BufferPool:
        lanes = self._cluster.partitions(writer.topic) + 1 if writer.topic else 64
        share = _POOL_BYTES // (lanes + _SPARE_BUFFERS)
        capacity = max(_SMALLEST_BUFFER, min(writer.batch_size, share))
        # Memory that a former task has touched already costs no page faults.
        buffers = min(_POOL_BYTES // capacity, 2 * lanes + _WAITING)
        pool = _POOLS.pop((buffers, capacity), None)
        return pool or BufferPool(buffers, capacity)


_POOLS: dict[tuple[int, int], BufferPool] = {}
_CLUSTERS: dict[tuple[SparkSettings, int], BlockingCluster] = {}


def _cluster(writer: TaskWriter, number: int) -> BlockingCluster:
    """Connections outlive a task: the worker process is used again."""
    key = (writer.settings, number)
    if key not in _CLUSTERS:
        _CLUSTERS[key] = BlockingCluster(writer.settings)
    return _CLUSTERS[key]
