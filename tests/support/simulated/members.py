"""Members of groups at a simulated broker, classic and of the consumer protocol."""

import asyncio
from typing import Any
from uuid import UUID

from tests.support.groups.subscriptions import write_subscription
from tests.support.simulated.actors import AGAIN, OTHERS, TOPIC, Actor, Lost, code

from semel.core.groups.classic import embedded
from semel.wire.errors import ErrorCode as E
from semel.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from semel.wire.messages.heartbeat import HeartbeatRequest
from semel.wire.messages.join_group import JoinGroupRequest
from semel.wire.messages.sync_group import SyncGroupRequest

SESSION_MS = 10_000


class ClassicMember(Actor):
    group = "classic"
    member_id = ""
    generation = -1

    def __init__(self, world: Any, name: str) -> None:
        super().__init__(world, name)
        self.owned: set[int] = set()
        self.known_partitions = 0

    async def run(self) -> None:
        while True:
            try:
                joined = await self._join()
                if joined is not None and await self._sync(joined):
                    await self._stay()
            except Lost:
                pass
            self.owned = set()
            await asyncio.sleep(self.dice.choice((0.0, 0.05)))

    def _dies(self) -> bool:
        """Without a word; somebody else starts in its place. The group has to find out."""
        return not self.world.is_calm and self.dice.random() < 0.03

    async def _join(self) -> Any:
        self.known_partitions = self.world.partitions
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(
            name="range", metadata=write_subscription([TOPIC])
        )
        request = JoinGroupRequest(
            group_id=self.group,
            member_id=self.member_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            protocol_type="consumer",
            protocols=[protocol],
        )
        answer = await self.ask(request, 9)
        if answer.error_code in (E.NONE, E.MEMBER_ID_REQUIRED):
            self.member_id = answer.member_id
        elif answer.error_code not in AGAIN:
            self.member_id = ""
        return answer if answer.error_code == E.NONE else None

    async def _sync(self, joined: Any) -> bool:
        members = sorted(member.member_id for member in joined.members)
        hands = [
            SyncGroupRequest.SyncGroupRequestAssignment(
                member_id=member,
                assignment=embedded.write_assignment(
                    {TOPIC: list(range(self.world.partitions))[number :: len(members)]}, 1
                ),
            )
            for number, member in enumerate(members)
        ]
        self.generation = joined.generation_id
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=joined.generation_id,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=hands,
        )
        answer = await self.ask(request, 5)
        if answer.error_code != E.NONE:
            return False
        if answer.assignment:
            for topic in embedded.read_assignment(answer.assignment).assigned_partitions:
                self.owned |= set(topic.partitions)
        self.world.note_owner(self, self.generation)
        return True

    async def _stay(self) -> None:
        while True:
            await asyncio.sleep(2)
            if self._dies():
                self.member_id = ""
                return
            if self.world.partitions != self.known_partitions:
                return  # as a real one: the leader joins again when it learns of more partitions
            request = HeartbeatRequest(
                group_id=self.group, generation_id=self.generation, member_id=self.member_id
            )
            try:
                error = code((await self.ask(request, 4)).error_code)
            except Lost:
                continue
            if error is E.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            if error is not E.NONE and error not in AGAIN:
                return


class ConsumerMember(Actor):
    """Owns nothing before it is told so, and lets go before it reports that it has."""

    group = "consumer"

    def __init__(self, world: Any, name: str) -> None:
        super().__init__(world, name)
        self.owned: set[tuple[UUID, int]] = set()
        self.epoch = 0
        self.tells_all = True
        self.lives = 0

    async def run(self) -> None:
        while True:
            if not self.world.is_calm and self.dice.random() < 0.03:
                self.lives += 1  # dies without a word; somebody else starts in its place
                self.owned, self.epoch = set(), 0
            try:
                seconds = self._take(await self.ask(self._beat(), 1))
            except Lost:
                self.tells_all, seconds = True, 0.5
            await asyncio.sleep(seconds)

    @property
    def member_id(self) -> str:
        return f"{self.name}-{self.lives}"

    def _beat(self) -> ConsumerGroupHeartbeatRequest:
        if self.epoch == 0:
            self.owned, self.tells_all = set(), True
        owned = [
            ConsumerGroupHeartbeatRequest.TopicPartitions(
                topic_id=topic_id,
                partitions=sorted(index for of, index in self.owned if of == topic_id),
            )
            for topic_id in sorted({topic_id for topic_id, _ in self.owned})
        ]
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=SESSION_MS if self.tells_all else -1,
            subscribed_topic_names=[TOPIC, OTHERS[0]] if self.tells_all else None,
            topic_partitions=owned,
        )

    def _take(self, answer: Any) -> float:
        error = code(answer.error_code)
        if error in AGAIN:
            return 0.2
        if error is not E.NONE:
            self.owned, self.epoch = set(), 0
            return 0.5
        self.tells_all = False
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            told = {
                (topic.topic_id, index)
                for topic in answer.assignment.topic_partitions
                for index in topic.partitions
            }
            if self.owned - told:
                self.owned &= told
                return 0.0  # say at once that it has let go
            self.owned = told
        self.world.note_owner(self, self.epoch)
        return 2.0
