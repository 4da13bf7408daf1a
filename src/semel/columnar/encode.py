"""Rows into record batches, one open buffer per lane, and the 61 bytes that go before a body."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from semel.columnar.columns import Array, Rows
from semel.columnar.kernels import Kernels, load
from semel.columnar.shapes import DONE, FULL
from semel.wire.batches import header_before
from semel.wire.compression import Buffer

TRANSACTIONAL = 0x10
# Broker default message.max.bytes is 1 MiB; large batches are what makes Produce cheap.
BATCH_BYTES = 900_000
_NO_BUFFER = -1


@dataclass(frozen=True, slots=True)
class Body:
    """The records of one batch, without its header. `partition` is None where any will do."""

    topic: str
    partition: int | None
    records: memoryview
    count: int
    base_ms: int
    max_ms: int
    slot: int = _NO_BUFFER


class BufferPool:
    """Equal buffers cut from one piece of memory, shared by the encoding and the sending thread."""

    def __init__(self, buffers: int, capacity: int) -> None:
        self.buffers = buffers
        self.capacity = capacity
        self.memory: Any = np.empty(buffers * capacity, np.uint8)
        self._view = memoryview(self.memory.data)
        self._free = list(range(buffers))
        self._lent = 0
        self._changed = threading.Condition()
        self._closed = False

    def take(self) -> int | None:
        """A free buffer, waiting for one to come back; None when none is on its way."""
        with self._changed:
            while not self._free and self._lent and not self._closed:
                self._changed.wait()
            if self._closed:
                raise RuntimeError("the sender has stopped")
            return self._free.pop() if self._free else None

    def lend(self, slot: int, size: int) -> memoryview:
        with self._changed:
            self._lent += 1
        return self._view[slot * self.capacity : slot * self.capacity + size]

    def give_back(self, slot: int) -> None:
        if slot == _NO_BUFFER:
            return
        with self._changed:
            self._lent -= 1
            self._free.append(slot)
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class Lanes:
    """Scatters rows into the open buffers of their partitions and emits each body that is full."""

    def __init__(
        self,
        partitions_of: Callable[[str], int],
        emit: Callable[[Body], None],
        pool: BufferPool,
        kernels: Kernels | None = None,
    ) -> None:
        self.kernels = kernels or load()  # may be exchanged between two calls
        self._partitions_of = partitions_of
        self._emit = emit
        self._pool = pool
        self._first: dict[str, int] = {}
        self._targets: list[tuple[str, int | None]] = []
        self._slots = np.zeros(0, np.int64)
        self._ends = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)
        self._base_ms = np.zeros(0, np.int64)
        self._max_ms = np.zeros(0, np.int64)

    def add(self, rows: Rows, now_ms: int) -> None:
        self.scatter(rows, self.assign(rows), 0, rows.count, now_ms)

    def assign(self, rows: Rows) -> Array:
        """Each row's lane; a ValueError names a partition that does not exist."""
        for topic in rows.topic_names:
            if topic not in self._first:
                self._add_topic(topic)
        lanes = np.empty(rows.count, np.int32)
        bad = self.kernels.assign_lanes(
            rows.topics,
            np.array([self._first[topic] for topic in rows.topic_names], np.int64),
            np.array([self._partitions_of(topic) for topic in rows.topic_names], np.int64),
            rows.keys.starts,
            rows.keys.data,
            rows.keys.valid,
            rows.keys.bit,
            rows.partitions,
            rows.partitions_valid,
            rows.partitions_bit,
            lanes,
        )
        if bad >= 0:
            topic = rows.topic_names[rows.topics[bad] if len(rows.topics) else 0]
            raise ValueError(f"topic {topic!r} has no partition {rows.partitions[bad]}")
        return lanes

    def of_topic(self, topic: str) -> range:
        """The lanes of a topic's partitions; the one behind them is for rows that go anywhere."""
        first = self._first[topic]
        return range(first, first + self._partitions_of(topic))

    def scatter(self, rows: Rows, lanes: Array, row: int, stop: int, now_ms: int) -> None:
        """Writes the rows from `row` up to `stop`."""
        lanes = lanes[:stop]
        while True:
            row, lane, reason = self._scatter(rows, row, lanes, now_ms)
            if reason == DONE:
                return
            if reason == FULL and self._counts[lane] == 0:
                self._emit_alone(rows, row, lanes, now_ms)
                row += 1
            elif reason == FULL:
                self._seal(lane)
            else:
                self._open(lane)

    def finish(self) -> None:
        for lane in np.flatnonzero(self._counts):
            self._seal(int(lane))

    def _add_topic(self, topic: str) -> None:
        partitions = self._partitions_of(topic)
        self._first[topic] = len(self._targets)
        self._targets += [(topic, partition) for partition in range(partitions)]
        self._targets.append((topic, None))
        grown = partitions + 1
        self._slots = np.append(self._slots, np.full(grown, _NO_BUFFER, np.int64))
        for name in ("_ends", "_counts", "_base_ms", "_max_ms"):
            setattr(self, name, np.append(getattr(self, name), np.zeros(grown, np.int64)))

    def _scatter(self, rows: Rows, row: int, lanes: Any, now_ms: int) -> tuple[int, int, int]:
        return self._scatter_into(rows, row, lanes, now_ms, self._pool.memory, self._slots)

    def _scatter_into(
        self, rows: Rows, row: int, lanes: Any, now_ms: int, memory: Any, slots: Any
    ) -> tuple[int, int, int]:
        capacity = self._pool.capacity if memory is self._pool.memory else len(memory)
        keys, values, headers = rows.keys, rows.values, rows.headers
        stopped: tuple[int, int, int] = self.kernels.scatter(
            row,
            lanes,
            keys.starts,
            keys.data,
            keys.valid,
            keys.bit,
            values.starts,
            values.data,
            values.valid,
            values.bit,
            headers.lists,
            headers.names.starts,
            headers.names.data,
            headers.values.starts,
            headers.values.data,
            headers.values.valid,
            headers.values.bit,
            rows.timestamps,
            now_ms,
            memory,
            capacity,
            slots,
            self._ends,
            self._counts,
            self._base_ms,
            self._max_ms,
        )
        return stopped

    def _open(self, lane: int) -> None:
        slot = self._pool.take()
        if slot is None:
            # Every buffer is open in some lane: the fullest makes room.
            self._seal(int(np.argmax(self._ends)))
            slot = self._pool.take()
            assert slot is not None, "a sealed buffer never came back"
        self._slots[lane] = slot

    def _seal(self, lane: int) -> None:
        slot = int(self._slots[lane])
        records = self._pool.lend(slot, int(self._ends[lane]))
        self._slots[lane] = _NO_BUFFER
        self._emit(self._body(lane, records, slot))

    def _emit_alone(self, rows: Rows, row: int, lanes: Any, now_ms: int) -> None:
        """A record larger than a buffer travels in a batch of its own."""
        memory: Any = np.empty(int(rows.bounds(row, row + 1)[0]), np.uint8)
        lane = int(lanes[row])
        slots = np.zeros(len(self._slots), np.int64)
        _, _, reason = self._scatter_into(rows, row, lanes[: row + 1], now_ms, memory, slots)
        assert reason == DONE, "a row larger than its bound"
        self._emit(self._body(lane, memoryview(memory)[: int(self._ends[lane])], _NO_BUFFER))

    def _body(self, lane: int, records: memoryview, slot: int) -> Body:
        topic, partition = self._targets[lane]
        body = Body(
            topic=topic,
            partition=partition,
            records=records,
            count=int(self._counts[lane]),
            base_ms=int(self._base_ms[lane]),
            max_ms=int(self._max_ms[lane]),
            slot=slot,
        )
        self._ends[lane] = 0
        self._counts[lane] = 0
        return body


def batch_header(
    *,
    records: Buffer,
    count: int,
    base_ms: int,
    max_ms: int,
    producer_id: int,
    epoch: int,
    sequence: int,
    codec: int,
) -> bytes:
    """The header of a transactional batch of these records."""
    # A transactional batch with producer id -1 is accepted by Kafka and visible to everybody.
    assert producer_id >= 0, f"producer id {producer_id}"
    return header_before(
        records,
        attributes=TRANSACTIONAL | codec,
        count=count,
        base_timestamp=base_ms,
        max_timestamp=max_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
