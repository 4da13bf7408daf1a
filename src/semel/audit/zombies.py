"""Old producers and members that act after they were replaced. Each kind must be refused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from semel.audit.findings import Anomaly, Findings
from semel.audit.history import History, Leg, Outcome, Transfer
from semel.client import Admin, Consumer, Producer
from semel.client.machines.types import TopicPartition
from semel.errors import AbortableError, FatalError, SemelError
from semel.wire.batches import BatchBuilder
from semel.wire.messages.produce import ProduceRequest

_SHORT_TIMEOUT_MS = 1_500
# Apache Kafka looks for transactions that timed out every ten seconds.
_UNTIL_ENDED_S = 30


@dataclass(slots=True)
class Stage:
    """Where the zombies act."""

    settings: Mapping[str, Any]
    prefix: str
    targets: list[TopicPartition]
    inputs: str  # a topic that exists, for offsets
    history: History
    findings: Findings
    refused: dict[str, int] = field(default_factory=dict)
    unanswered: dict[str, int] = field(default_factory=dict)
    rounds: int = 0

    def producer(self, kind: str, **more: Any) -> Producer:
        return Producer(
            settings=self.settings,
            transactional_id=f"{self.prefix}-zombie-{kind}",
            **more,
        )

    def transfer(self, kind: str, life: int, outcome: Outcome) -> tuple[TopicPartition, Leg]:
        """A transfer of one record, known to the history with the outcome that it must have."""
        target = self.targets[self.rounds % len(self.targets)]
        leg = Leg(f"{self.prefix}-zombie-{kind}", life, self.rounds, 0, 1)
        self.history.transfers[leg.transfer] = Transfer(outcome, (str(target),))
        return target, leg

    async def send(self, producer: Producer, kind: str, life: int, outcome: Outcome) -> Leg:
        target, leg = self.transfer(kind, life, outcome)
        await producer.send(target.topic, leg.to_bytes(), partition=target.partition)
        return leg

    async def must_be_refused(self, kind: str, doing: Awaitable[Any], what: str) -> None:
        try:
            await doing
        except (AbortableError, FatalError):
            self.refused[kind] = self.refused.get(kind, 0) + 1
        else:
            self.findings.found(Anomaly.ZOMBIE, kind, what)

    def committed(self, leg: Leg) -> None:
        self.history.transfers[leg.transfer].outcome = Outcome.COMMITTED


@asynccontextmanager
async def _replaced(stage: Stage, kind: str) -> AsyncIterator[tuple[Producer, Producer, int]]:
    """A producer with an open transaction, the one that took its id over, and the first one's life;
    the second one's is the next."""
    life = 2 * stage.rounds
    async with stage.producer(kind) as old, stage.producer(kind) as new:
        await old.init_transactions()
        await old.begin_transaction()
        await stage.send(old, kind, life, Outcome.ABORTED)
        await old.flush()
        await new.init_transactions()
        yield old, new, life


async def sends_after_takeover(stage: Stage) -> None:
    """A producer goes on sending and commits, after another process took its id over."""
    kind = "sends"
    async with _replaced(stage, kind) as (old, new, life):
        await _commits_one(stage, new, kind, life + 1)
        target, late = stage.transfer(f"{kind}-late", life, Outcome.ABORTED)

        async def sends() -> None:
            await old.send(target.topic, late.to_bytes(), partition=target.partition)
            await old.commit_transaction()

        await stage.must_be_refused(kind, sends(), "a record and a commit of an old epoch")


async def commits_after_takeover(stage: Stage) -> None:
    """A producer commits what it had sent, after another process took its id over."""
    kind = "commits"
    async with _replaced(stage, kind) as (old, new, life):
        await stage.must_be_refused(kind, old.commit_transaction(), "a commit of an old epoch")
        await _commits_one(stage, new, kind, life + 1)


async def _commits_one(stage: Stage, producer: Producer, kind: str, life: int) -> None:
    await producer.begin_transaction()
    leg = await stage.send(producer, kind, life, Outcome.UNKNOWN)
    await producer.commit_transaction()
    stage.committed(leg)


async def commits_after_timeout(stage: Stage) -> None:
    """A producer commits a transaction that timed out: the coordinator has aborted it."""
    kind = "timeout"
    async with stage.producer(kind, transaction_timeout_ms=_SHORT_TIMEOUT_MS) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        leg = await stage.send(producer, kind, stage.rounds, Outcome.ABORTED)
        await producer.flush()
        if not await _has_ended(stage, f"{stage.prefix}-zombie-{kind}"):
            stage.committed(leg)  # it is open, so a commit would be right
            stage.findings.found(
                Anomaly.HANGING,
                kind,
                f"open {_UNTIL_ENDED_S} s after its timeout of {_SHORT_TIMEOUT_MS} ms",
            )
            return
        doing = producer.commit_transaction()
        await stage.must_be_refused(kind, doing, "a commit after the timeout")


async def _has_ended(stage: Stage, transactional_id: str) -> bool:
    async with Admin(settings=stage.settings) as admin:
        until = asyncio.get_running_loop().time() + _UNTIL_ENDED_S
        while asyncio.get_running_loop().time() < until:
            found = await admin.describe_transaction(transactional_id)
            if found.state in ("CompleteCommit", "CompleteAbort", "Empty"):
                return True
            await asyncio.sleep(0.25)
    return False


async def batch_after_commit(stage: Stage) -> None:
    """A batch that was on its way arrives after its transaction was committed (KIP-890). If it is
    let in, it opens a transaction that nobody will end.

    Apache Kafka answers a commit before it writes the markers. A batch that comes between the two
    joins the transaction, which breaks no promise: so this one comes after the markers."""
    kind = "late batch"
    async with stage.producer("late") as producer:
        await producer.init_transactions()
        was = producer.identity
        await _commits_one(stage, producer, "late", stage.rounds)
        if not await _has_ended(stage, f"{stage.prefix}-zombie-late"):
            said = f"its markers are not written {_UNTIL_ENDED_S} s after the commit"
            stage.findings.found(Anomaly.HANGING, kind, said)
            return
        target, late = stage.transfer("late-batch", 0, Outcome.ABORTED)
        builder = BatchBuilder()
        builder.append(b"late", late.to_bytes(), time.time_ns() // 1_000_000)
        batch = builder.build(
            producer_id=was.producer_id,
            producer_epoch=was.epoch,
            base_sequence=1,
            transactional=True,
        )
        code = await produce_bytes(producer, target, bytes(batch))
        if code:
            stage.refused[kind] = stage.refused.get(kind, 0) + 1
        else:
            stage.findings.found(Anomaly.ZOMBIE, f"{target}", "a batch of an ended transaction")


async def produce_bytes(
    producer: Producer, target: TopicPartition, records: bytes, at_most: int = 0x7FFF
) -> int:
    """The error code for a batch that is sent as it is, in a version of Produce up to `at_most`."""
    cluster = producer._cluster
    await cluster.topic(target.topic, cluster.deadline())
    data = ProduceRequest.PartitionProduceData(index=target.partition, records=records)
    request = ProduceRequest(
        transactional_id=producer.settings.transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=target.topic,
                topic_id=cluster.metadata.topic_id(target.topic),
                partition_data=[data],
            )
        ],
    )
    answer = await cluster.ask(request, node=cluster.metadata.leader(target), at_most=at_most)
    return int(answer.responses[0].partition_responses[0].error_code)


async def offsets_of_an_old_member(stage: Stage) -> None:
    """A member of a group commits offsets in a transaction, after the group went on without it."""
    kind = "old member"
    group = f"{stage.prefix}-zombie-group-{stage.rounds}"
    place = TopicPartition(stage.inputs, 0)
    async with (
        Consumer(settings=stage.settings, group_id=group) as member,
        stage.producer("member") as producer,
    ):
        member.subscribe([stage.inputs])
        await _joined(member)
        before = member.group_metadata()
        await member.unsubscribe()  # it left: what it knows of the group is old now
        await producer.init_transactions()
        await producer.begin_transaction()
        doing = producer.send_offsets_to_transaction({place: 1}, before)
        await stage.must_be_refused(kind, doing, f"offsets of {before.member_id!r}, which left")
        await producer.abort_transaction()


async def _joined(member: Consumer) -> None:
    for _ in range(100):
        await member.poll(200)
        if member.assignment():
            return
    raise SemelError("a consumer did not get partitions within 20 s")


KINDS: dict[str, Callable[[Stage], Awaitable[None]]] = {
    "sends after takeover": sends_after_takeover,
    "commits after takeover": commits_after_takeover,
    "commits after timeout": commits_after_timeout,
    "batch after commit": batch_after_commit,
    "offsets of an old member": offsets_of_an_old_member,
}


async def play(stage: Stage, stopping: asyncio.Event) -> None:
    """Every kind in turn, until stopped; at least once each."""
    while True:
        for kind, act in KINDS.items():
            try:
                await act(stage)
            except SemelError:  # no verdict: the cluster did not answer
                stage.unanswered[kind] = stage.unanswered.get(kind, 0) + 1
        stage.rounds += 1
        if stopping.is_set():
            return
