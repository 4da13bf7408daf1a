"""The asyncio producer: idempotent by default, transactional with a `transactional_id`.

async with Producer("localhost:9092", transactional_id="orders") as producer:
    async with producer.transaction():
        await producer.send("orders", b"value", key=b"key")
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack

from semel.client.cluster import Cluster
from semel.client.errors import error_of, refusal_of
from semel.client.lifetime import Lifetime
from semel.client.machines.accumulator import (
    RECORD_OVERHEAD,
    Accumulator,
    AccumulatorLimits,
    PartitionQueue,
    ProducerBatch,
)
from semel.client.machines.partitioner import partition_for_key
from semel.client.machines.patience import Deadline
from semel.client.machines.records import (
    Headers,
    as_bytes,
    as_group,
    as_headers,
    as_offsets,
    as_timestamp,
)
from semel.client.machines.transactions import NotAllowed, State, TransactionManager
from semel.client.machines.types import (
    GroupMetadata,
    OffsetAndMetadata,
    Pending,
    ProducerIdentity,
    TopicPartition,
)
from semel.client.metrics import ProducerMetrics
from semel.client.producer.deliveries import Delivery, RecordMetadata, delivered, settled
from semel.client.producer.sender import Sender
from semel.client.producer.serializing import K, V, serialized
from semel.client.producer.targets import SendTarget, SendTargets
from semel.client.settings import ProducerSettings, Servers
from semel.errors import AbortableError, FatalError, SemelError, UsageError
from semel.extras import needs_extra
from semel.wire.batches import BatchBuilder
from semel.wire.compression import Compression
from semel.wire.errors import ErrorCode

if TYPE_CHECKING:
    from semel.client.producer.columnar_send import TableDelivery, TableSender
    from semel.client.settings.keywords import ProducerKeywords

T = TypeVar("T")


class Producer(Lifetime, Generic[K, V]):
    """Sends records; with a `transactional_id`, in transactions."""

    settings: ProducerSettings
    """All settings as they are in force."""

    def __init__(
        self,
        bootstrap_servers: Servers | Mapping[str, Any] | None = None,
        *,
        key_serializer: Callable[[K], bytes | None] | None = None,
        value_serializer: Callable[[V], bytes | None] | None = None,
        settings: Mapping[str, Any] | None = None,
        **given: Unpack[ProducerKeywords],
    ) -> None:
        """All settings of `ProducerSettings` are keywords. A dict in the names of Java or
        librdkafka does as well, in place of the address or as `settings`; keywords win over it.

        The serializers make bytes of keys and values; None stays null, without asking them.
        """
        self.settings = ProducerSettings.of(bootstrap_servers, settings, **given)
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._serializes = key_serializer is not None or value_serializer is not None

    async def start(self) -> None:
        """Connects. A `with` block does it too."""
        if self._is_started():
            return
        settings = self.settings
        try:
            compression = Compression.named(settings.compression_type)
        except ValueError as error:
            raise UsageError(str(error)) from None
        self._cluster = Cluster(settings)
        self._accumulator = Accumulator(
            AccumulatorLimits(
                batch_size=min(settings.batch_size, settings.max_request_size),
                linger_ms=settings.linger_ms,
                buffer_memory=settings.buffer_memory,
                delivery_timeout_ms=settings.delivery_timeout_ms,
                max_in_flight=settings.max_in_flight_requests_per_connection,
                compression=compression,
            ),
            owner=asyncio.get_running_loop(),
        )
        self._manager = TransactionManager(
            settings.transactional_id, settings.transaction_timeout_ms, settings.backoff()
        )
        self._sender = Sender(self._cluster, self._accumulator, self._manager, settings)
        self._targets = SendTargets(self._cluster, self._accumulator)
        self._transactional = settings.transactional_id is not None
        self._tables: TableSender | None = None
        try:
            await self._cluster.refresh(self._cluster.deadline(settings.max_block_ms))
        except BaseException:
            await self._cluster.close()
            raise
        self._settle_here()

    async def close(self, timeout_ms: float | None = None) -> None:
        """Sends what is buffered, aborts an open transaction, and disconnects."""
        if not self._is_started():
            return
        self._leave()
        try:
            await self._finish(self._deadline(timeout_ms))
        except SemelError:
            pass  # the producer is going away; an open transaction will time out at the broker
        finally:
            await self._sender.close()
            await self._cluster.close()

    # Sending

    async def send(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        *,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Buffers a record. Waits only for room in the buffer and for a new topic's metadata.

        Without a `partition` the key chooses it, as Java's client does; without a key, one after
        another is filled. `headers` are a mapping or (name, bytes) pairs, `timestamp_ms` is now if
        not given. What is returned need not be waited for: see `Delivery`. Whatever this raises,
        or if it is cancelled, the record was not sent.
        """
        if get_ident() != self._home:
            self._need_started()
        key_bytes: Any = key
        value_bytes: Any = value
        if self._serializes:
            key_bytes = serialized(self._key_serializer, key)
            value_bytes = serialized(self._value_serializer, value)
        if type(key_bytes) is not bytes:
            key_bytes = as_bytes("key", key_bytes, self._key_serializer)
        if type(value_bytes) is not bytes:
            value_bytes = as_bytes("value", value_bytes, self._value_serializer)
        size = RECORD_OVERHEAD + len(key_bytes or b"") + len(value_bytes or b"")
        pairs = as_headers(headers) if headers else ()
        if pairs:
            size += sum(len(name) * 3 + len(data or b"") + 10 for name, data in pairs)
        timestamp = int(time.time() * 1000) if timestamp_ms is None else as_timestamp(timestamp_ms)
        target = self._targets.by_topic.get(topic)
        if target is None or target.known is not self._cluster.metadata.topics.get(topic):
            target = await self._target(topic)
        if partition is None:
            if key_bytes is not None:
                partition = partition_for_key(key_bytes, len(target.known.partitions))
            elif (partition := target.sticky.chosen) < 0:
                partition = target.sticky.choose(len(target.known.partitions), random.random())
        queue = target.queues.get(partition)
        if queue is None:
            queue = await self._queue(target, partition)
        # Everything was checked, and nothing changed yet. From here on the record is either
        # appended or, where that has to wait, forgotten with whoever is cancelled there.
        if not self._transactional or (
            self._manager.state is State.IN_TRANSACTION
            and queue.partition in self._manager.partitions
        ):
            index = self._accumulator.append_open(
                queue, key_bytes, value_bytes, timestamp, pairs, size
            )
            if index >= 0:
                assert queue.open is not None
                return Delivery(queue.open, index, timestamp)
        if size > self.settings.max_request_size or self._accumulator.must_wait(queue, size):
            await self._wait_in_line(target, queue, size)
        now_ms = self._cluster.now_ms()
        if self._transactional:
            self._join_transaction(queue.partition, now_ms)
        else:
            self._need_started()
        batch, index = self._accumulator.append(
            queue, key_bytes, value_bytes, timestamp, pairs, size, now_ms
        )
        self._sender.wake()
        return Delivery(batch, index, timestamp)

    async def send_and_wait(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        *,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Sends one record at once and waits until it is written. Takes what `send` takes."""
        self._need_started()
        delivery = await self.send(
            topic, value, key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
        )
        self._accumulator.flushing += 1
        self._sender.wake()
        try:
            return await delivery
        finally:
            self._accumulator.flushing -= 1

    async def send_many(self, topic: str, records: Iterable[tuple[V | None, K | None]]) -> None:
        """Buffers many records, (value, key) pairs: the key may be None."""
        for value, key in records:
            await self.send(topic, value, key)

    async def send_table(self, topic: str | None, table: Any) -> TableDelivery:
        """Buffers the rows of an Arrow table; needs `semel[arrow]`.

        Columns, all optional: key, value (binary or string; serializers are not asked), headers,
        timestamp, partition, and topic where none is named. Rows are placed as single records are.
        A table that cannot be sent raises before its first row is. Waits for room in the buffer;
        cancelled there, it is sent in part, and its transaction can only be aborted.
        """
        self._need_started()
        with needs_extra("arrow", "send_table"):
            from semel.client.producer.columnar_send import TableDelivery, TableSender
        if self._tables is None:
            self._tables = TableSender(self._sender, self._topic, self._enqueue)
        return TableDelivery(await self._tables.send(topic, table), delivered)

    async def flush(self, timeout_ms: float | None = None) -> None:
        """Waits until everything sent so far is written or has failed."""
        self._need_started()
        await self._flushed(self._deadline(timeout_ms))

    async def partitions_for(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions."""
        self._need_started()
        await self._topic(topic)
        return sorted(self._cluster.metadata.topics[topic].partitions)

    # Transactions

    async def init_transactions(self, timeout_ms: float | None = None) -> None:
        """Fences older producers of this transactional id and completes what they left open."""
        self._need_started()
        if not self._transactional:
            raise UsageError("init_transactions needs a producer with a transactional_id")
        await self._ended(
            self._allowed(self._manager.init_transactions), self._deadline(timeout_ms)
        )

    async def begin_transaction(self) -> None:
        """Begins a transaction: what is sent from now on is seen whole, or not at all."""
        self._need_started()
        self._allowed(self._manager.begin_transaction)

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: GroupMetadata | str,
        timeout_ms: float | None = None,
    ) -> None:
        """Makes a group's progress part of the transaction. Offsets are those to read *next*.

        With `consumer.group_metadata()` a member that the group has left behind is refused
        (KIP-447); a group's id alone is for groups without members.
        """
        self._need_started()
        wanted, group = as_offsets(offsets), as_group(group_metadata)
        now_ms = self._cluster.now_ms()
        pending = self._allowed(lambda: self._manager.send_offsets(wanted, group, now_ms))
        await self._ended(pending, self._deadline(timeout_ms))

    async def commit_transaction(self, timeout_ms: float | None = None) -> None:
        """Writes what is buffered, then makes all of the transaction visible at once."""
        self._need_started()
        pending = self._allowed(self._manager.commit)
        began_ms = self._cluster.now_ms()
        self._accumulator.flushing += 1
        try:
            await self._ended(pending, self._deadline(timeout_ms))
        finally:
            self._accumulator.flushing -= 1
        self._sender.meter.commits.add(self._cluster.now_ms() - began_ms)

    async def abort_transaction(self, timeout_ms: float | None = None) -> None:
        """Drops what is buffered and makes what was written invisible for committed readers."""
        self._need_started()
        await self._ended(self._begin_abort(), self._deadline(timeout_ms))
        self._sender.meter.aborted += 1

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """A transaction around a block: committed at its end, aborted if it raises."""
        self._need_started()
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
        """Where the producer stands in its transaction."""
        return self._manager.state

    def metrics(self) -> ProducerMetrics:
        """What this producer has done since it was started; see `ProducerMetrics`."""
        self._need_started()
        return self._sender.meter.shown(self._accumulator, self._cluster)

    # Within

    async def _topic(self, topic: str) -> int:
        return await self._cluster.topic(topic, self._deadline(None))

    async def _target(self, topic: str) -> SendTarget:
        transaction = self._before_waiting()
        target = await self._targets.find(topic, self._deadline(None))
        self._after_waiting(transaction)
        return target

    async def _queue(self, target: SendTarget, partition: int) -> PartitionQueue:
        transaction = self._before_waiting()
        queue = await self._targets.queue(target, partition, self._deadline(None))
        self._after_waiting(transaction)
        return queue

    def _before_waiting(self) -> object:
        """Refuses what need not wait, and names the transaction that a record belongs to."""
        self._need_started()
        if self._transactional:
            self._allowed(self._manager.check_may_send)
        return self._manager.transaction

    def _after_waiting(self, transaction: object) -> None:
        """Refuses a record whose transaction has ended meanwhile: it must not join the next."""
        self._need_started()
        if self._transactional and self._manager.transaction is not transaction:
            raise UsageError(
                "the transaction ended while a record waited to be sent in it, so the record was "
                "not sent: await every send before the transaction ends"
            )

    async def _enqueue(self, partition: TopicPartition, builder: BatchBuilder) -> ProducerBatch:
        transaction = self._before_waiting()
        if not self._accumulator.has_room(builder.size):
            await self._make_room(builder.size, transaction)
        now_ms = self._cluster.now_ms()
        if self._transactional:
            self._join_transaction(partition, now_ms)
        batch = self._accumulator.enqueue(partition, builder, now_ms)
        self._sender.wake()
        return batch

    def _join_transaction(self, partition: TopicPartition, now_ms: float) -> None:
        try:
            self._manager.add_partition(partition, now_ms)
        except NotAllowed as refused:
            raise refusal_of(refused) from None

    async def _wait_in_line(self, target: SendTarget, queue: PartitionQueue, size: int) -> None:
        """Until a record may be appended. Whoever is cancelled here has sent nothing."""
        if size > self.settings.max_request_size:
            raise FatalError(
                f"a record of {size} bytes for {queue.partition} is larger than max_request_size, "
                f"{self.settings.max_request_size}: send smaller records, or raise it",
                ErrorCode.MESSAGE_TOO_LARGE,
            )
        transaction = self._before_waiting()
        if self._accumulator.close_full(queue, size):
            target.sticky.batch_is_full(queue.partition.partition)
        queue.in_line += 1
        try:
            # A loop of sends never waits by itself: let the full batch leave meanwhile.
            self._sender.wake()
            await asyncio.sleep(0)
            if not self._accumulator.has_room(size):
                await self._make_room(size, transaction)
        finally:
            queue.in_line -= 1
        self._after_waiting(transaction)

    async def _make_room(self, size: int, transaction: object) -> None:
        deadline = self._deadline(None)
        self._accumulator.flushing += 1
        try:
            async with asyncio.timeout(deadline.remaining_ms(self._cluster.now_ms()) / 1000):
                while not self._accumulator.has_room(size):
                    await self._sender.wait_for_room()
                    self._after_waiting(transaction)
                    self._before_waiting()
        except TimeoutError:
            full = (
                f"the buffer of {self.settings.buffer_memory} bytes is full and no record left it "
                f"within {self.settings.max_block_ms} ms"
            )
            batches = self._accumulator.unsettled()
            raise self._sender.refusals.late(full, batches, "send it again") from None
        finally:
            self._accumulator.flushing -= 1

    async def _finish(self, deadline: Deadline) -> None:
        """As Java's close: what is being ended ends, what is open is aborted, the rest is sent."""
        state = self._manager.state
        if state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
            await self._ended(self._begin_abort(), deadline)
        elif state is State.COMMITTING_TRANSACTION:
            await self._flushed(deadline)
            await self._ended(self._allowed(self._manager.commit), deadline)
        elif state is State.ABORTING_TRANSACTION:
            await self._ended(self._allowed(self._manager.abort), deadline)
        elif state is not State.FATAL_ERROR:
            await self._flushed(deadline)

    async def _flushed(self, deadline: Deadline) -> None:
        self._accumulator.flushing += 1
        self._sender.wake()
        try:
            while batches := self._accumulator.unsettled():
                if not await settled(batches[-1], deadline, self._loop):
                    late = "not everything was written in time"
                    raise self._sender.refusals.late(late, batches, "call flush again")
        finally:
            self._accumulator.flushing -= 1

    def _begin_abort(self) -> Pending:
        pending = self._allowed(self._manager.abort)
        self._sender.abort_unsent()
        return pending

    async def _abort_after_error(self) -> None:
        """The error that led here is what the caller must see, not the abort's own."""
        if self._manager.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
            with suppress(SemelError):
                await self.abort_transaction()

    async def _ended(self, pending: Pending, deadline: Deadline) -> None:
        """Waits for the coordinator's answer. Running out of time decides nothing."""
        self._sender.wake()
        if not pending.settled and not await settled(pending, deadline, self._loop):
            late = f"{pending.operation} got no answer in time, its outcome is not known yet"
            late += self._manager.why_put_off(pending)
            again = f"call {pending.operation} again to wait for it"
            raise self._sender.refusals.late(late, self._accumulator.unsettled(), again)
        if pending.failure is not None:
            raise error_of(pending.failure)

    def _allowed(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except NotAllowed as refused:
            raise refusal_of(refused) from None

    def _deadline(self, timeout_ms: float | None) -> Deadline:
        return self._cluster.deadline(
            self.settings.max_block_ms if timeout_ms is None else timeout_ms
        )
