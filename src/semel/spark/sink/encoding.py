"""Rows into the record batches of their partitions, inside a task: what both sinks begin with."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import pyarrow as pa

from semel.columnar.columns import Rows
from semel.columnar.encode import Body, BufferPool, Lanes
from semel.columnar.kernels import load
from semel.errors import SemelError
from semel.spark.kafka.client import BlockingCluster, patiently
from semel.spark.kafka.settings import SparkSettings
from semel.wire.errors import ErrorCode

# At import: the driver fills the cache by it, and workers are forked with the kernels loaded.
_KERNELS = load()
_POOL_BYTES = 128 << 20
_SMALLEST_BUFFER = 64 << 10
_TOPIC_S = 10.0
_SPARE_BUFFERS = 8
# Full batches that may wait for the sender: with all of the pool, encoding ran ahead by a hundred
# megabytes, which are memory and, when all is encoded, one thing left to do for two cores.
_WAITING = 16


class RowEncoder:
    """Arrow batches in, bodies of record batches out, through `emit`. Their buffers come back by
    `give_back`.
    """

    def __init__(
        self,
        cluster: BlockingCluster,
        topic: str | None,
        batch_size: int,
        emit: Callable[[Body], None],
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._pool = self._make_pool(batch_size)
        self._lanes = Lanes(self._partitions_of, emit, self._pool, _KERNELS)
        self.give_back = self._pool.give_back

    def add(self, batch: pa.RecordBatch) -> None:
        now_ms = int(time.time() * 1000)
        self._lanes.add(Rows.of(batch, self._topic, now_ms), now_ms)

    def finish(self) -> None:
        self._lanes.finish()

    def keep(self) -> None:
        """For the next task of this process: all buffers are back."""
        _POOLS[self._pool.buffers, self._pool.capacity] = self._pool

    def close(self) -> None:
        self._pool.close()

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

    def _make_pool(self, batch_size: int) -> BufferPool:
        lanes = self._partitions_of(self._topic) + 1 if self._topic else 64
        share = _POOL_BYTES // (lanes + _SPARE_BUFFERS)
        capacity = max(_SMALLEST_BUFFER, min(batch_size, share))
        # Memory that a former task has touched already costs no page faults.
        buffers = min(_POOL_BYTES // capacity, 2 * lanes + _WAITING)
        pool = _POOLS.pop((buffers, capacity), None)
        return pool or BufferPool(buffers, capacity)


_POOLS: dict[tuple[int, int], BufferPool] = {}
_CLUSTERS: dict[tuple[SparkSettings, int], BlockingCluster] = {}


def cluster_of(settings: SparkSettings, number: int = 0) -> BlockingCluster:
    """Connections outlive a task: the worker process is used again."""
    key = (settings, number)
    if key not in _CLUSTERS:
        _CLUSTERS[key] = BlockingCluster(settings)
    return _CLUSTERS[key]
