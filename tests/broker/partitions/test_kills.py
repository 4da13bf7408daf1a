"""kill -9 in the middle of heavy produce: every acknowledged record is there once, in order."""

import random
import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from tests.support.brokers.process import SemelProcess
from tests.support.conversations.raw_client import RawClient

from semel.wire.batches import headers, records_of
from semel.wire.errors import ErrorCode
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.fetch import FetchRequest

PARTITIONS = 3
TOPIC = "t"


@pytest.fixture
def broker() -> Iterator[SemelProcess]:
    # Small segments, so that some kills fall into the rolling of one.
    with SemelProcess({"log.segment.bytes": "1048576"}) as running:
        create_topic(running)
        yield running


@pytest.mark.slow
def test_a_broker_killed_again_and_again_loses_and_repeats_nothing(broker):
    kill_while_producing(broker, kills=3, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_fifty_kills_in_the_middle_of_heavy_produce(broker):
    kill_while_producing(broker, kills=50, seed=2)


def kill_while_producing(broker: SemelProcess, kills: int, seed: int) -> None:
    """One idempotent producer over all kills: librdkafka retries, the broker tells repetitions."""
    dice = random.Random(seed)
    acknowledged: list[set[int]] = [set() for _ in range(PARTITIONS)]
    failed: list[object] = []
    enough = threading.Event()
    goal = [0]

    def delivered(error, message) -> None:
        if error is not None:
            failed.append(error)
            return
        acknowledged[message.partition()].add(int(message.value().split(b" ")[0]))
        goal[0] -= 1
        if goal[0] <= 0:
            enough.set()

    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 1,
            "batch.num.messages": 50,
            "message.timeout.ms": 0,  # however slow the machine is, nothing may be given up
            "queue.buffering.max.messages": 20_000,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 50,
            "retry.backoff.ms": 10,
            "log_level": 0,
        }
    )
    stopping = threading.Event()
    sent = [0] * PARTITIONS

    def produce() -> None:
        padding = b" " + b"x" * 300
        while not stopping.is_set():
            for partition in range(PARTITIONS):
                try:
                    producer.produce(
                        TOPIC, b"%d" % sent[partition] + padding, partition=partition,
                        on_delivery=delivered,
                    )  # fmt: skip
                    sent[partition] += 1
                except BufferError:
                    producer.poll(0.01)
            producer.poll(0)

    writer = threading.Thread(target=produce)
    writer.start()
    for _ in range(kills):
        enough.clear()
        goal[0] = dice.randrange(2_000, 8_000)
        assert enough.wait(120), "nothing is acknowledged any more"
        broker.kill()
        broker.start()
    stopping.set()
    writer.join()
    assert producer.flush(120) == 0
    assert not failed
    for partition in range(PARTITIONS):
        stored = read_all(broker, partition)
        assert stored == list(range(sent[partition])), f"partition {partition}"
        assert acknowledged[partition] == set(stored)


def create_topic(broker: SemelProcess) -> None:
    topic = CreateTopicsRequest.CreatableTopic(
        name=TOPIC, num_partitions=PARTITIONS, replication_factor=1
    )
    with RawClient(broker.bootstrap) as client:
        answer = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 5)
    assert answer.topics[0].error_code == ErrorCode.NONE


def read_all(broker: SemelProcess, partition: int) -> list[int]:
    """Every record number of a partition, with every batch where the one before it ended."""
    found: list[int] = []
    offset = 0
    with RawClient(broker.bootstrap) as client:
        while True:
            wanted = FetchRequest.FetchPartition(
                partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20
            )
            topics = [FetchRequest.FetchTopic(topic=TOPIC, partitions=[wanted])]
            answer = client.ask(FetchRequest(topics=topics, max_wait_ms=0, min_bytes=1), 12)
            [data] = answer.responses[0].partitions
            assert data.error_code == ErrorCode.NONE
            if not len(data.records):
                assert offset == data.high_watermark
                return found
            for batch in headers(data.records):
                assert batch.base_offset == offset
                offset = batch.next_offset
                found += [int(record.value.split(b" ")[0]) for record in records_of(batch)]
