"""A log on disk, in Kafka's layout: segments, rolled and read, appended to without a copy."""

import os
import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from semel.store import recovery, retention
from semel.store.commit import GroupCommit
from semel.store.files import OpenFile
from semel.store.interface import (
    DURABLE,
    NO_LIMIT,
    Buffer,
    LogConfig,
    LogDeleted,
    OffsetOutOfRange,
    Region,
    SegmentInfo,
    StorageError,
    Ticket,
)
from semel.store.log_files import LogFiles, StoreServices, epochs_from
from semel.store.segment import Segment, places
from semel.wire.batches import BatchHeader


class DiskLog(LogFiles):
    """One partition's directory."""

    def __init__(
        self,
        store: StoreServices,
        directory: str,
        topic: str,
        partition: int,
        config: LogConfig,
        start_offset: int = 0,
        recovery_point: int = 0,
        clean: bool = False,
    ) -> None:
        self._segments: list[Segment] = []
        super().__init__(store, directory, topic, partition, config)
        self._commit = GroupCommit(self._files, store.syncer, self._fail)
        with self._guard():
            self._load(start_offset, recovery_point, clean)

    def _load(self, start_offset: int, recovery_point: int, clean: bool) -> None:
        loaded = recovery.load(
            self._store.pool,
            self.directory,
            self.config,
            recovery_point,
            clean,
            self._fsync,
            self._epochs,
        )
        self._segments = loaded.segments
        self.recovered_from = loaded.recovered_from
        if not self._segments:
            self._segments = [self._new_segment(start_offset)]
        self.next_offset = self._segments[-1].next_offset
        self.start_offset = min(max(start_offset, self._segments[0].base_offset), self.next_offset)
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
        segment = self._segments[-1]
        try:
            if segment.must_roll(coming, size, self._config, self._store.clock):
                segment = self._roll()
            segment.append(batches, coming, size, self._config)
        except OSError as error:
            return Ticket(error=self._fail_append(error))
        except StorageError as error:
            return Ticket(error=error)
        segment.look_ahead(self._config)
        self.next_offset = segment.next_offset
        return self._ticket(segment)

    def append_next(self, batch: Buffer, last_offset: int, max_timestamp: int) -> Ticket:
        segment = self._segments[-1]
        try:
            if self.offline is not None or not segment.append_easy(
                batch, last_offset, max_timestamp
            ):
                return self.append((batch,))
        except OSError as error:
            return Ticket(error=self._fail_append(error))
        self.next_offset = last_offset + 1
        return self._ticket(segment) if self._fsync else DURABLE

    def _ticket(self, segment: Segment) -> Ticket:
        """For what was just written there."""
        if not self._fsync:
            return DURABLE
        self._commit.wrote(segment.log.get())
        return self._commit.ticket()

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        if self._segments:
            self._segments[-1].look_ahead(config)

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
                region = segment.slice(offset, max_bytes, end, at_least_one)
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
    def size(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def first_base_offset(self) -> int:
        return self._segments[0].base_offset

    def segments(self) -> list[SegmentInfo]:
        with self._guard():
            return [_info(segment) for segment in self._segments]

    def batches_at_or_after(self, timestamp: int, limit_offset: int) -> Iterator[BatchHeader]:
        # Between two batches segments may be deleted or replaced: each is looked for when needed.
        offset = self.start_offset
        while offset < min(limit_offset, self.next_offset):
            offset = max(offset, self.start_offset)
            with self._guard():
                segment = self._segment_of(offset)
                segment.read_timestamps()
            if segment.max_timestamp >= timestamp and segment.size:
                found = segment.batches_at_or_after(timestamp, offset, limit_offset)
                while True:
                    with self._guard():
                        batch = next(found, None)
                    if batch is None:
                        break
                    yield batch
            offset = max(offset + 1, segment.next_offset)

    def largest_timestamp(self) -> int | None:
        with self._guard():
            for segment in self._segments:
                segment.read_timestamps()
            return max((one.max_timestamp for one in self._segments if one.size), default=None)

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
        if self.recovered_from is not None:
            self.recovered_from = min(self.recovered_from, self._segments[-1].base_offset)
        self.start_offset = min(self.start_offset, offset)
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
            self.start_offset = max(self.start_offset, self._segments[0].base_offset)
            self._epochs = epochs_from(self._epochs, self.start_offset)
            self._delete_later(segment)
        if count:
            self._delete_snapshots_later(0, self._segments[0].base_offset)
            self._write_epochs()

    # Compaction

    @property
    def cleaned_to(self) -> int:
        """The first offset that compaction has not seen yet."""
        return self._store.cleaned_to(self)

    @cleaned_to.setter
    def cleaned_to(self, offset: int) -> None:
        with self._guard():
            self._store.set_cleaned_to(self, offset)

    def holds(self, segment: Segment) -> bool:
        """Whether it is still part of the log: retention and DeleteRecords take some out."""
        return segment in self._segments

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
                self._delete_later(segment)
            for suffix in suffixes:
                self._files.rename(f"{stem}.{suffix}.swap", f"{stem}.{suffix}")
            self._files.sync_directory(self.directory)
            cleaned.settle_at(stem, old[-1].next_offset)
            self._segments[where[0] : where[-1] + 1] = [cleaned]
            self._delete_snapshots_later(cleaned.base_offset + 1, cleaned.next_offset)
        return True

    # Failing and closing

    def flush(self) -> list[OpenFile]:
        """Bring every file up to date and return those that a clean stop must sync."""
        if self.offline is None and self.recovery_point == self.next_offset:
            return []
        with self._guard():
            active = self._segments[-1]
            active.flush_indexes()
            return [active.log.get(), active.index.handle.get(), active.time_index.handle.get()]

    def shut(self, reason: StorageError) -> None:
        """Give up all files without writing anything more."""
        if self.offline is None or isinstance(reason, LogDeleted):
            self.offline = reason
        self._commit.abandon(self.offline)
        for segment in self._segments:
            segment.close()

    def _fail_append(self, error: OSError) -> StorageError:
        """Go offline, but leave no part of a batch behind if the disk lets us."""
        failure = self._fail(error)
        segment = self._segments[-1]
        # Where that fails too, recovery cuts it when the log is opened again.
        with suppress(OSError):
            self._files.truncate(segment.log.get().fd, segment.size)
        return failure


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
