"""Records on their way out: batches by partition, in order, with sequences, within bounds.

Pure: the shell appends records, takes batches that may be sent now, and reports what became of
them. Per partition the order of `append` is the order in the log: a batch that must be sent again
goes before all later ones, and while it is outstanding only the oldest is resent, so that the
broker (which accepts sequences without gaps only) never sees them out of order.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from semel.client.machines.types import NO_PRODUCER, Failure, ProducerIdentity, TopicPartition
from semel.wire.batches import NO_SEQUENCE, BatchBuilder, advance_sequence, header_at, records_of
from semel.wire.compression import Compression

# Length, attributes, timestamp and offset deltas, key, value and header lengths, at their longest.
RECORD_OVERHEAD = 1 + 5 + 10 + 5 + 5 + 5 + 5


@dataclass(frozen=True, slots=True)
class AccumulatorLimits:
    batch_size: int = 262_144
    linger_ms: float = 5.0
    buffer_memory: int = 32 * 1024 * 1024
    delivery_timeout_ms: float = 120_000.0
    max_in_flight: int = 5
    compression: Compression = Compression.NONE


class ProducerBatch:
    """Records for one partition that are sent, accepted or refused together."""

    __slots__ = (
        "_callbacks",
        "attempts",
        "base_offset",
        "base_sequence",
        "builder",
        "count",
        "created_ms",
        "data",
        "failure",
        "identity",
        "not_before_ms",
        "order",
        "owner",
        "partition",
        "reserved",
        "settled",
        "successors",
        "timestamp",
    )

    def __init__(
        self, partition: TopicPartition, builder: BatchBuilder, now_ms: float, owner: object = None
    ) -> None:
        self.partition = partition
        self.owner = owner  # as the accumulator's: nobody looks at it here
        self.builder = builder
        self.created_ms = now_ms
        self.reserved = 0
        self.attempts = 0
        self.not_before_ms = 0.0
        self.count = 0
        self.data: bytearray | None = None
        self.base_sequence = NO_SEQUENCE
        self.identity = NO_PRODUCER
        self.order = -1  # how many records of the partition were taken before this batch
        self.settled = False
        self.failure: Failure | None = None
        self.base_offset = -1
        self.timestamp = -1  # the broker's, where the topic takes append time
        self.successors: list[ProducerBatch] = []  # after a split
        self._callbacks: list[Callable[[ProducerBatch], object]] = []

    def settle(
        self, failure: Failure | None = None, base_offset: int = -1, timestamp: int = -1
    ) -> None:
        if self.settled:
            return
        self.settled = True
        self.failure = failure
        self.base_offset = base_offset
        self.timestamp = timestamp
        self.data, self.builder = None, _SPENT  # whoever keeps deliveries does not keep the records
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def when_settled(self, callback: Callable[["ProducerBatch"], object]) -> None:
        if self.settled:
            callback(self)
        else:
            self._callbacks.append(callback)


_SPENT = BatchBuilder()


class PartitionQueue:
    """One partition's batches: in flight, waiting (to be sent, or again), and still open."""

    __slots__ = (
        "established",
        "identity",
        "in_flight",
        "in_line",
        "next_sequence",
        "open",
        "partition",
        "taken",
        "unresolved",
        "waiting",
    )

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.open: ProducerBatch | None = None
        self.waiting: deque[ProducerBatch] = deque()
        self.in_flight: list[ProducerBatch] = []
        self.in_line = 0  # records that wait to be appended: others go behind them
        self.identity = NO_PRODUCER
        self.next_sequence = 0
        self.taken = 0
        # The broker has accepted a batch of this identity, and refuses gaps from then on. Before,
        # it takes any sequence of a producer it does not know (ProducerAppendInfo.checkSequence):
        # were the first batch refused and the second not, they would change places.
        self.established = False
        # A batch was given up without knowing whether it was written: nothing new may follow
        # until what is outstanding tells (Kafka's partitionsWithUnresolvedSequences).
        self.unresolved = False

    @property
    def is_idle(self) -> bool:
        return self.open is None and not self.waiting and not self.in_flight

    def batches(self) -> Iterator[ProducerBatch]:
        """In the order of the log."""
        yield from self.in_flight
        yield from self.waiting
        if self.open is not None:
            yield self.open

    def is_oldest(self, batch: ProducerBatch) -> bool:
        """Whether everything before the batch has been answered for good."""
        others = (*self.in_flight, *self.waiting)
        return all(other.order < 0 or other.order >= batch.order for other in others)


class Accumulator:
    def __init__(
        self,
        limits: AccumulatorLimits = AccumulatorLimits(),  # noqa: B008  (frozen)
        owner: object = None,
    ) -> None:
        self.limits = limits
        self.owner = owner
        self._batch_size, self._buffer_memory = limits.batch_size, limits.buffer_memory
        self.buffered = 0
        self.flushing = 0
        self.records_failed = 0  # in batches that were given up, since the beginning
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        # Those that hold batches: a turn of the sender costs nothing for all others.
        self._active: dict[TopicPartition, PartitionQueue] = {}

    # Filling

    def queue_of(self, partition: TopicPartition) -> PartitionQueue:
        queue = self.queues.get(partition)
        if queue is None:
            queue = self.queues[partition] = PartitionQueue(partition)
        return queue

    def has_room(self, size: int) -> bool:
        """Whether a record of this size may be appended; one alone always may."""
        return self.buffered + size <= self._buffer_memory or not self.buffered

    def append_open(
        self,
        queue: PartitionQueue,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Iterable[tuple[str, bytes | None]],
        size: int,
    ) -> int:
        """The record's place in the open batch; -1 where there is none with room, or no memory.

        Nearly every record of a stream ends here, so this is short. Its twin is `append`.
        """
        batch = queue.open
        if (
            batch is None
            or len(batch.builder.body) + size > self._batch_size
            or self.buffered + size > self._buffer_memory
        ):
            return -1
        index = batch.builder.append(key, value, timestamp, headers)
        batch.reserved += size
        self.buffered += size
        return index

    def append(
        self,
        queue: PartitionQueue,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Iterable[tuple[str, bytes | None]],
        size: int,
        now_ms: float,
    ) -> tuple[ProducerBatch, int]:
        """The record's batch and its place in it. It is encoded before anything changes.

        `append_open` is its twin where the open batch has room.
        """
        batch = queue.open
        if batch is not None and len(batch.builder.body) + size <= self._batch_size:
            index = batch.builder.append(key, value, timestamp, headers)
        else:
            builder = BatchBuilder(self.limits.compression)
            index = builder.append(key, value, timestamp, headers)
            if batch is not None:
                self._close(queue)
            batch = queue.open = ProducerBatch(queue.partition, builder, now_ms, self.owner)
            self._active[queue.partition] = queue
        batch.reserved += size
        self.buffered += size
        return batch, index

    def must_wait(self, queue: PartitionQueue, size: int) -> bool:
        """Whether a record may not be appended yet: no memory, a full batch, others before it."""
        batch = queue.open
        if batch is not None and len(batch.builder.body) + size > self._batch_size:
            return True
        return queue.in_line > 0 or 0 < self.buffered > self._buffer_memory - size

    def close_full(self, queue: PartitionQueue, size: int) -> bool:
        """Lets the open batch go if it has no room for the record; whether it has none."""
        batch = queue.open
        is_full = batch is not None and len(batch.builder.body) + size > self._batch_size
        if is_full:
            self._close(queue)
        return is_full

    def enqueue(
        self, partition: TopicPartition, builder: BatchBuilder, now_ms: float
    ) -> ProducerBatch:
        """A batch made elsewhere; what was appended before goes before it."""
        queue = self.queue_of(partition)
        if queue.open is not None:
            self._close(queue)
        batch = ProducerBatch(partition, builder, now_ms, self.owner)
        batch.reserved = builder.size
        self.buffered += batch.reserved
        queue.waiting.append(batch)
        self._active[partition] = queue
        return batch

    # Sending

    def sendable(self, now_ms: float) -> Iterator[PartitionQueue]:
        """The partitions that may have a batch to send now; `take` decides."""
        for queue in self._active.values():
            if queue.waiting:
                if queue.waiting[0].not_before_ms <= now_ms:
                    yield queue
            elif queue.open is not None and self._is_due(queue.open, now_ms):
                yield queue

    def take(
        self,
        queue: PartitionQueue,
        identity: ProducerIdentity,
        *,
        idempotent: bool,
        transactional: bool,
        begins_at_zero: bool = False,
    ) -> ProducerBatch | None:
        """The next batch of a partition, built and stamped, now in flight; None if it must wait.

        `begins_at_zero`: the broker checks even the first sequence, as in transactions since
        version 2 (KIP-890).
        """
        if len(queue.in_flight) >= self.limits.max_in_flight:
            return None
        if not queue.waiting:
            if queue.open is None:
                return None
            self._close(queue)
        batch = queue.waiting[0]
        if batch.order >= 0:
            if queue.in_flight and queue.in_flight[0].order < batch.order:
                return None  # sent before: it goes again only as the oldest
        elif queue.unresolved:
            return None
        elif idempotent and queue.identity != identity:
            if queue.in_flight:
                return None  # the old identity's batches are answered first
            queue.identity, queue.next_sequence, queue.established = identity, 0, begins_at_zero
        if idempotent and queue.in_flight and not queue.established:
            return None
        if batch.data is None:
            self._build(queue, batch, idempotent, transactional)
        queue.waiting.popleft()
        batch.attempts += 1
        # Kept by order: a resent batch is older than those that are still under way.
        place = sum(1 for other in queue.in_flight if other.order < batch.order)
        queue.in_flight.insert(place, batch)
        return batch

    def _build(
        self, queue: PartitionQueue, batch: ProducerBatch, idempotent: bool, transactional: bool
    ) -> None:
        builder = batch.builder
        batch.count = builder.count
        if batch.order < 0:
            batch.order = queue.taken
            queue.taken += batch.count
        if idempotent:
            batch.identity = queue.identity
            batch.base_sequence = queue.next_sequence
            queue.next_sequence = advance_sequence(queue.next_sequence, batch.count)
        batch.data = builder.build(
            producer_id=batch.identity.producer_id,
            producer_epoch=batch.identity.epoch,
            base_sequence=batch.base_sequence,
            transactional=transactional,
        )

    # What became of them

    def accepted(self, batch: ProducerBatch, base_offset: int, timestamp: int) -> None:
        queue = self._finish(batch)
        queue.established = queue.established or batch.identity == queue.identity
        if queue.unresolved and not queue.in_flight and not self._resent(queue):
            queue.unresolved = False  # what came after was accepted, so nothing was missing
        batch.settle(None, base_offset, timestamp)

    def given_up(self, batch: ProducerBatch, failure: Failure) -> None:
        self._finish(batch)
        self.records_failed += batch.count
        batch.settle(failure)

    def again(self, batch: ProducerBatch, not_before_ms: float) -> None:
        """Back to the front, in order."""
        queue = self.queues[batch.partition]
        queue.in_flight.remove(batch)
        batch.not_before_ms = not_before_ms
        place = sum(1 for other in queue.waiting if 0 <= other.order < batch.order)
        queue.waiting.insert(place, batch)

    def split(self, batch: ProducerBatch, now_ms: float) -> bool:
        """Cuts a batch that the broker found too large in two; False if it is one record only."""
        assert batch.data is not None
        records = records_of(header_at(batch.data))
        if len(records) < 2:
            return False
        queue = self.queues[batch.partition]
        queue.in_flight.remove(batch)
        half = len(records) // 2
        parts: list[ProducerBatch] = []
        for start, chunk in ((0, records[:half]), (half, records[half:])):
            builder = BatchBuilder(self.limits.compression)
            part = ProducerBatch(batch.partition, builder, batch.created_ms, self.owner)
            for record in chunk:
                part.builder.append(record.key, record.value, record.timestamp, record.headers)
            part.count = len(chunk)
            part.order = batch.order + start
            part.identity = batch.identity
            part.reserved = batch.reserved * len(chunk) // len(records)
            stamped = batch.base_sequence != NO_SEQUENCE
            part.base_sequence = (
                advance_sequence(batch.base_sequence, start) if stamped else NO_SEQUENCE
            )
            part.data = part.builder.build(
                producer_id=part.identity.producer_id,
                producer_epoch=part.identity.epoch,
                base_sequence=part.base_sequence,
                transactional=header_at(batch.data).is_transactional,
            )
            parts.append(part)
        place = sum(1 for other in queue.waiting if 0 <= other.order < batch.order)
        for part in reversed(parts):
            queue.waiting.insert(place, part)
        self.buffered += sum(part.reserved for part in parts) - batch.reserved
        batch.successors = parts
        batch.settle()
        return True

    def restart_sequences(self, partition: TopicPartition) -> None:
        """The broker refused the oldest batch for a gap, hence all after it: number them anew."""
        queue = self.queues[partition]
        queue.unresolved = False
        queue.identity = NO_PRODUCER
        queue.taken = 0
        for batch in queue.waiting:
            batch.order = -1
            batch.base_sequence = NO_SEQUENCE
            batch.data = None

    def reset_sequences(self) -> None:
        """A new identity by the coordinator: all partitions begin at 0 under it."""
        for queue in self.queues.values():
            if not queue.in_flight:
                self.restart_sequences(queue.partition)

    def expired(self, now_ms: float) -> list[ProducerBatch]:
        """Batches that waited too long to be sent. Those in flight end when they are answered."""
        oldest = now_ms - self.limits.delivery_timeout_ms
        late: list[ProducerBatch] = []
        for queue in self._active.values():
            late += [batch for batch in queue.waiting if batch.created_ms <= oldest]
            if queue.open is not None and queue.open.created_ms <= oldest:
                late.append(queue.open)
        return late

    def drop(self, batch: ProducerBatch, failure: Failure) -> None:
        """Gives up a batch that is not in flight; if sent before, its sequence stays unresolved."""
        queue = self.queues[batch.partition]
        if queue.open is batch:
            queue.open = None
        else:
            queue.waiting.remove(batch)
            queue.unresolved = queue.unresolved or batch.order >= 0
        self._left(queue, batch)
        self.records_failed += batch.builder.count
        batch.settle(failure)

    def drop_unsent(self, failure: Failure) -> bool:
        """Whatever is not in flight will not be sent. True if some may have been written before."""
        unsure = False
        for queue in list(self._active.values()):
            for batch in [b for b in queue.batches() if b not in queue.in_flight]:
                unsure = unsure or batch.order >= 0
                self.drop(batch, failure)
        return unsure

    # Looking

    @property
    def has_unsettled(self) -> bool:
        return bool(self._active)

    def unsettled(self) -> list[ProducerBatch]:
        return [batch for queue in self._active.values() for batch in queue.batches()]

    def wake_at_ms(self, now_ms: float) -> float | None:
        """When a batch becomes due or late, if only time is missing."""
        times: list[float] = []
        for queue in self._active.values():
            if queue.waiting:
                head = queue.waiting[0]
                times.append(head.created_ms + self.limits.delivery_timeout_ms)
                if head.not_before_ms > now_ms:
                    times.append(head.not_before_ms)
            elif queue.open is not None:
                times.append(queue.open.created_ms + self.limits.linger_ms)
        return min((time for time in times if time > now_ms), default=None)

    def _is_due(self, batch: ProducerBatch, now_ms: float) -> bool:
        return self.flushing > 0 or now_ms - batch.created_ms >= self.limits.linger_ms

    def _close(self, queue: PartitionQueue) -> None:
        assert queue.open is not None
        queue.waiting.append(queue.open)
        queue.open = None

    def _finish(self, batch: ProducerBatch) -> PartitionQueue:
        queue = self.queues[batch.partition]
        queue.in_flight.remove(batch)
        self._left(queue, batch)
        return queue

    def _left(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        self.buffered -= batch.reserved
        if queue.is_idle:
            self._active.pop(queue.partition, None)

    @staticmethod
    def _resent(queue: PartitionQueue) -> bool:
        return any(batch.order >= 0 for batch in queue.waiting)
