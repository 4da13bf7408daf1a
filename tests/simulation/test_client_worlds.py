"""The whole pure client against the real coordinator, over a line that loses and delays; by seed.

What the client believes must be what the log says: a commit that was confirmed is there whole and
once, an abort left nothing, and where the client does not know, it is all or nothing. Among the
clients are zombies: rivals with the same transactional id that come back. Callers send what cannot
be encoded now and then (`test_careless_callers` has all their other mistakes).
"""

import os
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from semel.client.machines.accumulator import Accumulator, AccumulatorLimits, ProducerBatch
from semel.client.machines.delivery import ProduceVerdict, judge_produce
from semel.client.machines.transactions import State, TransactionManager, TxnRequestHandler
from semel.client.machines.types import (
    Failure,
    GroupMetadata,
    OffsetAndMetadata,
    Pending,
    TopicPartition,
)
from semel.core.transactions import commands
from semel.core.transactions.coordinator import Coordinator
from semel.core.transactions.transaction import TV_0, TV_2
from semel.wire.batches import advance_sequence, header_at, records_of
from semel.wire.errors import ErrorCode as E
from semel.wire.errors import ErrorKind
from semel.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from semel.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from semel.wire.messages.end_txn import EndTxnResponse
from semel.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from semel.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from semel.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

SEEDS = range(int(os.environ.get("SEMEL_SEEDS", "150")))
STEPS = 1_500
PARTITIONS = [TopicPartition("t", index) for index in range(3)]
TRANSACTIONAL_ID = "x"
OFFSETS = TopicPartition("__consumer_offsets", 0)
READ = TopicPartition("in", 0)  # what the transactions' offsets are about


class Partition:
    """A log with Kafka's rules for producers: epochs, sequences without gaps, five remembered."""

    def __init__(self) -> None:
        self.open: dict[int, list[int]] = {}
        self.committed: list[int] = []
        self.producers: dict[int, tuple[int, int, list[int]]] = {}  # epoch, next, recent bases

    def append(self, data: bytes, version: int) -> E:
        batch = header_at(data)
        known = self.producers.get(batch.producer_id)
        epoch, expected, recent = known or (batch.producer_epoch, 0, [])
        if batch.producer_epoch < epoch:
            return E.INVALID_PRODUCER_EPOCH
        if batch.producer_epoch > epoch:
            expected, recent = 0, []
        if batch.base_sequence in recent:
            return E.NONE
        if batch.base_sequence != expected:
            return E.OUT_OF_ORDER_SEQUENCE_NUMBER
        following = advance_sequence(expected, batch.count)
        recent = [*recent[-4:], batch.base_sequence]
        self.producers[batch.producer_id] = batch.producer_epoch, following, recent
        values = [int(record.value or b"") for record in records_of(batch)]
        self.open.setdefault(batch.producer_id, []).extend(values)
        return E.NONE

    def mark(self, producer_id: int, epoch: int, commit: bool) -> None:
        known = self.producers.get(producer_id)
        if known is None or known[0] < epoch:
            self.producers[producer_id] = epoch, 0, []
        values = self.open.pop(producer_id, [])
        if commit:
            self.committed += values


class Group:
    """A group's coordinator: offsets wait for their transaction's marker."""

    def __init__(self) -> None:
        self.open: dict[int, int] = {}
        self.epochs: dict[int, int] = {}
        self.committed: list[int] = []

    def commit(self, producer_id: int, epoch: int, offset: int) -> E:
        if epoch < self.epochs.get(producer_id, 0):
            return E.INVALID_PRODUCER_EPOCH
        self.epochs[producer_id] = epoch
        self.open[producer_id] = offset
        return E.NONE

    def mark(self, producer_id: int, epoch: int, commit: bool) -> None:
        self.epochs[producer_id] = max(epoch, self.epochs.get(producer_id, 0))
        offset = self.open.pop(producer_id, None)
        if commit and offset is not None:
            self.committed.append(offset)


@dataclass
class Transaction:
    values: dict[TopicPartition, list[int]] = field(default_factory=dict)
    offset: int | None = None
    taking: Pending | None = None  # the offset on its way
    outcome: str = "open"
    ending: Pending | None = None
    committing: bool = False


class Client:
    """What `client.Sender` does with the core's decisions, without asyncio."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.manager = TransactionManager(TRANSACTIONAL_ID, timeout_ms=60_000)
        self.manager.version = world.version
        self.accumulator = Accumulator(AccumulatorLimits(batch_size=150, linger_ms=0))
        self.transactions: list[Transaction] = []
        self.manager.init_transactions()

    @property
    def current(self) -> Transaction:
        return self.transactions[-1]

    def act(self) -> None:
        """The user's next call."""
        manager, dice = self.manager, self.world.dice
        self._note_outcome()
        if manager.state is State.READY:
            manager.begin_transaction()
            self.transactions.append(Transaction())
        elif manager.state is State.IN_TRANSACTION:
            choice = dice.random()
            if choice < 0.75:
                self._send(dice.choice(PARTITIONS))
            elif choice < 0.8:
                self._send_offset()
            else:
                self._end(commit=choice < 0.95)
        elif manager.state is State.ABORTABLE_ERROR:
            self._end(commit=False)

    def _send(self, partition: TopicPartition) -> None:
        """Some callers send what cannot be encoded, and go on when they are told."""
        queue = self.accumulator.queue_of(partition)
        if self.world.dice.random() < 0.2:
            with pytest.raises(TypeError):
                self.accumulator.append(
                    queue,
                    None,
                    "text",
                    0,
                    (),
                    40,
                    self.world.now,  # type: ignore[arg-type]
                )
            self.world.mistakes += 1
            return
        self.manager.add_partition(partition, self.world.now)
        value = self.world.fresh_value()
        self.accumulator.append(queue, None, b"%d" % value, 0, (), 40, self.world.now)
        self.current.values.setdefault(partition, []).append(value)

    def _send_offset(self) -> None:
        """Once a transaction; as the producer does, the end waits for the answer."""
        if self.current.offset is None:
            self.current.offset = self.world.fresh_value()
            offsets = {READ: OffsetAndMetadata(self.current.offset)}
            self.current.taking = self.manager.send_offsets(
                offsets, GroupMetadata("g"), self.world.now
            )

    def _end(self, commit: bool) -> None:
        if self.current.taking is not None and not self.current.taking.settled and commit:
            return
        self.current.committing = commit
        self.current.ending = self.manager.commit() if commit else self.manager.abort()
        if not commit:
            self._drop(Failure(ErrorKind.ABORTABLE, "aborted"))

    def _drop(self, failure: Failure) -> None:
        if self.accumulator.drop_unsent(failure):
            self.manager.fail_abortable(failure, needs_bump=True)

    def _note_outcome(self) -> None:
        if not self.transactions or self.current.outcome != "open":
            return
        ending = self.current.ending
        if ending is not None and ending.settled and ending.failure is None:
            self.current.outcome = "committed" if self.current.committing else "aborted"
        elif self.manager.state is State.FATAL_ERROR:
            asked = self.current.committing and ending is not None
            self.current.outcome = "unknown" if asked else "aborted"

    def work(self) -> None:
        """One turn of the sender."""
        manager, world = self.manager, self.world
        self._note_outcome()
        if manager.state in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
            assert manager.failure is not None
            self._drop(manager.failure)
        if manager.take_sequence_reset():
            self.accumulator.reset_sequences()
        request = manager.next_request(world.now, self.accumulator.has_unsettled)
        if request is not None:
            limit = request.message_class.VERSIONS.stop - 1
            message = request.message(min(request.version_limit(), limit))
            world.carry(lambda: world.coordinate(message), lambda a: self._answered(request, a))
        for queue in list(self.accumulator.sendable(world.now)):
            if manager.may_send_to(queue.partition):
                batch = self.accumulator.take(
                    queue,
                    manager.producer,
                    idempotent=True,
                    transactional=True,
                    begins_at_zero=manager.version >= 2,
                )
                if batch is not None:
                    self._produce(batch)

    def _produce(self, batch: ProducerBatch) -> None:
        world, data = self.world, bytes(batch.data or b"")
        world.carry(
            lambda: world.append(batch.partition, data), lambda code: self._produced(batch, code)
        )

    def _answered(self, request: TxnRequestHandler, answer: Any) -> None:
        if answer is None:
            request.lost(self.world.now)
        else:
            request.answered(answer, self.world.now)

    def _produced(self, batch: ProducerBatch, answer: E | None) -> None:
        if batch.settled:
            return
        code = E.NETWORK_EXCEPTION if answer is None else answer
        doomed = self.manager.state in (
            State.ABORTING_TRANSACTION, State.ABORTABLE_ERROR, State.FATAL_ERROR,
        )  # fmt: skip
        outcome = judge_produce(
            code,
            is_oldest=self.accumulator.queues[batch.partition].is_oldest(batch),
            records=batch.count,
            transactional=True,
            idempotent=True,
            expired=doomed or self.world.dice.random() < 0.02,
        )
        if outcome is ProduceVerdict.ACCEPTED:
            self.accumulator.accepted(batch, 0, -1)
        elif outcome is ProduceVerdict.AGAIN:
            self.accumulator.again(batch, self.world.now + 10)
        else:
            failure = Failure(code.kind, "not written", code)
            self.accumulator.given_up(batch, failure)
            self.manager.batch_failed(failure)


class World:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.version = self.dice.choice([1, 2])
        self.loss = self.dice.choice([0.0, 0.05, 0.3])
        self.now = 1_000
        self.mistakes = 0
        self.partitions = {partition: Partition() for partition in PARTITIONS}
        self.group = Group()
        self._ids = iter(range(10**9))
        self.coordinator = Coordinator(lambda: next(self._ids))
        self.markers: list[commands.WriteMarkers] = []
        self.events: list[tuple[int, Any]] = []
        self.clients: list[Client] = [Client(self)]
        self._values = iter(range(10**9))

    def fresh_value(self) -> int:
        return next(self._values)

    # The line

    def carry(self, serve: Any, hear: Any) -> None:
        """A request: usually served and answered, sometimes lost before, after, or much later."""
        fate, delay = self.dice.random(), self.dice.randint(1, 30)
        if fate < self.loss * 0.4:
            self.events.append((self.now + delay, lambda: hear(None)))
        elif fate < self.loss * 0.8:
            self.events.append((self.now + delay, serve))
            self.events.append((self.now + delay + 1, lambda: hear(None)))
        elif fate < self.loss:
            late = self.dice.randint(30, 400)
            self.events.append((self.now + delay, lambda: hear(None)))
            self.events.append((self.now + late, serve))
        else:
            self.events.append((self.now + delay, lambda: self._serve_and_answer(serve, hear)))

    def _serve_and_answer(self, serve: Any, hear: Any) -> None:
        answer = serve()
        self.events.append((self.now + self.dice.randint(1, 30), lambda: hear(answer)))

    # The brokers

    def decide(self, command: Any) -> Any:
        decision = self.coordinator.decide(command, self.now)
        for record in decision.records:
            self.coordinator.apply(record)
        self.markers += decision.effects
        return decision.reply

    def coordinate(self, message: Any) -> Any:
        """What the coordinator answers."""
        if isinstance(message, FindCoordinatorRequest):
            code = E.COORDINATOR_NOT_AVAILABLE if self.dice.random() < self.loss else E.NONE
            found = FindCoordinatorResponse.Coordinator(
                node_id=1, host="h", port=1, error_code=code
            )
            return FindCoordinatorResponse(coordinators=[found])
        moved = self.dice.random() < self.loss * 0.3
        if isinstance(message, InitProducerIdRequest):
            reply = commands.Reply(E.NOT_COORDINATOR) if moved else self.decide(
                commands.InitProducerId(
                    TRANSACTIONAL_ID, 60_000, message.producer_id, message.producer_epoch
                )
            )  # fmt: skip
            return InitProducerIdResponse(
                error_code=reply.error, producer_id=reply.producer_id, producer_epoch=reply.epoch
            )
        if isinstance(message, AddOffsetsToTxnRequest):
            asked = message.producer_id, message.producer_epoch
            reply = commands.Reply(E.NOT_COORDINATOR) if moved else self._add_offsets(*asked)
            return AddOffsetsToTxnResponse(error_code=reply.error)
        if isinstance(message, TxnOffsetCommitRequest):
            return self._commit_offsets(message, moved)
        if hasattr(message, "committed"):
            return self._end_txn(message, moved)
        return self._add_partitions(message, moved)

    def _add_offsets(self, producer_id: int, epoch: int) -> commands.Reply:
        version = TV_2 if self.version == 2 else TV_0
        wanted = frozenset({OFFSETS})
        return self.decide(
            commands.AddPartitions(TRANSACTIONAL_ID, producer_id, epoch, wanted, version)
        )

    def _commit_offsets(
        self, message: TxnOffsetCommitRequest, moved: bool
    ) -> TxnOffsetCommitResponse:
        (topic,) = message.topics
        (asked,) = topic.partitions
        who = message.producer_id, message.producer_epoch
        if moved:
            code = E.NOT_COORDINATOR
        elif self.version == 2:
            code = self._add_offsets(*who).error
        else:
            verified = self.decide(
                commands.VerifyPartitions(TRANSACTIONAL_ID, *who, frozenset({OFFSETS}))
            )
            code = verified.by_partition.get(OFFSETS, verified.error)
        if code is E.NONE:
            code = self.group.commit(*who, asked.committed_offset)
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                            partition_index=asked.partition_index, error_code=code
                        )
                    ],
                )
            ]
        )

    def _end_txn(self, message: Any, moved: bool) -> EndTxnResponse:
        version = TV_2 if self.version == 2 else TV_0
        command = commands.EndTxn(
            TRANSACTIONAL_ID,
            message.producer_id,
            message.producer_epoch,
            message.committed,
            version,
        )
        reply = commands.Reply(E.NOT_COORDINATOR) if moved else self.decide(command)
        return EndTxnResponse(
            error_code=reply.error,
            producer_id=reply.producer_id if self.version == 2 else -1,
            producer_epoch=reply.epoch if self.version == 2 else -1,
        )

    def _add_partitions(self, message: Any, moved: bool) -> AddPartitionsToTxnResponse:
        wanted = [(t.name, p) for t in message.v3_and_below_topics for p in t.partitions]
        command = commands.AddPartitions(
            TRANSACTIONAL_ID,
            message.v3_and_below_producer_id,
            message.v3_and_below_producer_epoch,
            frozenset(TopicPartition(*each) for each in wanted),
        )
        reply = commands.Reply(E.NOT_COORDINATOR) if moved else self.decide(command)
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
                    name=name,
                    results_by_partition=[
                        AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                            partition_index=index, partition_error_code=reply.error
                        )
                    ],
                )
                for name, index in wanted
            ]
        )

    def append(self, place: TopicPartition, data: bytes) -> E:
        """A leader: asks the coordinator first, as KIP-890 has it, in both versions."""
        batch = header_at(data)
        wanted = frozenset({place})
        if self.version == 2:
            reply = self.decide(
                commands.AddPartitions(
                    TRANSACTIONAL_ID, batch.producer_id, batch.producer_epoch, wanted, TV_2
                )
            )
            refusal = reply.error
        else:
            verified = self.decide(
                commands.VerifyPartitions(
                    TRANSACTIONAL_ID, batch.producer_id, batch.producer_epoch, wanted
                )
            )
            refusal = verified.by_partition.get(place, verified.error)
        if refusal is not E.NONE:
            return E.INVALID_PRODUCER_EPOCH if refusal is E.PRODUCER_FENCED else refusal
        return self.partitions[place].append(data, self.version)

    def write_markers(self) -> None:
        order = self.markers.pop(0)
        for partition in order.partitions:
            place = TopicPartition(*partition)
            marked = self.group if place == OFFSETS else self.partitions[place]
            marked.mark(order.producer_id, order.epoch, order.commit)
        self.decide(commands.MarkersWritten(order.prepared))

    # Time passes

    def step(self) -> None:
        self.now += self.dice.randint(0, 10)
        if self.dice.random() < 0.0005:
            self.now += 61_000
        if self.dice.random() < 0.01:
            self.decide(commands.AbortTimedOut())
        self._replace_the_dead()
        client = self.dice.choice(self.clients)
        self.dice.choice([client.act, client.work, client.work, self.deliver, self.deliver])()
        if self.markers and self.dice.random() < 0.3:
            self.write_markers()

    def deliver(self) -> None:
        due = [event for event in self.events if event[0] <= self.now]
        if due:
            event = min(due, key=lambda each: each[0])
            self.events.remove(event)
            event[1]()

    def _replace_the_dead(self) -> None:
        if all(client.manager.state is State.FATAL_ERROR for client in self.clients):
            self.clients.append(Client(self))
        elif self.dice.random() < 0.001:
            self.clients.append(Client(self))  # a rival, which makes the others zombies

    def settle(self) -> None:
        """No more losses: everybody ends what they began, and the markers are written."""
        self.loss = 0.0
        for _ in range(5_000):
            self.now += 25
            while self.markers:
                self.write_markers()
            while [event for event in self.events if event[0] <= self.now]:
                self.deliver()
            if not self._unfinished():
                break
        fresh = Client(self)
        self.clients.append(fresh)
        for _ in range(2_000):  # fences whoever is left, so that nothing stays open
            self.now += 25
            fresh.work()
            while [event for event in self.events if event[0] <= self.now]:
                self.deliver()
            while self.markers:
                self.write_markers()
            if fresh.manager.state is State.READY:
                break
        assert fresh.manager.state is State.READY

    def _unfinished(self) -> bool:
        busy = False
        for client in self.clients:
            client.work()
            state = client.manager.state
            if state is State.ABORTABLE_ERROR or (
                state is State.IN_TRANSACTION and client.transactions[-1].ending is None
            ):
                client._end(commit=False)
            busy = busy or state not in (State.READY, State.FATAL_ERROR)
        return busy

    def check(self) -> None:
        for client in self.clients:
            client._note_outcome()
            for transaction in client.transactions:
                self._check(transaction)
        for partition in self.partitions.values():
            assert len(set(partition.committed)) == len(partition.committed), "twice in the log"

    def _check(self, transaction: Transaction) -> None:
        found = {
            place: [v for v in self.partitions[place].committed if v in set(values)]
            for place, values in transaction.values.items()
        }
        nothing = {place: [] for place in found}
        if transaction.offset is not None:
            found[OFFSETS] = [o for o in self.group.committed if o == transaction.offset]
            nothing[OFFSETS] = []
            transaction.values[OFFSETS] = [transaction.offset]
        if transaction.outcome == "committed":
            assert found == transaction.values, "a confirmed commit is not there, whole, in order"
        elif transaction.outcome == "unknown":
            assert found in (transaction.values, nothing), "half of a transaction"
        else:
            assert found == nothing, "records of a transaction that was not committed"


@pytest.mark.parametrize("seed", SEEDS)
def test_what_the_client_believes_is_what_the_log_says(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    world.settle()
    world.check()


def test_the_worlds_are_eventful() -> None:
    outcomes: dict[str, int] = {}
    offsets = mistakes = 0
    for seed in range(40):
        world = World(seed)
        for _ in range(STEPS):
            world.step()
        world.settle()
        offsets += len(world.group.committed)
        mistakes += world.mistakes
        for client in world.clients:
            for transaction in client.transactions:
                outcomes[transaction.outcome] = outcomes.get(transaction.outcome, 0) + 1
    assert outcomes["committed"] > 100
    assert outcomes["aborted"] > 30
    assert outcomes["unknown"] > 3
    assert offsets > 30
    assert mistakes > 100
