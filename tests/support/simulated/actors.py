"""Clients of a simulated broker that keep the protocol over a line that loses requests and answers.

Each is a task that believes only what it has heard, asks again when it hears nothing, and goes on
as a zombie when somebody takes its transactional id, until it is told.
"""

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from semel.wire.batches import BatchBuilder
from semel.wire.errors import ErrorCode as E
from semel.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from semel.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from semel.wire.messages.end_txn import EndTxnRequest
from semel.wire.messages.init_producer_id import InitProducerIdRequest
from semel.wire.messages.offset_commit import OffsetCommitRequest
from semel.wire.messages.offset_fetch import OffsetFetchRequest
from semel.wire.messages.produce import ProduceRequest
from semel.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

if TYPE_CHECKING:
    from tests.support.simulated.broker_world import BrokerWorld

TOPIC = "t"
OTHERS = ("u", "v")
"""Topics that come and go."""
AGAIN = frozenset(
    {
        E.CONCURRENT_TRANSACTIONS,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.NOT_ENOUGH_REPLICAS,
        E.KAFKA_STORAGE_ERROR,
        E.REQUEST_TIMED_OUT,
        E.UNSTABLE_OFFSET_COMMIT,
    }
)


GIVE_UP_SECONDS = 300


def code(number: int) -> E:
    found: E = E._value2member_map_[number]  # type: ignore[assignment]
    return found


class Lost(Exception):
    """The request, its answer, or the broker."""


class Fenced(Exception):
    """This producer is told that it is not the one any more, or something as final."""


class Actor:
    def __init__(self, world: "BrokerWorld", name: str) -> None:
        self.world = world
        self.name = name
        # Its own dice: what one actor does must not depend on the order of two others.
        self.dice = random.Random(f"{world.seed}/{name}")

    async def ask(self, request: Any, version: int) -> Any:
        """Once; `Lost` if nothing comes back."""
        return await self.world.ask(request, version, self.dice)

    async def persist(self, request: Any, version: int, codes: Any) -> tuple[E, Any]:
        """Until there is an answer that is not "ask again"."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + GIVE_UP_SECONDS
        while True:
            try:
                answer = await self.ask(request, version)
            except Lost:
                continue
            error = code(next((one for one in codes(answer) if one), 0))
            if error not in AGAIN:
                return error, answer
            assert loop.time() < deadline, f"{self.name} hears {error.name} for ever"
            await asyncio.sleep(self.dice.choice((0.01, 0.1, 1.0)))


class Acknowledged(NamedTuple):
    tag: str
    topic_id: UUID | None
    partition: int
    offset: int


@dataclass
class Attempt:
    """One transaction as its producer knows it. `outcome` is what it was told."""

    name: str
    offset: int | None = None
    other_offset: tuple[UUID | None, int] | None = None
    """The same of a topic that comes and goes, and whose it was."""
    acknowledged: list[Acknowledged] = field(default_factory=list)
    asked_to_commit: bool = False
    outcome: bool | None = None


class ProducerActor(Actor):
    """`group` gets offsets inside of its transactions."""

    def __init__(self, world: "BrokerWorld", name: str, transactional_id: str) -> None:
        super().__init__(world, name)
        self.transactional_id = transactional_id
        self.group = f"group-of-{transactional_id}"
        self.is_version_2 = self.dice.random() < 0.5
        self.ids: dict[str, Any] = {}
        self.sequences: dict[tuple[UUID | None, int], int] = {}
        self.attempts: list[Attempt] = []

    async def run(self) -> None:
        try:
            await self._init()
            while True:
                await self._transaction()
                await asyncio.sleep(self.dice.choice((0.0, 0.01, 0.5)))
        except Fenced:
            self.world.fenced(self)

    async def _init(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=20_000,
            **(self.ids or {"producer_id": -1, "producer_epoch": -1}),
        )
        answer = await self._must(request, 4, lambda answer: [answer.error_code])
        self._take(answer)

    def _take(self, answer: Any) -> None:
        self.ids = {"producer_id": answer.producer_id, "producer_epoch": answer.producer_epoch}
        self.sequences.clear()

    async def _must(self, request: Any, version: int, codes: Any) -> Any:
        error, answer = await self.persist(request, version, codes)
        if error is not E.NONE:
            raise Fenced(error)
        return answer

    async def _transaction(self) -> None:
        attempt = Attempt(f"{self.name}/{len(self.attempts)}")
        self.attempts.append(attempt)
        added: set[tuple[str, int]] = set()
        good = True
        for number in range(self.dice.randrange(1, 4)):
            place = self._some_partition()
            if not self.is_version_2 and place not in added:
                good = await self._add(*place) and good
                added.add(place)
            good = good and await self._produce(attempt, *place, f"{attempt.name}/{number}")
        if good and self.dice.random() < 0.5:
            good = await self._commit_offsets(attempt)
        if self.dice.random() < 0.03:
            await asyncio.sleep(25)  # longer than the transaction may take
        await self._end(attempt, good and self.dice.random() < 0.7)

    def _some_partition(self) -> tuple[str, int]:
        """Mostly of the topic that stays."""
        topics = self.world.broker.catalog.topics
        names = [name for name in (TOPIC, TOPIC, TOPIC, *OTHERS) if name in topics]
        name = self.dice.choice(names)
        return name, self.dice.randrange(topics[name].partition_count)

    async def _add(self, name: str, index: int) -> bool:
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=[index])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.ids["producer_id"],
            v3_and_below_producer_epoch=self.ids["producer_epoch"],
            v3_and_below_topics=[topic],
        )
        error, _ = await self.persist(
            request,
            3,
            lambda answer: [
                partition.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for partition in topic.results_by_partition
            ],
        )
        if error is E.UNKNOWN_TOPIC_OR_PARTITION and name != TOPIC:
            return False
        if error is not E.NONE:
            raise Fenced(error)
        return True

    async def _produce(self, attempt: Attempt, name: str, index: int, tag: str) -> bool:
        place: tuple[UUID | None, int] = (None, index)

        def fresh() -> ProduceRequest:
            """Made as it arrives: what is asked by name is asked of the topic of that moment."""
            nonlocal place
            place = (self.world.topic_id(name), index)
            builder = BatchBuilder()
            builder.append(None, tag.encode(), self.world.broker.now_ms())
            batch = builder.build(
                **self.ids, base_sequence=self.sequences.get(place, 0), transactional=True
            )
            data = ProduceRequest.PartitionProduceData(index=index, records=batch)
            topic = ProduceRequest.TopicProduceData(name=name, partition_data=[data])
            return ProduceRequest(
                transactional_id=self.transactional_id,
                acks=-1,
                timeout_ms=5_000,
                topic_data=[topic],
            )

        error, answer = await self.persist(
            fresh,
            12 if self.is_version_2 else 11,
            lambda answer: [answer.responses[0].partition_responses[0].error_code],
        )
        if error is not E.NONE:
            return False
        self.sequences[place] = self.sequences.get(place, 0) + 1
        offset = answer.responses[0].partition_responses[0].base_offset
        attempt.acknowledged.append(Acknowledged(tag, place[0], index, offset))
        return True

    async def _commit_offsets(self, attempt: Attempt) -> bool:
        attempt.offset = self.world.next_offset()
        if not self.is_version_2:
            request = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id, group_id=self.group, **self.ids
            )
            await self._must(request, 3, lambda answer: [answer.error_code])
        if await self._commit_offset(TOPIC, attempt.offset) is not E.NONE:
            attempt.offset = None
            return False
        return await self._commit_other_offset(attempt)

    async def _commit_other_offset(self, attempt: Attempt) -> bool:
        before = self.world.topic_id(OTHERS[0])
        if before is None:
            return True
        offset = self.world.next_offset()
        attempt.other_offset = (None, offset)
        error = await self._commit_offset(OTHERS[0], offset)
        if before == self.world.topic_id(OTHERS[0]):
            attempt.other_offset = (before, offset)
        return error in (E.NONE, E.UNKNOWN_TOPIC_OR_PARTITION)

    async def _commit_offset(self, name: str, offset: int) -> E:
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset
        )
        topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
            name=name, partitions=[partition]
        )
        commit = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=self.group,
            topics=[topic],
            **self.ids,
        )
        error, _ = await self.persist(
            commit,
            5 if self.is_version_2 else 4,
            lambda answer: [answer.topics[0].partitions[0].error_code],
        )
        return error

    async def _end(self, attempt: Attempt, commit: bool) -> None:
        attempt.asked_to_commit = commit
        request = EndTxnRequest(
            transactional_id=self.transactional_id, committed=commit, **self.ids
        )
        version = 5 if self.is_version_2 else 3
        answer = await self._must(request, version, lambda answer: [answer.error_code])
        attempt.outcome = commit
        if self.is_version_2:
            self._take(answer)


class CommitterActor(Actor):
    """Commits ever larger offsets of a group without members: what was heard must survive."""

    heard = sent = -1

    async def run(self) -> None:
        while True:
            self.sent += 1
            partition = OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=0, committed_offset=self.sent
            )
            topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
            request = OffsetCommitRequest(
                group_id=self.name, generation_id_or_member_epoch=-1, topics=[topic]
            )
            error, _ = await self.persist(
                request, 8, lambda answer: [answer.topics[0].partitions[0].error_code]
            )
            assert error is E.NONE, error
            self.heard = self.sent
            await self._look()
            await asyncio.sleep(self.dice.random() * 3)

    async def _look(self) -> None:
        found = await committed_offset(self, self.name)
        assert self.heard <= found <= self.sent, f"{self.name}: heard {self.heard}, found {found}"


async def committed_offset(actor: Actor, group: str, topic: str = TOPIC) -> int:
    wanted = OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[wanted])
    _, answer = await actor.persist(
        OffsetFetchRequest(groups=[asked], require_stable=True),
        9,
        lambda answer: [
            answer.groups[0].error_code,
            *(p.error_code for t in answer.groups[0].topics for p in t.partitions),
        ],
    )
    offset: int = answer.groups[0].topics[0].partitions[0].committed_offset
    return offset
