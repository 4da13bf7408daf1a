"""What to do with a batch, given what the ledger says: decided on plain values."""

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


def test_a_new_query_id_at_batch_zero_is_a_new_lineage():
    assert (
        judge("app", SECOND, QueryBatch("new", 0, (None,), ({"t": {"0": 3}},)))
        is BatchVerdict.NEW_LINEAGE
    )


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
