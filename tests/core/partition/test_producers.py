"""Sequences, epochs, duplicates: what a partition demands of an idempotent producer."""

from semel.core.partition.producers import MAX_SEQUENCE, BatchMetadata, Duplicate


def test_batches_in_sequence_are_appended(log, make_batch):
    assert log.send(make_batch(7, 0, 0, count=3)) is None
    assert log.send(make_batch(7, 0, 3, count=2)) is None
    assert log.next_offset == 5


def test_a_batch_without_a_producer_leaves_no_trace(log, make_batch):
    assert log.send(make_batch()) is None
    assert len(log.state.producers) == 0


def test_a_repeated_batch_is_answered_with_its_first_offsets_and_timestamp(log, make_batch):
    log.send(make_batch(count=10))
    log.send(make_batch(7, 0, 0, count=3, timestamp=500))
    repeated = log.send(make_batch(7, 0, 0, count=3, timestamp=500))
    assert repeated == Duplicate(BatchMetadata(0, 2, 10, 12, 500))
    assert log.next_offset == 13


def test_each_of_the_last_five_batches_is_known_again_and_the_sixth_is_not(log, make_batch):
    for sequence in range(6):
        assert log.send(make_batch(7, 0, sequence)) is None
    for sequence in range(1, 6):
        repeated = log.send(make_batch(7, 0, sequence))
        assert isinstance(repeated, Duplicate)
        assert repeated.batch.base_offset == sequence
    assert log.error_of(make_batch(7, 0, 0)) == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_the_same_first_sequence_with_another_length_is_no_duplicate(log, make_batch):
    log.send(make_batch(7, 0, 0, count=3))
    assert log.error_of(make_batch(7, 0, 0, count=2)) == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_a_gap_is_refused(log, make_batch):
    log.send(make_batch(7, 0, 0))
    assert log.error_of(make_batch(7, 0, 2)) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.next_offset == 1


def test_sequences_wrap_after_the_largest(log, make_batch):
    log.send(make_batch(7, 0, MAX_SEQUENCE - 1, count=2))
    assert log.send(make_batch(7, 0, 0)) is None
    assert log.send(make_batch(7, 0, 1)) is None


def test_a_batch_may_wrap_within_itself_and_is_known_again(log, make_batch):
    log.send(make_batch(7, 0, MAX_SEQUENCE, count=3))
    assert log.send(make_batch(7, 0, 2)) is None
    repeated = log.send(make_batch(7, 0, MAX_SEQUENCE, count=3))
    assert repeated == Duplicate(BatchMetadata(MAX_SEQUENCE, 1, 0, 2, 1_000))


def test_an_older_epoch_is_refused_even_in_sequence(log, make_batch):
    log.send(make_batch(7, 1, 0))
    assert log.error_of(make_batch(7, 0, 1)) == "INVALID_PRODUCER_EPOCH"
    assert log.error_of(make_batch(7, 0, 0)) == "INVALID_PRODUCER_EPOCH"


def test_a_new_epoch_begins_at_zero(log, make_batch):
    log.send(make_batch(7, 0, 0))
    assert log.error_of(make_batch(7, 1, 1)) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.send(make_batch(7, 1, 0)) is None


def test_a_new_epoch_forgets_the_batches_of_the_old_one(log, make_batch):
    log.send(make_batch(7, 0, 0))
    log.send(make_batch(7, 1, 0, count=2))
    repeated = log.send(make_batch(7, 1, 0, count=2))
    assert isinstance(repeated, Duplicate)
    assert repeated.batch.base_offset == 1
    assert log.error_of(make_batch(7, 1, 0)) == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_an_unknown_producer_may_begin_anywhere_because_its_records_may_be_deleted(log, make_batch):
    assert log.send(make_batch(7, 3, 41)) is None
    assert log.send(make_batch(8, 3, 41, transactional=True)) is None


def test_under_version_two_an_unknown_producer_begins_at_zero(log, make_batch):
    late = make_batch(7, 0, 5, transactional=True)
    assert log.error_of(late, begins_at_zero=True) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    first = make_batch(7, 0, 0, transactional=True)
    assert log.send(first, begins_at_zero=True) is None


def test_an_idle_producer_is_forgotten_by_the_time_of_its_last_append(log, make_batch):
    log.state.apply_batch(make_batch(7, 0, 0, timestamp=10), now_ms=100)
    log.state.apply_batch(make_batch(8, 0, 0, timestamp=10), now_ms=200)
    assert log.state.expire(before_ms=200) == 1
    assert log.state.producers.get(7) is None
    assert log.state.producers.get(8) is not None


def test_a_producer_with_an_open_transaction_is_never_forgotten(log, make_batch):
    log.send(make_batch(7, 0, 0, transactional=True))
    assert log.state.expire(before_ms=10**15) == 0
    log.end(7, 0, commit=True)
    assert log.state.expire(before_ms=10**15) == 1
