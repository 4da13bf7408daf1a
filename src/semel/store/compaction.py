"""Compaction of one log: of every key the last record stays, and what transactions still need.

The work is a generator of small steps on the event loop, so that all state has one owner; what
takes long (a large batch, a sync) is handed out as a function to be run in a thread. What the store
does not know, the owner's `Policy` does: which data was aborted, which batches producers need.

Segments are cleaned in groups into files named `.cleaned`, which become `.swap` and then take the
old ones' place. Whatever moment the process ends at, `recovery` completes or undoes it.

Between two steps anything may happen to the log. When it went offline, was opened again or deleted,
its directory may be another log's by now: the work ends there with the log's own error, and touches
nothing more. Segments that were deleted are left out.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple, Protocol

from semel.store.cleanable import LogToClean
from semel.store.cleaning import BatchRetention, OffsetMap, Times, clean
from semel.store.disk import DiskLog
from semel.store.files import OpenFile, write_all
from semel.store.interface import Buffer, StorageError
from semel.store.recovery import good_batches
from semel.store.segment import MAX_RELATIVE_OFFSET, AnyPlace, Segment
from semel.wire.batches import BatchHeader, records_of

# A batch with more records than this is worked on in a thread.
_MANY_RECORDS = 200
# So is a compressed one that is larger: nobody knows what it unpacks to.
_SMALL_PACKED = 1_024
_WRITE_BYTES = 1 << 20
SLICE_SECONDS = 0.001

Step = Callable[[], object] | None
Steps = Iterator[Step]


class Tracker(Protocol):
    """Follows a log's batches in order and knows which of them have become useless."""

    def is_dead(self, batch: BatchHeader) -> bool:
        """For data: it was aborted. For a control batch: nothing of its transaction is left."""

    def side_files(self) -> Mapping[str, bytes]:
        """What belongs beside the segment cleaned since the last call, by suffix."""


class Policy(Protocol):
    """What the owner of a log knows about its batches, as of the compaction's beginning."""

    def tracker(self, first_offset: int, end_offset: int) -> Tracker:
        """One that starts at `first_offset`; the log is read once for keys and once to clean."""

    def is_needed(self, batch: BatchHeader) -> bool:
        """Whether the header must stay though its records go: the last batch of a producer."""

    def replaced(self, first_offset: int, end_offset: int, side_files: Mapping[str, bytes]) -> None:
        """Those offsets lie in new files from now on, with these side files."""


class CorruptSegment(Exception):
    """A batch in the middle of a segment cannot be trusted; compaction leaves the log alone."""


class Compacted(NamedTuple):
    cleaned_to: int
    bytes_before: int
    bytes_after: int


def compact(
    log: DiskLog, policy: Policy, section: LogToClean, now_ms: int, map_bytes: int = 64 << 20
) -> Compacted:
    """Compact here and now."""
    compaction = Compaction(log, policy, section, now_ms, map_bytes)
    with compaction.guard():
        for step in compaction.steps():
            if step is not None:
                step()
    return compaction.result


async def compact_gently(
    log: DiskLog,
    policy: Policy,
    section: LogToClean,
    now_ms: int,
    map_bytes: int = 64 << 20,
    slice_seconds: float = SLICE_SECONDS,
) -> Compacted:
    """Compact in slices of a millisecond, between which the event loop does other things."""
    compaction = Compaction(log, policy, section, now_ms, map_bytes)
    deadline = time.perf_counter() + slice_seconds
    with compaction.guard():
        for step in compaction.steps():
            if step is not None:
                await asyncio.to_thread(step)
            elif time.perf_counter() < deadline:
                continue
            else:
                await asyncio.sleep(0)
            deadline = time.perf_counter() + slice_seconds
    return compaction.result


class Compaction:
    """One round over one log: read the keys of the dirty part, then clean from the beginning."""

    def __init__(
        self, log: DiskLog, policy: Policy, section: LogToClean, now_ms: int, map_bytes: int
    ) -> None:
        self.log = log
        self.policy = policy
        self.first_offset = section.first_offset
        self.end_offset = section.end_offset
        self.times = Times(now_ms, log.config.delete_retention_ms)
        self.latest = OffsetMap(map_bytes)
        self.result = Compacted(section.first_offset, log.size, log.size)
        self._writer: _Writer | None = None

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Around all the work: what cannot be written leaves the log as it is, and online."""
        try:
            yield
        except (OSError, CorruptSegment) as error:
            if self.log.offline is not None:
                raise self.log.offline from error
            if self._writer is not None:
                self._writer.discard()
            if isinstance(error, CorruptSegment):
                raise
            log = f"{self.log.topic}-{self.log.partition}"
            raise StorageError(f"{log} cannot be compacted: {error}", error) from error

    def steps(self) -> Steps:
        """All the work; nothing is lost if it is never finished."""
        for step in self._steps():
            yield step
            if self.log.offline is not None:
                raise self.log.offline

    def _steps(self) -> Steps:
        yield from self._read_keys()
        cleaned_to = self.latest.latest + 1
        if cleaned_to <= self.first_offset:
            return
        tracker = self.policy.tracker(self.log.first_base_offset, self.end_offset)
        for group in groups(self.log.sealed_below(cleaned_to), self.log):
            yield from self._clean(group, tracker)
        self.log.cleaned_to = cleaned_to
        self.result = Compacted(cleaned_to, self.result.bytes_before, self.log.size)

    def _read_keys(self) -> Steps:
        tracker = self.policy.tracker(self.first_offset, self.end_offset)
        for segment in self.log.sealed_below(self.end_offset):
            if segment.next_offset <= self.first_offset or not self.log.holds(segment):
                continue
            for batch in _batches(segment, segment.log.get()):
                if batch.last_offset < self.first_offset:
                    continue
                if self.latest.is_full:
                    return
                if not tracker.is_dead(batch) and not batch.is_control:
                    yield _handed_out(batch, partial(self._read_keys_of, batch))
                self.latest.latest = batch.last_offset
            self.latest.latest = segment.next_offset - 1

    def _read_keys_of(self, batch: BatchHeader) -> None:
        for record in records_of(batch):
            if record.key is not None and record.offset >= self.first_offset:
                self.latest.put(record.key, record.offset)

    def _clean(self, group: Sequence[Segment], tracker: Tracker) -> Steps:
        group = [segment for segment in group if self.log.holds(segment)]
        if not group:
            return
        # Held open from here on: what is deleted meanwhile can still be read to its end.
        files = [segment.log.get() for segment in group]
        self._writer = writer = _Writer(self.log, group[0].base_offset)
        writer.begin()
        for segment, file in zip(group, files, strict=True):
            for batch in _batches(segment, file):
                verdict = BatchRetention(
                    tracker.is_dead(batch),
                    # The end of the round keeps its last offset, or the log would forget it.
                    self.policy.is_needed(batch) or batch.next_offset == self.end_offset,
                )
                cleaned: list[Buffer] = []
                yield _handed_out(batch, partial(self._clean_batch, batch, verdict, cleaned))
                writer.add(cleaned)
        side_files = tracker.side_files()
        written = writer.finish(side_files, files[-1])
        yield lambda: self._sync(written)
        if self.log.replace(group, writer.segment, side_files):
            self.policy.replaced(group[0].base_offset, group[-1].next_offset, side_files)

    def _clean_batch(
        self, batch: BatchHeader, verdict: BatchRetention, cleaned: list[Buffer]
    ) -> None:
        data = clean(batch, verdict, self.latest, self.times)
        if data is not None:
            cleaned.append(data)

    def _sync(self, written: Sequence[OpenFile]) -> None:
        files = self.log.pool.files
        for file in written:
            files.sync(file.fd)
        files.sync_directory(self.log.directory)


def _handed_out(batch: BatchHeader, work: Callable[[], None]) -> Step:
    """Small work is done at once; large work is returned, for a thread."""
    if batch.count > _MANY_RECORDS or (batch.compression and batch.size > _SMALL_PACKED):
        return work
    work()
    return None


def _batches(segment: Segment, file: OpenFile) -> Iterator[BatchHeader]:
    end = 0
    for batch, position in good_batches(file.fd, segment.size, segment.base_offset):
        end = position + batch.size
        yield batch
    if end != segment.size:
        raise CorruptSegment(f"{segment.log.path} cannot be read beyond byte {end}")


def groups(segments: Sequence[Segment], log: DiskLog) -> list[list[Segment]]:
    """Neighbours that fit into one segment together (Kafka's Cleaner.groupSegmentsBySize)."""
    config = log.config
    grouped: list[list[Segment]] = []
    for segment in segments:
        if grouped and _fit(
            [*grouped[-1], segment], config.segment_bytes, config.segment_index_bytes
        ):
            grouped[-1].append(segment)
        else:
            grouped.append([segment])
    return grouped


def _fit(group: Sequence[Segment], max_bytes: int, max_index_bytes: int) -> bool:
    return (
        sum(segment.size for segment in group) <= max_bytes
        and sum(segment.index.size_bytes for segment in group) <= max_index_bytes
        and sum(segment.time_index.size_bytes for segment in group) <= max_index_bytes
        and group[-1].next_offset - group[0].base_offset <= MAX_RELATIVE_OFFSET
    )


class _Writer:
    """The cleaned segment while it is being written."""

    def __init__(self, log: DiskLog, base_offset: int) -> None:
        self._config = log.config
        self._pool = log.pool
        self._stem = log.stem(base_offset)
        self._side_files: tuple[str, ...] = ()
        self.segment = Segment(self._pool, log.directory, base_offset, ".cleaned")
        self._buffers: list[Buffer] = []
        self._places: list[AnyPlace] = []
        self._size = 0

    def begin(self) -> None:
        self.segment.create(0)

    def add(self, batches: Sequence[Buffer]) -> None:
        for data in batches:
            batch = BatchHeader(data)
            # An emptied batch has no records, hence no time (Kafka's updateRetainedBatchMetadata).
            timestamp = batch.max_timestamp if batch.count else -1
            place = (batch.base_offset, batch.last_offset, timestamp, self._size, batch.size)
            self._places.append(place)
            self._buffers.append(data)
            self._size += batch.size
        if self._size >= _WRITE_BYTES:
            self._write()

    def _write(self) -> None:
        if self._buffers:
            self.segment.append(self._buffers, self._places, self._size, self._config)
            self._buffers, self._places, self._size = [], [], 0

    def discard(self) -> None:
        """Leave nothing behind of what could not be finished."""
        suffixes = ("log", "index", "timeindex", *self._side_files)
        for suffix in suffixes:
            with suppress(OSError):
                self._pool.files.unlink(f"{self._stem}.{suffix}.cleaned")

    def finish(self, side_files: Mapping[str, bytes], last: OpenFile) -> list[OpenFile]:
        """Write the rest and return all files: once synced, they may take the old ones' place."""
        self._side_files = tuple(side_files)
        self._write()
        segment = self.segment
        segment.flush_indexes()
        written = [segment.log.get(), segment.index.handle.get(), segment.time_index.handle.get()]
        for suffix, content in side_files.items():
            file = OpenFile(self._pool.files.open(f"{self._stem}.{suffix}.cleaned"))
            self._pool.files.truncate(file.fd, 0)
            write_all(self._pool.files, file.fd, [content])
            written.append(file)
        # Retention counts a segment without timestamps from when its data was written.
        modified = os.fstat(last.fd).st_mtime
        os.utime(segment.log.path, (modified, modified))
        return written
