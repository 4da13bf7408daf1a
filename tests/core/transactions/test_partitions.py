"""Adding partitions and verifying them: every state, both versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.core.transactions.commands import AddPartitions, VerifyPartitions
from semel.core.transactions.partitions import includes, verify_partitions
from semel.core.transactions.states import TxnState
from semel.core.transactions.transaction import Transaction
from semel.wire.errors import ErrorCode as E

PAYMENTS, ORDERS = ("payments", 0), ("orders", 3)


def verify(case, *partitions, producer_id=7, epoch=0):
    """The coordinator's answer, with which the short way to ask must agree."""
    reply = case.do(VerifyPartitions("etl", producer_id, epoch, frozenset(partitions))).reply
    for partition, error in reply.by_partition.items():
        assert includes(case.txn, producer_id, epoch, partition) == (error is E.NONE)
    return reply


def test_the_first_partition_begins_the_transaction(empty):
    assert empty.add(PAYMENTS).reply.error is E.NONE
    assert empty.state is TxnState.ONGOING
    assert empty.txn.started_at_ms == empty.now_ms


def test_more_partitions_join_and_the_start_stays(ongoing):
    began = ongoing.now_ms
    ongoing.now_ms += 50
    ongoing.add(ORDERS)
    assert ongoing.txn.partitions == {PAYMENTS, ORDERS}
    assert (ongoing.txn.started_at_ms, ongoing.txn.updated_at_ms) == (began, began + 50)


def test_what_is_there_already_writes_nothing(ongoing):
    decision = ongoing.add(PAYMENTS)
    assert decision.reply.error is E.NONE
    assert decision.records == ()


@pytest.mark.parametrize("outcome", [True, False])
@pytest.mark.parametrize("version", [0, 2])
def test_after_completion_adding_begins_the_next_transaction(new_case, outcome, version):
    case = new_case(version=version)
    case.init()
    case.add(PAYMENTS)
    case.end(outcome)
    case.finish()
    case.now_ms += 9
    assert case.add(ORDERS, epoch=case.txn.epoch).reply.error is E.NONE
    assert case.txn.partitions == {ORDERS}
    assert case.txn.started_at_ms == case.now_ms


@pytest.mark.parametrize("outcome", [True, False])
def test_while_the_markers_are_being_written_it_waits(ongoing, outcome):
    ongoing.end(outcome)
    assert ongoing.add(ORDERS).reply.error is E.CONCURRENT_TRANSACTIONS


def test_the_holder_of_the_next_producer_id_waits_too(ongoing_2):
    ongoing_2.force(epoch=32766)
    reply = ongoing_2.commit(epoch=32766).reply
    assert (reply.producer_id, reply.epoch) == (8, 0)
    assert ongoing_2.add(ORDERS, producer_id=8).reply.error is E.CONCURRENT_TRANSACTIONS


def test_strangers_are_refused(ongoing):
    assert ongoing.add(ORDERS, producer_id=99).reply.error is E.INVALID_PRODUCER_ID_MAPPING
    for epoch in (-1, 1, 9):
        assert ongoing.add(ORDERS, epoch=epoch).reply.error is E.PRODUCER_FENCED
    unknown = ongoing.do(AddPartitions("who?", 7, 0, frozenset({ORDERS})))
    assert unknown.reply.error is E.INVALID_PRODUCER_ID_MAPPING
    assert ongoing.txn.partitions == {PAYMENTS}


def test_the_clients_version_is_remembered(empty):
    empty.add(PAYMENTS, version=2)
    assert empty.txn.client_version == 2


class TestVerifying:
    def test_a_partition_of_the_open_transaction_is_fine_and_another_must_abort(self, ongoing):
        assert verify(ongoing, PAYMENTS, ORDERS).by_partition == {
            PAYMENTS: E.NONE,
            ORDERS: E.TRANSACTION_ABORTABLE,
        }

    def test_it_writes_nothing(self, ongoing):
        command = VerifyPartitions("etl", 7, 0, frozenset({PAYMENTS}))
        decision = ongoing.do(command)
        assert decision.records == ()
        assert decision.effects == ()

    def test_an_idle_id_has_no_partitions(self, empty):
        assert verify(empty, PAYMENTS).by_partition == {PAYMENTS: E.TRANSACTION_ABORTABLE}

    def test_a_transaction_that_is_ending_takes_nothing_more(self, ongoing):
        ongoing.commit()
        assert verify(ongoing, PAYMENTS).by_partition == {PAYMENTS: E.CONCURRENT_TRANSACTIONS}

    def test_an_unknown_id_includes_nothing(self):
        assert not includes(None, 7, 0, PAYMENTS)

    def test_zombies_and_strangers(self, ongoing):
        fenced, unknown = E.PRODUCER_FENCED, E.INVALID_PRODUCER_ID_MAPPING
        assert verify(ongoing, PAYMENTS, epoch=1).by_partition == {PAYMENTS: fenced}
        assert verify(ongoing, PAYMENTS, producer_id=9).by_partition == {PAYMENTS: unknown}


transactions = st.builds(
    Transaction,
    st.just("etl"),
    producer_id=st.integers(6, 7),
    epoch=st.integers(0, 2),
    timeout_ms=st.just(60_000),
    state=st.sampled_from(TxnState),
    partitions=st.frozensets(st.sampled_from([PAYMENTS, ORDERS])),
    next_producer_id=st.sampled_from([-1, 7, 8]),
    next_epoch=st.sampled_from([-1, 0, 1]),
)


@given(st.none() | transactions, st.integers(6, 8), st.integers(0, 2))
def test_a_partition_is_included_where_the_coordinator_would_say_so(txn, producer_id, epoch):
    command = VerifyPartitions("etl", producer_id, epoch, frozenset({PAYMENTS, ORDERS}))
    errors = verify_partitions(txn, command).reply.by_partition
    for partition in (PAYMENTS, ORDERS):
        is_verified = errors[partition] is E.NONE
        assert includes(txn, producer_id, epoch, partition) == is_verified
