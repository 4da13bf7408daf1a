"""The same load under the same quotas: Apache Kafka 4.3.1 and Semel make clients wait alike."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest
from tests.support.brokers.apache_kafka import ApacheKafka, kafka_tool
from tests.support.brokers.process import SemelProcess
from tests.support.conversations.raw_client import RawClient

from semel.wire.batches import BatchBuilder
from semel.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.fetch import FetchRequest
from semel.wire.messages.produce import ProduceRequest

pytestmark = pytest.mark.interop


class Loaded:
    """A client under a quota, on a topic of its own."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.topic = f"quotas-{uuid.uuid4().hex[:8]}"
        self.client_id = f"c-{self.topic}"
        with RawClient(bootstrap) as client:
            new = CreateTopicsRequest.CreatableTopic
            topic = new(name=self.topic, num_partitions=1, replication_factor=1)
            made = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
            assert made.topics[0].error_code == 0
        self.asker = RawClient(bootstrap, self.client_id, timeout_s=60)

    def set(self, key: str, value: float) -> None:
        op = AlterClientQuotasRequest.OpData(key=key, value=value)
        part = AlterClientQuotasRequest.EntityData(
            entity_type="client-id", entity_name=self.client_id
        )
        entry = AlterClientQuotasRequest.EntryData(entity=[part], ops=[op])
        with RawClient(self.bootstrap) as client:
            answer = client.ask(AlterClientQuotasRequest(entries=[entry]), 1)
        assert answer.entries[0].error_code == 0
        time.sleep(1)  # Apache Kafka's broker hears of it from its controller

    def produce(self, size: int, client: RawClient | None = None) -> Any:
        builder = BatchBuilder()
        builder.append(None, bytes(size), int(time.time() * 1000))
        data = ProduceRequest.PartitionProduceData(index=0, records=bytes(builder.build()))
        topic = ProduceRequest.TopicProduceData(name=self.topic, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
        while True:
            answer = (client or self.asker).ask(request, 9)
            if not answer.responses[0].partition_responses[0].error_code:
                return answer

    def fetch(self, offset: int) -> Any:
        part = FetchRequest.FetchPartition(
            partition=0, fetch_offset=offset, partition_max_bytes=1 << 20
        )
        topic = FetchRequest.FetchTopic(topic=self.topic, partitions=[part])
        request = FetchRequest(min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[topic])
        return self.asker.ask(request, 11)


@pytest.fixture
def both(semel: SemelProcess, apache_kafka: ApacheKafka) -> list[Loaded]:
    return [Loaded(semel.bootstrap), Loaded(apache_kafka.bootstrap)]


def test_producers_wait_as_long(both: list[Loaded]) -> None:
    """On connections of their own, for each is muted for longer than a test should take."""
    waits: list[list[int]] = []
    for loaded in both:
        loaded.produce(10)  # the topic is ready
        loaded.set("producer_byte_rate", 20_000.0)
        told = []
        for size in (900_000, 500_000, 100_000):
            with RawClient(loaded.bootstrap, loaded.client_id) as client:
                told.append(loaded.produce(size, client).throttle_time_ms)
        waits.append(told)
    assert waits[0][0] > 30_000
    assert waits[0] == pytest.approx(waits[1], rel=0.1)


def test_a_muted_producer_is_served_after_that_time(both: list[Loaded]) -> None:
    took = []
    for loaded in both:
        loaded.produce(10)
        loaded.set("producer_byte_rate", 60_000.0)
        told = loaded.produce(900_000).throttle_time_ms
        began = time.monotonic()
        loaded.produce(10)
        took.append(time.monotonic() - began)
        assert took[-1] >= told / 1000 - 0.1
    assert took[0] == pytest.approx(took[1], rel=0.1)


def test_consumers_wait_as_long_and_get_nothing_meanwhile(both: list[Loaded]) -> None:
    waits = []
    for loaded in both:
        with RawClient(loaded.bootstrap, "another") as other:
            loaded.produce(400_000, other)
        loaded.set("consumer_byte_rate", 20_000.0)
        answer = loaded.fetch(0)
        assert not answer.responses
        waits.append(answer.throttle_time_ms)
    assert waits[0] > 9_000
    assert waits[0] == pytest.approx(waits[1], rel=0.1)


def test_topics_are_refused_at_the_same_one_of_many(both: list[Loaded]) -> None:
    answers = []
    for loaded in both:
        loaded.set("controller_mutation_rate", 1.0)
        new = CreateTopicsRequest.CreatableTopic
        topics = [
            new(name=f"{loaded.topic}-{number}", num_partitions=20, replication_factor=1)
            for number in range(3)
        ]
        answer = loaded.asker.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
        answers.append(answer)
    codes = [sorted(topic.error_code for topic in answer.topics) for answer in answers]
    assert codes[0] == codes[1]
    assert answers[0].throttle_time_ms == pytest.approx(answers[1].throttle_time_ms, rel=0.1)


def test_kafka_configs_sets_tells_and_removes_quotas(semel: SemelProcess) -> None:
    def tool(*arguments: str) -> str:
        command = ("kafka.admin.ConfigCommand", "--bootstrap-server", semel.bootstrap)
        return kafka_tool(*command, *arguments).stdout

    alice = ("--entity-type", "users", "--entity-name", "alice")
    tool("--alter", *alice, "--add-config", "producer_byte_rate=1024,request_percentage=50")
    told = tool("--describe", *alice)
    assert "producer_byte_rate=1024.0" in told
    assert "request_percentage=50.0" in told
    tool("--alter", *alice, "--delete-config", "producer_byte_rate,request_percentage")
    assert "producer_byte_rate" not in tool("--describe", *alice)
