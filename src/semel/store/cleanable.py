"""How much of a log waits for compaction, and which log needs it most: pure choices.

Kafka's LogCleanerManager: never past the last stable offset, never the active segment, and nothing
younger than `min.compaction.lag.ms`; due when the dirty share of what can be cleaned exceeds
`min.cleanable.dirty.ratio`, or when something dirty is older than `max.compaction.lag.ms`.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from semel.store.interface import LogConfig, SegmentInfo

Named = TypeVar("Named")


class LogToClean(NamedTuple):
    """The offsets a compaction would clean, and in which proportion."""

    first_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def measure(
    segments: Sequence[SegmentInfo],
    config: LogConfig,
    cleaned_to: int,
    start_offset: int,
    last_stable_offset: int,
    now_ms: int,
) -> LogToClean:
    """`cleaned_to` is where the last compaction ended; the last segment is the active one."""
    first = max(cleaned_to, start_offset)
    if first > segments[-1].next_offset:
        first = start_offset  # the log was cut shorter than it was clean: begin again
    dirty = []
    clean_bytes = 0
    overdue_before_ms = now_ms - config.max_compaction_lag_ms
    is_overdue = False
    end = first
    for segment in segments[:-1]:
        if segment.next_offset > last_stable_offset:
            break
        if segment.next_offset > first:
            too_young_ms = now_ms - config.min_compaction_lag_ms
            if config.min_compaction_lag_ms > 0 and segment.max_timestamp > too_young_ms:
                break
            dirty.append(segment.size)
            is_overdue = is_overdue or 0 < segment.first_timestamp < overdue_before_ms
        else:
            clean_bytes += segment.size
        end = max(end, segment.next_offset)
    return LogToClean(first, end, clean_bytes, sum(dirty), is_overdue)


def is_due(section: LogToClean, config: LogConfig) -> bool:
    if not config.compact or not section.dirty_bytes:
        return False
    return section.is_overdue or section.ratio > config.min_cleanable_dirty_ratio


def dirtiest(logs: Iterable[tuple[Named, LogToClean, LogConfig]]) -> Named | None:
    """Of all logs that are due the one with the largest dirty share."""
    due = [(name, section) for name, section, config in logs if is_due(section, config)]
    return max(due, key=lambda entry: entry[1].ratio)[0] if due else None
