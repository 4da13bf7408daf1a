"""EndTxn and every other way a transaction ends: prepare, markers, complete.

Kafka's TransactionCoordinator.endTransaction, both versions. Version 1 keeps the epoch, so a retry
is known by the outcome alone. Version 2 (KIP-890) gives every transaction its own epoch: a retry is
known by the epoch before the present one, and a late message of transaction n can never touch
transaction n + 1. Forced aborts always work as in version 2, also upon clients of version 1.
"""

from collections.abc import Callable
from typing import Any

from semel.core.machine import Decision
from semel.core.transactions.commands import OK, EndTxn, MarkersWritten, Reply, WriteMarkers
from semel.core.transactions.states import (
    COMPLETE,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
)
from semel.core.transactions.transaction import (
    LAST_USABLE_EPOCH,
    NO_EPOCH,
    NO_PARTITIONS,
    NO_PRODUCER_ID,
    TV_0,
    TV_2,
    Transaction,
)
from semel.wire.errors import ErrorCode

FreshProducerId = Callable[[], int]

SAME_OUTCOME = {
    True: frozenset({PREPARE_COMMIT, COMPLETE_COMMIT}),
    False: frozenset({PREPARE_ABORT, COMPLETE_ABORT}),
}


def end_txn(
    txn: Transaction | None, command: EndTxn, fresh_producer_id: FreshProducerId, now_ms: int
) -> Decision:
    if txn is None:
        return Decision(Reply(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
    if command.client_version < TV_2 and not txn.handed_over:
        return _end_version_1(txn, command, now_ms)
    return _end_version_2(txn, command, fresh_producer_id, now_ms)


def forced_abort(
    txn: Transaction,
    reason: str,
    fresh_producer_id: FreshProducerId,
    now_ms: int,
    reply: Reply | None = None,
) -> Decision:
    """By a timeout, or by a newcomer: its producer did not ask, and is fenced by the new epoch."""
    assert txn.state is ONGOING
    cause = txn.fenced(reason)
    return _prepare_version_2(txn, False, fresh_producer_id, now_ms, reply, cause=cause)


def markers_written(txn: Transaction | None, command: MarkersWritten, now_ms: int) -> Decision:
    if txn is None or txn is not command.prepared:
        return Decision()  # reported twice, or late: another transaction has begun
    state = COMPLETE_COMMIT if txn.committing else COMPLETE_ABORT
    if txn.next_producer_id == NO_PRODUCER_ID:
        return Decision(records=(txn.moved(state, now_ms, partitions=NO_PARTITIONS),))
    producer_id, epoch = txn.owner
    handed_on = txn.moved(
        state,
        now_ms,
        producer_id=producer_id,
        epoch=epoch,
        next_producer_id=NO_PRODUCER_ID,
        next_epoch=NO_EPOCH,
        partitions=NO_PARTITIONS,
    )
    return Decision(records=(handed_on,))


def markers_to_write(txn: Transaction) -> WriteMarkers:
    """What a prepared transaction still has to tell its partitions. Twice is harmless, never is
    not: so this is also what a coordinator sends anew when it has loaded its log."""
    assert txn.prepared
    return WriteMarkers(txn)


def _end_version_1(txn: Transaction, command: EndTxn, now_ms: int) -> Decision:
    owner_id, owner_epoch = txn.owner
    if command.producer_id != owner_id:
        return Decision(Reply(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
    if command.epoch != owner_epoch:
        return Decision(Reply(ErrorCode.PRODUCER_FENCED))
    if txn.state is ONGOING:
        prepared = txn.moved(
            PREPARE_COMMIT if command.commit else PREPARE_ABORT, now_ms, client_version=TV_0
        )
        return Decision(OK, (prepared,), (WriteMarkers(prepared),))
    if txn.state not in SAME_OUTCOME[command.commit]:
        return Decision(Reply(ErrorCode.INVALID_TXN_STATE))
    if txn.prepared:
        return Decision(Reply(ErrorCode.CONCURRENT_TRANSACTIONS))
    return Decision(OK)  # the first answer was lost on its way


def _end_version_2(
    txn: Transaction, command: EndTxn, fresh_producer_id: FreshProducerId, now_ms: int
) -> Decision:
    is_retry = _is_retry(txn, command)
    if not is_retry and command.producer_id != txn.owner[0]:
        return Decision(Reply(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
    if txn.prepared or txn.state in COMPLETE:
        if is_retry:
            return _end_again(txn, command)
        if txn.prepared and command.epoch == txn.owner[1]:
            # It ends the transaction after this one before it began. Kafka says 51 here, too.
            return Decision(Reply(ErrorCode.CONCURRENT_TRANSACTIONS))
    if (command.producer_id, command.epoch) != txn.owner:
        return Decision(Reply(ErrorCode.PRODUCER_FENCED))
    if txn.state is ONGOING:
        return _prepare_version_2(txn, command.commit, fresh_producer_id, now_ms)
    if command.commit:
        return Decision(Reply(ErrorCode.INVALID_TXN_STATE))
    # Nothing was added that we know of, yet something may be under way: the epoch moves past it.
    return _prepare_version_2(txn, False, fresh_producer_id, now_ms, started_at_ms=now_ms)


def _is_retry(txn: Transaction, command: EndTxn) -> bool:
    """It carries the producer id and epoch from before the bump that the first attempt made.

    An end of version 1 makes no bump: the epoch before it is that of a predecessor, who must not be
    told the ids of the producer that took its place (Kafka 4.3 tells them).
    """
    if txn.state in (EMPTY, ONGOING) or txn.client_version < TV_2:
        return False
    after = (command.producer_id, command.epoch + 1)
    if after == txn.owner:
        return True
    if txn.prepared:
        return after == (txn.producer_id, txn.epoch) and not txn.handed_over
    return (
        command.producer_id == txn.previous_producer_id
        and command.epoch == LAST_USABLE_EPOCH
        and txn.epoch == 0
    )


def _end_again(txn: Transaction, command: EndTxn) -> Decision:
    if txn.state not in SAME_OUTCOME[command.commit]:
        return Decision(Reply(ErrorCode.INVALID_TXN_STATE))
    if txn.prepared:
        return Decision(Reply(ErrorCode.CONCURRENT_TRANSACTIONS))
    return Decision(_owner_reply(txn))


def _prepare_version_2(
    txn: Transaction,
    commit: bool,
    fresh_producer_id: FreshProducerId,
    now_ms: int,
    reply: Reply | None = None,
    **changes: Any,
) -> Decision:
    """The point of no return: once this record is durable, the outcome is."""
    if txn.handed_over:
        changes["next_epoch"] = txn.next_epoch + 1
    elif txn.exhausted:
        changes["next_producer_id"] = fresh_producer_id()
    prepared = txn.moved(
        PREPARE_COMMIT if commit else PREPARE_ABORT,
        now_ms,
        epoch=txn.epoch + 1,
        last_epoch=txn.owner[1],
        client_version=TV_2,
        **changes,
    )
    return Decision(reply or _owner_reply(prepared), (prepared,), (markers_to_write(prepared),))


def _owner_reply(txn: Transaction) -> Reply:
    producer_id, epoch = txn.owner
    return Reply(producer_id=producer_id, epoch=epoch)
