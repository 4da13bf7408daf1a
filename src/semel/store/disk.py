"""A log on disk, in Kafka's layout: segments, rolled and read, appended to without a copy."""

import errno
import os
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol
from uuid import UUID

from semel.store import checkpoints, recovery, retention
from semel.store.commit import GroupCommit, Syncer
from semel.store.files import FilePool, OpenFile, replace_file, write_all
from semel.store.interface import (
    DURABLE,
    NO_LIMIT,
    Buffer,
    Log,
    LogConfig,
    OffsetOutOfRange,
    Region,
    SegmentInfo,
    StorageError,
    Ticket,
    TimestampOffset,
)
from semel.store.segment import Segment, name_of, places

# The log comes last: as long as it is there, recovery takes the segment for present.
_SEGMENT_SUFFIXES = ("index", "timeindex", "txnindex", "log")


class Surroundings(Protocol):
    """What a log needs of the store it lives in."""

    pool: FilePool
    syncer: Syncer
    fsync: bool
    clock: Callable[[], int]

    def start_offset_moved(self, log: "DiskLog") -> None: ...

    def cleaned_to(self, log: "DiskLog") -> int: ...

    def set_cleaned_to(self, log: "DiskLog", offset: int) -> None: ...

    def delete_later(self, paths: Sequence[str], delay_ms: int) -> None: ...


class DiskLog(Log):
    """One partition's directory."""

    def __init__(
        self,
        store: Surroundings,
        directory: str,
        topic: str,
        partition: int,
        config: LogConfig,
        start_offset: int = 0,
        recovery_point: int = 0,
        clean: bool = False,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.config = config
        self.offline: StorageError | None = None
        self.directory = directory
        self._store = store
        self._files = store.pool.files
        self._fsync = store.fsync
        self._commit = GroupCommit(self._files, store.syncer, self._fail)
        with self._guard():
            self.topic_id: UUID = checkpoints.read_topic_id(f"{directory}/{checkpoints.METADATA}")
            self._epochs = checkpoints.read_epochs(f"{directory}/{checkpoints.LEADER_EPOCHS}")
            self._load(start_offset, recovery_point, clean)

    def _load(self, start_offset: int, recovery_point: int, clean: bool) -> None:
        loaded = recovery.load(
            self._store.pool, self.directory, self.config, recovery_point, clean, self._epochs
        )
        self._segments = loaded.segments
        self.recovered_from = loaded.recovered_from
        if not self._segments:
            self._segments = [self._new_segment(start_offset)]
        self.next_offset = self._segments[-1].next_offset
        self.start_offset = min(max(start_offset, self._segments[0].base_offset), self.next_offset)
        self.size = sum(segment.size for segment in self._segments)
        self.recovery_point = self._segments[-1].base_offset if not clean else self.next_offset
        if self.recovered_from is not None:
            self._drop_side_files(self.recovered_from, self.next_offset)

    # Writing

    def append(self, batches: Sequence[Buffer]) -> Ticket:
        if self.offline is not None:
            return Ticket(error=self.offline)
        coming, size = places(batches)
        if coming[0][0] < self.next_offset:
            raise ValueError(f"offset {coming[0][0]} is below {self.next_offset}")
        config = self.config
        segment = self._segments[-1]
        try:
            if segment.must_roll(coming, size, config, self._store.clock):
                segment = self._roll()
            segment.append(batches, coming, size, config)
        except OSError as error:
            return Ticket(error=self._fail_append(error))
        except StorageError as error:
            return Ticket(error=error)
        self.next_offset = segment.next_offset
        self.size += size
        if not self._fsync:
            return DURABLE
        self._commit.wrote(segment.log.get())
        return self._commit.ticket()

    def sync(self) -> Ticket:
        if self.offline is not None:
            return Ticket(error=self.offline)
        with self._guard():
            self._commit.wrote(self._segments[-1].log.get())
            self._commit.changed_directory(self.directory)
        return self._commit.ticket()

    def roll(self) -> int:
        with self._guard():
            if self._segments[-1].size:
                self._roll()
        return self._segments[-1].base_offset

    def _roll(self) -> Segment:
        if self.on_roll is not None:
            self.on_roll(self.next_offset)
        sealed = self._segments[-1]
        sealed.flush_indexes()
        fresh = self._new_segment(self.next_offset)
        sealed.next_offset = fresh.base_offset
        self._segments.append(fresh)
        self._flush_sealed(sealed)
        return fresh

    def _new_segment(self, base_offset: int) -> Segment:
        segment = Segment(self._store.pool, self.directory, base_offset)
        segment.create(self._store.clock())
        if self._fsync:
            self._commit.changed_directory(self.directory)
        return segment

    def _flush_sealed(self, sealed: Segment) -> None:
        """Sync a full segment in the background, so that recovery need not read it again."""
        if self._fsync:
            self._commit.wrote(sealed.log.get())
        handles = [sealed.log.get(), sealed.index.handle.get(), sealed.time_index.handle.get()]
        transactions = self._side_path(sealed.base_offset, "txnindex")
        if os.path.exists(transactions):
            handles.append(OpenFile(self._files.open_existing(transactions)))
        point = sealed.next_offset

        def work() -> None:
            for file in handles:
                self._files.sync(file.fd)
            self._files.sync_directory(self.directory)

        def done(error: OSError | None) -> None:
            if error is not None:
                self._fail(error)
            elif self.offline is None and self._segments[0].base_offset <= point:
                self.recovery_point = min(max(self.recovery_point, point), self.next_offset)

        self._store.syncer.run(work, done)

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        limit_offset: int = NO_LIMIT,
        at_least_one: bool = True,
    ) -> Region:
        if self.offline is not None:
            raise self.offline
        end = self.next_offset
        if offset > end or offset < self.start_offset:
            raise OffsetOutOfRange(f"{offset} is not within {self.start_offset}..{end}")
        if limit_offset < end:
            end = limit_offset
        try:
            while offset < end:
                segment = self._segment_of(offset)
                region = _slice(segment, offset, max_bytes, end, at_least_one)
                if region is not None:
                    return region
                # Compaction left nothing of this segment at or above the offset.
                offset = segment.next_offset
        except (OSError, struct.error) as error:
            raise self._fail(error) from error
        return Region(None, -1, 0, 0, offset)

    @property
    def active_base_offset(self) -> int:
        return self._segments[-1].base_offset

    def _segment_of(self, offset: int) -> Segment:
        segments = self._segments
        if offset >= segments[-1].base_offset:
            return segments[-1]
        return segments[max(0, bisect_right(segments, offset, key=_base_offset) - 1)]

    @property
    def first_base_offset(self) -> int:
        return self._segments[0].base_offset

    def segments(self) -> list[SegmentInfo]:
        with self._guard():
            return [_info(segment) for segment in self._segments]

    def offset_for_timestamp(
        self, timestamp: int, limit_offset: int = NO_LIMIT
    ) -> TimestampOffset | None:
        with self._guard():
            for segment in self._segments:
                segment.read_timestamps()
                if segment.max_timestamp < timestamp or not segment.size:
                    continue
                found = segment.first_at_or_after(timestamp, self.start_offset, limit_offset)
                if found is not None:
                    return found
        return None

    def max_timestamp(self) -> TimestampOffset | None:
        with self._guard():
            largest: Segment | None = None
            for segment in self._segments:
                segment.read_timestamps()
                if segment.size and (
                    largest is None or segment.max_timestamp > largest.max_timestamp
                ):
                    largest = segment
            if largest is None:
                return None
            return largest.first_at_or_after(largest.max_timestamp, self.start_offset, NO_LIMIT)

    # Cutting

    def truncate(self, offset: int) -> None:
        if offset >= self.next_offset:
            return
        with self._guard():
            if offset <= self._segments[0].base_offset:
                return self._restart(offset)
            segment = self._segment_of(offset - 1)
            recovery.drop_after(self._segments, segment)
            position = segment.find(offset)
            if position < segment.size:
                offset = min(offset, segment.place_at(position).base_offset)
            recovery.rebuild(segment, self.config, [], position)
            recovery.cut(segment)
            segment.next_offset = offset
            self._cut_to(offset)

    def truncate_fully(self, offset: int) -> None:
        with self._guard():
            self._restart(offset)

    def _restart(self, offset: int) -> None:
        while self._segments:
            recovery.drop_files(self._segments.pop())
        self._segments.append(self._new_segment(offset))
        self._epochs.clear()
        self.start_offset = offset
        self._cut_to(offset)
        self._store.start_offset_moved(self)

    def _cut_to(self, offset: int) -> None:
        """What every way of losing the end has in common."""
        self.next_offset = offset
        self.start_offset = min(self.start_offset, offset)
        self.size = sum(segment.size for segment in self._segments)
        self.recovery_point = min(self.recovery_point, self._segments[-1].base_offset)
        self._epochs = [entry for entry in self._epochs if entry[1] < offset]
        self._write_epochs()
        self._drop_side_files(self._segments[-1].base_offset, offset)
        if self._fsync:
            self._files.sync(self._segments[-1].log.get().fd)
            self._files.sync_directory(self.directory)

    def delete_below(self, offset: int) -> int:
        offset = min(offset, self.next_offset)
        if offset <= self.start_offset:
            return self.start_offset
        with self._guard():
            self.start_offset = offset
            self._store.start_offset_moved(self)
            self._delete_oldest(
                sum(segment.next_offset <= offset for segment in self._segments[:-1])
            )
        return self.start_offset

    def retain(self, now_ms: int, limit_offset: int = NO_LIMIT) -> int:
        with self._guard():
            count = retention.expired(self.segments(), self.config, now_ms, limit_offset)
            if count == len(self._segments):
                self._roll()
            self._delete_oldest(count)
        return count

    def _delete_oldest(self, count: int) -> None:
        for _ in range(count):
            segment = self._segments.pop(0)
            self.size -= segment.size
            self.start_offset = max(self.start_offset, self._segments[0].base_offset)
            self._epochs = _epochs_from(self._epochs, self.start_offset)
            self._doom(segment)
        if count:
            self._doom_snapshots(0, self._segments[0].base_offset)
            self._write_epochs()

    def _doom(self, segment: Segment) -> None:
        """Take a segment's files out of the log now, and off the disk a little later."""
        segment.close()
        stem = self.stem(segment.base_offset)
        self._doom_files([f"{stem}.{suffix}" for suffix in _SEGMENT_SUFFIXES])

    def _doom_snapshots(self, first_offset: int, end_offset: int) -> None:
        self._doom_files(
            [
                self._side_path(offset, "snapshot")
                for offset in self.side_files("snapshot")
                if first_offset <= offset < end_offset
            ]
        )

    def _doom_files(self, paths: Sequence[str]) -> None:
        doomed = []
        for path in paths:
            if os.path.exists(path):
                self._files.rename(path, path + ".deleted")
                doomed.append(path + ".deleted")
        self._store.delete_later(doomed, self.config.file_delete_delay_ms)

    # Compaction

    @property
    def pool(self) -> FilePool:
        return self._store.pool

    @property
    def cleaned_to(self) -> int:
        """The first offset that compaction has not seen yet."""
        return self._store.cleaned_to(self)

    @cleaned_to.setter
    def cleaned_to(self, offset: int) -> None:
        with self._guard():
            self._store.set_cleaned_to(self, offset)

    def sealed_below(self, offset: int) -> list[Segment]:
        """The segments that begin below `offset`, the active one never among them."""
        return [segment for segment in self._segments[:-1] if segment.base_offset < offset]

    def replace(
        self, old: Sequence[Segment], cleaned: Segment, side_files: Mapping[str, bytes]
    ) -> bool:
        """Let a cleaned segment, synced under `.cleaned`, take the place of `old` ones.

        False if they are gone meanwhile (retention, DeleteRecords, truncation): nothing changes.
        """
        where = [number for number, segment in enumerate(self._segments) if segment in old]
        suffixes = ["index", "timeindex", *side_files, "log"]
        stem = self.stem(cleaned.base_offset)
        with self._guard():
            if len(where) != len(old):
                for suffix in suffixes:
                    self._files.unlink(f"{stem}.{suffix}.cleaned")
                return False
            for suffix in suffixes:
                self._files.rename(f"{stem}.{suffix}.cleaned", f"{stem}.{suffix}.swap")
            # From here on the new segment counts, whatever happens.
            self._files.sync_directory(self.directory)
            for segment in old:
                self._doom(segment)
            for suffix in suffixes:
                self._files.rename(f"{stem}.{suffix}.swap", f"{stem}.{suffix}")
            self._files.sync_directory(self.directory)
            cleaned.settle_at(stem, old[-1].next_offset)
            self._segments[where[0] : where[-1] + 1] = [cleaned]
            self.size = sum(segment.size for segment in self._segments)
            self._doom_snapshots(cleaned.base_offset + 1, cleaned.next_offset)
        return True

    # Side files and epochs

    def side_files(self, suffix: str) -> list[int]:
        ending = "." + suffix
        return sorted(
            int(name.removesuffix(ending))
            for name in os.listdir(self.directory)
            if name.endswith(ending)
        )

    def read_side_file(self, offset: int, suffix: str) -> bytes | None:
        try:
            with open(self._side_path(offset, suffix), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._fail(error) from error

    def write_side_file(self, offset: int, suffix: str, content: bytes) -> None:
        with self._guard():
            replace_file(self._files, self._side_path(offset, suffix), content, self._fsync)

    def append_side_file(self, offset: int, suffix: str, content: bytes) -> None:
        with self._guard():
            file = OpenFile(self._files.open(self._side_path(offset, suffix)))
            write_all(self._files, file.fd, [content])

    def delete_side_file(self, offset: int, suffix: str) -> None:
        with self._guard():
            path = self._side_path(offset, suffix)
            if os.path.exists(path):
                self._files.unlink(path)

    def stem(self, offset: int) -> str:
        return f"{self.directory}/{name_of(offset)}"

    def _side_path(self, offset: int, suffix: str) -> str:
        return f"{self.stem(offset)}.{suffix}"

    def _drop_side_files(self, from_offset: int, end: int) -> None:
        """After a cut: transaction indexes that must be built again, snapshots of what is lost."""
        for offset in self.side_files("txnindex"):
            if offset >= from_offset:
                self._files.unlink(self._side_path(offset, "txnindex"))
        for offset in self.side_files("snapshot"):
            if offset > end:
                self._files.unlink(self._side_path(offset, "snapshot"))

    @property
    def epochs(self) -> list[tuple[int, int]]:
        return list(self._epochs)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        if self._epochs and epoch <= self._epochs[-1][0]:
            return
        with self._guard():
            # An epoch that wrote nothing gives way to the next one at the same offset.
            self._epochs = [entry for entry in self._epochs if entry[1] < start_offset]
            self._epochs.append((epoch, start_offset))
            self._write_epochs()

    def _write_epochs(self) -> None:
        path = f"{self.directory}/{checkpoints.LEADER_EPOCHS}"
        checkpoints.write_epochs(self._files, path, self._epochs, self._fsync)

    # Failing and closing

    def flush(self) -> list[OpenFile]:
        """Bring every file up to date and return those that a clean stop must sync."""
        if self.offline is not None or self.recovery_point == self.next_offset:
            return []
        with self._guard():
            active = self._segments[-1]
            active.flush_indexes()
            return [active.log.get(), active.index.handle.get(), active.time_index.handle.get()]

    def shut(self, reason: StorageError) -> None:
        """Give up all files without writing anything more."""
        self.offline = self.offline or reason
        self._commit.abandon(self.offline)
        for segment in self._segments:
            segment.close()

    @contextmanager
    def _guard(self) -> Iterator[None]:
        if self.offline is not None:
            raise self.offline
        try:
            yield
        except (OSError, struct.error) as error:
            raise self._fail(error) from error

    def _fail(self, error: Exception) -> StorageError:
        if self.offline is None:
            cause = error if isinstance(error, OSError) else None
            name = errno.errorcode.get(cause.errno or 0, "") if cause else "corrupt"
            self.offline = StorageError(
                f"{self.topic}-{self.partition} is offline: {error} {name}".rstrip(), cause
            )
        return self.offline

    def _fail_append(self, error: OSError) -> StorageError:
        """Go offline, but leave no part of a batch behind if the disk lets us."""
        failure = self._fail(error)
        segment = self._segments[-1]
        # Where that fails too, recovery cuts it when the log is opened again.
        with suppress(OSError):
            self._files.truncate(segment.log.get().fd, segment.size)
        return failure


def _slice(
    segment: Segment, offset: int, max_bytes: int, end_offset: int, at_least_one: bool
) -> Region | None:
    """The region of one segment that answers a read; None if no batch of it reaches `offset`."""
    position = segment.find(offset)
    if position >= segment.size:
        return None
    end = segment.size
    if end_offset < segment.next_offset:
        end = segment.find(end_offset)
    if end - position > max_bytes:
        end = segment.boundary(position, position + max_bytes)
        if end == position and at_least_one:
            end = position + segment.place_at(position).size
    if end <= position:
        return Region(None, -1, 0, 0, offset)
    following = segment.next_offset if end == segment.size else segment.base_offset_at(end)
    segment.remember(following, end)
    file = segment.log.get()
    return Region(file, file.fd, position, end - position, following)


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def _info(segment: Segment) -> SegmentInfo:
    segment.read_timestamps()
    timestamp = segment.max_timestamp
    if timestamp < 0 and segment.size:
        timestamp = int(os.fstat(segment.log.get().fd).st_mtime * 1000)
    return SegmentInfo(
        segment.base_offset,
        segment.next_offset,
        segment.size,
        timestamp,
        segment.first_timestamp,
    )


def _epochs_from(epochs: list[tuple[int, int]], start: int) -> list[tuple[int, int]]:
    """Drop epochs that ended before `start`; the one in force there begins at it."""
    later = [entry for entry in epochs if entry[1] > start]
    earlier = [entry for entry in epochs if entry[1] <= start]
    return [(earlier[-1][0], start), *later] if earlier else later
