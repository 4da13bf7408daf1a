"""Clients, a network, a coordinator and partitions, driven by dice from one seed.

What is asserted, during the run and after it has settled:

- an answer that was heard survives: committed stays committed, acknowledged stays there;
- nobody is fenced unless somebody took over, or time was up; and time is up when it is up;
- a transaction is complete only after its own markers were written;
- no transaction is both: its records are all visible to committed readers, or none is;
- a zombie changes nothing;
- every prepared transaction completes;
- committed readers never see aborted, torn or repeated data;
- the last stable offset never goes back and never sticks.
"""

import random
from collections import Counter
from itertools import count
from typing import Any

from tests.support.simulated.client import NOBODY, Client, Request
from tests.support.simulated.coordinator import SimulatedCoordinator
from tests.support.simulated.partition import SimulatedPartition, marker_of

from semel.core.transactions import records
from semel.core.transactions.commands import (
    AbortTimedOut,
    AddPartitions,
    EndTxn,
    ForgetIdle,
    InitProducerId,
    MarkersWritten,
    VerifyPartitions,
    WriteMarkers,
)
from semel.core.transactions.markers import MarkerProgress, MarkerVerdict
from semel.core.transactions.rules import Rules
from semel.core.transactions.states import ONGOING
from semel.core.transactions.transaction import Transaction
from semel.wire.errors import ErrorCode

IDS = ("a", "b")
PARTITIONS = 3
TIMEOUT_MS = 20_000
FORGET_AFTER_MS = 15_000

# What happens next, by weight. Disasters are rare enough for transactions to get somewhere between.
ACTIONS = {
    "client": 300,
    "request": 300,
    "answer": 300,
    "marker": 150,
    "late report": 20,
    "sync coordinator": 200,
    "sync partition": 300,
    "read": 50,
    "newcomer": 4,
    "expire": 10,
    "forget": 3,
    "crash coordinator": 3,
    "crash broker": 3,
    "move": 3,
}


class Delivery:
    """One marker on its way to one partition."""

    def __init__(self, progress: MarkerProgress, partition: int, coordinator_epoch: int) -> None:
        self.progress = progress
        self.partition = partition
        self.coordinator_epoch = coordinator_epoch


class World:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.now_ms = 0
        self.partitions = [SimulatedPartition(index) for index in range(PARTITIONS)]
        self.markers_first = self.dice.random() < 0.5
        """As on one node: markers are written before EndTxn is answered."""
        rules = Rules(id_expiration_ms=FORGET_AFTER_MS)
        self.coordinator = SimulatedCoordinator(count(100).__next__, rules)
        if self.dice.random() < 0.4:
            self._use_up_epochs()
        self.clients: list[Client] = []
        self.newest: dict[str, tuple[int, int]] = {}
        self.wire: list[Request] = []
        self.answers: list[tuple[Request, ErrorCode, Any, int]] = []
        self.deliveries: list[Delivery] = []
        self.reports: list[WriteMarkers] = []
        """Reports of written markers that come once more, late."""
        self.takeovers = Counter[str]()
        """By transactional id: how often its producer was replaced, timed out or forgotten."""
        self._tags = count()
        self._names = count()
        for transactional_id in IDS:
            self.newcomer(transactional_id)

    def _use_up_epochs(self) -> None:
        """Begin near the last epoch, or nobody would ever see one producer id follow another."""
        for producer_id, name in enumerate(IDS):
            epoch = self.dice.randrange(32755, 32767)
            old = Transaction(
                name, producer_id, epoch, TIMEOUT_MS, previous_producer_id=producer_id
            )
            self.coordinator.log.append(records.encode(old)[:2])
        self.coordinator.sync()
        self.coordinator.load()

    # What clients use

    def next_tag(self) -> int:
        return next(self._tags)

    def send(self, request: Request) -> None:
        self.wire.append(request)

    def forget(self, request: Request) -> None:
        self.wire = [other for other in self.wire if other is not request]

    def heard_identity(self, client: Client, identity: tuple[int, int]) -> None:
        known = self.newest.get(client.transactional_id, NOBODY)
        self.newest[client.transactional_id] = max(known, identity)

    def newcomer(self, transactional_id: str) -> None:
        version = self.dice.choice((0, 2))
        name = f"{transactional_id}{next(self._names)}"
        self.clients.append(Client(self, name, transactional_id, version))

    # One step

    def step(self) -> None:
        self.now_ms += self.dice.randrange(60)
        action = self.dice.choices(list(ACTIONS), list(ACTIONS.values()))[0]
        match action:
            case "client":
                self._let_a_client_act()
            case "request":
                self._deliver_request()
            case "answer":
                self._deliver_answer()
            case "marker":
                self._deliver_marker()
            case "late report":
                self._report_again()
            case "sync coordinator":
                self.coordinator.sync()
                self._take_orders()
            case "sync partition":
                self.dice.choice(self.partitions).sync()
            case "read":
                self.dice.choice(self.partitions).read_committed()
            case "newcomer":
                self.newcomer(self.dice.choice(IDS))
            case "expire":
                self._submit(AbortTimedOut())
                self._check_timeouts()
            case "forget":
                self._submit(ForgetIdle())
            case "crash coordinator":
                self._lose_coordinator()
                self.coordinator.crash()
            case "crash broker":
                self._crash_broker()
            case "move":
                self._move()

    def _let_a_client_act(self) -> None:
        alive = [client for client in self.clients if client.alive]
        for name in IDS:
            if not any(client.transactional_id == name for client in alive):
                self.newcomer(name)
        if not self.coordinator.loaded and self.dice.random() < 0.1:
            self._move()
        if alive:
            self.dice.choice(alive).act()

    def settle(self) -> None:
        """Clients fall silent, everything else works: what is due must arrive by itself."""
        self.wire.clear()
        self.answers.clear()
        for _ in range(4):
            if not self.coordinator.loaded:
                self.coordinator.load()
            self.now_ms += TIMEOUT_MS + 1
            self._submit(AbortTimedOut())
            self.coordinator.sync()
            self._take_orders()
            while self.deliveries:
                self._deliver_marker(lossless=True)
                for partition in self.partitions:
                    partition.sync()
        self.coordinator.sync()
        for partition in self.partitions:
            partition.sync()
            partition.read_committed()

    # Requests and answers

    def _deliver_request(self) -> None:
        if not self.wire:
            return
        request = self.wire.pop(self.dice.randrange(len(self.wire)))
        getattr(self, f"_{request.kind}")(request)

    def _deliver_answer(self) -> None:
        if not self.answers:
            return
        request, error, reply, takeovers = self.answers.pop(self.dice.randrange(len(self.answers)))
        if self.dice.random() > 0.15:
            request.takeovers = takeovers
            request.client.hear(request, error, reply)

    def _answer(
        self, request: Request, error: ErrorCode, reply: Any = None, takeovers: int = 0
    ) -> None:
        self.answers.append((request, error, reply, takeovers))

    def _submit(self, command: Any, request: Request | None = None) -> None:
        def hear(reply: Any) -> None:
            self._take_orders()
            if request is not None:
                error = ErrorCode.NOT_COORDINATOR if reply is None else reply.error
                self._answer(request, error, reply, known[0])

        name = request.client.transactional_id if request is not None else ""
        known = [self.takeovers[name]]  # what its answer knows of, whenever that arrives
        present = self.coordinator.machine.transactions.get(name)
        decision = self.coordinator.submit(command, self.now_ms, hear)
        if decision is not None and decision.records:
            self._check_obeyed(command, present, decision.records)
            known[0] = self.takeovers[name]

    def _check_obeyed(
        self, command: Any, present: Transaction | None, records: tuple[Transaction, ...]
    ) -> None:
        if not isinstance(command, (AddPartitions, EndTxn)):
            self.takeovers.update(record.transactional_id for record in records)
        if not isinstance(command, (AddPartitions, EndTxn, InitProducerId)):
            return
        if _is_repeated(command, present, records[0]):
            return  # asked again: it hears the same again
        newest = self.newest.get(command.transactional_id, NOBODY)
        assert _named(command) == NOBODY or _named(command) >= newest, "a zombie was obeyed"

    def _check_timeouts(self) -> None:
        if not self.coordinator.loaded:
            return
        for txn in self.coordinator.machine.transactions.values():
            overdue = txn.started_at_ms + txn.timeout_ms < self.now_ms
            assert txn.state is not ONGOING or not overdue, "a transaction outlives its time"

    def _init(self, request: Request) -> None:
        name = request.client.transactional_id
        self._submit(InitProducerId(name, TIMEOUT_MS, *request.identity), request)

    def _add(self, request: Request) -> None:
        client = request.client
        wanted = frozenset({("t", request.partition)})
        command = AddPartitions(client.transactional_id, *request.identity, wanted, client.version)
        self._submit(command, request)

    def _end(self, request: Request) -> None:
        client = request.client
        command = EndTxn(client.transactional_id, *request.identity, request.commit, client.version)
        self._submit(command, request)

    def _produce(self, request: Request) -> None:
        """Verify or add first where the partition has no open transaction of this producer."""
        client, partition = request.client, self.partitions[request.partition]
        batch = partition.batch(*request.identity, request.sequence, request.tag)
        guard = partition.state.ask_verification(batch, client.version >= 2, self.now_ms)
        if guard is None:
            self._append(request, None)
        elif not hasattr(guard, "asked_ms"):
            self._answer(request, guard.error)
        else:
            wanted = frozenset({("t", request.partition)})
            holder = (client.transactional_id, *request.identity, wanted)
            command = (
                AddPartitions(*holder, 2) if client.version >= 2 else VerifyPartitions(*holder)
            )
            state = partition.state

            def agreed(reply: Any) -> None:
                error = ErrorCode.NOT_COORDINATOR if reply is None else reply.error
                if error is ErrorCode.NONE and isinstance(command, VerifyPartitions):
                    error = reply.by_partition["t", request.partition]
                if error is ErrorCode.PRODUCER_FENCED:
                    error = ErrorCode.INVALID_PRODUCER_EPOCH
                if error is not ErrorCode.NONE:
                    self._answer(request, error)
                elif partition.state is state:  # no crash since: guards live in memory
                    self._append(request, guard)

            self.coordinator.submit(command, self.now_ms, agreed)

    def _append(self, request: Request, guard: Any) -> None:
        partition = self.partitions[request.partition]
        batch = partition.batch(*request.identity, request.sequence, request.tag)
        is_new = partition.append(
            batch, guard, self.now_ms, lambda error: self._answer(request, error)
        )
        if is_new and self.markers_first:
            for attempt in request.client.attempts:
                if request.tag.startswith(f"{attempt.name}/"):
                    assert attempt.outcome is None, "a record entered after EndTxn was answered"

    # Markers

    def _take_orders(self) -> None:
        orders, self.coordinator.orders = self.coordinator.orders, []
        for order in orders:
            progress = MarkerProgress(order)
            if progress.complete:
                self._report(order)
            for _, index in sorted(order.partitions):
                delivery = Delivery(progress, index, self.coordinator.epoch)
                self.deliveries.append(delivery)
                if self.markers_first:
                    self._append_marker(delivery)

    def _deliver_marker(self, lossless: bool = False) -> None:
        if not self.deliveries:
            return
        delivery = self.deliveries.pop(self.dice.randrange(len(self.deliveries)))
        if (
            delivery.progress.cancelled
            or ("t", delivery.partition) not in delivery.progress.partitions
        ):
            stale_is_harmless = delivery.progress.order.version >= 2
            if not stale_is_harmless:
                return
        if not lossless and self.dice.random() < 0.2:
            self.deliveries.append(delivery)  # twice: the acknowledgement is going to be lost
        self._append_marker(delivery)

    def _append_marker(self, delivery: Delivery) -> None:
        order, index = delivery.progress.order, delivery.partition
        if not self.markers_first and self.dice.random() < 0.05:
            self._hear_marker(delivery, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        marker = marker_of(order.producer_id, order.epoch, order.commit, delivery.coordinator_epoch)

        self.partitions[index].append_marker(
            marker, order.version, self.now_ms, lambda error: self._hear_marker(delivery, error)
        )

    def _hear_marker(self, delivery: Delivery, error: ErrorCode) -> None:
        was_complete = delivery.progress.complete
        verdict = delivery.progress.answered(("t", delivery.partition), error)
        assert verdict is not MarkerVerdict.BUG, error
        if verdict is MarkerVerdict.AGAIN:
            self.deliveries.append(delivery)
        elif delivery.progress.complete and not was_complete:
            self._report(delivery.progress.order)

    def _report(self, order: WriteMarkers) -> None:
        self._tell_written(order)
        if self.dice.random() < 0.2:
            self.reports.append(order)

    def _report_again(self) -> None:
        if self.reports:
            self._tell_written(self.reports.pop(self.dice.randrange(len(self.reports))))

    def _tell_written(self, order: WriteMarkers) -> None:
        present = self.coordinator.machine.transactions.get(order.prepared.transactional_id)
        decision = self.coordinator.submit(MarkersWritten(order.prepared), self.now_ms)
        if decision is not None and decision.records:
            assert present == order.prepared, "completed by another transaction's markers"

    # Disasters

    def _lose_coordinator(self) -> None:
        """Markers of version 1 on their way are lost with their connections; those of version 2 may
        still arrive, at any time, and must then be harmless."""
        self.deliveries = [
            delivery for delivery in self.deliveries if delivery.progress.order.version >= 2
        ]

    def _crash_broker(self) -> None:
        self._lose_coordinator()
        self.wire = [request for request in self.wire if request.client.version >= 2]
        self.coordinator.crash()
        for partition in self.partitions:
            partition.crash(self.now_ms)
        self._take_orders()

    def _move(self) -> None:
        if self.coordinator.loaded:
            self._lose_coordinator()
            self.coordinator.unload()
        else:
            self.coordinator.load()
            self._take_orders()

    # What must hold in the end

    def check(self) -> None:
        assert not [
            txn for txn in self.coordinator.machine.transactions.values() if txn.prepared
        ], "a prepared transaction was never completed"
        seen = Counter(tag for partition in self.partitions for tag in partition.read)
        for partition in self.partitions:
            assert partition.last_stable_offset == len(partition.log), "a transaction hangs"
        assert all(times == 1 for times in seen.values()), "a record was read twice"
        for client in self.clients:
            for attempt in client.attempts:
                self._check_attempt(attempt, seen)

    def _check_attempt(self, attempt: Any, seen: Counter[str]) -> None:
        visible = {tag for tag in seen if tag.startswith(f"{attempt.name}/")}
        acknowledged = set(attempt.acknowledged)
        if attempt.outcome is True:
            assert acknowledged <= visible, f"{attempt.name}: committed records are missing"
        elif attempt.outcome is False:
            assert not visible, f"{attempt.name}: aborted records are visible"
        elif not attempt.asked_to_commit:
            assert not visible, f"{attempt.name}: never committed, but visible"
        else:
            assert not visible or acknowledged <= visible, f"{attempt.name}: torn"


def _is_repeated(command: Any, present: Transaction | None, record: Transaction) -> bool:
    return (
        isinstance(command, InitProducerId)
        and present is not None
        and present.state is not ONGOING
        and present.owner == record.owner
    )


def _named(command: AddPartitions | EndTxn | InitProducerId) -> tuple[int, int]:
    """The producer id and epoch that a request comes with."""
    if isinstance(command, InitProducerId):
        return command.expected_producer_id, command.expected_epoch
    return command.producer_id, command.epoch
