"""A broker to talk to in raw requests, and single partitions over logs in memory."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.conversations.raw_client import RawClient
from tests.support.memory_log import MemoryLog

from semel.broker.catalog.catalog import Topic
from semel.broker.partitions.partition import Partition
from semel.broker.server import Broker
from semel.broker.settings.settings import Settings, TopicConfig
from semel.store.interface import Log, LogConfig
from semel.wire.batches import BatchBuilder, Record, headers, records_of
from semel.wire.compression import Compression
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.fetch import FetchRequest, FetchResponse
from semel.wire.messages.produce import ProduceRequest, ProduceResponse

# Close to the broker's clock: a batch a week younger than its segment's first rolls the segment.
NOW_MS = time.time_ns() // 1_000_000


def build(
    *values: bytes,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
    timestamp: int = NOW_MS,
    key: bytes | None = b"k",
    codec: Compression = Compression.NONE,
) -> bytearray:
    builder = BatchBuilder(codec)
    for value in values or (b"v",):
        builder.append(key, value, timestamp)
    return builder.build(
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


class Talk(RawClient):
    """A raw connection with short words for producing and fetching."""

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        topic = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        answer = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 7)
        assert answer.topics[0].error_code == 0, answer

    def produce(
        self,
        topic: str,
        records: bytes | bytearray | None,
        partition: int = 0,
        acks: int = -1,
        version: int = 11,
        transactional_id: str | None = None,
    ) -> ProduceResponse.PartitionProduceResponse:
        request = produce_request(topic, records, partition, acks, transactional_id)
        answer = self.ask(request, version)
        return answer.responses[0].partition_responses[0]

    def fetch(
        self, topic: str, offset: int, version: int = 12, **fields: Any
    ) -> FetchResponse.PartitionData:
        answer = self.ask(fetch_request(topic, offset, **fields), version)
        return answer.responses[0].partitions[0]

    def read(self, topic: str, offset: int = 0, **fields: Any) -> list[Record]:
        return decode(self.fetch(topic, offset, **fields).records)


def produce_request(
    topic: str,
    records: bytes | bytearray | None,
    partition: int = 0,
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=5_000,
        topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])],
    )


def fetch_request(
    topic: str,
    offset: int,
    partition: int = 0,
    partition_max_bytes: int = 1 << 20,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    **fields: Any,
) -> FetchRequest:
    wanted = FetchRequest.FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=current_leader_epoch,
        last_fetched_epoch=last_fetched_epoch,
    )
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=[wanted])]
    return FetchRequest(topics=topics, **{"max_wait_ms": 0, "min_bytes": 1, **fields})


def decode(records: Any) -> list[Record]:
    batches = headers(bytes(records or b""), partial_tail=True)
    return [record for batch in batches if not batch.is_control for record in records_of(batch)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data=tmp_path / "data") as running:
        yield running


@pytest.fixture
def talk(broker: Broker) -> Iterator[Talk]:
    with Talk(broker.bootstrap_servers) as connection:
        yield connection  # type: ignore[misc]


@pytest.fixture(scope="session")
def in_loop() -> Callable[[Broker, Callable[[], Any]], Any]:
    """Call something of the broker's where it lives: on its own loop, in its own thread."""

    def call(broker: Broker, function: Callable[[], Any]) -> Any:
        async def run() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), broker.loop).result(10)

    return call


@pytest.fixture(scope="session")
def new_talk() -> type[Talk]:
    return Talk


@pytest.fixture(scope="session")
def build_batch() -> Callable[..., bytearray]:
    return build


@pytest.fixture(scope="session")
def decode_records() -> Callable[[Any], list[Record]]:
    return decode


@pytest.fixture(scope="session")
def new_fetch() -> Callable[..., FetchRequest]:
    return fetch_request


@pytest.fixture(scope="session")
def new_produce() -> Callable[..., ProduceRequest]:
    return produce_request


class Bench:
    """A partition over a log, a clock that stands still, and a count of wake-ups."""

    def __init__(self, log: Log | None = None, **configs: str) -> None:
        self.configs = {key.replace("_", "."): value for key, value in configs.items()}
        self.topic = Topic("t", uuid.UUID(int=7), [3], TopicConfig(Settings(), self.configs))
        self.now_ms = NOW_MS
        self.woken = 0
        self.log = log or MemoryLog("t", 0, self.topic.id, LogConfig())
        self.partition = self.open()

    def open(self) -> Partition:
        """The partition as a restart finds it."""
        return Partition(self.topic, 0, self.log, lambda: self.now_ms, self._wake)

    def _wake(self, partition: Partition) -> None:
        self.woken += 1


@pytest.fixture(scope="session")
def new_bench() -> type[Bench]:
    return Bench
