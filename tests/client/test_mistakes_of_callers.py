"""Mistakes of callers: each is said at once, and what was not accepted leaves no trace."""

import array
import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from semel.client import (
    AbortableError,
    Admin,
    Consumer,
    FatalError,
    Producer,
    TopicPartition,
    UsageError,
)
from semel.client.machines.transactions import State
from semel.wire.errors import ErrorCode

MakeTopic = Callable[..., Awaitable[str]]


async def everything(
    bootstrap: str, topic: str, partitions: int = 1, isolation: str = "read_committed"
) -> list[bytes | None]:
    """All values of a topic up to its end, partition by partition. The end is that of uncommitted
    readers: Apache Kafka writes a transaction's markers after it has answered EndTxn."""
    values: list[bytes | None] = []
    async with (
        Consumer(bootstrap, isolation_level="read_uncommitted") as watcher,
        Consumer(bootstrap, isolation_level=isolation, auto_offset_reset="earliest") as consumer,
    ):
        for index in range(partitions):
            partition = TopicPartition(topic, index)
            consumer.assign([partition])
            end = (await watcher.end_offsets([partition]))[partition]
            while await consumer.position(partition) < end:
                values += [record.value for record in await consumer.poll(100)]
    return values


WRONG_RECORDS: dict[str, tuple[dict[str, Any], str]] = {
    "text": ({"value": "text"}, "value must be bytes, got str; encode it or give value_serializer"),
    "no text": ({"value": ""}, "value must be bytes, got str"),
    "a number": ({"value": 0}, "value must be bytes, got int"),
    "a list": ({"value": []}, "value must be bytes, got list"),
    "an array": ({"value": array.array("i", [1, 2])}, "value must be bytes, got array"),
    "a key": ({"value": b"v", "key": "k"}, "key must be bytes, got str; encode it or give key_ser"),
    "a header": ({"value": b"v", "headers": [("a", "1")]}, "the header 'a' must be bytes or None"),
    "a header's name": ({"value": b"v", "headers": [(b"a", b"1")]}, "name must be str, got bytes"),
    "half a header": ({"value": b"v", "headers": ["ab"]}, "a header must be a pair"),
    "headers": ({"value": b"v", "headers": "ab"}, "headers must be a mapping or pairs, got str"),
    "a time": ({"value": b"v", "timestamp_ms": 1.5}, "timestamp_ms must be int, got float"),
    "a partition": ({"value": b"v", "partition": "0"}, "partition must be int, got str"),
}


async def in_transaction(producer: Producer, *records: dict[str, Any]) -> None:
    async with producer.transaction():
        for record in records:
            await producer.send(**record)


@pytest.mark.parametrize("mistake", WRONG_RECORDS)
async def test_a_record_of_the_wrong_type_leaves_no_trace_in_its_transaction(
    bootstrap: str, make_topic: MakeTopic, unique: str, mistake: str
) -> None:
    topic = await make_topic()
    record, words = WRONG_RECORDS[mistake]
    record = {"topic": topic} | record
    async with Producer(bootstrap, transactional_id=unique) as producer:
        async with producer.transaction():
            with pytest.raises(TypeError, match=words):
                await producer.send(**record)
            await producer.send(topic, b"one")
            with pytest.raises(TypeError, match=words):
                await producer.send(**record)
            await producer.send(topic, b"two")
        with pytest.raises(TypeError, match=words):
            await in_transaction(producer, {"topic": topic, "value": b"void"}, record)
    assert await everything(bootstrap, topic) == [b"one", b"two"]


@pytest.mark.parametrize("mistake", WRONG_RECORDS)
async def test_outside_of_a_transaction_the_same_mistakes_stall_nothing(
    bootstrap: str, make_topic: MakeTopic, caplog: pytest.LogCaptureFixture, mistake: str
) -> None:
    topic = await make_topic()
    record, words = WRONG_RECORDS[mistake]
    with caplog.at_level(logging.WARNING):
        async with Producer(bootstrap, linger_ms=0) as producer:
            with pytest.raises(TypeError, match=words):
                await producer.send(topic, **record)
            await asyncio.sleep(0)
            assert (await producer.send_and_wait(topic, b"one")).offset == 0
            with pytest.raises(TypeError, match=words):
                await producer.send_and_wait(topic, **record)
            assert (await producer.send_and_wait(topic, b"two")).offset == 1
    assert await everything(bootstrap, topic) == [b"one", b"two"]
    assert not caplog.records


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"topic": b"t", "value": b"v"}, "topic must be str, got bytes"),
        ({"topic": None, "value": b"v"}, "topic must be str, got NoneType"),
        ({"timestamp_ms": -1}, "timestamp_ms must be between 0 and"),
        ({"timestamp_ms": 1 << 63}, "timestamp_ms must be between 0 and"),
        ({"partition": -1}, "partition must be between 0 and"),
        ({"topic": "\ud800"}, "surrogates not allowed"),
        ({"headers": [("\ud800", b"")]}, "surrogates not allowed"),
    ],
)
async def test_what_no_record_can_have_is_refused_and_the_producer_goes_on(
    bootstrap: str, make_topic: MakeTopic, record: dict[str, Any], words: str
) -> None:
    topic = await make_topic()
    async with Producer(bootstrap) as producer:
        with pytest.raises((TypeError, ValueError), match=words):
            await producer.send(**{"topic": topic, "value": b"v"} | record)
        await producer.send_and_wait(topic, b"one")
        await producer._cluster.refresh()
    assert await everything(bootstrap, topic) == [b"one"]


async def test_a_serializer_that_fails_leaves_no_trace(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic()
    async with (
        Producer(
            bootstrap, transactional_id=unique, value_serializer=lambda value: value[0]
        ) as producer,
        producer.transaction(),
    ):
        with pytest.raises(TypeError, match="value_serializer must return bytes or None"):
            await producer.send(topic, ["text"])
        with pytest.raises(IndexError):
            await producer.send(topic, [])
        await producer.send(topic, [b"one"])
    assert await everything(bootstrap, topic) == [b"one"]


async def test_headers_may_be_a_mapping_and_values_anything_that_holds_bytes(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    async with Producer(bootstrap) as producer:
        value = bytearray(b"value")
        sent = await producer.send(
            topic, value, memoryview(b"key"), headers={"a": b"1", "b": None, "c": bytearray(b"3")}
        )
        value[:] = b"other"
        await producer.flush()
        await sent
    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        (record,) = await consumer.poll(10_000)
    assert (record.key, record.value) == (b"key", b"value")
    assert record.headers == (("a", b"1"), ("b", None), ("c", b"3"))


@pytest.mark.parametrize("version", [1, 2])
async def test_a_record_larger_than_a_request_does_not_spoil_its_transaction(
    bootstrap: str, make_topic: MakeTopic, unique: str, version: int
) -> None:
    topic = await make_topic(2)
    async with Producer(
        bootstrap, transactional_id=unique, max_transaction_version=version, max_request_size=10_000
    ) as producer:
        for values in ([], [b"one"]):  # alone, and beside others
            async with producer.transaction():
                for value in values:
                    await producer.send(topic, value, partition=0)
                with pytest.raises(FatalError, match="larger than max_request_size") as caught:
                    await producer.send(topic, bytes(20_000), partition=1)
                assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
            assert producer.state is State.READY
    assert await everything(bootstrap, topic, 2) == [b"one"]
    async with Consumer(bootstrap) as consumer:
        untouched = TopicPartition(topic, 1)
        assert await consumer.end_offsets([untouched]) == {untouched: 0}, "not even a marker"


async def test_whoever_is_cancelled_while_a_batch_is_full_has_sent_nothing(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic()
    async with Producer(
        bootstrap, transactional_id=unique, batch_size=200, linger_ms=60_000
    ) as producer:
        accepted = [b"first"]
        async with producer.transaction():
            await producer.send(topic, b"first")
            for number in range(40):
                sending = asyncio.create_task(producer.send(topic, b"%d" % number))
                await asyncio.sleep(0)
                sending.cancel()
                try:
                    await sending
                    accepted.append(b"%d" % number)
                except asyncio.CancelledError:
                    pass
    assert 1 < len(accepted) < 41
    assert await everything(bootstrap, topic) == accepted


async def test_sends_at_once_keep_their_order_whatever_batches_they_fill(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    values = [b"%03d" % number + bytes(number * 7919 % 150) for number in range(300)]
    async with Producer(bootstrap, batch_size=300) as producer:
        await producer.send_and_wait(topic, b"first")
        await asyncio.gather(*(producer.send(topic, value) for value in values))
        await producer.flush()
    assert await everything(bootstrap, topic) == [b"first", *values]


async def test_a_record_that_waits_does_not_end_up_in_the_next_transaction(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic()
    async with Producer(bootstrap, transactional_id=unique, buffer_memory=200) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send(topic, bytes(100))
        late = asyncio.create_task(producer.send(topic, b"late" + bytes(100)))
        for _ in range(3):  # it gives others their turn, then waits for room
            await asyncio.sleep(0)
        await producer.abort_transaction()
        with pytest.raises(UsageError, match="the transaction ended while a record waited"):
            await late
        async with producer.transaction():
            await producer.send(topic, b"next")
    assert await everything(bootstrap, topic) == [b"next"]


@pytest.mark.parametrize("version", [1, 2])
async def test_closing_aborts_an_open_transaction(
    bootstrap: str, make_topic: MakeTopic, unique: str, version: int
) -> None:
    topic = await make_topic()
    async with Producer(
        bootstrap, transactional_id=unique, max_transaction_version=version
    ) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send(topic, b"void")
        await producer.flush()
    async with Consumer(bootstrap, isolation_level="read_committed") as consumer:
        partition = TopicPartition(topic, 0)
        ends = await consumer.end_offsets([partition])
    assert ends == {partition: 2}, "the record and its marker: nobody waits for a timeout"
    assert await everything(bootstrap, topic) == []


async def test_closing_waits_for_a_commit_that_somebody_gave_up_waiting_for(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic()
    async with Producer(bootstrap, transactional_id=unique, linger_ms=60_000) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send(topic, b"one")
        committing = asyncio.create_task(producer.commit_transaction())
        await asyncio.sleep(0)
        committing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await committing
    assert await everything(bootstrap, topic) == [b"one"]


@pytest.mark.parametrize(
    ("offsets", "group", "words"),
    [
        ({("in", 0): "5"}, "g", "an offset must be int, got str"),
        ({("in", 0): -1}, "g", "an offset must be between 0 and"),
        ({("in", "0"): 5}, "g", "partition must be int, got str"),
        ({"in": 5}, "g", "a partition must be a TopicPartition"),
        ([("in", 0)], "g", "offsets must be a mapping by partition, got list"),
        ({("in", 0): 5}, None, "a group is given by its id"),
    ],
)
async def test_offsets_of_the_wrong_type_are_refused_and_their_transaction_goes_on(
    bootstrap: str, make_topic: MakeTopic, unique: str, offsets: Any, group: Any, words: str
) -> None:
    topic = await make_topic()
    async with Producer(bootstrap, transactional_id=unique) as producer, producer.transaction():
        with pytest.raises((TypeError, ValueError), match=words):
            await producer.send_offsets_to_transaction(offsets, group)
        await producer.send(topic, b"one")
    assert await everything(bootstrap, topic) == [b"one"]


async def test_a_table_that_is_sent_in_part_cannot_be_committed(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic()
    table = {"value": [b"%03d" % number + bytes(1_000) for number in range(500)]}
    async with Producer(
        bootstrap, transactional_id=unique, buffer_memory=50_000, table_batch_size=20_000
    ) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        sending = asyncio.create_task(producer.send_table(topic, table))
        while not producer._accumulator.buffered:  # noqa: ASYNC110
            await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        with pytest.raises(AbortableError, match="a table was sent in part"):
            await producer.commit_transaction()
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send_table(topic, {"value": [b"whole"]})
    assert await everything(bootstrap, topic) == [b"whole"]


async def test_a_partition_that_a_topic_does_not_have_is_refused_with_what_it_has(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(3)
    words = rf"topic '{topic}' has 3 partitions, 0 to 2: there is no partition 99"
    missing = TopicPartition(topic, 99)
    async with Producer(bootstrap) as producer, Consumer(bootstrap) as consumer:
        with pytest.raises(UsageError, match=words):
            await producer.send(topic, b"v", partition=99)
        with pytest.raises(UsageError, match=words):
            await consumer.end_offsets([missing])
        consumer.assign([missing])
        with pytest.raises(UsageError, match=words):
            await consumer.position(missing)
        with pytest.raises(UsageError, match=words):
            await consumer.poll(60_000)


async def test_a_partition_that_is_new_is_found(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(1)
    async with Producer(bootstrap) as producer, Admin(bootstrap) as admin:
        await producer.send_and_wait(topic, b"one")
        await admin.create_partitions({topic: 2})
        assert (await producer.send_and_wait(topic, b"two", partition=1)).partition == 1


async def test_a_consumer_refuses_what_names_no_partition_or_topic(
    bootstrap: str, unique: str
) -> None:
    async with Consumer(bootstrap, group_id=unique) as consumer:
        for partitions in (["t"], [("t", "0")], [(b"t", 0)], [("t", 0, 1)]):
            with pytest.raises(TypeError, match="must be"):
                consumer.assign(partitions)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="topic must be str, got bytes"):
            consumer.subscribe([b"t"])  # type: ignore[list-item]
        with pytest.raises(TypeError, match="an offset must be int, got str"):
            await consumer.commit({TopicPartition("t", 0): "5"})  # type: ignore[dict-item]
