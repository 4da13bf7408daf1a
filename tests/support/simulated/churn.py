"""Clients of topics and groups that come and go: what they were told of the present ones holds."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from tests.support.simulated.actors import Actor, Lost, code, committed_offset
from tests.support.simulated.meddler import CHURNED, COMPACTED, RECREATED
from tests.support.simulated.readers import UNCOMMITTED, TopicGone, fetch, read_all

from semel.broker.catalog.catalog import Topic
from semel.wire.batches import BatchBuilder
from semel.wire.errors import ErrorCode as E
from semel.wire.messages.delete_groups import DeleteGroupsRequest
from semel.wire.messages.offset_commit import OffsetCommitRequest
from semel.wire.messages.produce import ProduceRequest

if TYPE_CHECKING:
    from tests.support.simulated.broker_world import BrokerWorld

KEYS = (b"x", b"y", b"z")


class Written(NamedTuple):
    """A record that was acknowledged."""

    topic: str
    topic_id: UUID
    partition: int
    offset: int
    key: bytes
    tag: str


class Writer(Actor):
    """Sends records one by one to topics that come and go, each named by its id."""

    def __init__(self, world: "BrokerWorld", name: str) -> None:
        super().__init__(world, name)
        self.sent = 0
        self.written: list[Written] = []

    async def run(self) -> None:
        while not self.world.is_calm:
            topic = self.world.broker.catalog.topics.get(self.dice.choice(CHURNED))
            if topic is not None:
                index = self.dice.randrange(topic.partition_count)
                with suppress(Lost):
                    await self._send(topic.name, topic.id, index)
            await asyncio.sleep(self.dice.choice((0.0, 0.001, 0.02, 0.3)))

    def welcome(self, topic: Topic) -> None:
        """Somebody has waited for the new topic, and writes to all of it at once."""
        for index in range(topic.partition_count):
            self.world.spawn(self._send_at_once(topic, index))

    async def _send_at_once(self, topic: Topic, index: int) -> None:
        with suppress(Lost):
            await self._send(topic.name, topic.id, index, at_once=True)

    async def _send(self, name: str, topic_id: UUID, index: int, at_once: bool = False) -> None:
        self.sent += 1
        tag, key = f"{self.name}/{self.sent}", self.dice.choice(KEYS)
        builder = BatchBuilder()
        builder.append(key, tag.encode(), self.world.broker.now_ms())
        data = ProduceRequest.PartitionProduceData(index=index, records=builder.build())
        topic = ProduceRequest.TopicProduceData(topic_id=topic_id, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[topic])
        asked = await self.world.ask(request, 13, self.dice, at_once)
        answer = asked.responses[0].partition_responses[0]
        if code(answer.error_code) is E.NONE:
            self.written.append(Written(name, topic_id, index, answer.base_offset, key, tag))


class Auditor(Actor):
    """Looks whether what was acknowledged is there."""

    async def run(self) -> None:
        while not self.world.is_calm:
            written = [one for one in self.world.written() if one.topic in RECREATED]
            if written:
                with suppress(Lost, TopicGone):
                    await self._look(self.dice.choice(written[-50:]))
            await asyncio.sleep(self.dice.random())

    async def _look(self, one: Written) -> None:
        _, found = await fetch(self, one.topic_id, one.partition, one.offset, UNCOMMITTED)
        if not self.world.is_deleted(one.topic_id, one.partition, one.offset):
            tags = [record.tag for record in found if record.offset == one.offset]
            assert tags == [one.tag], f"{one} was acknowledged, and {tags} is there"

    async def check(self) -> None:
        """In the end: all of it, of the topics that are there now."""
        places = {(one.topic, one.topic_id, one.partition) for one in self.world.written()}
        for topic, topic_id, index in sorted(places):
            everything = await read_all(self, topic_id, index, UNCOMMITTED)
            written = [
                one
                for one in self.world.written()
                if (one.topic_id, one.partition) == (topic_id, index)
            ]
            if topic == COMPACTED:
                self._check_latest(written, everything)
            else:
                self._check_all(written, {record.offset: record.tag for record in everything})

    def _check_all(self, written: list[Written], found: dict[int, str]) -> None:
        for one in written:
            if not self.world.is_deleted(one.topic_id, one.partition, one.offset):
                there = found.get(one.offset)
                assert there == one.tag, f"{one} was acknowledged, and {there} is there"

    def _check_latest(self, written: list[Written], everything: list[Any]) -> None:
        """Of each key at least the last record that was acknowledged, or a later one."""
        for key in KEYS:
            last = max((one.offset for one in written if one.key == key), default=-1)
            found = max((record.offset for record in everything if record.key == key), default=-1)
            assert found >= last, f"{written[0].topic}: the last of {key!r} was {last}, is {found}"


class Tourist(Actor):
    """A group without members that commits offsets of a topic that comes and goes, and is deleted
    now and then: an offset counts for the topic and the group it was committed for only."""

    topic = "u"

    def __init__(self, world: "BrokerWorld", name: str) -> None:
        super().__init__(world, name)
        self.sent = 0
        self.heard: tuple[UUID, int] | None = None
        self.doubtful: set[int] = set()
        """Sent, but not answered."""
        self.may_be_gone = False
        self._deletions_begun = self._deletions_ended = 0

    def lose_group(self) -> None:
        """Somebody deletes it, right now."""
        self.world.spawn(self._delete())

    async def _delete(self) -> None:
        self.may_be_gone = True
        self._deletions_begun += 1
        request = DeleteGroupsRequest(groups_names=[self.name])
        await self.persist(request, 2, lambda answer: [answer.results[0].error_code])
        self._deletions_ended += 1

    async def run(self) -> None:
        while True:
            with suppress(Lost):
                if not self.world.is_calm:
                    await self._commit()
                await self.look()
            await asyncio.sleep(self.dice.random() * 2)

    async def _commit(self) -> None:
        before, deletions = self.world.topic_id(self.topic), self._deletions_ended
        if before is None:
            return
        self.sent += 1
        self.doubtful.add(self.sent)
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=self.sent
        )
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(
            name=self.topic, partitions=[partition]
        )
        request = OffsetCommitRequest(
            group_id=self.name, generation_id_or_member_epoch=-1, topics=[topic]
        )
        answer = await self.ask(request, 8)
        error = code(answer.topics[0].partitions[0].error_code)
        if error is E.NONE and before == self.world.topic_id(self.topic):
            self.heard, self.doubtful = (before, self.sent), set()
            if deletions == self._deletions_begun:
                self.may_be_gone = False

    async def look(self) -> None:
        before = self.world.topic_id(self.topic)
        found = await committed_offset(self, self.name, self.topic)
        if before is None or before != self.world.topic_id(self.topic):
            return
        allowed = set(self.doubtful)
        if self.heard is not None and self.heard[0] == before:
            allowed.add(self.heard[1])
        if self.heard is None or self.heard[0] != before or self.may_be_gone:
            allowed.add(-1)
        assert found in allowed, f"{self.name}: {found} is committed, expected one of {allowed}"
