"""What a partition's answer to a marker means for the transaction that owes it."""

import pytest

from semel.core.transactions.commands import WriteMarkers
from semel.core.transactions.markers import VERDICTS, MarkersOwed, MarkerVerdict
from semel.core.transactions.states import TxnState
from semel.core.transactions.transaction import Transaction
from semel.wire.errors import ErrorCode as E

A, B = ("a", 0), ("b", 1)


def order(*partitions):
    state = TxnState.PREPARE_ABORT
    return WriteMarkers(Transaction("etl", 7, 1, 60_000, state, frozenset(partitions)))


@pytest.fixture
def owed():
    return MarkersOwed(order(A, B))


def test_a_debt_is_paid_when_every_partition_has_its_marker(owed):
    assert owed.hear(A, E.NONE) is MarkerVerdict.WRITTEN
    assert not owed.paid
    owed.hear(B, E.NONE)
    assert owed.paid


def test_a_transaction_without_partitions_owes_nothing():
    assert MarkersOwed(order()).paid


@pytest.mark.parametrize(
    "error",
    [
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.NOT_LEADER_OR_FOLLOWER,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        E.REQUEST_TIMED_OUT,
        E.KAFKA_STORAGE_ERROR,
    ],
)
def test_what_may_pass_is_sent_again(owed, error):
    assert owed.hear(A, error) is MarkerVerdict.AGAIN
    assert owed.partitions == {A, B}


@pytest.mark.parametrize("error", [E.INVALID_PRODUCER_EPOCH, E.TRANSACTION_COORDINATOR_FENCED])
def test_a_newer_epoch_elsewhere_ends_the_sending(owed, error):
    assert owed.hear(A, error) is MarkerVerdict.CANCEL
    assert owed.cancelled
    owed.hear(B, E.NONE)
    assert not owed.paid


@pytest.mark.parametrize("error", [E.UNSUPPORTED_VERSION, E.UNSUPPORTED_FOR_MESSAGE_FORMAT])
def test_a_partition_without_transactions_is_owed_nothing(owed, error):
    assert owed.hear(A, error) is MarkerVerdict.DROP
    assert owed.partitions == {B}


@pytest.mark.parametrize(
    "error",
    [
        E.CORRUPT_MESSAGE,
        E.MESSAGE_TOO_LARGE,
        E.RECORD_LIST_TOO_LARGE,
        E.INVALID_REQUIRED_ACKS,
        E.UNKNOWN_SERVER_ERROR,
    ],
)
def test_what_cannot_be_is_a_bug_and_pays_nothing(owed, error):
    assert error not in VERDICTS
    assert owed.hear(A, error) is MarkerVerdict.BUG
    assert owed.partitions == {A, B}


def test_a_deleted_topic_is_forgotten(owed):
    owed.forget(A)
    owed.hear(B, E.NONE)
    assert owed.paid
