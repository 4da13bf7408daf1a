"""The transaction coordinator of one partition of __transaction_state. Pure: see core/machine.py.

A transactional id owns one `Transaction`. The decisions live beside this file, one module per kind
of move: initializing, partitions, ending, expiring, listing.
"""

from collections.abc import Callable
from typing import Any

from semel.core.machine import Decision
from semel.core.transactions import expiring, initializing, listing
from semel.core.transactions.commands import (
    AbortTimedOut,
    AddPartitions,
    Command,
    Describe,
    EndTxn,
    ForgetIdle,
    InitProducerId,
    List,
    MarkersWritten,
    VerifyPartitions,
    WriteMarkers,
)
from semel.core.transactions.ending import end_txn, markers_to_write, markers_written
from semel.core.transactions.partitions import add_partitions, verify_partitions
from semel.core.transactions.rules import Rules
from semel.core.transactions.states import DEAD, ONGOING
from semel.core.transactions.transaction import Transaction


class Coordinator:
    """`fresh_producer_id` hands out numbers that were never handed out before, anywhere."""

    def __init__(self, fresh_producer_id: Callable[[], int], rules: Rules | None = None) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.open_ids: set[str] = set()
        self._fresh_producer_id = fresh_producer_id
        self._rules = rules or Rules()
        self._decisions: dict[type, Callable[[Any, int], Decision]] = {
            InitProducerId: self._init_producer_id,
            AddPartitions: self._add_partitions,
            VerifyPartitions: self._verify_partitions,
            EndTxn: self._end_txn,
            MarkersWritten: self._markers_written,
            AbortTimedOut: self._abort_timed_out,
            ForgetIdle: self._forget_idle,
            Describe: self._describe,
            List: self._list,
        }

    def decide(self, command: Command, now_ms: int) -> Decision:
        return self._decisions[type(command)](command, now_ms)

    def apply(self, record: Transaction) -> None:
        transactional_id = record.transactional_id
        if record.state is DEAD:
            self.transactions.pop(transactional_id, None)
            self.open_ids.discard(transactional_id)
            return
        old = self.transactions.get(transactional_id)
        # Not MOVES: `moved` has checked those, and a compacted log has gaps. Epochs only grow.
        assert old is None or record.epoch >= old.epoch or record.producer_id != old.producer_id
        self.transactions[transactional_id] = record
        if record.state is ONGOING:
            self.open_ids.add(transactional_id)
        else:
            self.open_ids.discard(transactional_id)

    def resume(self) -> tuple[WriteMarkers, ...]:
        """The markers that a crash may have prevented."""
        return tuple(markers_to_write(txn) for txn in self.transactions.values() if txn.prepared)

    def _init_producer_id(self, command: InitProducerId, now_ms: int) -> Decision:
        txn = self.transactions.get(command.transactional_id)
        return initializing.init_producer_id(
            txn, command, self._rules, self._fresh_producer_id, now_ms
        )

    def _add_partitions(self, command: AddPartitions, now_ms: int) -> Decision:
        return add_partitions(self.transactions.get(command.transactional_id), command, now_ms)

    def _verify_partitions(self, command: VerifyPartitions, now_ms: int) -> Decision:
        return verify_partitions(self.transactions.get(command.transactional_id), command)

    def _end_txn(self, command: EndTxn, now_ms: int) -> Decision:
        txn = self.transactions.get(command.transactional_id)
        return end_txn(txn, command, self._fresh_producer_id, now_ms)

    def _markers_written(self, command: MarkersWritten, now_ms: int) -> Decision:
        return markers_written(self.transactions.get(command.transactional_id), command, now_ms)

    def _abort_timed_out(self, command: AbortTimedOut, now_ms: int) -> Decision:
        open_transactions = [self.transactions[name] for name in self.open_ids]
        return expiring.abort_timed_out(open_transactions, self._fresh_producer_id, now_ms)

    def _forget_idle(self, command: ForgetIdle, now_ms: int) -> Decision:
        return expiring.forget_idle(
            self.transactions.values(), self._rules.id_expiration_ms, now_ms
        )

    def _describe(self, command: Describe, now_ms: int) -> Decision:
        return listing.describe(self.transactions.get(command.transactional_id))

    def _list(self, command: List, now_ms: int) -> Decision:
        return listing.list_transactions(self.transactions.values(), command, now_ms)
