"""One partition at work: its log, what is known of its producers, and who waits for its next batch.

An append is judged (`core/partition`), given its offset in place, written as it came, and applied.
Nothing here looks at a record: batches that must be opened are, before, by `opening`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from semel.broker.catalog.catalog import Topic
from semel.broker.partitions.loading import load_state, write_snapshot
from semel.broker.partitions.opening import (
    MOST_BYTES,
    OPENS,
    SMALL_BODY,
    Opened,
    Recoding,
    is_small,
    too_many,
    unreadable,
)
from semel.core.machine import LogEntry
from semel.core.partition.admission import COMPRESSION, BatchLimits, Refusal, refusal
from semel.core.partition.producers import Duplicate
from semel.core.partition.snapshots import encode_aborted
from semel.core.partition.state import PartitionState
from semel.core.partition.verification import Guard
from semel.store.interface import DURABLE, Buffer, Log, StorageError, Ticket
from semel.wire.batches import (
    NO_TIMESTAMP,
    BatchHeader,
    ControlType,
    Marker,
    build_few,
    control_batch,
    patch,
    stamp_append_time,
    verify_crc,
)
from semel.wire.errors import ErrorCode, ProtocolError

logger = logging.getLogger("semel.partition")

CORRUPT = Refusal(ErrorCode.CORRUPT_MESSAGE, "The batch's checksum does not fit its bytes.")


class Appended(NamedTuple):
    """Where a batch lies. It is acknowledged when the ticket is durable."""

    base_offset: int
    append_time_ms: int
    ticket: Ticket


# A named tuple's own constructor is a Python function: one too many for every append.
make_appended: Callable[[tuple[int, int, Ticket]], Appended] = partial(tuple.__new__, Appended)


class Waiter(Protocol):
    """Somebody who looks again when there is more to read."""

    def wake(self) -> None: ...


class Partition:
    __slots__ = (
        "_epoch_assigned",
        "_last_ticket",
        "_limits",
        "_now_ms",
        "_recoding",
        "_wake",
        "high_watermark",
        "index",
        "is_deleted",
        "log",
        "on_reopened",
        "opens",
        "snapshot_offset",
        "state",
        "topic",
        "waiters",
    )

    def __init__(
        self,
        topic: Topic,
        index: int,
        log: Log,
        now_ms: Callable[[], int],
        wake: Callable[[Partition], None],
    ) -> None:
        self.topic = topic
        self.index = index
        self._now_ms = now_ms
        self._wake = wake
        self.waiters: set[Waiter] = set()
        self.is_deleted = False
        self.on_reopened: Callable[[], None] | None = None
        self.configure()
        self._open(log)

    def __repr__(self) -> str:
        return f"{self.topic.name}-{self.index}"

    def _open(self, log: Log) -> None:
        # Read it first: of a log that could not be read, the high watermark here says nothing.
        state, snapshot_offset = load_state(log, self._now_ms())
        self.log = log
        self.state: PartitionState = state
        self.snapshot_offset = snapshot_offset
        self.high_watermark = log.next_offset
        self._last_ticket = DURABLE
        self._epoch_assigned = -1
        log.on_roll = self._rolled

    def configure(self) -> None:
        """Follow the topic's settings."""
        config = self.topic.config
        self._limits = BatchLimits(
            max_message_bytes=config["max.message.bytes"],
            log_append_time=config["message.timestamp.type"] == "LogAppendTime",
            timestamp_before_max_ms=config["message.timestamp.before.max.ms"],
            timestamp_after_max_ms=config["message.timestamp.after.max.ms"],
        )
        self._recoding = Recoding.of(config)
        self.opens = OPENS if self._recoding.wants_any else 0

    def reopen(self, log: Log, durable_to: int | None) -> None:
        """Back from a failed disk: everything is read again from what the log really holds. What
        lies behind `durable_to` was refused to its writers, and a sync that failed may have lost
        it while the page cache still shows it."""
        if durable_to is not None and durable_to < log.next_offset:
            log.truncate(durable_to)
        self._open(log)
        if self.on_reopened is not None:
            self.on_reopened()
        self._wake(self)

    # What there is to read

    @property
    def leader_epoch(self) -> int:
        return self.topic.leader_epochs[self.index]

    @property
    def last_stable_offset(self) -> int:
        stable = self.state.stability.last_stable_offset(self.high_watermark)
        return max(stable, self.log.start_offset)

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """(leader epoch, first offset), the current one included even if it wrote nothing yet."""
        known = self.log.epochs
        if known and known[-1][0] >= self.leader_epoch:
            return known
        return [*known, (self.leader_epoch, self.log.next_offset)]

    # Appending

    def opened_at_once(self, batch: BatchHeader, now_ms: int) -> Opened | None:
        """As `opened` says, or None if that would take long."""
        if not batch.attributes & COMPRESSION and not self.opens:
            return batch
        if not is_small(batch):
            return None
        try:
            return self._open_batch(batch, now_ms, SMALL_BODY)
        except ProtocolError:  # perhaps only of the smaller limit
            return None

    def opened(self, batch: BatchHeader, now_ms: int) -> Opened:
        """A client's batch as the topic stores it, after a look inside, or why it is refused. What
        the header alone speaks against is left for `append` to say. Touches no state: it may run in
        a thread."""
        try:
            return self._open_batch(batch, now_ms, MOST_BYTES)
        except ProtocolError as problem:
            return unreadable(problem)

    def _open_batch(self, batch: BatchHeader, now_ms: int, limit: int) -> Opened:
        if refusal(batch, self._limits, now_ms) is not None or not verify_crc(batch):
            return batch
        return too_many(batch) or self._recoding.apply(batch, self._limits, now_ms, self, limit)

    def append(self, batch: BatchHeader, guard: Guard | None = None) -> Appended | Refusal:
        """A client's batch, `opened` if it had to be. `guard` is what `state.ask_verification`
        gave, once the transaction's coordinator agreed."""
        if self.log.offline is not None:
            return self._storage_refusal()
        if not verify_crc(batch):
            return CORRUPT
        now_ms = self._now_ms()
        verdict = refusal(batch, self._limits, now_ms) or self.state.look_batch(batch, guard)
        if verdict is not None:
            return self._answer_without_append(verdict, batch, now_ms)
        if self._limits.log_append_time:
            stamp_append_time(batch, now_ms)
            return self._write(batch, now_ms, now_ms)
        return self._write(batch, NO_TIMESTAMP, now_ms)

    def _answer_without_append(
        self, verdict: Duplicate | Refusal, batch: BatchHeader, now_ms: int
    ) -> Appended | Refusal:
        if isinstance(verdict, Duplicate):
            return self._repeated(verdict)
        if verdict.error is ErrorCode.INVALID_TIMESTAMP:
            return self._recoding.name_records(verdict, batch, self._limits, now_ms, self)
        return verdict

    def append_plain(self, records: Sequence[LogEntry], now_ms: int) -> Appended | Refusal:
        """A coordinator's records outside any transaction: nothing to judge, and built in place."""
        base_offset = self.log.next_offset
        leader_epoch = self.topic.leader_epochs[self.index]
        batch = build_few(records, now_ms, base_offset=base_offset, leader_epoch=leader_epoch)
        next_offset = base_offset + len(records)
        ticket = self._store(batch, leader_epoch, next_offset - 1, now_ms)
        if ticket is None:
            return self._storage_refusal()
        self._reached(next_offset, ticket)
        return make_appended((base_offset, NO_TIMESTAMP, ticket))

    def append_internal(self, records: bytearray, guard: Guard | None = None) -> Appended | Refusal:
        """A coordinator's batch, built in this process; offsets are assigned here too."""
        if self.log.offline is not None:
            return self._storage_refusal()
        batch = BatchHeader(records)
        refused = self.state.look_internal(batch, guard)
        if refused is not None:
            return refused
        return self._write(batch, NO_TIMESTAMP, self._now_ms())

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
    ) -> Appended | Refusal:
        """The end of a producer's transaction in this partition."""
        if self.log.offline is not None:
            return self._storage_refusal()
        outcome = ControlType.COMMIT if commit else ControlType.ABORT
        marker = Marker(producer_id, producer_epoch, outcome, coordinator_epoch)
        refused = self.state.look_marker(marker, transaction_version)
        if refused is not None:
            return refused
        now_ms = self._now_ms()
        base_offset = self.log.next_offset
        leader_epoch = self.topic.leader_epochs[self.index]
        batch = control_batch(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            timestamp=now_ms,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
        )
        ticket = self._store(batch, leader_epoch, base_offset, now_ms)
        if ticket is None:
            return self._storage_refusal()
        aborted = self.state.apply_marker(marker, base_offset, now_ms, now_ms)
        if aborted is not None:
            segment = self.log.active_base_offset
            try:
                self.log.append_side_file(segment, "txnindex", encode_aborted(aborted))
            except StorageError:
                # Offline now. The marker was not said to be durable: it is cut off and sent again.
                return self._storage_refusal()
        self._reached(base_offset + 1, ticket)
        return make_appended((base_offset, NO_TIMESTAMP, ticket))

    def _write(self, batch: BatchHeader, append_time_ms: int, now_ms: int) -> Appended | Refusal:
        base_offset = self.log.next_offset
        leader_epoch = self.topic.leader_epochs[self.index]
        patch(batch, base_offset, leader_epoch)
        last_offset = base_offset + batch.last_offset_delta
        ticket = self._store(batch.whole, leader_epoch, last_offset, batch.max_timestamp)
        if ticket is None:
            return self._storage_refusal()
        self.state.apply_batch(batch, now_ms)
        self._reached(last_offset + 1, ticket)
        return make_appended((base_offset, append_time_ms, ticket))

    def _store(
        self, batch: Buffer, leader_epoch: int, last_offset: int, max_timestamp: int
    ) -> Ticket | None:
        """None: the log can no longer be written."""
        log = self.log
        if leader_epoch != self._epoch_assigned:
            try:
                log.assign_epoch(leader_epoch, log.next_offset)
            except StorageError:
                return None
            self._epoch_assigned = leader_epoch
        ticket = log.append_next(batch, last_offset, max_timestamp)
        return None if ticket.error is not None else ticket

    def _reached(self, next_offset: int, ticket: Ticket) -> None:
        """What lies below is written; once it is durable as well, it may be read."""
        if ticket.durable:
            if next_offset > self.high_watermark:
                self.high_watermark = next_offset
                stability = self.state.stability
                if stability.closing:
                    stability.durable_up_to(next_offset)
                if self.waiters:
                    self._wake(self)
        elif ticket.error is None:
            self._last_ticket = ticket
            ticket.add_callback(partial(self._reached, next_offset))

    def _repeated(self, duplicate: Duplicate) -> Appended:
        """The first append may itself still be on its way to the disk: wait for the same thing."""
        batch = duplicate.batch
        ticket = DURABLE if batch.last_offset < self.high_watermark else self._last_ticket
        return Appended(batch.base_offset, batch.timestamp, ticket)

    def _storage_refusal(self) -> Refusal:
        if self.is_deleted:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{self!r} was deleted.")
        return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, str(self.log.offline))

    # Keeping

    def delete_below(self, offset: int) -> int:
        """Move the log's start up; returns the new start."""
        start = self.log.delete_below(offset)
        self.start_moved()
        return start

    def start_moved(self) -> None:
        """Forget what lies below the log's start, and tell those who read there. Producers are
        remembered beyond their records: a snapshot keeps them once those are gone."""
        self.state.aborted.drop_below(self.log.start_offset)
        if self.log.start_offset > self.snapshot_offset:
            self.snapshot()
        if self.waiters:
            self._wake(self)

    def snapshot(self) -> None:
        """Write the producers down as of now, so that the next start replays nothing before it."""
        if self.log.offline is None and self.log.next_offset > self.snapshot_offset:
            self._rolled(self.log.next_offset)

    def _rolled(self, base_offset: int) -> None:
        write_snapshot(self.log, base_offset, self.state)
        self.snapshot_offset = base_offset
