"""InitProducerId: who holds a transactional id, and under which producer id and epoch.

The rules are those of Kafka's TransactionCoordinator.prepareInitProducerIdTransit with KIP-360
(a producer that asks to go on names what it holds) and KIP-939 (two-phase commit). One rule is
stricter: over an open transaction, a caller that names an outdated epoch is fenced at once. Kafka
aborts the transaction of the present owner first and fences the caller only when it asks again.
"""

from collections.abc import Callable

from semel.core.machine import Decision
from semel.core.transactions.commands import InitProducerId, Reply
from semel.core.transactions.ending import forced_abort
from semel.core.transactions.rules import Rules
from semel.core.transactions.states import EMPTY, ONGOING
from semel.core.transactions.transaction import (
    LAST_USABLE_EPOCH,
    NEVER_MS,
    NO_EPOCH,
    NO_PARTITIONS,
    NO_PRODUCER_ID,
    Transaction,
)
from semel.wire.errors import ErrorCode

FreshProducerId = Callable[[], int]


def init_producer_id(
    txn: Transaction | None,
    command: InitProducerId,
    rules: Rules,
    fresh_producer_id: FreshProducerId,
    now_ms: int,
) -> Decision:
    error = _refusal(command, rules)
    if error is not None:
        return Decision(Reply(error))
    if txn is None:
        return _owner_decision(_new_transaction(command, fresh_producer_id(), now_ms))
    if _names_a_stranger(txn, command):
        return Decision(Reply(ErrorCode.PRODUCER_FENCED))
    if txn.prepared:
        return Decision(Reply(ErrorCode.CONCURRENT_TRANSACTIONS))
    if txn.state is ONGOING:
        return _over_an_open_transaction(txn, command, fresh_producer_id, now_ms)
    return _over_an_idle_id(txn, command, fresh_producer_id, now_ms)


def _refusal(command: InitProducerId, rules: Rules) -> ErrorCode | None:
    half_named = (command.expected_producer_id == NO_PRODUCER_ID) != (
        command.expected_epoch == NO_EPOCH
    )
    if half_named or not command.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if command.enable_two_phase and not rules.two_phase:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if command.keep_prepared:
        if not rules.two_phase:
            return ErrorCode.UNSUPPORTED_VERSION
        if not command.enable_two_phase:
            return ErrorCode.INVALID_REQUEST  # a timeout would end what is to be kept
    if not command.enable_two_phase and not 0 < command.timeout_ms <= rules.max_timeout_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return None


def _new_transaction(command: InitProducerId, producer_id: int, now_ms: int) -> Transaction:
    return Transaction(
        command.transactional_id,
        producer_id,
        epoch=0,
        timeout_ms=_timeout_ms(command),
        updated_at_ms=now_ms,
        previous_producer_id=producer_id,
    )


def _names_a_stranger(txn: Transaction, command: InitProducerId) -> bool:
    """A named producer id must be the owner's, or the one it had before its epochs ran out (then it
    asks again because it never heard of the new one). Epochs are compared later."""
    named = command.expected_producer_id
    if named in (NO_PRODUCER_ID, txn.owner[0], txn.producer_id):
        return False
    return not (named == txn.previous_producer_id and command.expected_epoch >= LAST_USABLE_EPOCH)


def _over_an_open_transaction(
    txn: Transaction, command: InitProducerId, fresh_producer_id: FreshProducerId, now_ms: int
) -> Decision:
    named = (command.expected_producer_id, command.expected_epoch)
    if named not in ((NO_PRODUCER_ID, NO_EPOCH), txn.owner):
        return Decision(Reply(ErrorCode.PRODUCER_FENCED))
    if command.keep_prepared:
        return _hand_over(txn, command, fresh_producer_id, now_ms)
    # The bumped epoch fences the predecessor. It is told to nobody: the newcomer asks again when
    # the markers are written, and gets the one after it.
    return forced_abort(
        txn,
        _takeover(command),
        fresh_producer_id,
        now_ms,
        reply=Reply(ErrorCode.CONCURRENT_TRANSACTIONS),
    )


def _hand_over(
    txn: Transaction, command: InitProducerId, fresh_producer_id: FreshProducerId, now_ms: int
) -> Decision:
    """KIP-939: the transaction stays open under its own producer id and epoch, which its markers
    need; a new epoch, kept beside them, is all that may end it."""
    producer_id, epoch = txn.owner
    # One short of the last epoch, because EndTxn will need one more.
    if epoch + 1 >= LAST_USABLE_EPOCH:
        producer_id, epoch = fresh_producer_id(), NO_EPOCH
    txn = txn.moved(
        ONGOING,
        now_ms,
        next_producer_id=producer_id,
        next_epoch=epoch + 1,
        timeout_ms=NEVER_MS,
        cause=txn.fenced(_takeover(command)),
    )
    reply = Reply(
        producer_id=txn.next_producer_id,
        epoch=txn.next_epoch,
        ongoing_producer_id=txn.producer_id,
        ongoing_epoch=txn.epoch,
    )
    return Decision(reply, (txn,))


def _over_an_idle_id(
    txn: Transaction, command: InitProducerId, fresh_producer_id: FreshProducerId, now_ms: int
) -> Decision:
    named_epoch = command.expected_epoch
    producer_id, epoch, last_epoch = txn.producer_id, txn.epoch, txn.last_epoch
    if named_epoch in (NO_EPOCH, txn.epoch):
        last_epoch = named_epoch
        producer_id, epoch = (
            (fresh_producer_id(), 0) if txn.exhausted else (txn.producer_id, txn.epoch + 1)
        )
    elif named_epoch != txn.last_epoch:
        return Decision(Reply(ErrorCode.PRODUCER_FENCED))
    # Else it asks again because the answer to its last bump was lost: the same answer, no bump.
    txn = txn.moved(
        EMPTY,
        now_ms,
        producer_id=producer_id,
        epoch=epoch,
        last_epoch=last_epoch,
        timeout_ms=_timeout_ms(command),
        partitions=NO_PARTITIONS,
        started_at_ms=-1,
        cause=txn.fenced(_takeover(command)) if named_epoch == NO_EPOCH else None,
    )
    return _owner_decision(txn)


def _timeout_ms(command: InitProducerId) -> int:
    return NEVER_MS if command.enable_two_phase else command.timeout_ms


def _takeover(command: InitProducerId) -> str:
    return f"taken over by {command.who}" if command.who else "taken over by another producer"


def _owner_decision(txn: Transaction) -> Decision:
    return Decision(Reply(producer_id=txn.producer_id, epoch=txn.epoch), (txn,))
