"""Logs in memory: the behaviour of the disk engine without the disk."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from semel.store import retention
from semel.store.interface import (
    DURABLE,
    NO_LIMIT,
    Buffer,
    Log,
    LogConfig,
    LogDeleted,
    OffsetOutOfRange,
    Region,
    SegmentInfo,
    StorageError,
    Store,
    Ticket,
)
from semel.store.segment import Place, places
from semel.wire.batches import BatchHeader


class MemoryRegion(Region):
    """Batches that lie in no file: `fd` is -1."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes, end_offset: int) -> None:
        super().__init__(None, -1, 0, len(data), end_offset)
        self._data = data

    def __bytes__(self) -> bytes:
        return self._data


@dataclass(slots=True)
class _Segment:
    base_offset: int
    batches: list[tuple[Place, bytes]] = field(default_factory=list)
    size: int = 0

    @property
    def max_timestamp(self) -> int:
        return max((place.max_timestamp for place, _ in self.batches), default=-1)

    @property
    def first_timestamp(self) -> int:
        return self.batches[0][0].max_timestamp if self.batches else -1


class MemoryLog(Log):
    """A log that a test may also take offline with `fail`, and hold back with `hold`."""

    def __init__(self, topic: str, partition: int, topic_id: UUID, config: LogConfig) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        self.offline: StorageError | None = None
        self.recovered_from: int | None = None
        self.start_offset = self.next_offset = 0
        self._segments = [_Segment(0)]
        self._side_files: dict[tuple[str, int], bytes] = {}
        self._epochs: list[tuple[int, int]] = []
        self._held: list[Ticket] | None = None

    # For tests

    def fail(self, error: StorageError) -> None:
        """What a broken disk does: every append and read from now on fails."""
        self.offline = error
        self.release(error)

    def hold(self) -> None:
        """From now on appends are not durable until `release`."""
        self._held = []

    def release(self, error: StorageError | None = None) -> None:
        held, self._held = self._held or [], None
        for ticket in held:
            ticket.settle(error)

    # Log

    def append(self, batches: Sequence[Buffer]) -> Ticket:
        if self.offline is not None:
            return Ticket(error=self.offline)
        found, size = places(batches)
        coming = [Place(*place) for place in found]
        if coming[0].base_offset < self.next_offset:
            raise ValueError(f"offset {coming[0].base_offset} is below {self.next_offset}")
        data = b"".join(batches)
        if self._must_roll(coming, size):
            self._roll()
        segment = self._segments[-1]
        for place in coming:
            batch = data[place.position : place.position + place.size]
            segment.batches.append((place, batch))
        segment.size += size
        self.next_offset = coming[-1].last_offset + 1
        return self._ticket()

    def _must_roll(self, coming: list[Place], size: int) -> bool:
        segment = self._segments[-1]
        if not segment.batches:
            return False
        waited_ms = max(p.max_timestamp for p in coming) - segment.batches[0][0].max_timestamp
        return segment.size + size > self.config.segment_bytes or waited_ms > self.config.roll_ms

    def _ticket(self) -> Ticket:
        if self._held is None:
            return DURABLE
        self._held.append(Ticket())
        return self._held[-1]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self._segments)

    def sync(self) -> Ticket:
        return Ticket(error=self.offline) if self.offline else self._ticket()

    def read(
        self,
        offset: int,
        max_bytes: int,
        limit_offset: int = NO_LIMIT,
        at_least_one: bool = True,
    ) -> Region:
        self._check_online()
        if not self.start_offset <= offset <= self.next_offset:
            raise OffsetOutOfRange(
                f"{offset} is not within {self.start_offset}..{self.next_offset}"
            )
        for segment in self._segments:
            taken: list[bytes] = []
            size, end = 0, offset
            for place, batch in segment.batches:
                if place.last_offset < offset:
                    continue
                full = size + place.size > max_bytes and (taken or not at_least_one)
                if full or place.last_offset >= limit_offset:
                    return MemoryRegion(b"".join(taken), end)
                taken.append(batch)
                size += place.size
                end = place.last_offset + 1
            if taken:
                return MemoryRegion(b"".join(taken), end)
        return MemoryRegion(b"", offset)

    def truncate(self, offset: int) -> None:
        self._check_online()
        if offset >= self.next_offset:
            return
        if offset <= self._segments[0].base_offset:
            return self.truncate_fully(offset)
        while self._segments[-1].base_offset >= offset:
            self._segments.pop()
        segment = self._segments[-1]
        lost = [place for place, _ in segment.batches if place.last_offset >= offset]
        if lost:
            offset = min(offset, lost[0].base_offset)
        segment.batches = segment.batches[: len(segment.batches) - len(lost)]
        self._cut_to(offset)

    def truncate_fully(self, offset: int) -> None:
        self._check_online()
        self._segments = [_Segment(offset)]
        self._epochs.clear()
        self.start_offset = offset
        self._cut_to(offset)

    def _cut_to(self, offset: int) -> None:
        self.next_offset = offset
        self.start_offset = min(self.start_offset, offset)
        segment = self._segments[-1]
        segment.size = sum(place.size for place, _ in segment.batches)
        self._epochs = [entry for entry in self._epochs if entry[1] < offset]
        for suffix, at in list(self._side_files):
            lost = at >= segment.base_offset if suffix == "txnindex" else at > offset
            if lost:
                del self._side_files[suffix, at]

    def delete_below(self, offset: int) -> int:
        self._check_online()
        self.start_offset = max(self.start_offset, min(offset, self.next_offset))
        ends = [info.next_offset for info in self.segments()[:-1]]
        self._delete_oldest(bisect_right(ends, self.start_offset))
        return self.start_offset

    def retain(self, now_ms: int, limit_offset: int = NO_LIMIT) -> int:
        self._check_online()
        count = retention.expired(self.segments(), self.config, now_ms, limit_offset)
        if count == len(self._segments):
            self.roll()
        self._delete_oldest(count)
        return count

    def _delete_oldest(self, count: int) -> None:
        for segment in self._segments[:count]:
            for suffix, at in list(self._side_files):
                if at <= segment.base_offset:
                    del self._side_files[suffix, at]
        del self._segments[:count]
        self.start_offset = max(self.start_offset, self._segments[0].base_offset)

    def roll(self) -> int:
        self._check_online()
        if self._segments[-1].batches:
            self._roll()
        return self._segments[-1].base_offset

    def _roll(self) -> None:
        if self.on_roll is not None:
            self.on_roll(self.next_offset)
        self._segments.append(_Segment(self.next_offset))

    def segments(self) -> list[SegmentInfo]:
        self._check_online()
        ends = [segment.base_offset for segment in self._segments[1:]] + [self.next_offset]
        return [
            SegmentInfo(
                segment.base_offset,
                end,
                segment.size,
                segment.max_timestamp,
                segment.first_timestamp,
            )
            for segment, end in zip(self._segments, ends, strict=True)
        ]

    def batches_at_or_after(self, timestamp: int, limit_offset: int) -> Iterator[BatchHeader]:
        self._check_online()
        for data in self.batches(self.start_offset):
            batch = BatchHeader(data)
            if batch.max_timestamp >= timestamp and batch.base_offset < limit_offset:
                yield batch

    def largest_timestamp(self) -> int | None:
        self._check_online()
        return max(segment.max_timestamp for segment in self._segments) if self.size else None

    def side_files(self, suffix: str) -> list[int]:
        return sorted(offset for kind, offset in self._side_files if kind == suffix)

    def read_side_file(self, offset: int, suffix: str) -> bytes | None:
        return self._side_files.get((suffix, offset))

    def write_side_file(self, offset: int, suffix: str, content: bytes) -> None:
        self._check_online()
        self._side_files[suffix, offset] = bytes(content)

    def append_side_file(self, offset: int, suffix: str, content: bytes) -> None:
        self._check_online()
        before = self._side_files.get((suffix, offset), b"")
        self._side_files[suffix, offset] = before + content

    def delete_side_file(self, offset: int, suffix: str) -> None:
        self._check_online()
        self._side_files.pop((suffix, offset), None)

    @property
    def epochs(self) -> list[tuple[int, int]]:
        return list(self._epochs)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        self._check_online()
        if self._epochs and epoch <= self._epochs[-1][0]:
            return
        self._epochs = [entry for entry in self._epochs if entry[1] < start_offset]
        self._epochs.append((epoch, start_offset))

    def _check_online(self) -> None:
        if self.offline is not None:
            raise self.offline


class MemoryStore(Store):
    """All of it is forgotten with the object."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, int], MemoryLog] = {}

    def list(self) -> list[tuple[str, int]]:
        return sorted(self._logs)

    def __contains__(self, log: tuple[str, int]) -> bool:
        return log in self._logs

    def topic_id(self, topic: str, partition: int) -> UUID:
        return self._logs[topic, partition].topic_id

    def create(
        self, topic: str, partition: int, topic_id: UUID, config: LogConfig | None = None
    ) -> MemoryLog:
        if (topic, partition) in self._logs:
            raise FileExistsError(f"{topic}-{partition} exists")
        log = MemoryLog(topic, partition, topic_id, config or LogConfig())
        self._logs[topic, partition] = log
        return log

    def open(self, topic: str, partition: int, config: LogConfig | None = None) -> MemoryLog:
        log = self._logs.get((topic, partition))
        if log is None:
            raise FileNotFoundError(f"no log {topic}-{partition}")
        log.offline = None
        return log

    def delete(self, topic: str, partition: int) -> None:
        log = self._logs.pop((topic, partition))
        log.fail(LogDeleted(f"{topic}-{partition} was deleted"))

    def checkpoint(self) -> None:
        """Nothing to write down."""

    def sweep(self) -> Iterator[None]:
        yield from ()

    def close(self) -> None:
        for log in self._logs.values():
            log.offline = StorageError(f"{log.topic}-{log.partition} is closed")
