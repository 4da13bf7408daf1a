"""Sending Arrow tables: rows are placed, encoded and batched by the kernels, then sent like others.

Columns: key, value, headers, timestamp, partition, and topic where no topic is named. Everything
that can be wrong with a table is found before its first row is sent.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from semel.client.machines.accumulator import ProducerBatch
from semel.client.machines.transactions import State
from semel.client.machines.types import Failure, TopicPartition
from semel.client.producer.sender import Sender
from semel.columnar import kernels
from semel.columnar.columns import Array, Rows
from semel.columnar.encode import Body, BufferPool, Lanes
from semel.errors import FatalError, UsageError
from semel.wire.batches import BatchBuilder
from semel.wire.compression import Compression
from semel.wire.errors import ErrorCode, ErrorKind

_COLUMNS = ("key", "value", "headers", "timestamp", "partition", "topic")
_TEXT = (pa.types.is_string, pa.types.is_large_string)
_BINARY = (pa.types.is_binary, pa.types.is_large_binary)
_LISTS = (pa.types.is_list, pa.types.is_large_list)
# What one turn of the event loop encodes; others have theirs in between.
_BYTES_PER_TURN = 1 << 20
# A row's bound leaves room for long numbers; these are short in nearly every row.
_USUALLY_LESS = 56
# Batches being filled, for all partitions together: where these are many, batches are smaller.
_OPEN_BYTES = 16 << 20
_SMALLEST_BATCH = 16 << 10


Filled = tuple[TopicPartition, BatchBuilder]


class WrittenBatch(NamedTuple):
    """A piece of a table: rows that lie together in a partition."""

    topic: str
    partition: int
    first_offset: int
    rows: int


class TableMetadata(NamedTuple):
    """Where a table was written."""

    rows: int
    batches: tuple[WrittenBatch, ...]


class TableDelivery:
    """A table on its way. Awaiting it gives its `TableMetadata`, or raises the first failure.

    Like a record's delivery it need not be awaited: `flush` and `commit_transaction` wait for it.
    """

    def __init__(
        self, batches: list[ProducerBatch], wait: Callable[[ProducerBatch], Awaitable[None]]
    ) -> None:
        self._batches = batches
        self._wait = wait

    def done(self) -> bool:
        return all(batch.settled for batch in self._written())

    def __await__(self) -> Generator[Any, None, TableMetadata]:
        return self._all().__await__()

    async def _all(self) -> TableMetadata:
        for batch in self._batches:
            await self._wait(batch)
        written = tuple(
            WrittenBatch(*batch.partition, batch.base_offset, batch.count)
            for batch in self._written()
        )
        return TableMetadata(sum(batch.rows for batch in written), written)

    def _written(self) -> list[ProducerBatch]:
        """The batches that hold the rows now: one found too large was cut in two."""
        whole: list[ProducerBatch] = []
        waiting = self._batches[::-1]
        while waiting:
            batch = waiting.pop()
            if batch.successors:
                waiting += batch.successors[::-1]
            else:
                whole.append(batch)
        return whole


class TableSender:
    """One table at a time, in the order of the calls."""

    def __init__(
        self,
        sender: Sender,
        partitions_of: Callable[[str], Awaitable[int]],
        enqueue: Callable[[TopicPartition, BatchBuilder], Awaitable[ProducerBatch]],
    ) -> None:
        settings = sender.settings
        self._sender = sender
        self._largest_record = settings.max_request_size
        self._compression = sender.accumulator.limits.compression
        self._partitions_of = partitions_of
        self._enqueue = enqueue
        self._largest_batch = min(settings.table_batch_size, settings.max_request_size)
        self._open_bytes = min(_OPEN_BYTES, settings.buffer_memory)
        self._turn = asyncio.Lock()
        self._pool: BufferPool | None = None

    async def send(self, topic: str | None, table: Any) -> list[ProducerBatch]:
        """The batches that the table became; all are buffered when this returns."""
        rows = checked(topic, table)
        if not rows.num_rows:
            return []
        async with self._turn:
            return await self._send(topic, rows)

    async def _send(self, topic: str | None, table: pa.Table) -> list[ProducerBatch]:
        names = [topic] if topic else table["topic"].unique().to_pylist()
        counts = {name: await self._partitions_of(name) for name in names}
        pool = self._take_pool(sum(counts.values()))
        encoding = _Encoding(topic, counts, pool, self._compression)
        pieces: list[_Piece] = []
        first_row = 0
        for part in table.to_batches(max_chunksize=kernels.ready().rows_per_turn):
            pieces.append(encoding.place(part, first_row, self._largest_record))
            first_row += part.num_rows
            await asyncio.sleep(0)
        batches: list[ProducerBatch] = []
        transaction = self._sender.manager.transaction
        try:
            for piece in pieces:
                for start, stop in piece.turns():
                    encoding.encode(piece, start, stop)
                    await self._hand_over(encoding.filled, batches)
            encoding.finish()
            await self._hand_over(encoding.filled, batches)
        except BaseException:
            if batches:
                self._sent_in_part(transaction)
            raise
        self._pool = pool
        return batches

    def _sent_in_part(self, transaction: object) -> None:
        """Half of a table must not be committed."""
        manager = self._sender.manager
        if manager.state is State.IN_TRANSACTION and manager.transaction is transaction:
            what = "a table was sent in part: sending it failed or was cancelled. Abort, send again"
            manager.fail_abortable(Failure(ErrorKind.ABORTABLE, what), needs_bump=False)
            self._sender.wake()

    def _take_pool(self, partitions: int) -> BufferPool:
        """One buffer a partition. Used again by the next call; a failed one leaves open batches."""
        share = max(_SMALLEST_BATCH, self._open_bytes // partitions)
        capacity = max(1, min(self._largest_batch, share))
        pool, self._pool = self._pool, None
        if pool is None or (pool.buffers, pool.capacity) != (partitions, capacity):
            pool = BufferPool(partitions, capacity)
        return pool

    async def _hand_over(self, filled: list[Filled], batches: list[ProducerBatch]) -> None:
        for partition, builder in filled:
            batches.append(await self._enqueue(partition, builder))
        filled.clear()
        await asyncio.sleep(0)


class _Piece(NamedTuple):
    """Some rows of a table, their lanes, and how many bytes they take up to each of them."""

    rows: Rows
    lanes: Array
    ends: Array

    def turns(self) -> Iterator[tuple[int, int]]:
        """What to encode at once: row numbers, from and up to."""
        start = 0
        while start < self.rows.count:
            before = self.ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(self.ends, before + _BYTES_PER_TURN)))
            yield start, stop
            start = stop


class _Encoding:
    """One table on its way through the lanes."""

    def __init__(
        self, topic: str | None, counts: dict[str, int], pool: BufferPool, codec: Compression
    ) -> None:
        self.filled: list[Filled] = []
        self._topic = topic
        self._pool = pool
        self._codec = codec
        self._now_ms = int(time.time() * 1000)
        self._passed = {name: random.randrange(1 << 40) for name in counts}
        self._lanes = Lanes(counts.__getitem__, self._emit, pool, kernels.ready())

    def place(self, part: pa.RecordBatch, first_row: int, largest: int) -> _Piece:
        """Where each row goes; raises what is wrong with one."""
        try:
            rows = Rows.of(part, self._topic, self._now_ms)
            lanes = self._lanes.assign(rows)
        except (ValueError, TypeError) as error:
            raise UsageError(f"the table cannot be sent: {error}") from None
        sizes = rows.bounds(0, rows.count)
        if sizes.max() > largest:
            row = int(sizes.argmax())
            raise FatalError(
                f"row {first_row + row} of the table takes up to {sizes[row]} bytes, more than "
                f"max_request_size, {largest}",
                ErrorCode.MESSAGE_TOO_LARGE,
            )
        for name in rows.topic_names:
            self._spread(name, lanes, sizes)
        return _Piece(rows, lanes, np.cumsum(sizes))

    def encode(self, piece: _Piece, start: int, stop: int) -> None:
        self._lanes.kernels = kernels.ready()
        self._lanes.scatter(piece.rows, piece.lanes, start, stop, self._now_ms)

    def finish(self) -> None:
        self._lanes.finish()

    def _spread(self, topic: str, lanes: Array, sizes: Array) -> None:
        """Rows for anywhere stay with one partition for about a batch, then go on to the next.

        Placed like the others, they keep their order among them (KIP-480 for a whole table).
        """
        of_topic = self._lanes.of_topic(topic)
        anywhere = np.flatnonzero(lanes == of_topic.stop)
        if len(anywhere):
            ends = self._passed[topic] + np.cumsum(sizes[anywhere] - _USUALLY_LESS)
            lanes[anywhere] = of_topic.start + ends // self._pool.capacity % len(of_topic)
            self._passed[topic] = int(ends[-1])

    def _emit(self, body: Body) -> None:
        assert body.partition is not None, "a row that was spread nowhere"
        builder = BatchBuilder(self._codec)
        builder.body += body.records
        builder.count = body.count
        builder.base_timestamp = body.base_ms
        builder.max_timestamp = body.max_ms
        self.filled.append((TopicPartition(body.topic, body.partition), builder))
        self._pool.give_back(body.slot)  # copied: the next batch may have the memory


def checked(topic: str | None, table: Any) -> pa.Table:
    """An Arrow table with the right columns of the right types, or a `UsageError`."""
    if not isinstance(table, pa.Table):
        try:
            table = pa.table(table)
        except (TypeError, ValueError) as error:
            raise UsageError(f"send_table takes an Arrow table: {error}") from None
    for name in table.column_names:
        if name not in _COLUMNS:
            raise UsageError(
                f"a table to send has no column {name!r}, only {', '.join(_COLUMNS)}: "
                "drop or rename it"
            )
        if table.column_names.count(name) > 1:
            raise UsageError(f"the table has two columns {name!r}")
    if topic and "topic" in table.column_names:
        raise UsageError("a topic is named and the table has a column topic: use one of them")
    if not topic and "topic" not in table.column_names:
        raise UsageError("no topic is named, and the table has no column topic")
    for name in table.column_names:
        table = _with_right_type(table, name)
    if not topic and table["topic"].null_count:
        raise UsageError("a row names no topic")
    return table


def _with_right_type(table: pa.Table, name: str) -> pa.Table:
    kind = table.schema.field(name).type
    if pa.types.is_dictionary(kind) and name != "topic":
        place = table.column_names.index(name)
        table = table.set_column(place, name, table[name].cast(kind.value_type))
        kind = kind.value_type
    expected, allowed = _EXPECTED[name]
    if not (pa.types.is_null(kind) or allowed(kind)):
        raise UsageError(f"the column {name} should be {expected}, not {kind}")
    return table


def _is_bytes(kind: pa.DataType) -> bool:
    return any(is_type(kind) for is_type in (*_TEXT, *_BINARY))


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(is_type(kind) for is_type in _TEXT)


def _is_time(kind: pa.DataType) -> bool:
    return any(is_type(kind) for is_type in (pa.types.is_timestamp, pa.types.is_integer))


def _is_headers(kind: pa.DataType) -> bool:
    if not any(is_type(kind) for is_type in _LISTS) or not pa.types.is_struct(kind.value_type):
        return False
    fields = list(kind.value_type)
    return bool(
        [field.name for field in fields] == ["key", "value"]
        and _is_text(fields[0].type)
        and _is_bytes(fields[1].type)
    )


_EXPECTED: dict[str, tuple[str, Callable[[pa.DataType], bool]]] = {
    "key": ("binary or string", _is_bytes),
    "value": ("binary or string", _is_bytes),
    "headers": ("list<struct<key: string, value: binary>>", _is_headers),
    "timestamp": ("a timestamp or an integer of milliseconds", _is_time),
    "partition": ("an integer", pa.types.is_integer),
    "topic": ("string", _is_text),
}
