"""What to do with a batch, given what the ledger says: decided on plain values."""

from dataclasses import replace

import pytest

from semel.client.machines.ledger import LedgerEntry, LedgerRefusal
from semel.errors import StaleCheckpointError
from semel.spark.query_batch import BatchVerdict, QueryBatch, judge

FIRST = QueryBatch("q", 0, (None,), ({"t": {"0": 5}},))
SECOND = QueryBatch("q", 1, ({"t": {"0": 5}},), ({"t": {"0": 9}},))


def test_an_empty_ledger_lets_any_batch_run():
    assert judge("app", None, FIRST) is BatchVerdict.RUN
    assert judge("app", None, SECOND) is BatchVerdict.RUN


def test_the_same_batch_with_the_same_offsets_is_skipped():
    assert judge("app", SECOND, SECOND) is BatchVerdict.SKIP


def test_the_next_batch_that_starts_where_the_ledger_ends_runs():
    assert judge("app", FIRST, SECOND) is BatchVerdict.RUN


def test_the_spelling_of_offsets_does_not_matter_after_a_round_trip():
    read = LedgerEntry.decode("app", SECOND.entry("app").encode())
    assert judge("app", QueryBatch.of(read), SECOND) is BatchVerdict.SKIP


@pytest.mark.parametrize(
    "batch",
    [
        FIRST,  # an old checkpoint was restored
        QueryBatch("q", 1, ({"t": {"0": 5}},), ({"t": {"0": 7}},)),  # same number, other offsets
        QueryBatch("q", 2, ({"t": {"0": 5}},), ({"t": {"0": 12}},)),  # next, but starts elsewhere
        QueryBatch("q", 3, ({"t": {"0": 9}},), ({"t": {"0": 12}},)),  # a batch is missing between
        QueryBatch("other", 4, ({"t": {"0": 9}},), ({"t": {"0": 12}},)),  # another query, not first
    ],
)
def test_anything_else_is_refused_and_both_are_named(batch):
    with pytest.raises(StaleCheckpointError) as refusal:
        judge("app", SECOND, batch)
    assert str(SECOND) in str(refusal.value)
    assert str(batch) in str(refusal.value)


FILES = QueryBatch("q", 1, ({"logOffset": 0},), ({"logOffset": 1},), planned_ms=1_700_000_000_123)


def test_a_batch_run_again_keeps_its_time_and_is_skipped():
    read = LedgerEntry.decode("app", FILES.entry("app").encode())
    assert QueryBatch.of(read) == FILES
    assert judge("app", QueryBatch.of(read), FILES) is BatchVerdict.SKIP


def test_a_batch_planned_anew_under_the_same_counters_is_refused_and_both_are_named():
    """A file source's offset is only a counter: the restored checkpoint comes with other files."""
    anew = replace(FILES, planned_ms=1_700_000_099_456)
    with pytest.raises(StaleCheckpointError, match="planned anew") as refusal:
        judge("app", FILES, anew)
    assert "planned at 2023-11-14T22:13:20.123+00:00" in str(refusal.value)
    assert "planned at 2023-11-14T22:14:59.456+00:00" in str(refusal.value)


def test_an_entry_from_before_times_were_kept_is_still_understood():
    old = LedgerEntry("app", 1, {"query": "q", "start": FILES.start, "end": FILES.end}, "spark")
    assert QueryBatch.of(old).planned_ms is None
    assert judge("app", QueryBatch.of(old), FILES) is BatchVerdict.SKIP
    following = QueryBatch("q", 2, FILES.end, ({"logOffset": 2},), planned_ms=1)
    assert judge("app", QueryBatch.of(old), following) is BatchVerdict.RUN


def begun_at(start, end=20):
    """A first batch of our own source, whose offsets carry where they began."""
    origin = {"topics": {"t": {"0": start}}}
    return QueryBatch("new", 0, (origin,), ({"topics": {"t": {"0": end}}, "origin": origin},))


@pytest.mark.parametrize(
    "batch",
    [
        begun_at(8),
        QueryBatch("new", 0, (None,), ({"t": {"0": 30}},)),  # nobody knows where it began
        QueryBatch("new", 0, (None,), ({"logOffset": 0},)),
        # one source is ahead, the other one cannot say
        QueryBatch("new", 0, (*begun_at(9).start, None), (*begun_at(9).end, {"logOffset": 0})),
    ],
)
def test_a_new_checkpoint_that_may_repeat_what_is_committed_is_refused_with_what_to_do(batch):
    with pytest.raises(StaleCheckpointError, match="a second time") as refusal:
        judge("app", SECOND, batch)
    for word in (str(SECOND), str(batch), "checkpointLocation", 'startingOffsets="committed"'):
        assert word in str(refusal.value)
    assert judge("app", SECOND, batch, begin_anew=True) is BatchVerdict.NEW_LINEAGE


def test_a_new_checkpoint_of_a_file_source_is_refused_too():
    with pytest.raises(StaleCheckpointError, match="a second time"):
        judge("app", FILES, begun_at(0))


@pytest.mark.parametrize("batch", [begun_at(9), begun_at(30)])
def test_a_new_checkpoint_that_begins_behind_what_is_committed_runs(batch):
    assert judge("app", SECOND, batch) is BatchVerdict.NEW_LINEAGE


def test_a_new_checkpoint_over_other_topics_runs():
    origin = {"topics": {"other": {"0": 0}}}
    batch = QueryBatch("new", 0, (origin,), ({"topics": {"other": {"0": 3}}, "origin": origin},))
    assert judge("app", SECOND, batch) is BatchVerdict.NEW_LINEAGE


def from_ledger(start, end=20):
    origin = {"topics": {"t": {"0": start}}, "ledger": "app"}
    return QueryBatch("new", 0, (origin,), ({"topics": {"t": {"0": end}}, "origin": origin},))


COMMITTED = QueryBatch("q", 1, (None,), ({"topics": {"t": {"0": 9}}, "origin": {"topics": {}}},))


def test_a_query_that_starts_from_the_ledger_runs_where_the_ledger_ends():
    assert judge("app", COMMITTED, from_ledger(9)) is BatchVerdict.NEW_LINEAGE


def test_a_query_that_starts_from_the_ledger_is_refused_when_another_got_there_first():
    with pytest.raises(StaleCheckpointError, match="got there first"):
        judge("app", COMMITTED, from_ledger(7))
    with pytest.raises(StaleCheckpointError, match="no entry"):
        judge("app", None, from_ledger(7))


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (LedgerEntry("app", 3, {"query": "q", "start": [], "end": []}), "by client, not by spark"),
        (LedgerEntry("app", 3, {"query": "q"}, "spark"), "does not say which query"),
        (LedgerEntry("app", 3, None, "spark"), "does not say which query"),
    ],
)
def test_an_entry_that_no_query_wrote_is_refused(entry, why):
    with pytest.raises(LedgerRefusal, match=why):
        QueryBatch.of(entry)
