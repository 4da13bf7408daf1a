"""Our producer read by the clients of others, and theirs by our consumer, in all compressions."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer as RdConsumer
from confluent_kafka import Producer as RdProducer
from confluent_kafka import TopicPartition as RdPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PyPartition

from semel.client import Consumer, Producer

MakeTopic = Callable[..., Awaitable[str]]
COUNT = 50
VALUES = [b"value %d" % number for number in range(COUNT)]


def read_by_librdkafka(bootstrap: str, topic: str) -> list[bytes]:
    consumer = RdConsumer(
        {"bootstrap.servers": bootstrap, "group.id": topic, "isolation.level": "read_committed"}
    )
    consumer.assign([RdPartition(topic, 0, 0)])
    found: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(found) < COUNT and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append(message.value())
    consumer.close()
    return found


def read_by_kafka_python(bootstrap: str, topic: str) -> list[bytes]:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", consumer_timeout_ms=10_000
    )
    consumer.assign([PyPartition(topic, 0)])
    consumer.seek_to_beginning()
    found = [next(consumer).value for _ in range(COUNT)]
    consumer.close()
    return found


async def read_by_aiokafka(bootstrap: str, topic: str) -> list[bytes]:
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, isolation_level="read_committed",
        auto_offset_reset="earliest",
    )  # fmt: skip
    await consumer.start()
    try:
        return [(await consumer.getone()).value for _ in range(COUNT)]
    finally:
        await consumer.stop()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_what_we_commit_others_read(
    bootstrap: str, make_topic: MakeTopic, unique: str, codec: str
) -> None:
    topic = await make_topic()
    async with Producer(bootstrap, transactional_id=unique, compression_type=codec) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send(topic, b"void")
        await producer.flush()
        await producer.abort_transaction()
        async with producer.transaction():
            for value in VALUES:
                await producer.send(topic, value)
    assert await asyncio.to_thread(read_by_librdkafka, bootstrap, topic) == VALUES
    assert await read_by_aiokafka(bootstrap, topic) == VALUES
    if codec in ("none", "gzip"):  # kafka-python wants packages of its own for the others
        assert await asyncio.to_thread(read_by_kafka_python, bootstrap, topic) == VALUES


def write_by_librdkafka(bootstrap: str, topic: str, codec: str) -> None:
    producer = RdProducer(
        {"bootstrap.servers": bootstrap, "transactional.id": topic, "compression.type": codec}
    )
    producer.init_transactions()
    producer.begin_transaction()
    for value in VALUES:
        producer.produce(topic, value)
    producer.commit_transaction()


def write_by_kafka_python(bootstrap: str, topic: str, codec: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec
    )
    for value in VALUES:
        producer.send(topic, value)
    producer.flush()
    producer.close()


async def write_by_aiokafka(bootstrap: str, topic: str, codec: str) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec
    )
    await producer.start()
    for value in VALUES:
        await producer.send(topic, value)
    await producer.stop()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_what_others_write_we_read(bootstrap: str, make_topic: MakeTopic, codec: str) -> None:
    topic = await make_topic()
    await asyncio.to_thread(write_by_librdkafka, bootstrap, topic, codec)
    await write_by_aiokafka(bootstrap, topic, codec)
    expected = VALUES * 2
    if codec in ("none", "gzip"):
        await asyncio.to_thread(write_by_kafka_python, bootstrap, topic, codec)
        expected = VALUES * 3
    async with Consumer(
        bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([(topic, 0)])
        found: list[bytes | None] = []
        while len(found) < len(expected):
            found += [record.value for record in await consumer.poll(5_000)]
    assert found == expected
