"""What passing time does: open transactions are aborted, unused ids forgotten."""

from collections.abc import Iterable

from semel.core.machine import Decision
from semel.core.transactions.ending import FreshProducerId, forced_abort
from semel.core.transactions.states import DEAD, IDLE, ONGOING
from semel.core.transactions.transaction import NO_PARTITIONS, Transaction


def abort_timed_out(
    open_transactions: Iterable[Transaction], fresh_producer_id: FreshProducerId, now_ms: int
) -> Decision:
    """The timeout counts from the transaction's first partition, however busy it has been since."""
    decisions = [
        forced_abort(txn, f"timed out after {txn.timeout_ms} ms", fresh_producer_id, now_ms)
        for txn in open_transactions
        if is_late(txn, now_ms)
    ]
    return Decision(
        records=tuple(record for decision in decisions for record in decision.records),
        effects=tuple(effect for decision in decisions for effect in decision.effects),
    )


def is_late(txn: Transaction, now_ms: int) -> bool:
    if txn.state is not ONGOING or txn.two_phase:
        return False
    return txn.started_at_ms + txn.timeout_ms < now_ms


def forget_idle(transactions: Iterable[Transaction], expiration_ms: int, now_ms: int) -> Decision:
    """Tombstones for ids unused for long. Never an open one, however old: that would lose
    data."""
    return Decision(
        records=tuple(
            txn.moved(DEAD, now_ms, partitions=NO_PARTITIONS)
            for txn in transactions
            if txn.state in IDLE and txn.updated_at_ms <= now_ms - expiration_ms
        )
    )
