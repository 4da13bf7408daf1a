"""Bringing a log's files back to a state that can be trusted, after any kind of stop.

After a clean stop only names and sizes are read. After any other, every segment from the recovery
point on is read again, cut at the last whole, CRC-valid batch in order, and its indexes rebuilt.
A compaction interrupted in the middle is undone or completed first.
"""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from semel.store.files import FilePool
from semel.store.index import SparseIndex
from semel.store.interface import LogConfig
from semel.store.segment import MAX_RELATIVE_OFFSET, Segment, name_of
from semel.wire.batches import HEADER_SIZE, BatchHeader, verify_crc

_CHUNK_BYTES = 1 << 20

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Recovered:
    """A log's segments, oldest first, and where an unclean stop made reading again necessary."""

    segments: list[Segment]
    recovered_from: int | None = None


def load(
    pool: FilePool,
    directory: str,
    config: LogConfig,
    recovery_point: int,
    clean: bool,
    fsync: bool,
    epochs: list[tuple[int, int]],
) -> Recovered:
    """The segments in a directory; repaired where `clean` does not say that they are whole.

    Leader epochs found on the way are added to `epochs`. With `fsync`, what was found is on the
    disk before anybody reads it; without, only segments that will not be read again are.
    """
    sizes = _remove_leftovers(pool, directory)
    bases = sorted(int(name[:-4]) for name in sizes if name.endswith(".log"))
    segments = [_segment(pool, directory, base, sizes) for base in bases]
    for segment, following in pairwise(segments):
        segment.next_offset = following.base_offset
    loaded = Recovered(segments)
    if not segments:
        return loaded
    suspects = [segment for segment in segments if _has_no_index(segment, sizes)]
    if not clean:
        suspects = segments[_first_unflushed(bases, recovery_point) :]
        suspects += [s for s in segments if s not in suspects and not _plausible(s, sizes)]
        suspects.sort(key=lambda segment: segment.base_offset)
    _recover(loaded, suspects, config, clean, epochs)
    if not clean:
        for segment in suspects:
            if segment in segments and (fsync or segment is not segments[-1]):
                segment.files.sync(segment.log.get().fd)
    if segments[-1] not in suspects:
        _read_tail(segments[-1])
    for segment in segments:
        segment.close()
    return loaded


def _recover(
    loaded: Recovered,
    suspects: list[Segment],
    config: LogConfig,
    clean: bool,
    epochs: list[tuple[int, int]],
) -> None:
    segments = loaded.segments
    for segment in suspects:
        if segment not in segments:
            break
        size = segment.size
        rebuild(segment, config, epochs)
        if not clean and loaded.recovered_from is None:
            loaded.recovered_from = segment.base_offset
        if segment.size < size:
            logger.warning(
                "%s is cut from %d to %d bytes, its last whole batch ends at offset %d",
                segment.log.path, size, segment.size, segment.next_offset,
            )  # fmt: skip
            drop_after(segments, segment)
            cut(segment)
        if segment is not segments[-1]:
            segment.next_offset = segments[segments.index(segment) + 1].base_offset


def drop_after(segments: list[Segment], segment: Segment) -> None:
    """Remove all segments behind one that is about to be cut, the last one first.

    They must be gone for good before the cut: otherwise a power failure in between leaves a log
    with a hole in it.
    """
    if segments[-1] is segment:
        return
    while segments[-1] is not segment:
        drop_files(segments.pop())
    segment.files.sync_directory(os.path.dirname(segment.log.path))


def cut(segment: Segment) -> None:
    """Make the file as short as the segment is."""
    file = segment.log.get()
    segment.files.truncate(file.fd, segment.size)
    segment.files.sync(file.fd)


def rebuild(
    segment: Segment,
    config: LogConfig,
    epochs: list[tuple[int, int]],
    end: int | None = None,
) -> None:
    """Read a segment (up to byte `end`) again and rebuild its indexes; it ends with the last good
    batch then, though its file may be longer still."""
    size = segment.size if end is None else end
    for index in (segment.index, segment.time_index):
        index.begin_again()
    segment.forget()
    segment.size = segment.indexed_at = 0
    segment.next_offset = segment.max_timestamp_offset = segment.base_offset
    segment.max_timestamp = segment.first_timestamp = -1
    # The file itself is held, not its number: opening the indexes may push it out of the pool.
    file = segment.log.get()
    for batch, _ in good_batches(file.fd, size, segment.base_offset):
        place = (batch.base_offset, batch.last_offset, batch.max_timestamp, 0, batch.size)
        segment.account([place], config)
        if batch.leader_epoch > (epochs[-1][0] if epochs else -1):
            epochs.append((batch.leader_epoch, batch.base_offset))
    segment.index_time()
    for index in (segment.index, segment.time_index):
        index.finish_again()


def good_batches(fd: int, size: int, offset: int) -> Iterator[tuple[BatchHeader, int]]:
    """Batches from the file's beginning on, with their positions, until one cannot be trusted."""
    base_offset, position = offset, 0
    start, chunk = 0, b""
    while position + HEADER_SIZE <= size:
        if position - start + HEADER_SIZE > len(chunk):
            start, chunk = position, os.pread(fd, _CHUNK_BYTES, position)
            if len(chunk) < HEADER_SIZE:
                return
        batch = BatchHeader(chunk, position - start)
        if not _in_order(batch, offset, base_offset) or position + batch.size > size:
            return
        if position - start + batch.size > len(chunk):
            start, chunk = position, os.pread(fd, max(_CHUNK_BYTES, batch.size), position)
            batch = BatchHeader(chunk, 0)
        if len(chunk) - batch.position < batch.size or not verify_crc(batch):
            return
        yield batch, position
        offset = batch.next_offset
        position += batch.size


def _in_order(batch: BatchHeader, offset: int, base_offset: int) -> bool:
    return (
        batch.magic == 2
        and batch.size >= HEADER_SIZE
        and batch.last_offset_delta >= 0
        and batch.base_offset >= offset
        and batch.last_offset - base_offset <= MAX_RELATIVE_OFFSET
    )


def drop_files(segment: Segment) -> None:
    """Remove a segment and what its owner kept beside it."""
    stem = segment.log.path[: -len(".log")]
    segment.close()
    for suffix in ("index", "timeindex", "txnindex", "log"):
        path = f"{stem}.{suffix}"
        if os.path.exists(path):
            segment.files.unlink(path)


def _remove_leftovers(pool: FilePool, directory: str) -> dict[str, int]:
    """Remove leftovers, finish or undo a swap of compacted segments; return names and sizes."""
    sizes = {entry.name: entry.stat().st_size for entry in os.scandir(directory)}
    leftovers = [name for name in sizes if name.endswith((".deleted", ".cleaned", ".tmp"))]
    for name in leftovers:
        pool.files.unlink(f"{directory}/{name}")
        del sizes[name]
    if any(name.endswith(".swap") for name in sizes):
        _finish_swaps(pool, directory, sizes)
        sizes = {entry.name: entry.stat().st_size for entry in os.scandir(directory)}
    return sizes


def _finish_swaps(pool: FilePool, directory: str, sizes: dict[str, int]) -> None:
    """Kafka's LogLoader: a `.log.swap` is complete, so the segments it replaces go and it stays.

    The log takes its swap name after its side files and loses it after them, so side files alone
    belong to a swap that had not begun; and all of this can be interrupted and done again.
    """
    swapped = [name for name in sizes if name.endswith(".swap")]
    logs = {int(name[:20]) for name in sizes if name.endswith(".log")}
    for name in swapped:
        if name.endswith(".log.swap"):
            base = int(name[:20])
            end = _end_of(f"{directory}/{name}", sizes[name], base)
            for replaced in logs & {base, *(other for other in logs if base < other < end)}:
                drop_files(Segment(pool, directory, replaced))
    for name in sorted(swapped, key=lambda name: (name.endswith(".log.swap"), name)):
        if name[:20] + ".log.swap" in sizes:
            pool.files.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix('.swap')}")
        else:
            pool.files.unlink(f"{directory}/{name}")
    pool.files.sync_directory(directory)


def _end_of(path: str, size: int, base_offset: int) -> int:
    fd = os.open(path, os.O_RDONLY)
    try:
        end = base_offset
        for batch, _ in good_batches(fd, size, base_offset):
            end = batch.next_offset
        return end
    finally:
        os.close(fd)


def _segment(pool: FilePool, directory: str, base: int, sizes: dict[str, int]) -> Segment:
    segment = Segment(pool, directory, base)
    name = name_of(base)
    segment.size = sizes[f"{name}.log"]
    segment.index.adopt(sizes.get(f"{name}.index", 0))
    segment.time_index.adopt(sizes.get(f"{name}.timeindex", 0))
    segment.max_timestamp = Segment.UNREAD
    return segment


def _has_no_index(segment: Segment, sizes: dict[str, int]) -> bool:
    name = name_of(segment.base_offset)
    return not (f"{name}.index" in sizes and f"{name}.timeindex" in sizes)


def _first_unflushed(bases: list[int], recovery_point: int) -> int:
    """The position of the segment that holds the recovery point."""
    return max(0, sum(base <= recovery_point for base in bases) - 1)


def _plausible(segment: Segment, sizes: dict[str, int]) -> bool:
    """Kafka's sanityCheck: an index of whole entries whose last one points into the segment."""
    name = name_of(segment.base_offset)
    if _has_no_index(segment, sizes):
        return False
    indexes: list[tuple[str, SparseIndex]] = [
        ("index", segment.index),
        ("timeindex", segment.time_index),
    ]
    if any(sizes[f"{name}.{suffix}"] % index.entry_size for suffix, index in indexes):
        return False
    entry, time_entry = segment.index.last(), segment.time_index.last()
    return (not entry or 0 < entry[1] < segment.size) and (
        not segment.size or (time_entry is not None and time_entry[0] >= 0)
    )


def _read_tail(segment: Segment) -> None:
    """What the active segment must know: found from its last index entry on."""
    segment.read_timestamps()
    entry = segment.index.last()
    position = entry[1] if entry else 0
    for place in segment.scan(position):
        segment.next_offset = place.last_offset + 1
    segment.indexed_at = position
