"""Which part of a log compaction may touch, and when it is worth it."""

import pytest

from semel.store.cleanable import LogToClean, dirtiest, is_due, measure
from semel.store.interface import NO_LIMIT, LogConfig, SegmentInfo

COMPACT = LogConfig(compact=True, delete=False)
SEGMENTS = [
    SegmentInfo(0, 10, 100, max_timestamp=1_000, first_timestamp=900),
    SegmentInfo(10, 20, 100, max_timestamp=2_000, first_timestamp=1_900),
    SegmentInfo(20, 30, 100, max_timestamp=3_000, first_timestamp=2_900),
    SegmentInfo(30, 40, 100, max_timestamp=4_000, first_timestamp=3_900),
]


def look(config=COMPACT, cleaned_to=0, start=0, stable=NO_LIMIT, now_ms=10_000):
    return measure(SEGMENTS, config, cleaned_to, start, stable, now_ms)


def test_everything_but_the_active_segment_is_dirty_at_first():
    assert look() == LogToClean(0, 30, clean_bytes=0, dirty_bytes=300, is_overdue=False)


def test_what_was_cleaned_is_clean():
    assert look(cleaned_to=20) == LogToClean(20, 30, 200, 100, False)
    assert look(cleaned_to=20).ratio == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("stable", "end"), [(0, 0), (9, 0), (10, 10), (19, 10), (30, 30), (35, 30)]
)
def test_a_segment_that_reaches_past_the_last_stable_offset_is_left_alone(stable, end):
    assert look(stable=stable).end_offset == end


def test_young_segments_wait_for_the_compaction_lag():
    config = LogConfig(compact=True, min_compaction_lag_ms=1_000)
    assert look(config, now_ms=2_999).end_offset == 10
    assert look(config, now_ms=3_000).end_offset == 20


def test_a_log_cut_below_its_clean_part_begins_again():
    assert look(cleaned_to=41).first_offset == 0


def test_nothing_below_the_start_counts():
    assert look(start=10).first_offset == 10


def test_a_log_is_due_when_enough_of_it_is_dirty():
    assert is_due(look(), COMPACT)
    assert not is_due(look(cleaned_to=20), COMPACT)
    assert is_due(look(cleaned_to=20), LogConfig(compact=True, min_cleanable_dirty_ratio=0.3))
    assert not is_due(look(), LogConfig(compact=False))
    assert not is_due(look(cleaned_to=30), LogConfig(compact=True, min_cleanable_dirty_ratio=0.0))


def test_a_log_is_due_when_something_dirty_is_too_old():
    config = LogConfig(compact=True, max_compaction_lag_ms=5_000)
    assert not look(config, cleaned_to=20, now_ms=7_900).is_overdue
    section = look(config, cleaned_to=20, now_ms=7_901)
    assert section.is_overdue
    assert is_due(section, config)


def test_the_dirtiest_log_goes_first():
    logs = [
        ("clean", look(cleaned_to=20), COMPACT),
        ("dirtier", look(), COMPACT),
        ("dirty", look(cleaned_to=10), COMPACT),
    ]
    assert dirtiest(logs) == "dirtier"
    assert dirtiest(logs[:1]) is None
