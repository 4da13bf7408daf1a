"""Deletes, makes again, grows and configures topics, and deletes groups, between any two turns.

Where something in the background stands at a yield, it is interrupted often; otherwise now and
then. So every background task is sooner or later interrupted by every such request at every yield.
"""

import random
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.support.simulated.broker import Gone

from semel.broker.catalog.catalog import Topic
from semel.wire.errors import ErrorCode as E
from semel.wire.messages.create_partitions import CreatePartitionsRequest
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.delete_records import DeleteRecordsRequest
from semel.wire.messages.delete_topics import DeleteTopicsRequest
from semel.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

if TYPE_CHECKING:
    from tests.support.simulated.broker_world import BrokerWorld

STABLE = "t"
RECREATED = ("u", "v")
COMPACTED = "k"
CHURNED = (*RECREATED, COMPACTED)
MOST_PARTITIONS = 6
OF_A_TOPIC = 2
WHILE_BUSY, WHILE_IDLE = 0.04, 0.002
CONFIGS = {"file.delete.delay.ms": "500"}
COMPACTED_CONFIGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1000",
}
TOO_LATE = frozenset(
    {E.NONE, E.TOPIC_ALREADY_EXISTS, E.UNKNOWN_TOPIC_OR_PARTITION, E.INVALID_PARTITIONS}
)


class Meddler:
    """Also a listener of the catalog: whoever reads or writes learns of new topics at once."""

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
    def _topics(self) -> dict[str, Topic]:
        topics: dict[str, Topic] = self.world.broker.catalog.topics
        return topics

    # What the catalog tells

    def topic_created(self, topic: Topic) -> None:
        self.world.topics_changed()
        if topic.name in CHURNED:
            self.world.writers[0].welcome(topic)

    def partitions_added(self, topic: Topic, first: int) -> None:
        self.world.topics_changed()

    def topic_deleted(self, topic: Topic) -> None: ...

    def topic_configured(self, topic: Topic) -> None: ...

    # Acts: at once, or by a request that is carried out when the catalog's file has it

    def _acts_at_once(self) -> bool:
        """If so, whatever is being written is finished first."""
        if self.dice.random() < 0.5:
            return False
        self.world.broker.catalog._writer.settle()
        return True

    def create(self, name: str) -> None:
        configs = CONFIGS | (COMPACTED_CONFIGS if name == COMPACTED else {})
        count = self.dice.randint(1, MOST_PARTITIONS)
        if self._acts_at_once():
            if name not in self._topics:
                self.world.broker.catalog.create_topic(name, count, configs)
            return
        given = [
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
            for key, value in configs.items()
        ]
        topic = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=count, replication_factor=1, configs=given
        )
        self._ask(CreateTopicsRequest(topics=[topic]), 7)

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
        if self._acts_at_once():
            if name in self._topics:
                self.world.broker.catalog.delete_topic(name)
            return
        state = DeleteTopicsRequest.DeleteTopicState(name=name)
        self._ask(DeleteTopicsRequest(topics=[state]), 6)

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
        if self._acts_at_once():
            if topic in self._topics.values() and topic.partition_count < count:
                self.world.broker.catalog.add_partitions(topic, count)
            return
        asked = CreatePartitionsRequest.CreatePartitionsTopic(
            name=name, count=count, assignments=None
        )
        self._ask(CreatePartitionsRequest(topics=[asked]), 3)

    def _ask(self, request: Any, version: int) -> None:
        self.world.spawn(self._hear(request, version))

    async def _hear(self, request: Any, version: int) -> None:
        """Others may have been faster: they are told so, and nothing else."""
        with suppress(Gone):
            answer = await self.world.broker.ask(request, version)
            results = [*getattr(answer, "topics", ()), *getattr(answer, "responses", ())]
            for result in (*results, *getattr(answer, "results", ())):
                assert result.error_code in TOO_LATE, answer

    def _configure(self) -> None:
        changed = IncrementalAlterConfigsRequest.AlterableConfig(
            name="compression.type", value=self.dice.choice(("producer", "gzip", "zstd"))
        )
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=OF_A_TOPIC, resource_name=self.dice.choice(CHURNED), configs=[changed]
        )
        self._ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)

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
