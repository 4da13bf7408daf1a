"""Which segments time and size retention no longer want: a pure choice."""

from collections.abc import Sequence

from semel.store.interface import NO_LIMIT, LogConfig, SegmentInfo


def expired(
    segments: Sequence[SegmentInfo],
    config: LogConfig,
    now_ms: int,
    limit_offset: int = NO_LIMIT,
) -> int:
    """How many segments, counted from the oldest, may go (Kafka's UnifiedLog.deleteOldSegments).

    An empty active segment stays; one with data may go too if nothing in it is wanted. Only what
    ends at or below `limit_offset` is touched.
    """
    if not config.delete:
        return 0
    candidates = 0
    for segment in segments:
        if segment.next_offset > limit_offset or (segment is segments[-1] and not segment.size):
            break
        candidates += 1
    return max(
        _past_time(segments[:candidates], config.retention_ms, now_ms),
        _past_size(segments[:candidates], segments, config.retention_bytes),
    )


def _past_time(candidates: Sequence[SegmentInfo], retention_ms: int, now_ms: int) -> int:
    if retention_ms < 0:
        return 0
    for count, segment in enumerate(candidates):
        if now_ms - segment.max_timestamp <= retention_ms:
            return count
    return len(candidates)


def _past_size(
    candidates: Sequence[SegmentInfo], segments: Sequence[SegmentInfo], retention_bytes: int
) -> int:
    if retention_bytes < 0:
        return 0
    excess = sum(segment.size for segment in segments) - retention_bytes
    for count, segment in enumerate(candidates):
        excess -= segment.size
        if excess < 0:
            return count
    return len(candidates)
