"""DescribeTransactions and ListTransactions: what the coordinator knows, filtered (KIP-664)."""

from collections.abc import Iterable

from semel.core.machine import Decision
from semel.core.patterns import InvalidPattern, Pattern, compile_pattern
from semel.core.transactions.commands import Found, List
from semel.core.transactions.transaction import Transaction
from semel.wire.errors import ErrorCode


def describe(txn: Transaction | None) -> Decision:
    if txn is None:
        return Decision(Found(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND))
    return Decision(Found(transactions=(txn,)))


def list_transactions(transactions: Iterable[Transaction], command: List, now_ms: int) -> Decision:
    try:
        pattern = compile_pattern(command.pattern) if command.pattern else None
    except InvalidPattern:
        return Decision(Found(ErrorCode.INVALID_REGULAR_EXPRESSION))
    found = tuple(txn for txn in transactions if _matches(txn, command, pattern, now_ms))
    return Decision(Found(transactions=found))


def _matches(txn: Transaction, command: List, pattern: Pattern | None, now_ms: int) -> bool:
    if command.states is not None and txn.state not in command.states:
        return False
    if command.producer_ids and txn.producer_id not in command.producer_ids:
        return False
    if command.longer_than_ms >= 0 and now_ms - txn.started_at_ms <= command.longer_than_ms:
        return False
    return pattern is None or pattern.fullmatch(txn.transactional_id) is not None
