"""Topics of a real broker deleted and made again, round after round, beside thousands of partitions
that nobody uses: every acknowledged record is there until its own topic is deleted.

Housekeeping takes long for so many partitions, so that rounds fall into the middle of its walks.
SEMEL_ROUNDS says how many rounds the long run has; `pytest -rP` shows what it counted.
"""

import os
import random
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from tests.support.brokers.process import SemelProcess
from tests.support.conversations.raw_client import RawClient

from semel.wire.batches import BatchBuilder, headers, records_of
from semel.wire.errors import ErrorCode as E
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.delete_topics import DeleteTopicsRequest
from semel.wire.messages.fetch import FetchRequest
from semel.wire.messages.metadata import MetadataRequest
from semel.wire.messages.produce import ProduceRequest

ROUNDS = int(os.environ.get("SEMEL_ROUNDS", "1500"))
PARTITIONS = 80
IDLE_TOPICS = 50
# All that a walk over the partitions does is due as often as can be said.
SETTINGS = {
    "log.retention.check.interval.ms": "1000",
    "producer.id.expiration.check.interval.ms": "1000",
}


@pytest.fixture
def broker() -> Iterator[SemelProcess]:
    with SemelProcess(SETTINGS) as running:
        yield running


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_topics_made_again_while_thousands_of_partitions_are_kept_lose_nothing(broker):
    with RawClient(broker.bootstrap) as client:
        rounds = Rounds(client)
        for number in range(IDLE_TOPICS):
            rounds.create(f"t{number}")
        for _ in range(ROUNDS):
            rounds.play()
        for name in rounds.topics:
            rounds.look(name)
    print(f"{ROUNDS} rounds: {rounds.acknowledged} partitions acknowledged, {rounds.lost} lost")
    assert rounds.lost == 0
    assert rounds.acknowledged == (IDLE_TOPICS + ROUNDS) * PARTITIONS
    found = {entry.name for entry in os.scandir(broker.data) if entry.is_dir()}
    directories = {name for name in found if not name.endswith("-delete")}
    partitions = {f"{name}-{index}" for name in rounds.topics for index in range(PARTITIONS)}
    assert directories == partitions


class Rounds:
    """`topics` are those there are. When one is made, each partition gets one record; `written` are
    the partitions that acknowledged it."""

    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.dice = random.Random(1)
        self.topics: dict[str, UUID] = {}
        self.written: dict[UUID, list[int]] = {}
        self.acknowledged = self.lost = 0

    def play(self) -> None:
        """Delete, create, wait for the new id, produce; and look what is there before it goes."""
        name = self.dice.choice(sorted(self.topics))
        self.look(name)
        self._delete(name)
        self.create(name)

    def create(self, name: str) -> None:
        topic = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=PARTITIONS, replication_factor=1
        )
        answer = self.client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
        assert answer.topics[0].error_code == E.NONE
        self.topics[name] = self._wait_for(name, answer.topics[0].topic_id)
        self._produce(self.topics[name])

    def _delete(self, name: str) -> None:
        state = DeleteTopicsRequest.DeleteTopicState(name=name)
        answer = self.client.ask(DeleteTopicsRequest(topics=[state], timeout_ms=30_000), 6)
        assert answer.responses[0].error_code == E.NONE
        del self.topics[name]

    def _wait_for(self, name: str, topic_id: UUID) -> UUID:
        asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)])
        while self.client.ask(asked, 12).topics[0].topic_id != topic_id:
            pass
        return topic_id

    def _produce(self, topic_id: UUID) -> None:
        """The topic's own id is what its records say."""
        builder = BatchBuilder()
        builder.append(None, topic_id.bytes, time.time_ns() // 1_000_000)
        data = [
            ProduceRequest.PartitionProduceData(index=index, records=builder.build())
            for index in range(PARTITIONS)
        ]
        topic = ProduceRequest.TopicProduceData(topic_id=topic_id, partition_data=data)
        asked = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
        [answer] = self.client.ask(asked, 13).responses
        answers = answer.partition_responses
        self.written[topic_id] = [one.index for one in answers if one.error_code == E.NONE]
        self.acknowledged += len(self.written[topic_id])

    def look(self, name: str) -> None:
        topic_id = self.topics[name]
        wanted = [
            FetchRequest.FetchPartition(partition=index, partition_max_bytes=1 << 20)
            for index in range(PARTITIONS)
        ]
        topic = FetchRequest.FetchTopic(topic_id=topic_id, partitions=wanted)
        asked = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 24, topics=[topic])
        [answer] = self.client.ask(asked, 13).responses
        partitions = {data.partition_index: data for data in answer.partitions}
        for index in self.written.pop(topic_id):
            self.lost += self._values(partitions[index]) != [topic_id.bytes]

    @staticmethod
    def _values(data: Any) -> list[bytes | None]:
        batches = headers(bytes(data.records or b""))
        return [record.value for batch in batches for record in records_of(batch)]
