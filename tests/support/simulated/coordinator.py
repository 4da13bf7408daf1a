"""A simulated coordinator: the product's machine and bytes, run as the broker runs them."""

from collections.abc import Callable
from typing import Any

from semel.core.machine import Decision
from semel.core.transactions import records
from semel.core.transactions.commands import WriteMarkers
from semel.core.transactions.coordinator import Coordinator
from semel.core.transactions.rules import Rules
from semel.core.transactions.states import COMPLETE, MOVES

Hear = Callable[[Any], None]


class SimulatedCoordinator:
    """Decides on what is applied, speaks of what is durable. A crash keeps only the latter."""

    def __init__(self, fresh_producer_id: Callable[[], int], rules: Rules) -> None:
        self._fresh_producer_id = fresh_producer_id
        self._rules = rules
        self.log: list[tuple[bytes | None, bytes | None]] = []
        self.durable = 0
        self.epoch = 0
        self.loaded = True
        self.machine = self._new_machine()
        self.orders: list[WriteMarkers] = []
        """Released effects, for the world to carry out."""
        self._parked: list[tuple[int, Decision, Hear | None]] = []

    def submit(self, command: Any, now_ms: int, hear: Hear | None = None) -> Decision | None:
        if not self.loaded:
            if hear is not None:
                hear(None)
            return None
        decision = self.machine.decide(command, now_ms)
        for record in decision.records:
            old = self.machine.transactions.get(record.transactional_id)
            assert old is None or record.state in MOVES[old.state], "an illegal move"
            assert record.state not in COMPLETE or not record.partitions, "complete, yet it owes"
            self.log.append(records.encode(record)[:2])
            self.machine.apply(record)
        self._parked.append((len(self.log), decision, hear))
        self._release()
        return decision

    def sync(self) -> None:
        self.durable = len(self.log)
        self._release()

    def crash(self) -> None:
        """Loses what was not synced, and every reply that waited for it; then loads again."""
        del self.log[self.durable :]
        self._parked.clear()
        self.orders.clear()
        self.load()

    def unload(self) -> None:
        """The partition moves elsewhere, with the whole log; what waits is never answered."""
        self.crash()
        self.loaded = False

    def load(self) -> None:
        self.epoch += 1
        self.loaded = True
        self.machine = self._new_machine()
        for key, value in self.log:
            record = records.decode(key, value)
            assert record is not None
            self.machine.apply(record)
        self.orders = list(self.machine.resume())

    def _release(self) -> None:
        while self._parked and self._parked[0][0] <= self.durable:
            _, decision, hear = self._parked.pop(0)
            # Orders before the reply, as the runtime does.
            self.orders += decision.effects
            if hear is not None:
                hear(decision.reply)

    def _new_machine(self) -> Coordinator:
        return Coordinator(self._fresh_producer_id, self._rules)
