"""One segment of a log on disk: a `.log` file of batches with its two sparse indexes."""

import os
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from semel.store.files import FilePool, Handle, write_all
from semel.store.index import offset_index, time_index
from semel.store.interface import Buffer, LogConfig, Region
from semel.wire.batches import BatchHeader

NO_TIMESTAMP = -1
MAX_RELATIVE_OFFSET = 2**31 - 1

# Base offset, length, last offset delta, largest timestamp: what a log must know of a batch.
_PLACE = Struct(">qi11xi8xq")
_PLACE_SIZE = _PLACE.size
_read_place = _PLACE.unpack_from
_SCAN_BYTES = 8192
# How many batch positions a segment remembers at least: those who read along search nothing.
_REMEMBERED = 32
# The longest way without a look at whether too many are remembered: some sixty of the smallest.
_STRETCH_BYTES = 4096


class Place(NamedTuple):
    """Where a batch lies, in offsets and in bytes (within its buffers or its file)."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    position: int
    size: int


# The same as a plain tuple, which an append can afford: a named one takes four times as long.
AnyPlace = tuple[int, int, int, int, int]


def places(buffers: Sequence[Buffer]) -> tuple[list[AnyPlace], int]:
    """Every batch of the buffers, positions counted through all of them, and their whole size."""
    found = []
    total = 0
    for buffer in buffers:
        position, end = 0, len(buffer)
        while position < end:
            base, length, delta, max_timestamp = _read_place(buffer, position)
            length += 12
            found.append((base, base + delta, max_timestamp, total + position, length))
            position += length
        if position != end:
            raise ValueError(f"a buffer of {end} bytes does not end with its last batch")
        total += end
    return found, total


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
        "easy_end",
        "easy_offset",
        "easy_position",
        "easy_timestamp",
        "files",
        "first_timestamp",
        "index",
        "index_is_full",
        "indexed_at",
        "log",
        "max_timestamp",
        "max_timestamp_offset",
        "next_offset",
        "older",
        "recent",
        "size",
        "time_index",
    )

    def __init__(self, pool: FilePool, directory: str, base_offset: int, suffix: str = "") -> None:
        stem = f"{directory}/{name_of(base_offset)}"
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.log = Handle(pool, f"{stem}.log{suffix}")
        self.index = offset_index(pool, f"{stem}.index{suffix}")
        self.time_index = time_index(pool, f"{stem}.timeindex{suffix}")
        self.files = pool.files
        self.size = 0
        self.indexed_at = 0
        self.index_is_full = False
        self.created_ms = 0
        self.first_timestamp = NO_TIMESTAMP
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self.recent: dict[int, int] = {}
        self.older: dict[int, int] = {}
        # Up to where an append is easy, see `look_ahead`: nowhere, as long as nobody looked.
        self.easy_end = self.easy_position = 0
        self.easy_timestamp = NO_TIMESTAMP
        self.easy_offset = base_offset + MAX_RELATIVE_OFFSET

    def create(self, now_ms: int) -> None:
        """Make the three files, empty whatever lay there before."""
        self.created_ms = now_ms
        for handle in (self.log, self.index.handle, self.time_index.handle):
            file = handle.create()
            # Truncating takes milliseconds even where there is nothing to cut.
            if os.fstat(file.fd).st_size:
                self.files.truncate(file.fd, 0)

    def must_roll(
        self, coming: list[AnyPlace], size: int, config: LogConfig, clock: Callable[[], int]
    ) -> bool:
        """Whether these batches belong into a new segment (Kafka's LogSegment.shouldRoll)."""
        if not self.size:
            return False
        if self.size + size > config.segment_bytes or self.index_is_full:
            return True
        if coming[-1][1] - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if self.first_timestamp < 0:
            return clock() - self.created_ms > config.roll_ms
        latest_ms = self.first_timestamp + config.roll_ms
        for place in coming:  # noqa: SIM110 (any() with a generator takes 0.4 µs more)
            if place[2] > latest_ms:
                return True
        return False

    def append(
        self, buffers: Sequence[Buffer], coming: list[AnyPlace], size: int, config: LogConfig
    ) -> None:
        """Write and account for batches; after an error the file may hold part of them. Its twin
        is `append_easy`."""
        file = self.log.get()
        if len(buffers) > 1024 or self.files.write(file.fd, buffers) != size:
            self.files.truncate(file.fd, self.size)
            write_all(self.files, file.fd, buffers)
        self.account(coming, config)

    def append_easy(self, batch: Buffer, last_offset: int, max_timestamp: int) -> bool:
        """What nearly every append is: one batch, at `next_offset`, that needs neither a new
        segment nor an index entry. False, and nothing done, for all others: they take `append`, its
        twin, after `must_roll`."""
        position = self.size
        size = len(batch)
        end = position + size
        if (
            end > self.easy_end
            or position > self.easy_position
            or max_timestamp > self.easy_timestamp
            or last_offset > self.easy_offset
        ):
            return False
        # Without the mark of use that `get` leaves for the pool: the others leave enough of them.
        file = self.log.file or self.log.get()
        if self.files.write(file.fd, (batch,)) != size:
            self.files.truncate(file.fd, position)
            write_all(self.files, file.fd, (batch,))
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        self.recent[self.next_offset] = position
        self.size = end
        self.next_offset = last_offset + 1
        return True

    def look_ahead(self, config: LogConfig) -> None:
        """Find out up to where appends are easy, so that they need not ask all of this again."""
        is_easy = self.size > 0 and self.first_timestamp >= 0 and not self.index_is_full
        self.easy_end = config.segment_bytes if is_easy else 0
        due = self.indexed_at + config.index_interval_bytes
        self.easy_position = min(due, self.size + _STRETCH_BYTES)
        self.easy_timestamp = self.first_timestamp + config.roll_ms

    def account(self, coming: Sequence[AnyPlace], config: LogConfig) -> None:
        """Take note of batches that now lie at the end of the file."""
        start = end = self.size
        for base_offset, last_offset, max_timestamp, begin, size in coming:
            position = start + begin
            end = position + size
            if max_timestamp > self.max_timestamp:
                self.max_timestamp = max_timestamp
                self.max_timestamp_offset = last_offset
            if position - self.indexed_at > config.index_interval_bytes:
                self._index(last_offset, position, config.segment_index_bytes)
            elif not position:
                self.first_timestamp = max_timestamp
            self.remember(base_offset, position)
        self.size = end
        self.next_offset = last_offset + 1

    def _index(self, last_offset: int, position: int, limit: int) -> None:
        self.index.append(last_offset - self.base_offset, position)
        self.index_time()
        self.indexed_at = position
        # One entry stays free for the last timestamp, written when the segment is sealed.
        used = max(self.index.size_bytes, self.time_index.size_bytes + self.time_index.entry_size)
        self.index_is_full = used >= limit

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
            if self.size:
                self.first_timestamp = self.place_at(0).max_timestamp

    def remember(self, offset: int, position: int) -> None:
        if len(self.recent) >= _REMEMBERED:
            self.older, self.recent = self.recent, {}
        self.recent[offset] = position

    def forget(self) -> None:
        """Batches will lie elsewhere from now on."""
        self.older, self.recent = {}, {}
        self.easy_end = 0

    def flush_indexes(self) -> None:
        """Bring the index files up to date, the largest timestamp included."""
        self.index_time()
        self.index.flush()
        self.time_index.flush()

    def slice(
        self, offset: int, max_bytes: int, end_offset: int, at_least_one: bool
    ) -> Region | None:
        """The region that answers a read; None if no batch here reaches `offset`."""
        position = self.find(offset)
        if position >= self.size:
            return None
        end = self.size
        if end_offset < self.next_offset:
            end = self.find(end_offset)
        if end - position > max_bytes:
            end = self.boundary(position, position + max_bytes)
            if end == position and at_least_one:
                end = position + self.place_at(position).size
        if end <= position:
            return Region(None, -1, 0, 0, offset)
        following = self.next_offset if end == self.size else self.base_offset_at(end)
        self.remember(following, end)
        file = self.log.get()
        return Region(file, file.fd, position, end - position, following)

    def find(self, offset: int) -> int:
        """The position of the first batch that reaches `offset`; the size if none does."""
        position = self.recent.get(offset)
        if position is None:
            position = self.older.get(offset)
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

    def batches_at_or_after(
        self, timestamp: int, start_offset: int, limit_offset: int
    ) -> Iterator[BatchHeader]:
        """Batches with records of that time or later (Kafka's LogSegment.findOffsetByTimestamp).
        They are read from one file, also if the segment is deleted or replaced meanwhile."""
        file = self.log.get()
        entry = self.time_index.floor(timestamp)
        begin = max(start_offset, self.base_offset + (entry[1] if entry else 0))
        for place in self.scan(self.find(begin)):
            if place.base_offset >= limit_offset:
                return
            if place.max_timestamp >= timestamp:
                yield BatchHeader(os.pread(file.fd, place.size, place.position))

    def settle_at(self, stem: str, next_offset: int) -> None:
        """Its files were renamed; the next segment begins at `next_offset`."""
        self.close()
        self.log.path = f"{stem}.log"
        self.index.handle.path = f"{stem}.index"
        self.time_index.handle.path = f"{stem}.timeindex"
        self.next_offset = next_offset
        self.forget()

    def close(self) -> None:
        for handle in (self.log, self.index.handle, self.time_index.handle):
            handle.close()
