"""KIP-890: no transactional batch is appended outside a transaction its coordinator knows."""

from semel.core.partition.verification import AT_ONCE, Guard


def test_the_first_batch_of_a_transaction_asks_and_the_next_does_not(log, make_batch):
    first = make_batch(7, 0, 0, transactional=True)
    assert isinstance(log.state.ask_verification(first, False, 0), Guard)
    log.send(first)
    assert log.state.ask_verification(make_batch(7, 0, 1, transactional=True), False, 0) is None


def test_a_batch_without_its_guard_is_refused(log, make_batch):
    verdict = log.state.look_batch(make_batch(7, 0, 0, transactional=True), None)
    assert verdict.error.name == "INVALID_TXN_STATE"


def test_a_marker_that_lands_before_the_verified_batch_makes_it_too_late(log, make_batch):
    batch = make_batch(7, 0, 0, transactional=True)
    guard = log.state.ask_verification(batch, False, 0)
    assert log.end(7, 0, commit=False) is None
    assert log.state.look_batch(batch, guard).error.name == "INVALID_TXN_STATE"


def test_a_guard_of_an_earlier_question_does_not_serve_the_next_transaction(log, make_batch):
    batch = make_batch(7, 0, 0, transactional=True)
    stale = log.state.ask_verification(batch, False, 0)
    log.end(7, 0, commit=False)
    fresh = log.state.ask_verification(batch, False, 0)
    assert log.state.look_batch(batch, stale).error.name == "INVALID_TXN_STATE"
    assert log.state.look_batch(batch, fresh) is None


def test_who_heard_at_once_needs_no_guard_of_its_own(log, make_batch):
    first = make_batch(7, 0, 0, transactional=True)
    assert log.state.look_batch(first, AT_ONCE) is None
    log.send(first)
    log.end(7, 0, commit=True)
    assert log.state.look_batch(make_batch(7, 0, 1, transactional=True), AT_ONCE) is None
    assert len(log.state.verifications) == 0


def test_who_heard_at_once_does_not_pass_for_one_whose_question_is_open(log, make_batch):
    log.state.ask_verification(make_batch(7, 0, 0, transactional=True), False, 0)
    verdict = log.state.look_batch(make_batch(7, 0, 1, transactional=True), AT_ONCE)
    assert verdict.error.name == "INVALID_TXN_STATE"


def test_a_zombie_is_refused_before_anybody_is_asked(log, make_batch):
    log.send(make_batch(7, 2, 0, transactional=True))
    refused = log.state.ask_verification(make_batch(7, 1, 0, transactional=True), False, 0)
    assert refused.error.name == "INVALID_PRODUCER_EPOCH"
    assert len(log.state.verifications) == 0


def test_a_higher_epoch_asks_anew_although_a_transaction_is_open(log, make_batch):
    log.send(make_batch(7, 0, 0, transactional=True))
    newer = make_batch(7, 1, 0, transactional=True)
    guard = log.state.ask_verification(newer, False, 0)
    assert isinstance(guard, Guard)
    assert log.state.look_batch(newer, None).error.name == "INVALID_TXN_STATE"
    assert log.state.look_batch(newer, guard) is None


def test_a_later_batch_does_not_overtake_one_whose_verification_is_retried(log, make_batch):
    low = make_batch(7, 0, 0, transactional=True)
    high = make_batch(7, 0, 1, transactional=True)
    log.state.ask_verification(low, False, 0)
    guard = log.state.ask_verification(high, False, 0)
    assert log.state.look_batch(high, guard).error.name == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.state.look_batch(low, guard) is None


def test_a_lower_sequence_asked_later_counts_too_and_an_epoch_resets_it(log, make_batch):
    log.state.ask_verification(make_batch(7, 0, 5, transactional=True), False, 0)
    guard = log.state.ask_verification(make_batch(7, 0, 3, transactional=True), False, 0)
    assert guard.lowest_sequence == 3
    log.state.ask_verification(make_batch(7, 1, 4, transactional=True), False, 0)
    assert guard.lowest_sequence == 4


def test_a_non_transactional_batch_under_an_open_transaction_is_refused(log, make_batch):
    log.send(make_batch(7, 0, 0, transactional=True))
    assert log.error_of(make_batch(7, 0, 1)) == "INVALID_TXN_STATE"
    log.end(7, 0, commit=True)
    assert log.send(make_batch(7, 0, 1)) is None


def test_a_question_nobody_followed_up_is_forgotten(log, make_batch):
    log.state.ask_verification(make_batch(7, 0, 0, transactional=True), False, now_ms=10)
    log.state.expire(before_ms=10)
    assert len(log.state.verifications) == 1
    log.state.expire(before_ms=11)
    assert len(log.state.verifications) == 0


def test_a_coordinators_batch_has_no_sequence_but_needs_epoch_and_transaction(log, make_batch):
    offsets = make_batch(7, 1, -1, transactional=True)
    assert log.state.look_internal(offsets).error.name == "INVALID_TXN_STATE"
    guard = log.state.ask_verification(offsets, False, 0)
    assert log.state.look_internal(offsets, guard) is None
    log.state.apply_batch(offsets, now_ms=0)
    assert log.state.look_internal(make_batch(7, 1, -1, transactional=True)) is None
    zombie = make_batch(7, 0, -1, transactional=True)
    assert log.state.look_internal(zombie).error.name == "INVALID_PRODUCER_EPOCH"
    assert log.state.look_internal(make_batch(7, 1, -1)).error.name == "INVALID_TXN_STATE"
    assert log.state.look_internal(make_batch()) is None
