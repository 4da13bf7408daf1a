"""Deletes, makes again, grows and configures topics, and deletes groups, between any two turns.

Where something in the background stands at a yield, it is interrupted often; otherwise now and
then. So every background task is sooner or later interrupted by every such request at every yield.
"""

import random
from typing import TYPE_CHECKING, Any
from uuid import UUID

from semel.wire.messages.create_partitions import CreatePartitionsRequest
from semel.wire.messages.delete_records import DeleteRecordsRequest
from semel.wire.messages.delete_topics import DeleteTopicsRequest

if TYPE_CHECKING:
    from tests.support.simulated.broker_world import BrokerWorld

STABLE = "t"
RECREATED = ("u", "v")
COMPACTED = "k"
CHURNED = (*RECREATED, COMPACTED)
MOST_PARTITIONS = 6
WHILE_BUSY, WHILE_IDLE = 0.04, 0.002
CONFIGS = {"file.delete.delay.ms": "500"}
COMPACTED_CONFIGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1000",
}


class Meddler:
    def __init__(self, world: "BrokerWorld") -> None:
        self.world = world
        self.dice = random.Random(f"{world.seed}/meddler")
        self.deleted_below: dict[tuple[UUID, int], int] = {}
        """Where DeleteRecords has moved the start of partitions, by topic id."""

    def between_turns(self) -> None:
        world = self.world
        if world.is_calm or world.broker.is_gone:
            return
        chance = WHILE_BUSY if world.broker.is_in_the_middle else WHILE_IDLE
        if self.dice.random() >= chance:
            return
        try:
            self._act()
            world.check_store()
        except Exception as problem:  # nobody would see what is raised between two turns
            world.failures.append(problem)

    def _act(self) -> None:
        acts = (
            *(self._recreate, self._recreate, self._delete, self._delete, self._create),
            *(self._create, self._grow, self._grow, self._configure, self._delete_group),
            *(self._break_a_log, self._delete_records),
        )
        self.dice.choice(acts)()

    @property
    def _topics(self) -> dict[str, Any]:
        topics: dict[str, Any] = self.world.broker.catalog.topics
        return topics

    def create(self, name: str) -> None:
        configs = CONFIGS | (COMPACTED_CONFIGS if name == COMPACTED else {})
        count = self.dice.randint(1, MOST_PARTITIONS)
        topic = self.world.broker.catalog.create_topic(name, count, configs)
        self.world.topics_changed()
        self.world.writers[0].welcome(topic)

    def _recreate(self) -> None:
        name = self.dice.choice(CHURNED)
        if name in self._topics:
            self._delete_topic(name)
        self.create(name)

    def _delete(self) -> None:
        name = self.dice.choice(CHURNED)
        if name in self._topics:
            self._delete_topic(name)

    def _delete_topic(self, name: str) -> None:
        state = DeleteTopicsRequest.DeleteTopicState(name=name)
        answer = self.world.broker.ask_now(DeleteTopicsRequest(topics=[state]), 6)
        assert answer.responses[0].error_code == 0, answer

    def _create(self) -> None:
        missing = [name for name in CHURNED if name not in self._topics]
        if missing:
            self.create(self.dice.choice(missing))

    def _grow(self) -> None:
        name = self.dice.choice((STABLE, *CHURNED))
        topic = self._topics.get(name)
        if topic is None or topic.partition_count >= MOST_PARTITIONS:
            return
        count = self.dice.randint(topic.partition_count + 1, MOST_PARTITIONS)
        asked = CreatePartitionsRequest.CreatePartitionsTopic(
            name=name, count=count, assignments=None
        )
        answer = self.world.broker.ask_now(CreatePartitionsRequest(topics=[asked]), 3)
        assert answer.results[0].error_code == 0, answer
        self.world.topics_changed()

    def _configure(self) -> None:
        topic = self._topics.get(self.dice.choice(CHURNED))
        if topic is not None:
            changed = {"compression.type": self.dice.choice(("producer", "gzip", "zstd"))}
            self.world.broker.catalog.configure_topic(topic, {**topic.config.own, **changed})

    def _delete_group(self) -> None:
        self.dice.choice(self.world.tourists).lose_group()

    def _break_a_log(self) -> None:
        self.world.break_a_log(self.dice)

    def _delete_records(self) -> None:
        """Of real files only: the store in memory forgets a start when it crashes."""
        topic = self._topics.get(self.dice.choice(RECREATED))
        if topic is None or not self.world.is_on_files:
            return
        index = self.dice.randrange(topic.partition_count)
        partition = self.world.broker.partitions.find(topic.name, index)
        assert partition is not None
        offset = self.dice.randint(0, partition.high_watermark)
        place = (topic.id, index)
        self.deleted_below[place] = max(offset, self.deleted_below.get(place, 0))
        asked = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=index, offset=offset)
        of = DeleteRecordsRequest.DeleteRecordsTopic(name=topic.name, partitions=[asked])
        self.world.broker.ask_now(DeleteRecordsRequest(topics=[of]), 2)
