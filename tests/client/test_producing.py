"""The producer on a real broker: order, idempotence, transactions, and errors of three kinds."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from semel.client import (
    Consumer,
    FatalError,
    FencedError,
    Producer,
    TopicPartition,
    UsageError,
)
from semel.client.machines.transactions import State
from semel.wire.errors import ErrorCode

MakeTopic = Callable[..., Awaitable[str]]


async def read(bootstrap: str, topic: str, count: int, *, partitions: int = 1, **settings: str):
    """The first `count` records of a topic, as a committed reader sees them."""
    given = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"} | settings
    async with Consumer(bootstrap, **given) as consumer:
        consumer.assign([(topic, index) for index in range(partitions)])
        records = []
        while len(records) < count:
            records += await consumer.poll(5_000)
        return records


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_records_arrive_as_they_were_sent(
    bootstrap: str, make_topic: MakeTopic, codec: str
) -> None:
    topic = await make_topic()
    async with Producer(bootstrap, compression_type=codec) as producer:
        deliveries = [
            await producer.send(topic, b"v%d" % i, b"k", headers=[("h", b"%d" % i), ("n", None)])
            for i in range(500)
        ]
        await producer.send(topic, None, b"tombstone", timestamp_ms=1234)
        await producer.flush()
        assert [(await d).offset for d in deliveries] == list(range(500))
    records = await read(bootstrap, topic, 501)
    assert [r.value for r in records[:500]] == [b"v%d" % i for i in range(500)]
    assert records[7].headers == (("h", b"7"), ("n", None))
    assert (records[500].key, records[500].value, records[500].timestamp) == (
        b"tombstone", None, 1234,
    )  # fmt: skip


@pytest.mark.parametrize("version", [1, 2])
async def test_a_transaction_is_seen_whole_or_not_at_all(
    bootstrap: str, make_topic: MakeTopic, unique: str, version: int
) -> None:
    topic = await make_topic(2)
    async with Producer(
        bootstrap, transactional_id=unique, max_transaction_version=version
    ) as producer:
        for number in range(6):
            try:
                async with producer.transaction():
                    await producer.send(topic, b"%d" % number, partition=0)
                    await producer.send(topic, b"%d" % number, partition=1)
                    await producer.flush()
                    if number % 2:
                        raise KeyError(number)
            except KeyError:
                assert number % 2
    records = await read(bootstrap, topic, 6, partitions=2)
    assert sorted((r.partition, r.value) for r in records) == [
        (p, b"%d" % n) for p in (0, 1) for n in (0, 2, 4)
    ]


async def test_an_uncommitted_reader_sees_aborted_records_too(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic()
    async with Producer(bootstrap, transactional_id=unique) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send(topic, b"void")
        await producer.flush()
        await producer.abort_transaction()
    (record,) = await read(bootstrap, topic, 1, isolation_level="read_uncommitted")
    assert record.value == b"void"


async def test_what_is_buffered_is_dropped_by_an_abort(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic()
    async with Producer(bootstrap, transactional_id=unique, linger_ms=60_000) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        delivery = await producer.send(topic, b"never sent")
        await producer.abort_transaction()
        with pytest.raises(Exception, match="aborted"):
            await delivery
        async with producer.transaction():
            await producer.send(topic, b"sent")
    (record,) = await read(bootstrap, topic, 1, isolation_level="read_uncommitted")
    assert record.value == b"sent"


@pytest.mark.parametrize("version", [1, 2])
async def test_a_newer_producer_fences_the_older_one(
    bootstrap: str, make_topic: MakeTopic, unique: str, version: int
) -> None:
    topic = await make_topic()
    async with (
        Producer(bootstrap, transactional_id=unique, max_transaction_version=version) as old,
        Producer(bootstrap, transactional_id=unique) as new,
    ):
        await old.init_transactions()
        await old.begin_transaction()
        await old.send(topic, b"void")
        await old.flush()
        await new.init_transactions()
        with pytest.raises(FencedError, match="newer producer") as caught:
            await old.commit_transaction()
        assert caught.value.code is ErrorCode.PRODUCER_FENCED
        with pytest.raises(FencedError):
            await old.begin_transaction()
        async with new.transaction():
            await new.send(topic, b"good")
    assert [r.value for r in await read(bootstrap, topic, 1)] == [b"good"]


@pytest.mark.parametrize("version", [1, 2])
async def test_a_record_too_large_for_the_topic_aborts_the_transaction_and_the_next_one_works(
    bootstrap: str, make_topic: MakeTopic, unique: str, version: int
) -> None:
    topic = await make_topic(max_message_bytes="10000")
    async with Producer(
        bootstrap, transactional_id=unique, max_transaction_version=version
    ) as producer:
        with pytest.raises(Exception, match="larger than the topic accepts"):
            async with producer.transaction():
                await producer.send(topic, bytes(20_000))
        assert producer.state is State.READY
        async with producer.transaction():
            await producer.send(topic, b"small")
    assert [r.value for r in await read(bootstrap, topic, 1)] == [b"small"]


async def test_a_refused_batch_says_which_records_were_bad_the_first_three_of_them(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(cleanup_policy="compact")
    async with Producer(bootstrap, linger_ms=60_000) as producer:
        deliveries = [
            await producer.send(topic, b"v", None if number % 2 == 0 else b"k")
            for number in range(10)
        ]
        await producer.flush()
        failed = await asyncio.gather(*deliveries, return_exceptions=True)
    said = str(failed[0])
    assert all(index in said for index in ("record 0: ", "record 2: ", "record 4: "))
    assert "record 6: " not in said
    assert "and 2 more" in said


async def test_a_batch_too_large_for_the_topic_is_split(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(max_message_bytes="10000")
    async with Producer(bootstrap, linger_ms=20, batch_size=1_000_000) as producer:
        deliveries = [await producer.send(topic, b"%03d" % i + bytes(900)) for i in range(40)]
        await producer.flush()
        assert [(await d).offset for d in deliveries] == list(range(40))
    records = await read(bootstrap, topic, 40)
    assert [int(r.value[:3]) for r in records] == list(range(40))


async def test_keys_go_where_the_java_client_sends_them(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(7)
    # Computed by org.apache.kafka.clients.producer.internals.BuiltInPartitioner for 7 partitions.
    places = {b"": 2, b"a": 5, b"ab": 0, b"abc": 4, b"abcd": 5, b"key-12345": 0}
    async with Producer(bootstrap) as producer:
        sent = {key: await producer.send_and_wait(topic, b"v", key) for key in places}
    assert {key: where.partition for key, where in sent.items()} == places


async def test_calls_in_the_wrong_order_say_what_is_missing(bootstrap: str, unique: str) -> None:
    producer = Producer(bootstrap, transactional_id=unique)
    with pytest.raises(UsageError, match="not started"):
        await producer.send("t", b"")
    async with producer:
        with pytest.raises(UsageError, match="needs init_transactions"):
            await producer.begin_transaction()
        await producer.init_transactions()
        with pytest.raises(UsageError, match="needs begin_transaction"):
            await producer.commit_transaction()
    async with Producer(bootstrap) as plain:
        with pytest.raises(UsageError, match="transactional_id"):
            await plain.begin_transaction()


async def test_settings_are_checked_and_java_names_work() -> None:
    with pytest.raises(UsageError, match="did you mean linger_ms"):
        Producer("localhost:1", lingr_ms=5)
    with pytest.raises(UsageError, match="acks 7: use one of all, -1, 0, 1"):
        Producer("localhost:1", acks=7)
    with pytest.raises(UsageError, match="enable_idempotence needs acks"):
        Producer("localhost:1", acks=1)
    with pytest.raises(UsageError, match="host:port"):
        await Producer("localhost").start()
    producer = Producer(settings={"bootstrap.servers": "h:1", "linger.ms": 7})
    assert producer.settings.linger_ms == 7


async def test_a_timeout_beyond_what_the_broker_allows_fails_at_the_start(
    bootstrap: str, unique: str
) -> None:
    timeout_ms = 24 * 3600 * 1000
    async with Producer(
        bootstrap, transactional_id=unique, transaction_timeout_ms=timeout_ms
    ) as producer:
        with pytest.raises(FatalError, match=r"transaction\.max\.timeout\.ms"):
            await producer.init_transactions()


@pytest.mark.parametrize("version", [1, 2])
async def test_offsets_are_committed_with_the_transaction(
    bootstrap: str, make_topic: MakeTopic, unique: str, version: int
) -> None:
    topic = await make_topic()
    place = TopicPartition(topic, 0)
    async with (
        Producer(bootstrap, transactional_id=unique, max_transaction_version=version) as producer,
        Consumer(bootstrap, group_id=unique) as consumer,
    ):
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_offsets_to_transaction({place: 5}, unique)
        await producer.abort_transaction()
        assert await consumer.committed([place]) == {}
        await producer.begin_transaction()
        await producer.send_offsets_to_transaction({place: 5}, unique)
        await producer.commit_transaction()
        assert (await consumer.committed([place]))[place].offset == 5


async def test_sixteen_producers_at_once_lose_nothing(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic(4)

    async def work(number: int) -> None:
        async with Producer(bootstrap, transactional_id=f"{unique}-{number}") as producer:
            for turn in range(5):
                async with producer.transaction():
                    for partition in range(4):
                        value = b"%d/%d/%d" % (number, turn, partition)
                        await producer.send(topic, value, partition=partition)

    await asyncio.gather(*(work(number) for number in range(16)))
    records = await read(bootstrap, topic, 16 * 5 * 4, partitions=4)
    assert len({r.value for r in records}) == len(records) == 320
