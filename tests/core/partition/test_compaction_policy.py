"""Which batches compaction may drop, and which it must keep for producers and readers."""

from semel.core.partition.compaction import CompactionPolicy
from semel.core.partition.snapshots import decode_aborted, encode_aborted_index
from semel.wire.batches import BatchBuilder, header_at


def verdicts(log) -> list[bool]:
    tracker = CompactionPolicy(log.state).tracker(0, log.next_offset)
    return [tracker.is_dead(header_at(batch)) for batch in log.batches]


def without_data(log, *dropped: int):
    """The log as a later compaction finds it, some batches gone."""
    tracker = CompactionPolicy(log.state).tracker(0, log.next_offset)
    kept = [batch for number, batch in enumerate(log.batches) if number not in dropped]
    return [tracker.is_dead(header_at(batch)) for batch in kept], tracker


def test_aborted_data_is_dead_and_committed_data_is_not(log, make_batch):
    log.send(make_batch(1, 0, 0, transactional=True))
    log.end(1, 0, commit=False)
    log.send(make_batch(1, 0, 1, transactional=True))
    log.end(1, 0, commit=True)
    log.send(make_batch())
    assert verdicts(log) == [True, False, False, False, False]


def test_only_the_aborted_producers_batches_are_dead(log, make_batch):
    log.send(make_batch(1, 0, 0, transactional=True))
    log.send(make_batch(2, 0, 0, transactional=True))
    log.send(make_batch(3, 0, 0))
    log.end(2, 0, commit=True)
    log.end(1, 0, commit=False)
    assert verdicts(log) == [True, False, False, False, False]


def test_a_marker_is_dead_once_its_transactions_data_is_gone(log, make_batch):
    log.send(make_batch(1, 0, 0, transactional=True))
    log.end(1, 0, commit=False)
    log.send(make_batch(2, 0, 0, transactional=True))
    log.end(2, 0, commit=True)
    alive, tracker = without_data(log)
    assert alive == [True, False, False, False]
    assert len(tracker.side_files()) == 1
    later, tracker = without_data(log, 0, 2)
    assert later == [True, True]
    assert tracker.side_files() == {}


def test_a_control_record_that_ends_no_transaction_is_left_alone(log):
    builder = BatchBuilder()
    builder.append(b"\0\0\0\2", b"", 0)  # a leader change, of Kafka's Raft
    log.batches.append(builder.build(control=True))
    assert verdicts(log) == [False]


def test_index_entries_are_kept_while_their_data_may_still_be_read(log, make_batch):
    log.send(make_batch(1, 0, 0, transactional=True))
    log.end(1, 0, commit=False)
    _, tracker = without_data(log)
    [(suffix, content)] = tracker.side_files().items()
    assert suffix == "txnindex"
    assert list(decode_aborted(content)) == list(log.state.aborted)
    assert tracker.side_files() == {}


def test_the_last_batch_of_each_producer_is_needed(log, make_batch):
    log.send(make_batch(1, 0, 0))
    log.send(make_batch(1, 0, 1))
    log.send(make_batch())
    policy = CompactionPolicy(log.state)
    assert [policy.is_needed(header_at(batch)) for batch in log.batches] == [False, True, False]


def test_of_a_producer_without_batches_its_marker_of_the_current_epoch_is_needed(log, make_batch):
    log.send(make_batch(1, 0, 0, transactional=True))
    log.end(1, 1, commit=True)
    policy = CompactionPolicy(log.state)
    assert [policy.is_needed(header_at(batch)) for batch in log.batches] == [False, True]


def test_the_index_in_memory_follows_the_cleaned_files(log, make_batch):
    for producer_id in (1, 2, 3):
        log.send(make_batch(producer_id, 0, 0, transactional=True))
        log.end(producer_id, 0, commit=False)
    policy = CompactionPolicy(log.state)
    first, second, third = log.state.aborted
    policy.replaced(0, 4, {})
    assert list(log.state.aborted) == [third]
    policy.replaced(0, 4, {"txnindex": encode_aborted_index([first, second])})
    assert list(log.state.aborted) == [first, second, third]
