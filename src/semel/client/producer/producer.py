"""The asyncio producer: idempotent by default, transactional with a `transactional_id`.

async with Producer("localhost:9092", transactional_id="orders") as producer:
    async with producer.transaction():
        await producer.send("orders", b"value", key=b"key")
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from semel.client.cluster import Cluster
from semel.client.errors import (
    AbortableError,
    ClientError,
    FatalError,
    RetriableError,
    UsageError,
    error_of,
    refusal_of,
)
from semel.client.lifetime import Lifetime
from semel.client.machines.accumulator import (
    RECORD_OVERHEAD,
    Accumulator,
    AccumulatorLimits,
    PartitionQueue,
    ProducerBatch,
)
from semel.client.machines.metadata import TopicMetadata
from semel.client.machines.partitioner import StickyPartition, partition_for_key
from semel.client.machines.patience import Deadline
from semel.client.machines.transactions import NotAllowed, State, TransactionManager
from semel.client.machines.types import (
    GroupMetadata,
    OffsetAndMetadata,
    Pending,
    ProducerIdentity,
    TopicPartition,
)
from semel.client.producer.sender import Sender
from semel.client.settings import ProducerSettings
from semel.wire.batches import BatchBuilder
from semel.wire.compression import Compression
from semel.wire.errors import ErrorCode

if TYPE_CHECKING:
    from semel.client.producer.columnar_send import TableDelivery, TableSender

Headers = Iterable[tuple[str, bytes | None]]
Serializer = Callable[[Any], bytes | None]
T = TypeVar("T")


class RecordMetadata(NamedTuple):
    """Where a record was written."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class Delivery:
    """A record on its way. Awaiting it gives its `RecordMetadata`, or raises why it failed.

    It need not be awaited: `flush` and `commit_transaction` wait for all of them, and a failure
    in a transaction makes the commit impossible.
    """

    __slots__ = ("_batch", "_index", "_timestamp")

    def __init__(self, batch: ProducerBatch, index: int, timestamp: int) -> None:
        self._batch = batch
        self._index = index
        self._timestamp = timestamp

    def done(self) -> bool:
        return self._final()[0].settled

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        while not (final := self._final())[0].settled:
            yield from _settling(final[0])
        batch, index = final
        if batch.failure is not None:
            raise error_of(batch.failure)
        topic, partition = batch.partition
        offset = batch.base_offset + index if batch.base_offset >= 0 else -1
        timestamp = self._timestamp if batch.timestamp < 0 else batch.timestamp
        return RecordMetadata(topic, partition, offset, timestamp)

    def _final(self) -> tuple[ProducerBatch, int]:
        """The batch that holds the record now: a batch found too large was cut in two."""
        batch, index = self._batch, self._index
        while batch.successors:
            first, second = batch.successors
            batch, index = (first, index) if index < first.count else (second, index - first.count)
        return batch, index


class _Target:
    """A topic that is sent to: what is looked up for every record."""

    __slots__ = ("known", "queues", "sticky")

    def __init__(self, known: TopicMetadata) -> None:
        self.known = known
        self.sticky = StickyPartition()
        self.queues: dict[int, PartitionQueue] = {}


class Producer(Lifetime):
    """Sends records. All settings of `ProducerSettings` are keywords; serializers are optional."""

    def __init__(
        self,
        bootstrap_servers: str | list[str] | None = None,
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        settings: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> None:
        self.settings = ProducerSettings.of(bootstrap_servers, settings, **given)
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._started = False

    async def start(self) -> None:
        """Connects. `async with` does it too."""
        if self._started:
            return
        settings = self.settings
        try:
            compression = Compression.named(settings.compression_type)
        except ValueError as error:
            raise UsageError(str(error)) from None
        self._cluster = Cluster(settings)
        self._accumulator = Accumulator(
            AccumulatorLimits(
                batch_size=settings.batch_size,
                linger_ms=settings.linger_ms,
                buffer_memory=settings.buffer_memory,
                delivery_timeout_ms=settings.delivery_timeout_ms,
                max_in_flight=settings.max_in_flight_requests_per_connection,
                compression=compression,
            )
        )
        self._manager = TransactionManager(
            settings.transactional_id, settings.transaction_timeout_ms, settings.backoff()
        )
        self._sender = Sender(self._cluster, self._accumulator, self._manager, settings)
        self._targets: dict[str, _Target] = {}
        self._transactional = settings.transactional_id is not None
        self._tables: TableSender | None = None
        try:
            await self._cluster.refresh(self._cluster.deadline(settings.max_block_ms))
        except BaseException:
            await self._cluster.close()
            raise
        self._started = True

    async def close(self, timeout_ms: float | None = None) -> None:
        """Sends what is buffered, aborts an open transaction, and disconnects."""
        if not self._started:
            return
        self._started = False
        try:
            if self._transactional and self._manager.state is State.IN_TRANSACTION:
                await self._ended(self._begin_abort(), self._deadline(timeout_ms))
            elif self._manager.state is not State.FATAL_ERROR:
                await self._flushed(self._deadline(timeout_ms))
        except ClientError:
            pass  # the producer is going away; an open transaction will time out at the broker
        finally:
            await self._sender.close()
            await self._cluster.close()

    # Sending

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Buffers a record. Waits only for room in the buffer and for a new topic's metadata."""
        if not self._started:
            self._need_started()
        if self._key_serializer is not None:
            key = self._key_serializer(key)
        if self._value_serializer is not None:
            value = self._value_serializer(value)
        target = self._targets.get(topic)
        if target is None or target.known is not self._cluster.metadata.topics.get(topic):
            target = await self._target(topic)
        if partition is None:
            if key is not None:
                partition = partition_for_key(key, len(target.known.partitions))
            elif (partition := target.sticky.chosen) < 0:
                partition = target.sticky.choose(len(target.known.partitions), random.random())
        queue = target.queues.get(partition)
        if queue is None:
            queue = target.queues[partition] = self._queue(topic, partition)
        if self._transactional:
            self._join_transaction(queue.partition)
        size = RECORD_OVERHEAD + (len(key) if key else 0) + (len(value) if value else 0)
        if headers:
            headers = tuple(headers)
            size += sum(len(name) * 3 + len(data or b"") + 10 for name, data in headers)
        timestamp = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
        index = self._accumulator.append_open(queue, key, value, timestamp, headers, size)
        if index > 0:
            assert queue.open is not None
            return Delivery(queue.open, index, timestamp)
        if size > self.settings.max_request_size or not self._accumulator.has_room(size):
            await self._make_room(queue.partition, size)
        batch, index, filled = self._accumulator.append(
            queue, key, value, timestamp, headers, size, self._cluster.now_ms()
        )
        self._sender.wake()
        if filled:
            target.sticky.batch_is_full(partition)
            # A loop of sends never waits by itself: let the full batch leave meanwhile.
            await asyncio.sleep(0)
        return Delivery(batch, index, timestamp)

    async def send_and_wait(
        self, topic: str, value: Any = None, key: Any = None, **more: Any
    ) -> RecordMetadata:
        """Sends one record at once and waits until it is written."""
        delivery = await self.send(topic, value, key, **more)
        self._accumulator.flushing += 1
        self._sender.wake()
        try:
            return await delivery
        finally:
            self._accumulator.flushing -= 1

    async def send_table(self, topic: str | None, table: Any) -> "TableDelivery":
        """Buffers the rows of an Arrow table; needs `semel[arrow]`.

        Columns, all optional: key, value (binary or string; serializers are not asked), headers,
        timestamp, partition, and topic where none is named. Rows are placed as single records are.
        A table that cannot be sent raises before its first row is. Waits for room in the buffer.
        """
        self._need_started()
        from semel.client.producer.columnar_send import TableDelivery

        if self._tables is None:
            self._tables = self._make_table_sender()
        return TableDelivery(await self._tables.send(topic, table), _delivered)

    async def flush(self, timeout_ms: float | None = None) -> None:
        """Waits until everything sent so far is written or has failed."""
        await self._flushed(self._deadline(timeout_ms))

    async def partitions_for(self, topic: str) -> list[int]:
        await self._topic(topic)
        return sorted(self._cluster.metadata.topics[topic].partitions)

    # Transactions

    async def init_transactions(self, timeout_ms: float | None = None) -> None:
        """Fences older producers of this transactional id and completes what they left open."""
        if not self._transactional:
            raise UsageError("init_transactions needs a producer with a transactional_id")
        await self._ended(
            self._allowed(self._manager.init_transactions), self._deadline(timeout_ms)
        )

    async def begin_transaction(self) -> None:
        self._allowed(self._manager.begin_transaction)

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group: GroupMetadata | str,
        timeout_ms: float | None = None,
    ) -> None:
        """Makes a group's progress part of the transaction. Offsets are those to read *next*."""
        if isinstance(group, str):
            group = GroupMetadata(group)
        wanted = {
            TopicPartition(*partition): offset
            if isinstance(offset, OffsetAndMetadata)
            else OffsetAndMetadata(offset)
            for partition, offset in offsets.items()
        }
        pending = self._allowed(lambda: self._manager.send_offsets(wanted, group))
        await self._ended(pending, self._deadline(timeout_ms))

    async def commit_transaction(self, timeout_ms: float | None = None) -> None:
        """Writes what is buffered, then makes all of the transaction visible at once."""
        pending = self._allowed(self._manager.commit)
        self._accumulator.flushing += 1
        try:
            await self._ended(pending, self._deadline(timeout_ms))
        finally:
            self._accumulator.flushing -= 1

    async def abort_transaction(self, timeout_ms: float | None = None) -> None:
        """Drops what is buffered and makes what was written invisible for committed readers."""
        await self._ended(self._begin_abort(), self._deadline(timeout_ms))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """A transaction around a block: committed at its end, aborted if it raises."""
        if self._manager.state is State.UNINITIALIZED:
            await self.init_transactions()
        await self.begin_transaction()
        try:
            yield self
        except BaseException:
            await self._abort_after_error()
            raise
        try:
            await self.commit_transaction()
        except AbortableError:
            await self._abort_after_error()
            raise

    @property
    def identity(self) -> ProducerIdentity:
        """The producer id and epoch in use."""
        return self._manager.producer

    @property
    def state(self) -> State:
        return self._manager.state

    # Within

    async def _topic(self, topic: str) -> int:
        return await self._cluster.topic(topic, self._deadline(None))

    async def _target(self, topic: str) -> "_Target":
        """Made anew for a topic that was."""
        await self._topic(topic)
        target = self._targets[topic] = _Target(self._cluster.metadata.topics[topic])
        return target

    def _queue(self, topic: str, partition: int) -> PartitionQueue:
        return self._accumulator.queue_of(TopicPartition(topic, partition))

    def _need_started(self) -> None:
        if not self._started:
            raise UsageError("the producer is not started: use `async with`, or await start()")

    def _make_table_sender(self) -> "TableSender":
        from semel.client.producer.columnar_send import TableSender

        return TableSender(
            batch_size=self.settings.table_batch_size,
            buffer_memory=self.settings.buffer_memory,
            max_request_size=self.settings.max_request_size,
            compression=self._accumulator.limits.compression,
            partitions_of=self._topic,
            enqueue=self._enqueue,
        )

    async def _enqueue(self, partition: TopicPartition, builder: BatchBuilder) -> ProducerBatch:
        self._need_started()
        if self._transactional:
            self._join_transaction(partition)
        if not self._accumulator.has_room(builder.size):
            await self._make_room(partition, builder.size)
        batch = self._accumulator.enqueue(partition, builder, self._cluster.now_ms())
        self._sender.wake()
        return batch

    def _join_transaction(self, partition: TopicPartition) -> None:
        manager = self._manager
        if manager.state is State.IN_TRANSACTION and partition in manager.partitions:
            return
        self._allowed(lambda: manager.add_partition(partition))
        self._sender.wake()

    async def _make_room(self, partition: TopicPartition, size: int) -> None:
        if size > self.settings.max_request_size:
            raise FatalError(
                f"a record of {size} bytes for {partition} is larger than max_request_size, "
                f"{self.settings.max_request_size}",
                ErrorCode.MESSAGE_TOO_LARGE,
            )
        deadline = self._deadline(None)
        self._accumulator.flushing += 1
        try:
            async with asyncio.timeout(deadline.remaining_ms(self._cluster.now_ms()) / 1000):
                while not self._accumulator.has_room(size):
                    await self._sender.wait_for_room()
                    if not self._started:
                        raise UsageError("the producer was closed")
        except TimeoutError:
            raise RetriableError(
                f"the buffer of {self.settings.buffer_memory} bytes is full and no record left it "
                f"within {self.settings.max_block_ms} ms"
            ) from None
        finally:
            self._accumulator.flushing -= 1

    async def _flushed(self, deadline: Deadline) -> None:
        self._accumulator.flushing += 1
        self._sender.wake()
        try:
            while batches := self._accumulator.unsettled():
                if not await _settled(batches[-1], deadline):
                    raise RetriableError("not everything was written in time: call flush again")
        finally:
            self._accumulator.flushing -= 1

    def _begin_abort(self) -> Pending:
        pending = self._allowed(self._manager.abort)
        self._sender.abort_unsent()
        return pending

    async def _abort_after_error(self) -> None:
        """The error that led here is what the caller must see, not the abort's own."""
        if self._manager.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
            with suppress(ClientError):
                await self.abort_transaction()

    async def _ended(self, pending: Pending, deadline: Deadline) -> None:
        """Waits for the coordinator's word. Running out of time decides nothing."""
        self._sender.wake()
        if not pending.settled and not await _settled(pending, deadline):
            raise RetriableError(
                f"{pending.operation} got no answer in time, its outcome is not known yet: "
                f"call {pending.operation} again to wait for it",
                ErrorCode.REQUEST_TIMED_OUT,
            )
        if pending.failure is not None:
            raise error_of(pending.failure)

    def _allowed(self, call: Callable[[], T]) -> T:
        self._need_started()
        try:
            return call()
        except NotAllowed as refused:
            raise refusal_of(refused) from None

    def _deadline(self, timeout_ms: float | None) -> Deadline:
        return self._cluster.deadline(
            self.settings.max_block_ms if timeout_ms is None else timeout_ms
        )


async def _delivered(batch: ProducerBatch) -> None:
    """Waits for a batch, or for those it was cut into; raises why one failed."""
    if not batch.settled:
        await _settling(batch)
    for successor in batch.successors:
        await _delivered(successor)
    if batch.failure is not None:
        raise error_of(batch.failure)


def _settling(what: ProducerBatch | Pending) -> asyncio.Future[bool]:
    """A future for something that settles: True when it has."""
    waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def settled(_: Any) -> None:
        if not waiter.done():
            waiter.set_result(True)

    what.when_settled(settled)
    return waiter


async def _settled(what: ProducerBatch | Pending, deadline: Deadline) -> bool:
    """Whether it settles before the deadline. Cheaper than `asyncio.timeout`, for every commit."""
    waiter = _settling(what)

    def time_is_over() -> None:
        if not waiter.done():
            waiter.set_result(False)

    timer = waiter.get_loop().call_at(deadline.at_ms / 1000, time_is_over)
    try:
        return await waiter
    finally:
        timer.cancel()
