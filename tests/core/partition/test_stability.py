"""The last stable offset, the aborted index, and who may write a marker."""

from hypothesis import given
from hypothesis import strategies as st

from semel.core.partition.stability import AbortedIndex, AbortedTransaction


def stable(log) -> int:
    log.state.stability.durable_up_to(log.next_offset)
    return log.state.stability.last_stable_offset(log.next_offset)


def test_without_transactions_everything_is_stable(log, make_batch):
    log.send(make_batch(count=4))
    assert stable(log) == 4


def test_the_oldest_open_transaction_holds_the_last_stable_offset(log, make_batch):
    log.send(make_batch())
    log.send(make_batch(7, 0, 0, transactional=True))
    log.send(make_batch(8, 0, 0, transactional=True))
    assert stable(log) == 1
    log.end(8, 0, commit=True)
    assert stable(log) == 1
    log.end(7, 0, commit=True)
    assert stable(log) == 5


def test_a_second_batch_does_not_move_where_a_transaction_began(log, make_batch):
    log.send(make_batch(7, 0, 0, transactional=True))
    log.send(make_batch(7, 0, 1, transactional=True))
    assert stable(log) == 0


def test_nothing_above_the_high_watermark_is_stable(log, make_batch):
    log.send(make_batch(count=4))
    assert log.state.stability.last_stable_offset(2) == 2


def test_a_marker_counts_once_it_is_durable(log, make_batch):
    log.send(make_batch(7, 0, 0, transactional=True))
    log.end(7, 0, commit=True)
    log.state.stability.durable_up_to(1)
    assert log.state.stability.last_stable_offset(1) == 0
    log.state.stability.durable_up_to(2)
    assert log.state.stability.last_stable_offset(2) == 2


def test_an_abort_is_indexed_from_its_first_record_to_its_marker(log, make_batch):
    log.send(make_batch(count=2))
    log.send(make_batch(7, 0, 0, count=3, transactional=True))
    log.end(7, 0, commit=False)
    assert list(log.state.aborted) == [AbortedTransaction(7, 2, 5, 6)]


def test_a_commit_and_an_empty_abort_are_not_indexed(log, make_batch):
    log.send(make_batch(7, 0, 0, transactional=True))
    log.end(7, 0, commit=True)
    log.end(7, 0, commit=False)
    log.end(9, 0, commit=False)
    assert list(log.state.aborted) == []


def test_an_index_entry_knows_the_last_stable_offset_behind_it(log, make_batch):
    log.send(make_batch(8, 0, 0, transactional=True))
    log.send(make_batch(7, 0, 0, transactional=True))
    log.end(7, 0, commit=False)
    assert [entry.last_stable_offset for entry in log.state.aborted] == [0]


def test_a_marker_of_a_deposed_coordinator_is_fenced(log, make_batch):
    log.send(make_batch(7, 0, 0, transactional=True))
    log.end(7, 0, commit=True, coordinator_epoch=5)
    log.send(make_batch(7, 0, 1, transactional=True))
    refused = log.end(7, 0, commit=False, coordinator_epoch=4)
    assert refused.error.name == "TRANSACTION_COORDINATOR_FENCED"
    assert log.end(7, 0, commit=False, coordinator_epoch=5) is None


def test_a_marker_of_an_older_epoch_is_refused(log, make_batch):
    log.send(make_batch(7, 3, 0, transactional=True))
    assert log.end(7, 2, commit=True).error.name == "INVALID_PRODUCER_EPOCH"
    assert log.end(7, 3, commit=True) is None


def test_a_marker_with_a_higher_epoch_fences_the_producer(log, make_batch):
    log.send(make_batch(7, 3, 0, transactional=True))
    assert log.end(7, 4, commit=False) is None
    assert log.error_of(make_batch(7, 3, 1, transactional=True)) == "INVALID_PRODUCER_EPOCH"
    assert log.send(make_batch(7, 4, 0, transactional=True)) is None


def test_under_version_two_a_marker_must_bump_the_epoch(log, make_batch):
    log.send(make_batch(7, 3, 0, transactional=True))
    assert log.end(7, 3, commit=True, version=2).error.name == "INVALID_PRODUCER_EPOCH"
    assert log.end(7, 2, commit=True, version=2).error.name == "INVALID_PRODUCER_EPOCH"
    assert log.end(7, 4, commit=True, version=2) is None


def test_under_version_two_a_repeated_marker_is_harmless_while_nothing_is_open(log, make_batch):
    log.send(make_batch(7, 3, 0, transactional=True))
    log.end(7, 4, commit=True, version=2)
    assert log.end(7, 4, commit=True, version=2) is None
    log.send(make_batch(7, 4, 0, transactional=True))
    assert log.end(7, 4, commit=True, version=2).error.name == "INVALID_PRODUCER_EPOCH"


def test_at_the_largest_epoch_version_two_accepts_an_equal_marker(log, make_batch):
    log.send(make_batch(7, 32767, 0, transactional=True))
    assert log.end(7, 32767, commit=True, version=2) is None


def test_a_marker_for_an_unknown_producer_is_taken(log):
    assert log.end(7, 0, commit=False, version=2) is None
    assert log.next_offset == 1


def test_ranges_find_exactly_the_transactions_that_touch_them():
    index = AbortedIndex()
    index.add(AbortedTransaction(1, 10, 20, 5))
    index.add(AbortedTransaction(2, 5, 30, 31))
    assert index.between(0, 5) == []
    assert [entry.producer_id for entry in index.between(0, 6)] == [2]
    assert [entry.producer_id for entry in index.between(20, 21)] == [1, 2]
    assert [entry.producer_id for entry in index.between(21, 22)] == [2]
    assert index.between(31, 99) == []


def test_entries_below_the_log_start_are_dropped():
    index = AbortedIndex()
    for marker in (10, 20, 30):
        index.add(AbortedTransaction(1, marker - 5, marker, marker + 1))
    index.drop_below(20)
    assert [entry.last_offset for entry in index] == [20, 30]


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60), st.data())
def test_a_range_query_equals_a_search_through_all_entries(make_batch, new_log, steps, data):
    log = new_log()
    sequences = dict.fromkeys(range(4), 0)
    for producer_id, ends in steps:
        if ends:
            log.end(producer_id, 0, commit=False)
        else:
            batch = make_batch(producer_id, 0, sequences[producer_id], transactional=True)
            assert log.send(batch) is None
            sequences[producer_id] += 1
    low = data.draw(st.integers(0, log.next_offset))
    high = data.draw(st.integers(low, log.next_offset))
    slow = [
        entry
        for entry in log.state.aborted
        if entry.last_offset >= low and entry.first_offset < high
    ]
    assert log.state.aborted.between(low, high) == slow
