"""InitProducerId, decision by decision: every state, with and without what the caller holds."""

import pytest

from semel.core.transactions.rules import Rules
from semel.core.transactions.states import TxnState
from semel.wire.errors import ErrorCode as E

PAYMENTS = ("payments", 0)


def answer(decision):
    return decision.reply.error, decision.reply.producer_id, decision.reply.epoch


def test_an_unknown_id_gets_a_fresh_producer_id_and_epoch_zero(case):
    assert answer(case.init()) == (E.NONE, 7, 0)
    assert case.state is TxnState.EMPTY


def test_a_known_id_gets_the_next_epoch_which_fences_the_older_producer(empty):
    assert answer(empty.init()) == (E.NONE, 7, 1)
    assert empty.add(PAYMENTS, epoch=0).reply.error is E.PRODUCER_FENCED


@pytest.mark.parametrize("outcome", [True, False])
def test_a_completed_transaction_leaves_the_id_free(ongoing, outcome):
    ongoing.end(outcome)
    ongoing.finish()
    assert answer(ongoing.init()) == (E.NONE, 7, 1)
    assert ongoing.state is TxnState.EMPTY
    assert ongoing.txn.started_at_ms == -1


@pytest.mark.parametrize("outcome", [True, False])
def test_over_a_prepared_transaction_the_newcomer_waits_and_nothing_changes(ongoing, outcome):
    ongoing.end(outcome)
    before = ongoing.txn
    decision = ongoing.init()
    assert decision.reply.error is E.CONCURRENT_TRANSACTIONS
    assert decision.records == ()
    assert ongoing.txn == before


def test_over_an_open_transaction_it_aborts_under_the_next_epoch_and_then_takes_one_more(ongoing):
    decision = ongoing.init(who="client b from 10.0.0.2")
    assert decision.reply.error is E.CONCURRENT_TRANSACTIONS
    [markers] = decision.effects
    assert (markers.commit, markers.epoch, markers.partitions) == (False, 1, {PAYMENTS})
    assert ongoing.init().reply.error is E.CONCURRENT_TRANSACTIONS
    ongoing.finish()
    assert answer(ongoing.init()) == (E.NONE, 7, 2)


def test_the_one_who_was_taken_over_can_learn_by_whom(ongoing):
    ongoing.init(who="client b from 10.0.0.2")
    assert ongoing.txn.cause == (7, 0, "taken over by client b from 10.0.0.2")


def test_after_a_takeover_the_old_producer_is_fenced(ongoing):
    ongoing.init()
    ongoing.finish()
    ongoing.init()
    assert ongoing.commit().reply.error is E.PRODUCER_FENCED
    assert ongoing.add(PAYMENTS).reply.error is E.PRODUCER_FENCED


def test_the_aborted_producers_own_bump_succeeds_until_the_newcomer_comes_again(ongoing):
    ongoing.init()
    ongoing.finish()
    assert answer(ongoing.init(7, 0)) == (E.NONE, 7, 1)
    assert answer(ongoing.init()) == (E.NONE, 7, 2)
    assert ongoing.init(7, 0).reply.error is E.PRODUCER_FENCED


class TestNamingWhatItHolds:
    """KIP-360: the caller names its producer id and epoch."""

    def test_the_current_epoch_is_bumped(self, empty):
        assert answer(empty.init(7, 0)) == (E.NONE, 7, 1)

    def test_asking_again_with_the_last_epoch_gives_the_same_answer(self, empty):
        empty.init(7, 0)
        assert answer(empty.init(7, 0)) == (E.NONE, 7, 1)
        assert answer(empty.init(7, 1)) == (E.NONE, 7, 2)

    def test_the_last_epoch_is_forgotten_with_a_crash_as_in_kafka(self, empty):
        empty.init(7, 0)
        empty.reload()
        assert empty.init(7, 0).reply.error is E.PRODUCER_FENCED

    def test_a_newcomer_in_between_fences_it(self, empty):
        empty.init()
        assert empty.init(7, 0).reply.error is E.PRODUCER_FENCED

    @pytest.mark.parametrize("epoch", [1, 5, 32767])
    def test_an_epoch_from_the_future_is_fenced(self, empty, epoch):
        assert empty.init(7, epoch).reply.error is E.PRODUCER_FENCED

    def test_a_foreign_producer_id_is_fenced(self, empty):
        assert empty.init(99, 0).reply.error is E.PRODUCER_FENCED

    def test_an_id_that_was_forgotten_gets_a_fresh_producer_id(self, case):
        assert answer(case.init(99, 5)) == (E.NONE, 7, 0)

    def test_over_its_own_open_transaction_it_aborts_and_then_bumps_once(self, ongoing):
        assert ongoing.init(7, 0).reply.error is E.CONCURRENT_TRANSACTIONS
        ongoing.finish()
        assert answer(ongoing.init(7, 0)) == (E.NONE, 7, 1)

    def test_a_zombie_cannot_abort_the_open_transaction_of_its_successor(self, empty):
        empty.init()
        empty.add(PAYMENTS, epoch=1)
        decision = empty.init(7, 0)
        assert decision.reply.error is E.PRODUCER_FENCED
        assert decision.records == ()
        assert empty.state is TxnState.ONGOING

    @pytest.mark.parametrize(("producer_id", "epoch"), [(7, -1), (-1, 0)])
    def test_only_one_of_the_two_is_no_request(self, empty, producer_id, epoch):
        assert empty.init(producer_id, epoch).reply.error is E.INVALID_REQUEST


class TestExhaustedEpochs:
    def test_at_the_last_usable_epoch_a_new_producer_id_begins_at_zero(self, empty):
        empty.force(epoch=32766)
        assert answer(empty.init()) == (E.NONE, 8, 0)
        assert empty.add(PAYMENTS, epoch=32766).reply.error is E.INVALID_PRODUCER_ID_MAPPING

    def test_the_epoch_before_it_is_still_bumped(self, empty):
        empty.force(epoch=32765)
        assert answer(empty.init()) == (E.NONE, 7, 32766)

    def test_its_owner_rotates_too_and_may_ask_again(self, empty):
        empty.force(epoch=32766)
        assert answer(empty.init(7, 32766)) == (E.NONE, 8, 0)
        assert answer(empty.init(7, 32766)) == (E.NONE, 8, 0)

    def test_the_answer_to_the_last_bump_is_repeated(self, empty):
        empty.force(epoch=32765)
        empty.init(7, 32765)
        assert answer(empty.init(7, 32765)) == (E.NONE, 7, 32766)

    def test_after_a_newcomers_rotation_the_old_holder_is_fenced(self, empty):
        empty.force(epoch=32766)
        empty.init()
        assert empty.init(7, 32766).reply.error is E.PRODUCER_FENCED

    def test_takeover_at_the_last_epoch_uses_the_reserved_one_and_leads_to_a_new_id(self, ongoing):
        ongoing.force(epoch=32766)
        [markers] = ongoing.init().effects
        assert markers.epoch == 32767
        ongoing.finish()
        assert ongoing.holds == (8, 0)
        assert answer(ongoing.init()) == (E.NONE, 8, 1)

    def test_takeover_one_before_it_rotates_when_the_newcomer_asks_again(self, ongoing):
        ongoing.force(epoch=32765)
        [markers] = ongoing.init().effects
        assert markers.epoch == 32766
        ongoing.finish()
        assert answer(ongoing.init()) == (E.NONE, 8, 0)


class TestRefusals:
    @pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
    def test_a_timeout_outside_of_the_limits(self, case, timeout_ms):
        decision = case.init(timeout_ms=timeout_ms)
        assert decision.reply.error is E.INVALID_TRANSACTION_TIMEOUT
        assert decision.records == ()

    def test_the_largest_timeout_is_allowed(self, case):
        assert case.init(timeout_ms=900_000).reply.error is E.NONE

    def test_an_empty_id(self, case):
        from semel.core.transactions.commands import InitProducerId

        assert case.do(InitProducerId("", 1_000)).reply.error is E.INVALID_REQUEST

    def test_two_phase_commit_while_it_is_off(self, case):
        error = case.init(enable_two_phase=True).reply.error
        assert error is E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

    def test_keeping_a_prepared_transaction_while_two_phase_commit_is_off(self, case):
        assert case.init(keep_prepared=True).reply.error is E.UNSUPPORTED_VERSION

    def test_the_new_timeout_counts(self, empty):
        empty.init(timeout_ms=1_234)
        assert empty.txn.timeout_ms == 1_234


class TestTwoPhaseCommit:
    """KIP-939, where it is switched on."""

    @pytest.fixture
    def prepared(self, new_case):
        case = new_case(Rules(two_phase=True), version=2)
        case.init(enable_two_phase=True)
        case.add(PAYMENTS)
        return case

    def keep(self, case, *named):
        return case.init(*named, enable_two_phase=True, keep_prepared=True)

    def test_its_transactions_never_time_out(self, prepared):
        assert prepared.pass_time(2**40).records == ()

    def test_the_timeout_asked_for_is_not_looked_at(self, new_case):
        case = new_case(Rules(two_phase=True))
        assert case.init(enable_two_phase=True, timeout_ms=-5).reply.error is E.NONE

    def test_keeping_without_two_phase_commit_is_no_request(self, prepared):
        assert prepared.init(keep_prepared=True).reply.error is E.INVALID_REQUEST

    def test_without_an_open_transaction_keeping_is_a_plain_bump(self, new_case):
        case = new_case(Rules(two_phase=True), version=2)
        case.init(enable_two_phase=True)
        reply = self.keep(case).reply
        assert (reply.producer_id, reply.epoch, reply.ongoing_producer_id) == (7, 1, -1)

    def test_the_newcomer_learns_what_is_open_and_gets_an_epoch_of_its_own(self, prepared):
        reply = self.keep(prepared).reply
        assert (reply.producer_id, reply.epoch) == (7, 1)
        assert (reply.ongoing_producer_id, reply.ongoing_epoch) == (7, 0)
        assert prepared.state is TxnState.ONGOING

    @pytest.mark.parametrize("commit", [True, False])
    def test_the_newcomer_ends_it_and_markers_follow_the_old_epoch(self, prepared, commit):
        self.keep(prepared)
        decision = prepared.end(commit, epoch=1)
        assert answer(decision) == (E.NONE, 7, 2)
        [markers] = decision.effects
        assert (markers.producer_id, markers.epoch, markers.commit) == (7, 1, commit)
        prepared.finish()
        assert prepared.holds == (7, 2)

    def test_a_lost_answer_to_its_end_is_repeated(self, prepared):
        self.keep(prepared)
        first = prepared.commit(epoch=1).reply
        assert prepared.commit(epoch=1).reply.error is E.CONCURRENT_TRANSACTIONS
        prepared.finish()
        assert prepared.commit(epoch=1).reply == first
        assert prepared.abort(epoch=1).reply.error is E.INVALID_TXN_STATE

    def test_the_former_owner_is_fenced_but_its_transaction_stands(self, prepared):
        self.keep(prepared)
        assert prepared.commit(epoch=0).reply.error is E.PRODUCER_FENCED
        assert prepared.add(("new", 0), epoch=0).reply.error is E.PRODUCER_FENCED
        assert prepared.state is TxnState.ONGOING

    def test_nothing_can_be_added_to_what_was_prepared(self, prepared):
        self.keep(prepared)
        assert prepared.add(("new", 0), epoch=1).reply.error is E.INVALID_TXN_STATE

    def test_every_newcomer_fences_the_one_before(self, prepared):
        self.keep(prepared)
        reply = self.keep(prepared).reply
        assert (reply.epoch, reply.ongoing_epoch) == (2, 0)
        assert prepared.commit(epoch=1).reply.error is E.PRODUCER_FENCED
        assert answer(prepared.commit(epoch=2)) == (E.NONE, 7, 3)

    def test_the_handover_survives_a_crash(self, prepared):
        self.keep(prepared)
        prepared.reload()
        assert answer(prepared.commit(epoch=1)) == (E.NONE, 7, 2)
        prepared.reload()
        prepared.finish()
        assert prepared.holds == (7, 2)

    def test_without_keeping_the_newcomer_aborts(self, prepared):
        self.keep(prepared)
        decision = prepared.init(enable_two_phase=True)
        assert decision.reply.error is E.CONCURRENT_TRANSACTIONS
        [markers] = decision.effects
        assert not markers.commit
        prepared.finish()
        assert prepared.holds == (7, 2)

    def test_epochs_run_out_early_enough_for_the_end_to_have_one(self, prepared):
        prepared.force(epoch=32765)
        assert answer(self.keep(prepared)) == (E.NONE, 8, 0)
        assert answer(prepared.commit(producer_id=8, epoch=0)) == (E.NONE, 8, 1)
        [markers] = prepared.coordinator.resume()
        assert (markers.producer_id, markers.epoch) == (7, 32766)
        prepared.finish()
        assert prepared.holds == (8, 1)

    def test_the_newcomer_that_names_an_outdated_epoch_is_fenced(self, prepared):
        self.keep(prepared)
        assert self.keep(prepared, 7, 0).reply.error is E.PRODUCER_FENCED
        assert self.keep(prepared, 7, 1).reply.error is E.NONE
