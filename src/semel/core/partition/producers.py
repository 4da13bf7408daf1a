"""What a partition remembers of each producer: epoch, the last five batches, its open transaction.

The rules are those of Kafka's ProducerStateEntry and ProducerAppendInfo. `look` judges a batch
without touching anything; `Producers` changes once the bytes are in the log, live and on replay
alike.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from semel.core.partition.admission import Refusal
from semel.wire.batches import NO_EPOCH, NO_SEQUENCE, BatchHeader, Marker
from semel.wire.errors import ErrorCode

BATCHES_REMEMBERED = 5  # as many as an idempotent producer may have in flight
_LAST_FOUR = slice(1 - BATCHES_REMEMBERED, None)
MAX_SEQUENCE = 2**31 - 1
NONE_OPEN = -1


class BatchMetadata(NamedTuple):
    """One appended batch, enough to answer its repetition as the first time."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


# A named tuple's own constructor is a Python function: one too many for every batch.
make_batch: Callable[[Iterable[int]], BatchMetadata] = partial(tuple.__new__, BatchMetadata)


class Duplicate(NamedTuple):
    """The batch is in the log already: answer as its first append did."""

    batch: BatchMetadata


class ProducerEntry:
    """One producer id in one partition."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "next_sequence",
        "open_since_offset",
        "seen_ms",
    )

    def __init__(self) -> None:
        self.epoch = NO_EPOCH
        self.batches: tuple[BatchMetadata, ...] = ()
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.next_sequence = 0  # and at 0 it goes on after the largest
        self.open_since_offset = NONE_OPEN
        self.seen_ms = 0

    def restore(self, batches: tuple[BatchMetadata, ...]) -> None:
        """Put these in place of all that was remembered."""
        self.batches = batches
        self.next_sequence = (self.last_sequence + 1) & MAX_SEQUENCE

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def has_open_transaction(self) -> bool:
        return self.open_since_offset != NONE_OPEN

    def facts(self) -> tuple[object, ...]:
        """All that the log determines: equal for equal logs, whenever they were read."""
        return (
            self.epoch,
            self.batches,
            self.coordinator_epoch,
            self.last_timestamp,
            self.open_since_offset,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProducerEntry) and self.facts() == other.facts()

    def __repr__(self) -> str:
        return f"Producer{self.facts()}"

    __hash__ = None  # type: ignore[assignment]


class Producers(dict[int, ProducerEntry]):
    """All producers of one partition, by id."""

    __slots__ = ()

    def apply_batch(self, header: BatchHeader, now_ms: int) -> ProducerEntry:
        producer = self.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self._begin_epoch(header.producer_id, header.producer_epoch)
        offset, timestamp = header.base_offset, header.max_timestamp
        sequence, last_sequence = header.base_sequence, header.last_sequence
        batch = make_batch(
            (sequence, last_sequence, offset, offset + header.last_offset_delta, timestamp)
        )
        producer.batches = producer.batches[_LAST_FOUR] + (batch,)
        producer.next_sequence = (last_sequence + 1) & MAX_SEQUENCE
        producer.last_timestamp = timestamp
        producer.seen_ms = now_ms
        return producer

    def apply_marker(self, marker: Marker, timestamp: int, now_ms: int) -> ProducerEntry:
        """Returns the producer with its transaction still open: `state` closes it."""
        producer = self.get(marker.producer_id)
        if producer is None or producer.epoch != marker.producer_epoch:
            producer = self._begin_epoch(marker.producer_id, marker.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = timestamp
        producer.seen_ms = now_ms
        return producer

    def expire(self, seen_before_ms: int) -> int:
        """Forget producers idle since then, never one with an open transaction. Idle means no
        append, whatever the timestamps of its records say: Kafka goes by those, and forgets an
        active producer of old data."""
        gone = [
            producer_id
            for producer_id, producer in self.items()
            if producer.seen_ms < seen_before_ms and not producer.has_open_transaction
        ]
        for producer_id in gone:
            del self[producer_id]
        return len(gone)

    def _begin_epoch(self, producer_id: int, epoch: int) -> ProducerEntry:
        """Sequences begin anew with every epoch."""
        producer = self.setdefault(producer_id, ProducerEntry())
        producer.epoch = epoch
        producer.restore(())
        return producer


def look(
    producer: ProducerEntry | None, header: BatchHeader, must_begin_at_zero: bool = False
) -> Duplicate | Refusal | None:
    """None if the batch comes next. `must_begin_at_zero` holds under transaction version 2, where
    a producer without batches here cannot have lost any."""
    sequence = header.base_sequence
    if producer is None:
        if must_begin_at_zero and sequence != 0:
            return out_of_order(header, "its first batch in this partition must be 0")
        return None
    if header.producer_epoch == producer.epoch:
        duplicate = _find(producer.batches, sequence, header.last_offset_delta)
        if duplicate is not None:
            return Duplicate(duplicate)
        if sequence != producer.next_sequence:
            return out_of_order(header, f"{producer.next_sequence} comes next")
        return None
    if header.producer_epoch < producer.epoch:
        return stale_epoch(header.producer_id, header.producer_epoch, producer.epoch)
    if sequence != 0:
        return out_of_order(header, f"epoch {header.producer_epoch} must begin at 0")
    return None


def out_of_order(header: BatchHeader, reason: str) -> Refusal:
    return Refusal(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Producer {header.producer_id} sent the sequence {header.base_sequence}: {reason}.",
    )


def stale_epoch(producer_id: int, epoch: int, current: int) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"Producer {producer_id} sent the epoch {epoch}, the current one is {current}.",
    )


def _find(
    batches: tuple[BatchMetadata, ...], sequence: int, offset_delta: int
) -> BatchMetadata | None:
    for batch in batches:
        if (
            batch.base_sequence == sequence
            and batch.last_offset - batch.base_offset == offset_delta
        ):
            return batch
    return None
