"""The ledger's four cases, decided on plain values."""

import pytest

from semel.spark.ledger import Entry, StaleCheckpoint, Verdict, judge

FIRST = Entry("q", 0, (None,), ({"t": {"0": 5}},))
SECOND = Entry("q", 1, ({"t": {"0": 5}},), ({"t": {"0": 9}},))


def test_an_empty_ledger_lets_any_batch_run():
    assert judge("app", None, FIRST) is Verdict.RUN
    assert judge("app", None, SECOND) is Verdict.RUN


def test_the_same_batch_with_the_same_offsets_is_skipped():
    assert judge("app", SECOND, SECOND) is Verdict.SKIP


def test_the_next_batch_that_starts_where_the_ledger_ends_runs():
    assert judge("app", FIRST, SECOND) is Verdict.RUN


def test_the_spelling_of_offsets_does_not_matter_after_a_round_trip():
    assert judge("app", Entry.decode(SECOND.encode()), SECOND) is Verdict.SKIP


@pytest.mark.parametrize(
    "batch",
    [
        FIRST,  # an old checkpoint was restored
        Entry("q", 1, ({"t": {"0": 5}},), ({"t": {"0": 7}},)),  # the same number, other offsets
        Entry("q", 2, ({"t": {"0": 5}},), ({"t": {"0": 12}},)),  # next, but starts elsewhere
        Entry("q", 3, ({"t": {"0": 9}},), ({"t": {"0": 12}},)),  # a batch is missing between
        Entry("other", 4, ({"t": {"0": 9}},), ({"t": {"0": 12}},)),  # another query, in the middle
    ],
)
def test_anything_else_is_refused_and_both_are_named(batch):
    with pytest.raises(StaleCheckpoint) as refusal:
        judge("app", SECOND, batch)
    assert str(SECOND) in str(refusal.value)
    assert str(batch) in str(refusal.value)


def test_a_new_query_id_at_batch_zero_is_a_new_lineage():
    assert judge("app", SECOND, Entry("new", 0, (None,), ({"t": {"0": 3}},))) is Verdict.NEW_LINEAGE


def from_ledger(start, end=20):
    origin = {"topics": {"t": {"0": start}}, "ledger": "app"}
    return Entry("new", 0, (origin,), ({"topics": {"t": {"0": end}}, "origin": origin},))


COMMITTED = Entry("q", 1, (None,), ({"topics": {"t": {"0": 9}}, "origin": {"topics": {}}},))


def test_a_query_that_starts_from_the_ledger_runs_where_the_ledger_ends():
    assert judge("app", COMMITTED, from_ledger(9)) is Verdict.NEW_LINEAGE


def test_a_query_that_starts_from_the_ledger_is_refused_when_another_got_there_first():
    with pytest.raises(StaleCheckpoint, match="got there first"):
        judge("app", COMMITTED, from_ledger(7))
    with pytest.raises(StaleCheckpoint, match="no entry"):
        judge("app", None, from_ledger(7))
