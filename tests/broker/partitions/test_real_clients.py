"""librdkafka, aiokafka and kafka-python write and read, each the other's records, compressed."""

import uuid
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.structs import TopicPartition as AioPartition
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition

from semel.broker.server import Broker

COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"]
COUNT = 30

Row = tuple[bytes, bytes, tuple[tuple[str, bytes], ...]]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Broker(data=tmp_path_factory.mktemp("data"), settings={"num.partitions": 3}) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


def rows(tag: str) -> list[Row]:
    return [
        (b"key %d" % number, f"{tag} {number} ".encode() * 20, (("n", b"%d" % number),))
        for number in range(COUNT)
    ]


def write_with_librdkafka(servers: str, topic: str, compression: str) -> None:
    settings = {
        "bootstrap.servers": servers,
        "enable.idempotence": True,
        "compression.type": compression,
        "linger.ms": 20,
    }
    failed: list[object] = []
    producer = Producer(settings)
    for key, value, headers in rows("librdkafka"):
        producer.produce(
            topic,
            key=key,
            value=value,
            headers=list(headers),
            on_delivery=lambda error, _: error and failed.append(error),
        )
    assert producer.flush(20) == 0
    assert not failed


def write_with_kafka_python(servers: str, topic: str, compression: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=servers,
        compression_type=None if compression == "none" else compression,
        enable_idempotence=True,
        linger_ms=20,
    )
    futures = [
        producer.send(topic, key=key, value=value, headers=list(headers))
        for key, value, headers in rows("kafka-python")
    ]
    producer.flush(20)
    offsets = [(future.get(1).partition, future.get(1).offset) for future in futures]
    assert len(set(offsets)) == COUNT
    producer.close()


async def write_with_aiokafka(servers: str, topic: str, compression: str) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=servers,
        compression_type=None if compression == "none" else compression,
        enable_idempotence=True,
        linger_ms=20,
    )
    async with producer:
        sent = [
            await producer.send(topic, key=key, value=value, headers=list(headers))
            for key, value, headers in rows("aiokafka")
        ]
        for future in sent:
            await future


def read_with_librdkafka(servers: str, topic: str, isolation: str, expected: int) -> list[Row]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "unused",
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(3)])
    found: list[Row] = []
    while len(found) < expected:
        for message in consumer.consume(100, timeout=10):
            assert message.error() is None
            headers = tuple(message.headers() or ())
            found.append((message.key(), message.value(), headers))
    consumer.close()
    return found


def read_with_kafka_python(servers: str, topic: str, isolation: str, expected: int) -> list[Row]:
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        isolation_level=isolation,
        auto_offset_reset="earliest",
        check_crcs=True,
        group_id=None,
    )
    places = [PythonPartition(topic, index) for index in range(3)]
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    found: list[Row] = []
    while len(found) < expected:
        for messages in consumer.poll(timeout_ms=10_000).values():
            found += [(m.key, m.value, tuple(m.headers)) for m in messages]
    consumer.close()
    return found


async def read_with_aiokafka(servers: str, topic: str, isolation: str, expected: int) -> list[Row]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers,
        isolation_level=isolation,
        auto_offset_reset="earliest",
        check_crcs=True,
        group_id=None,
    )
    found: list[Row] = []
    async with consumer:
        places = [AioPartition(topic, index) for index in range(3)]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        while len(found) < expected:
            batch = await consumer.getmany(timeout_ms=10_000)
            found += [
                (m.key, m.value, tuple(m.headers)) for messages in batch.values() for m in messages
            ]
    return found


@pytest.mark.parametrize("compression", COMPRESSIONS)
async def test_three_clients_read_what_three_clients_wrote(servers, topic, compression):
    import asyncio

    await asyncio.to_thread(write_with_librdkafka, servers, topic, compression)
    await asyncio.to_thread(write_with_kafka_python, servers, topic, compression)
    await write_with_aiokafka(servers, topic, compression)
    expected = sorted(rows("librdkafka") + rows("kafka-python") + rows("aiokafka"))
    count = len(expected)
    isolation = "read_committed" if COMPRESSIONS.index(compression) % 2 else "read_uncommitted"
    read = await asyncio.to_thread(read_with_librdkafka, servers, topic, isolation, count)
    assert sorted(read) == expected
    read = await asyncio.to_thread(read_with_kafka_python, servers, topic, isolation, count)
    assert sorted(read) == expected
    assert sorted(await read_with_aiokafka(servers, topic, isolation, count)) == expected


def test_librdkafka_keeps_order_within_a_partition_over_many_batches(servers, topic):
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "batch.num.messages": 7,
            "linger.ms": 0,
        }
    )
    for number in range(2_000):
        producer.produce(topic, value=b"%d" % number, partition=1)
    assert producer.flush(30) == 0
    read = read_with_librdkafka(servers, topic, "read_committed", 2_000)
    assert [value for _, value, _ in read] == [b"%d" % number for number in range(2_000)]


def test_offsets_are_found_by_time_through_librdkafka(servers, topic):
    producer = Producer({"bootstrap.servers": servers})
    for number, timestamp in enumerate((1_000, 2_000, 3_000)):
        producer.produce(topic, value=b"%d" % number, partition=0, timestamp=timestamp)
        producer.flush(10)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "unused"})
    [found] = consumer.offsets_for_times([TopicPartition(topic, 0, 1_500)], timeout=10)
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
    consumer.close()
    assert found.offset == 1
    assert (low, high) == (0, 3)


def test_librdkafka_fails_just_the_records_without_a_key_and_names_them(
    servers: str, topic: str
) -> None:
    """As librdkafka's own test 0011 expects of Kafka: ten of a hundred in one batch are bad."""
    settings = {"bootstrap.servers": servers}
    wanted = NewTopic(topic, 1, 1, config={"cleanup.policy": "compact"})
    admin = AdminClient(settings)  # kept: one that is gone answers nothing
    admin.create_topics([wanted])[topic].result(20)
    heard: dict[int, KafkaError] = {}
    producer = Producer({**settings, "linger.ms": 60_000})  # one batch, sent by flush
    for number in range(100):
        key = None if number % 10 == 0 else b"k"

        def delivered(error: KafkaError, _: object, number: int = number) -> None:
            heard[number] = error

        producer.produce(topic, b"v", key=key, on_delivery=delivered)
    assert producer.flush(20) == 0
    codes = {number: error.code() for number, error in heard.items()}
    bad = KafkaError.INVALID_RECORD, KafkaError._INVALID_DIFFERENT_RECORD
    assert codes == {number: bad[number % 10 != 0] for number in range(100)}
