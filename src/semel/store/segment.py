"""One segment of a log on disk: a `.log` file of batches with its two sparse indexes."""

import os
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from semel.store.files import FilePool, Files, Handle, write_all
from semel.store.index import offset_index, time_index
from semel.store.interface import Buffer, LogConfig, TimestampOffset
from semel.wire.batches import BatchHeader, records_of

NO_TIMESTAMP = -1
MAX_RELATIVE_OFFSET = MAX_SEGMENT_BYTES = 2**31 - 1

# Base offset, length, last offset delta, largest timestamp: what a log must know of a batch.
_PLACE = Struct(">qi11xi8xq")
_PLACE_SIZE = _PLACE.size
_read_place = _PLACE.unpack_from
_SCAN_BYTES = 8192
# How many batch positions a segment remembers, so that those who read along search nothing.
_REMEMBERED = 32


class Place(NamedTuple):
    """Where a batch lies, in offsets and in bytes (within its buffers or its file)."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    position: int
    size: int


def places(buffers: Sequence[Buffer]) -> list[Place]:
    """Every batch of the buffers, positions counted through all of them."""
    found = []
    total = 0
    for buffer in buffers:
        position, end = 0, len(buffer)
        while position < end:
            base, length, delta, max_timestamp = _read_place(buffer, position)
            length += 12
            found.append(Place(base, base + delta, max_timestamp, total + position, length))
            position += length
        if position != end:
            raise ValueError(f"a buffer of {end} bytes does not end with its last batch")
        total += end
    return found


def name_of(offset: int) -> str:
    """Kafka's file name for an offset: twenty digits, so that names sort as numbers do."""
    return f"{offset:020d}"


class Segment:
    """Batches from `base_offset` on; the next segment begins, or will begin, at `next_offset`."""

    # In place of `max_timestamp` as long as nobody asked: thousands of segments load at a start.
    UNREAD = -2

    __slots__ = (
        "base_offset",
        "created_ms",
        "first_timestamp",
        "index",
        "log",
        "max_timestamp",
        "max_timestamp_offset",
        "next_offset",
        "recent",
        "size",
        "time_index",
        "unindexed_bytes",
    )

    def __init__(self, pool: FilePool, directory: str, base_offset: int, suffix: str = "") -> None:
        stem = f"{directory}/{name_of(base_offset)}"
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.log = Handle(pool, f"{stem}.log{suffix}")
        self.index = offset_index(pool, f"{stem}.index{suffix}")
        self.time_index = time_index(pool, f"{stem}.timeindex{suffix}")
        self.size = 0
        self.unindexed_bytes = 0
        self.created_ms = 0
        self.first_timestamp = NO_TIMESTAMP
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self.recent: dict[int, int] = {}

    @property
    def files(self) -> Files:
        return self.log.pool.files

    def create(self, now_ms: int) -> None:
        """Make the three files, empty whatever lay there before."""
        self.created_ms = now_ms
        for handle in (self.log, self.index.handle, self.time_index.handle):
            self.files.truncate(handle.create().fd, 0)

    def must_roll(self, coming: list[Place], config: LogConfig, clock: Callable[[], int]) -> bool:
        """Whether these batches belong into a new segment (Kafka's LogSegment.shouldRoll)."""
        if not self.size:
            return False
        last = coming[-1]
        room = min(config.segment_bytes, MAX_SEGMENT_BYTES) - self.size
        if last.position + last.size > room:
            return True
        if last.last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if self.first_timestamp >= 0:
            waited_ms = max(place.max_timestamp for place in coming) - self.first_timestamp
        else:
            waited_ms = clock() - self.created_ms
        if waited_ms > config.segment_ms:
            return True
        # One entry stays free for the last timestamp, written when the segment is sealed.
        largest = config.segment_index_bytes - self.time_index.entry_size
        return self.time_index.bytes >= largest or self.index.bytes >= config.segment_index_bytes

    def append(self, buffers: Sequence[Buffer], coming: list[Place], interval: int) -> None:
        """Write and account for batches; after an error the file may hold part of them."""
        file = self.log.get()
        last = coming[-1]
        expected = last.position + last.size
        if len(buffers) > 1024 or self.files.write(file.fd, buffers) != expected:
            self.files.truncate(file.fd, self.size)
            write_all(self.files, file.fd, buffers)
        start = self.size
        for place in coming:
            self.account(place, start + place.position, interval)
        self.size = start + expected

    def account(self, place: Place, position: int, interval: int) -> None:
        """Take note of a batch that lies at `position`."""
        base_offset, last_offset, max_timestamp, _, size = place
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if not position:
            self.first_timestamp = max_timestamp
        if self.unindexed_bytes > interval:
            self.index.append(last_offset - self.base_offset, position)
            self.index_time()
            self.unindexed_bytes = 0
        self.unindexed_bytes += size
        self.next_offset = last_offset + 1
        self.remember(base_offset, position)

    def index_time(self) -> None:
        """Kafka's TimeIndex.maybeAppend: only a larger timestamp than before is worth an entry."""
        last = self.time_index.last()
        if self.max_timestamp > (last[0] if last else NO_TIMESTAMP):
            relative = self.max_timestamp_offset - self.base_offset
            self.time_index.append(self.max_timestamp, relative)

    def read_timestamps(self) -> None:
        """Learn the largest timestamp from the time index, whose last entry always is it."""
        if self.max_timestamp == Segment.UNREAD:
            last = self.time_index.last()
            self.max_timestamp = last[0] if last else NO_TIMESTAMP
            self.max_timestamp_offset = self.base_offset + (last[1] if last else 0)

    def remember(self, offset: int, position: int) -> None:
        recent = self.recent
        recent[offset] = position
        if len(recent) > _REMEMBERED:
            del recent[next(iter(recent))]

    def flush_indexes(self) -> None:
        """Bring the index files up to date, the largest timestamp included."""
        self.index_time()
        self.index.flush()
        self.time_index.flush()

    def find(self, offset: int) -> int:
        """The position of the first batch that reaches `offset`; the size if none does."""
        position = self.recent.get(offset)
        if position is None:
            if offset >= self.next_offset:
                return self.size
            entry = self.index.floor(offset - self.base_offset)
            position = self.size
            for place in self.scan(entry[1] if entry else 0):
                if place.last_offset >= offset:
                    position = place.position
                    break
            self.remember(offset, position)
        return position

    def boundary(self, position: int, limit: int) -> int:
        """The last end of a batch at or before `limit`, looking from the batch at `position` on."""
        entry = self.index.floor_by_value(limit)
        if entry and entry[1] > position:
            position = entry[1]
        for place in self.scan(position):
            if place.position + place.size > limit:
                break
            position = place.position + place.size
        return position

    def place_at(self, position: int) -> Place:
        """The batch that begins at `position`, which must be one's beginning."""
        return next(self.scan(position))

    def base_offset_at(self, position: int) -> int:
        return int.from_bytes(os.pread(self.log.get().fd, 8, position))

    def scan(self, position: int) -> Iterator[Place]:
        """Every batch from `position` to the end, read header by header."""
        file = self.log.get()
        size = self.size
        start, chunk = position, b""
        while position < size:
            if position - start + _PLACE_SIZE > len(chunk):
                start, chunk = position, os.pread(file.fd, _SCAN_BYTES, position)
            base, length, delta, max_timestamp = _read_place(chunk, position - start)
            length += 12
            yield Place(base, base + delta, max_timestamp, position, length)
            position += length

    def header_at(self, place: Place) -> BatchHeader:
        """The whole batch, read into memory."""
        return BatchHeader(os.pread(self.log.get().fd, place.size, place.position))

    def first_at_or_after(
        self, timestamp: int, start_offset: int, limit_offset: int
    ) -> TimestampOffset | None:
        """The first record of that time or later (Kafka's LogSegment.findOffsetByTimestamp)."""
        entry = self.time_index.floor(timestamp)
        begin = max(start_offset, self.base_offset + (entry[1] if entry else 0))
        for place in self.scan(self.find(begin)):
            if place.base_offset >= limit_offset:
                return None
            if place.max_timestamp < timestamp:
                continue
            batch = self.header_at(place)
            for record in records_of(batch):
                if record.timestamp >= timestamp and start_offset <= record.offset < limit_offset:
                    return TimestampOffset(record.timestamp, record.offset, batch.leader_epoch)
        return None

    def close(self) -> None:
        for handle in (self.log, self.index.handle, self.time_index.handle):
            handle.close()
