"""What a log of bytes is: the contract that the engine on disk keeps, and a test's in memory.

A log assigns no offsets, checks no producers and knows no transactions. It takes batches that
already carry their offsets, keeps them in order, and says when they are safe.
"""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from semel.wire.batches import BatchHeader, body_of, record_chunks

Buffer = bytes | bytearray | memoryview

NO_LIMIT = 2**63 - 1


class StorageError(Exception):
    """The disk failed under one log, which is offline from here until it is opened again."""

    def __init__(self, message: str, cause: OSError | None = None) -> None:
        super().__init__(message)
        self.cause = cause


class LogDeleted(StorageError):
    """The log was deleted. It does not come back; one of the same name is another log."""


class OffsetOutOfRange(Exception):
    """Asked to read below the log's start or beyond its end."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The topic settings a log obeys, with Kafka's names and defaults; -1 means without limit."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * 24 * 3600 * 1000
    retention_bytes: int = -1
    compact: bool = False
    delete: bool = True
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NO_LIMIT
    delete_retention_ms: int = 24 * 3600 * 1000
    file_delete_delay_ms: int = 60_000
    max_message_bytes: int = 1048588

    roll_ms: int = field(init=False)
    """After this long a segment is closed: only closed ones are compacted, so it must not outlive
    the compaction lag (Kafka's LogConfig.maxSegmentMs)."""

    def __post_init__(self) -> None:
        roll_ms = self.segment_ms
        if self.compact:
            roll_ms = min(roll_ms, self.max_compaction_lag_ms)
        object.__setattr__(self, "roll_ms", roll_ms)


class SegmentInfo(NamedTuple):
    """One segment as its owner sees it; `next_offset` is where the following segment begins."""

    base_offset: int
    next_offset: int
    size: int
    max_timestamp: int
    first_timestamp: int = -1  # of the first batch: when a dirty segment began to wait


class TimestampOffset(NamedTuple):
    """The first record at or after a timestamp, or the one that carries the largest."""

    timestamp: int
    offset: int
    leader_epoch: int


def first_record(
    batch: BatchHeader, timestamp: int, start_offset: int, limit_offset: int
) -> TimestampOffset | None:
    """The first record of a batch at or after a timestamp, within those offsets."""
    for records in record_chunks(batch, body_of(batch), 500):
        for record in records:
            if record.timestamp >= timestamp and start_offset <= record.offset < limit_offset:
                return TimestampOffset(record.timestamp, record.offset, batch.leader_epoch)
    return None


class Ticket:
    """The promise that an append is durable: kept, still open, or broken by a `StorageError`.

    `await ticket` raises that error; callbacks get the ticket and look at `error`. They run at once
    if the ticket is settled, otherwise later on the event loop, in the order they were added.
    """

    __slots__ = ("_callbacks", "durable", "error")

    def __init__(self, durable: bool = False, error: StorageError | None = None) -> None:
        self.durable = durable
        self.error = error
        self._callbacks: list[Callable[[Ticket], object]] = []

    @property
    def settled(self) -> bool:
        return self.durable or self.error is not None

    def add_callback(self, callback: "Callable[[Ticket], object]") -> None:
        if self.durable or self.error is not None:
            callback(self)
        else:
            self._callbacks.append(callback)

    def settle(self, error: StorageError | None = None) -> None:
        """For engines only: keep or break the promise, once."""
        self.error = error
        self.durable = error is None
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def __await__(self) -> Generator[Any, None, None]:
        if not self.settled:
            waiter = asyncio.get_running_loop().create_future()
            self.add_callback(lambda _: None if waiter.done() else waiter.set_result(None))
            yield from waiter
        if self.error is not None:
            raise self.error


DURABLE = Ticket(durable=True)
"""What a successful append under `os` durability returns: nothing to wait for or to allocate."""


class Region:
    """Whole batches in a file, for `os.sendfile(socket, region.fd, region.position, len(region))`
    or, copied, `bytes(region)`.

    The region holds its file open, so it stays readable when the segment is deleted or compacted.
    `fd` is -1 where no file lies behind it (memory engine, or empty): then only `bytes` works.
    `end_offset` is the offset after the last batch in it; the asked offset when it is empty.
    """

    __slots__ = ("end_offset", "fd", "file", "length", "position")

    def __init__(self, file: object, fd: int, position: int, length: int, end_offset: int) -> None:
        self.file = file
        self.fd = fd
        self.position = position
        self.length = length
        self.end_offset = end_offset

    def __len__(self) -> int:
        return self.length

    def __bytes__(self) -> bytes:
        if not self.length:
            return b""
        return os.pread(self.fd, self.length, self.position)


class Log(ABC):
    """The batches of one partition. Everything is called on the event loop; nothing blocks long.
    Offsets have no gaps, except after compaction.

    `start_offset` is the first readable offset, `next_offset` the one after the last batch.
    `offline` holds the error that took the log down: appends then return broken
    tickets and reads raise it. `recovered_from` is the first offset that an unclean start had to
    scan again: side files at or above it are gone and their owner rebuilds them (None after a clean
    start).
    """

    topic: str
    partition: int
    topic_id: UUID
    config: LogConfig
    start_offset: int
    next_offset: int
    offline: StorageError | None
    recovered_from: int | None
    #: Called with the base offset of each new segment before anything is written to it, so that the
    #: owner can snapshot what it knows at exactly that offset.
    on_roll: Callable[[int], object] | None = None

    @property
    @abstractmethod
    def size(self) -> int:
        """The bytes kept."""

    @property
    def active_base_offset(self) -> int:
        """Where the segment that is being written begins."""
        return self.segments()[-1].base_offset

    @abstractmethod
    def append(self, batches: Sequence[Buffer]) -> Ticket:
        """Write whole batches, offsets already patched in, each buffer one or more of them.

        Never raises for the disk's sake: the ticket does. Rolls the segment first where size, time
        or index demand it.
        """

    def append_next(self, batch: Buffer, last_offset: int, max_timestamp: int) -> Ticket:
        """The same for the usual one batch that begins at `next_offset`: who has just made or read
        it knows where it ends and how late it is, so that nobody need read that again."""
        return self.append((batch,))

    @abstractmethod
    def read(
        self,
        offset: int,
        max_bytes: int,
        limit_offset: int = NO_LIMIT,
        at_least_one: bool = True,
    ) -> Region:
        """Whole batches from the one holding `offset`, below `limit_offset`, up to `max_bytes`.

        With `at_least_one` the first batch comes even if it is larger. A region never crosses a
        segment.
        """

    @abstractmethod
    def truncate(self, offset: int) -> None:
        """Drop every batch that reaches `offset`; afterwards `next_offset` is at most `offset`."""

    @abstractmethod
    def truncate_fully(self, offset: int) -> None:
        """Drop everything and begin anew at `offset`."""

    @abstractmethod
    def delete_below(self, offset: int) -> int:
        """Move the start up to `offset` (never down or past the end), drop segments wholly below,
        and return the new start. Durable before it returns."""

    @abstractmethod
    def retain(self, now_ms: int, limit_offset: int = NO_LIMIT) -> int:
        """Drop the segments that time and size retention no longer want and that end at or below
        `limit_offset` (the high watermark); return how many went."""

    @abstractmethod
    def roll(self) -> int:
        """Begin a new segment at `next_offset` unless the active one is empty; return its base."""

    @abstractmethod
    def sync(self) -> Ticket:
        """A ticket for everything appended so far, whatever the durability setting."""

    @abstractmethod
    def segments(self) -> list[SegmentInfo]:
        """All segments, oldest first; the last is the active one."""

    @abstractmethod
    def batches_at_or_after(self, timestamp: int, limit_offset: int) -> Iterator[BatchHeader]:
        """Batches that begin below `limit_offset` and have a record at or after `timestamp`, found
        one by one; what happens to the log meanwhile may or may not be seen."""

    @abstractmethod
    def largest_timestamp(self) -> int | None:
        """Of all batches, or None for an empty log."""

    def offset_for_timestamp(
        self, timestamp: int, limit_offset: int = NO_LIMIT
    ) -> TimestampOffset | None:
        """The first record below `limit_offset` whose timestamp is at or after `timestamp`."""
        for batch in self.batches_at_or_after(timestamp, limit_offset):
            found = first_record(batch, timestamp, self.start_offset, limit_offset)
            if found is not None:
                return found
        return None

    def max_timestamp(self) -> TimestampOffset | None:
        """The earliest record that carries the largest timestamp, or None for an empty log."""
        largest = self.largest_timestamp()
        return None if largest is None else self.offset_for_timestamp(largest)

    @abstractmethod
    def side_files(self, suffix: str) -> list[int]:
        """The offsets for which files of this suffix ("snapshot", "txnindex") exist, ascending.

        They belong to the owner; the store deletes them with their segment, snapshots beyond a
        truncation, and the `.txnindex` of every segment it had to recover or cut.
        """

    @abstractmethod
    def read_side_file(self, offset: int, suffix: str) -> bytes | None:
        """The content of `<offset>.<suffix>`, or None where there is none."""

    @abstractmethod
    def write_side_file(self, offset: int, suffix: str, content: bytes) -> None:
        """Put the file there whole or not at all."""

    @abstractmethod
    def append_side_file(self, offset: int, suffix: str, content: bytes) -> None:
        """Add to the file's end, creating it where needed."""

    @abstractmethod
    def delete_side_file(self, offset: int, suffix: str) -> None:
        """Remove it if it is there."""

    @property
    @abstractmethod
    def epochs(self) -> list[tuple[int, int]]:
        """(leader epoch, start offset) as in leader-epoch-checkpoint, ascending."""

    @abstractmethod
    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Remember that `epoch` begins at `start_offset`; one already known changes nothing."""

    def batches(self, offset: int, limit_offset: int = NO_LIMIT) -> Iterator[memoryview]:
        """Every batch from `offset` on, one at a time: for replay, never for the hot path."""
        while offset < min(limit_offset, self.next_offset):
            region = self.read(offset, 1 << 20, limit_offset)
            data = memoryview(bytes(region))
            position = 0
            while position < len(data):
                size = 12 + int.from_bytes(data[position + 8 : position + 12])
                yield data[position : position + size]
                position += size
            if not len(region):
                return
            offset = region.end_offset


class Store(ABC):
    """All logs of one broker, found by topic and partition."""

    @abstractmethod
    def list(self) -> list[tuple[str, int]]:
        """Every log there is, opened or not."""

    @abstractmethod
    def __contains__(self, log: tuple[str, int]) -> bool:
        """Whether there is this log."""

    @abstractmethod
    def topic_id(self, topic: str, partition: int) -> UUID:
        """Whose log it is, opened or not. A topic deleted and made again has another id."""

    @abstractmethod
    def create(
        self, topic: str, partition: int, topic_id: UUID, config: LogConfig | None = None
    ) -> Log:
        """A new, empty log; `StorageError` if the disk refuses, `FileExistsError` if it exists."""

    @abstractmethod
    def open(self, topic: str, partition: int, config: LogConfig | None = None) -> Log:
        """The log, recovered first where the last stop was not clean; the same object while it is
        online. An offline log is closed and recovered again: the way back after a full disk."""

    @abstractmethod
    def delete(self, topic: str, partition: int) -> None:
        """Forget a log at once; its files go later, and regions being sent stay readable. The log
        is offline for good, with `LogDeleted`."""

    @abstractmethod
    def checkpoint(self) -> None:
        """Write down recovery points and start offsets (every minute or so)."""

    @abstractmethod
    def sweep(self) -> Iterator[None]:
        """Remove files whose time to be deleted has come, pausing after each: there may be many."""

    @abstractmethod
    def close(self) -> None:
        """Flush everything and leave the mark of a clean shutdown."""
