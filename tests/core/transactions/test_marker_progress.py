"""What a partition's answer to a marker means for its transaction."""

import pytest

from semel.core.transactions.commands import WriteMarkers
from semel.core.transactions.markers import VERDICTS, MarkerProgress, MarkerVerdict
from semel.core.transactions.states import TxnState
from semel.core.transactions.transaction import Transaction
from semel.wire.errors import ErrorCode as E

A, B = ("a", 0), ("b", 1)


def order(*partitions):
    state = TxnState.PREPARE_ABORT
    return WriteMarkers(Transaction("etl", 7, 1, 60_000, state, frozenset(partitions)))


@pytest.fixture
def progress():
    return MarkerProgress(order(A, B))


def test_a_transaction_is_complete_when_every_partition_has_its_marker(progress):
    assert progress.answered(A, E.NONE) is MarkerVerdict.WRITTEN
    assert not progress.complete
    progress.answered(B, E.NONE)
    assert progress.complete


def test_a_transaction_without_partitions_needs_no_marker():
    assert MarkerProgress(order()).complete


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
def test_what_may_pass_is_sent_again(progress, error):
    assert progress.answered(A, error) is MarkerVerdict.AGAIN
    assert progress.partitions == {A, B}


@pytest.mark.parametrize("error", [E.INVALID_PRODUCER_EPOCH, E.TRANSACTION_COORDINATOR_FENCED])
def test_a_newer_epoch_elsewhere_ends_the_sending(progress, error):
    assert progress.answered(A, error) is MarkerVerdict.CANCEL
    assert progress.cancelled
    progress.answered(B, E.NONE)
    assert not progress.complete


@pytest.mark.parametrize("error", [E.UNSUPPORTED_VERSION, E.UNSUPPORTED_FOR_MESSAGE_FORMAT])
def test_a_partition_without_transactions_needs_no_marker(progress, error):
    assert progress.answered(A, error) is MarkerVerdict.DROP
    assert progress.partitions == {B}


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
def test_what_cannot_be_is_a_bug_and_completes_nothing(progress, error):
    assert error not in VERDICTS
    assert progress.answered(A, error) is MarkerVerdict.BUG
    assert progress.partitions == {A, B}


def test_a_deleted_topic_is_forgotten(progress):
    progress.forget(A)
    progress.answered(B, E.NONE)
    assert progress.complete
