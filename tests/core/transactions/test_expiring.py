"""What passing time does to transactions and ids. Time is an argument: nothing here waits."""

import pytest

from semel.core.transactions.states import TxnState
from semel.wire.errors import ErrorCode as E

PAYMENTS, ORDERS = ("payments", 0), ("orders", 3)
WEEK_MS = 7 * 24 * 3600 * 1000


def test_an_open_transaction_is_aborted_after_its_timeout_under_the_next_epoch(ongoing):
    [markers] = ongoing.pass_time(60_001).effects
    assert (markers.commit, markers.epoch, markers.partitions) == (False, 1, {PAYMENTS})
    assert ongoing.state is TxnState.PREPARE_ABORT
    assert ongoing.txn.cause == (7, 0, "timed out after 60000 ms")


def test_not_a_moment_earlier(ongoing):
    assert ongoing.pass_time(60_000).records == ()


def test_the_timeout_counts_from_the_start_however_busy_the_transaction_is(ongoing):
    ongoing.now_ms += 59_000
    ongoing.add(ORDERS)
    assert ongoing.pass_time(1_001).records != ()


def test_only_open_transactions_time_out(ongoing):
    ongoing.commit()
    assert ongoing.pass_time(10**9).records == ()
    ongoing.finish()
    assert ongoing.pass_time(10**9).records == ()


def test_the_timeout_is_still_there_after_a_crash(ongoing):
    ongoing.reload()
    assert ongoing.pass_time(60_001).records != ()


def test_an_idle_id_dies_and_leaves_a_tombstone(empty):
    [record] = empty.forget(WEEK_MS).records
    assert record.state is TxnState.DEAD
    assert empty.log[-1][1] is None
    assert empty.coordinator.transactions == {}


@pytest.mark.parametrize("outcome", [True, False])
def test_completed_ids_die_as_well(ongoing, outcome):
    ongoing.end(outcome)
    ongoing.finish()
    assert ongoing.forget(WEEK_MS).records != ()


def test_use_keeps_an_id_alive(empty):
    empty.now_ms += WEEK_MS - 1
    empty.init()
    assert empty.forget(WEEK_MS - 1).records == ()


def test_an_open_or_prepared_transaction_never_dies(ongoing):
    assert ongoing.forget(10 * WEEK_MS).records == ()
    ongoing.commit()
    assert ongoing.forget(10 * WEEK_MS).records == ()


def test_a_forgotten_id_is_unknown_and_stays_so_after_a_reload(empty):
    empty.forget(WEEK_MS)
    for _ in range(2):
        assert empty.add(PAYMENTS).reply.error is E.INVALID_PRODUCER_ID_MAPPING
        assert empty.commit().reply.error is E.INVALID_PRODUCER_ID_MAPPING
        empty.reload()


def test_its_producer_gets_a_fresh_producer_id_even_if_it_names_the_old_one(empty):
    empty.forget(WEEK_MS)
    reply = empty.init(7, 0).reply
    assert (reply.error, reply.producer_id, reply.epoch) == (E.NONE, 8, 0)
