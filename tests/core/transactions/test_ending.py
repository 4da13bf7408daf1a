"""EndTxn, forced aborts and completion: the whole retry table of both versions."""

import pytest

from semel.core.transactions.commands import EndTxn, MarkersWritten
from semel.core.transactions.states import TxnState
from semel.wire.errors import ErrorCode as E

PAYMENTS, ORDERS = ("payments", 0), ("orders", 3)
COMMIT, ABORT = True, False
BOTH = pytest.mark.parametrize("outcome", [COMMIT, ABORT])
PREPARED = {COMMIT: TxnState.PREPARE_COMMIT, ABORT: TxnState.PREPARE_ABORT}
COMPLETE = {COMMIT: TxnState.COMPLETE_COMMIT, ABORT: TxnState.COMPLETE_ABORT}


def answer(decision):
    return decision.reply.error, decision.reply.producer_id, decision.reply.epoch


class TestVersion1:
    @BOTH
    def test_ending_prepares_at_the_same_epoch_and_orders_markers(self, ongoing, outcome):
        decision = ongoing.end(outcome)
        assert decision.reply.error is E.NONE
        assert ongoing.state is PREPARED[outcome]
        [markers] = decision.effects
        assert (markers.commit, markers.epoch, markers.partitions) == (outcome, 0, {PAYMENTS})

    @BOTH
    def test_a_retry_while_markers_are_being_written_waits(self, ongoing, outcome):
        ongoing.end(outcome)
        decision = ongoing.end(outcome)
        assert decision.reply.error is E.CONCURRENT_TRANSACTIONS
        assert decision.records == ()

    @BOTH
    def test_a_retry_after_completion_hears_the_same(self, ongoing, outcome):
        ongoing.end(outcome)
        ongoing.finish()
        decision = ongoing.end(outcome)
        assert decision.reply.error is E.NONE
        assert decision.records == ()
        assert decision.effects == ()

    @BOTH
    def test_a_decided_outcome_cannot_be_changed(self, ongoing, outcome):
        ongoing.end(outcome)
        assert ongoing.end(not outcome).reply.error is E.INVALID_TXN_STATE
        ongoing.finish()
        assert ongoing.end(not outcome).reply.error is E.INVALID_TXN_STATE

    @BOTH
    def test_without_a_transaction_there_is_nothing_to_end(self, empty, outcome):
        assert empty.end(outcome).reply.error is E.INVALID_TXN_STATE

    @BOTH
    @pytest.mark.parametrize("epoch", [-1, 1, 2])
    def test_any_other_epoch_is_fenced(self, ongoing, outcome, epoch):
        assert ongoing.end(outcome, epoch=epoch).reply.error is E.PRODUCER_FENCED

    def test_any_other_producer_id_is_unknown(self, ongoing):
        assert ongoing.commit(producer_id=99).reply.error is E.INVALID_PRODUCER_ID_MAPPING

    def test_after_a_timeout_both_outcomes_are_fenced(self, ongoing):
        ongoing.pass_time(60_001)
        ongoing.finish()
        assert ongoing.commit().reply.error is E.PRODUCER_FENCED
        assert ongoing.abort().reply.error is E.PRODUCER_FENCED


class TestVersion2:
    @BOTH
    def test_ending_bumps_the_epoch_and_returns_it(self, ongoing_2, outcome):
        decision = ongoing_2.end(outcome)
        assert answer(decision) == (E.NONE, 7, 1)
        assert ongoing_2.state is PREPARED[outcome]
        [markers] = decision.effects
        assert (markers.commit, markers.epoch, markers.version) == (outcome, 1, 2)

    @BOTH
    def test_a_retry_while_markers_are_being_written_waits(self, ongoing_2, outcome):
        ongoing_2.end(outcome)
        assert ongoing_2.end(outcome).reply.error is E.CONCURRENT_TRANSACTIONS

    @BOTH
    def test_a_retry_after_completion_hears_the_new_epoch_again(self, ongoing_2, outcome):
        first = ongoing_2.end(outcome)
        ongoing_2.finish()
        retry = ongoing_2.end(outcome)
        assert retry.reply == first.reply
        assert retry.records == ()

    @BOTH
    def test_a_retry_for_the_other_outcome_is_wrong(self, ongoing_2, outcome):
        ongoing_2.end(outcome)
        assert ongoing_2.end(not outcome).reply.error is E.INVALID_TXN_STATE
        ongoing_2.finish()
        assert ongoing_2.end(not outcome).reply.error is E.INVALID_TXN_STATE

    @BOTH
    def test_a_retry_after_the_next_transaction_began_is_fenced(self, ongoing_2, outcome):
        ongoing_2.end(outcome)
        ongoing_2.finish()
        ongoing_2.add(ORDERS, epoch=1)
        assert ongoing_2.end(outcome).reply.error is E.PRODUCER_FENCED
        assert ongoing_2.state is TxnState.ONGOING

    @BOTH
    @pytest.mark.parametrize("epoch", [-1, 1, 5])
    def test_any_other_epoch_is_fenced(self, ongoing_2, outcome, epoch):
        assert ongoing_2.end(outcome, epoch=epoch).reply.error is E.PRODUCER_FENCED

    def test_an_abort_of_nothing_succeeds_and_moves_the_epoch_past_what_may_be_under_way(
        self, new_case
    ):
        case = new_case(version=2)
        case.init()
        decision = case.abort()
        assert answer(decision) == (E.NONE, 7, 1)
        assert case.state is TxnState.PREPARE_ABORT
        [markers] = decision.effects
        assert markers.partitions == frozenset()
        case.finish()
        assert (case.state, case.holds) == (TxnState.COMPLETE_ABORT, (7, 1))

    def test_a_commit_of_nothing_is_wrong(self, new_case):
        case = new_case(version=2)
        case.init()
        assert case.commit().reply.error is E.INVALID_TXN_STATE

    @BOTH
    def test_at_the_current_epoch_after_completion_only_an_abort_succeeds(self, ongoing_2, outcome):
        ongoing_2.end(outcome)
        ongoing_2.finish()
        assert ongoing_2.commit(epoch=1).reply.error is E.INVALID_TXN_STATE
        assert answer(ongoing_2.abort(epoch=1)) == (E.NONE, 7, 2)

    def test_a_repeated_abort_of_nothing_is_a_retry(self, new_case):
        case = new_case(version=2)
        case.init()
        first = case.abort().reply
        case.finish()
        assert case.abort().reply == first
        assert case.holds == (7, 1)

    def test_after_a_timeout_a_commit_is_wrong_and_an_abort_goes_on_with_the_new_epoch(
        self, ongoing_2
    ):
        ongoing_2.pass_time(60_001)
        ongoing_2.finish()
        assert ongoing_2.commit().reply.error is E.INVALID_TXN_STATE
        assert answer(ongoing_2.abort()) == (E.NONE, 7, 1)

    def test_any_other_producer_id_is_unknown(self, ongoing_2):
        assert ongoing_2.commit(producer_id=99).reply.error is E.INVALID_PRODUCER_ID_MAPPING

    def test_ending_the_next_transaction_before_this_one_is_complete_waits(self, ongoing_2):
        ongoing_2.commit()
        assert ongoing_2.commit(epoch=1).reply.error is E.CONCURRENT_TRANSACTIONS
        assert ongoing_2.abort(epoch=1).reply.error is E.CONCURRENT_TRANSACTIONS


class TestExhaustedEpochs:
    @pytest.fixture
    def last(self, ongoing_2):
        ongoing_2.force(epoch=32766)
        return ongoing_2

    @BOTH
    def test_the_markers_take_the_reserved_epoch_and_the_answer_names_the_next_id(
        self, last, outcome
    ):
        decision = last.end(outcome, epoch=32766)
        assert answer(decision) == (E.NONE, 8, 0)
        [markers] = decision.effects
        assert (markers.producer_id, markers.epoch) == (7, 32767)
        assert (last.holds, last.txn.next_producer_id) == ((7, 32767), 8)
        last.finish()
        assert (last.holds, last.txn.next_producer_id) == ((8, 0), -1)
        assert last.txn.previous_producer_id == 7

    @BOTH
    def test_a_retry_is_known_before_and_after_completion(self, last, outcome):
        first = last.end(outcome, epoch=32766).reply
        assert last.end(outcome, epoch=32766).reply.error is E.CONCURRENT_TRANSACTIONS
        last.finish()
        assert last.end(outcome, epoch=32766).reply == first
        assert last.end(not outcome, epoch=32766).reply.error is E.INVALID_TXN_STATE

    def test_a_retry_after_the_next_transaction_began_is_refused(self, last):
        last.commit(epoch=32766)
        last.finish()
        last.add(ORDERS, producer_id=8, epoch=0)
        assert last.commit(epoch=32766).reply.error is E.INVALID_PRODUCER_ID_MAPPING

    def test_the_next_id_survives_a_crash_between_prepare_and_complete(self, last):
        last.commit(epoch=32766)
        last.reload()
        last.finish()
        assert last.holds == (8, 0)

    def test_version_1_stays_at_its_epoch_until_it_initialises_again(self, ongoing):
        ongoing.force(epoch=32766)
        assert ongoing.commit(epoch=32766).reply.error is E.NONE
        ongoing.finish()
        assert ongoing.holds == (7, 32766)

    def test_a_timeout_at_the_last_epoch_rotates_as_well(self, ongoing):
        ongoing.force(epoch=32766)
        ongoing.pass_time(60_001)
        assert ongoing.holds == (7, 32767)
        ongoing.finish()
        assert ongoing.holds == (8, 0)


class TestMixedVersions:
    """A client may be upgraded between two transactions of one id."""

    def test_a_version_2_end_of_a_version_1_transaction_bumps(self, ongoing):
        assert answer(ongoing.commit(version=2)) == (E.NONE, 7, 1)

    def test_a_version_1_end_of_a_version_2_transaction_does_not(self, ongoing_2):
        ongoing_2.commit(version=0)
        assert ongoing_2.holds == (7, 0)

    def test_a_version_2_retry_of_a_version_1_end_is_fenced_then_wrong(self, ongoing):
        """Kafka's TransactionCoordinator.endTransaction: without a bump there is no retry."""
        ongoing.commit()
        assert ongoing.commit(version=2).reply.error is E.CONCURRENT_TRANSACTIONS
        ongoing.finish()
        assert ongoing.commit(version=2).reply.error is E.INVALID_TXN_STATE

    @BOTH
    def test_a_version_2_producer_is_not_given_the_epoch_of_its_version_1_heir(
        self, ongoing_2, outcome
    ):
        """Seeds 100427 and 100540 of the simulated worlds: Kafka takes this for a retry."""
        ongoing_2.end(outcome)
        ongoing_2.finish()
        heir = ongoing_2.init().reply
        ongoing_2.add(PAYMENTS, epoch=heir.epoch, version=0)
        ongoing_2.end(outcome, epoch=heir.epoch, version=0)
        ongoing_2.finish()
        late = ongoing_2.end(outcome, epoch=heir.epoch - 1)
        assert late.reply.error is E.PRODUCER_FENCED


class TestCompleting:
    @BOTH
    def test_markers_written_complete_the_transaction(self, ongoing, outcome):
        ongoing.end(outcome)
        ongoing.now_ms += 5
        ongoing.finish()
        assert ongoing.state is COMPLETE[outcome]
        assert ongoing.txn.partitions == frozenset()
        assert ongoing.txn.updated_at_ms == ongoing.now_ms

    def test_reporting_twice_changes_nothing(self, ongoing):
        ongoing.commit()
        prepared = ongoing.txn
        ongoing.finish()
        assert ongoing.do(MarkersWritten(prepared)).records == ()

    @pytest.mark.parametrize("version", [0, 2])
    def test_a_late_report_about_an_earlier_transaction_does_not_complete_this_one(
        self, new_case, version
    ):
        case = new_case(version=version)
        case.init()
        case.add(PAYMENTS)
        case.commit()
        earlier = case.txn
        case.finish()
        case.add(PAYMENTS, epoch=case.txn.epoch)
        case.commit(epoch=case.txn.epoch)
        assert version == 2 or case.txn == earlier._replace(client_version=0)
        assert case.do(MarkersWritten(earlier)).records == ()
        assert case.state is TxnState.PREPARE_COMMIT

    def test_a_report_about_an_unknown_or_open_transaction_changes_nothing(self, ongoing):
        stranger = ongoing.txn._replace(transactional_id="who?")
        assert ongoing.do(MarkersWritten(stranger)).records == ()
        assert ongoing.do(MarkersWritten(ongoing.txn._replace(epoch=9))).records == ()

    @BOTH
    def test_a_reloaded_coordinator_owes_the_same_markers(self, ongoing, outcome):
        [markers] = ongoing.end(outcome).effects
        ongoing.reload()
        [again] = ongoing.coordinator.resume()
        for name in ("producer_id", "epoch", "commit", "partitions", "version"):
            assert getattr(again, name) == getattr(markers, name)

    def test_only_prepared_transactions_owe_markers(self, ongoing):
        assert ongoing.coordinator.resume() == ()


def test_an_unknown_id_has_no_transaction(case):
    for version in (0, 2):
        decision = case.do(EndTxn("etl", 7, 0, True, version))
        assert decision.reply.error is E.INVALID_PRODUCER_ID_MAPPING
