"""Keys and values as a program wants them, and records that cannot be read."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from semel.client import (
    Consumer,
    DeserializationError,
    Ledger,
    Producer,
    TopicPartition,
    blocking,
    transact,
)

MakeTopic = Callable[..., Awaitable[str]]


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


async def send_all(bootstrap: str, topic: str, *values: bytes | None) -> None:
    async with Producer(bootstrap) as producer:
        for value in values:
            await producer.send(topic, value, partition=0)


async def read(consumer: Consumer[Any, Any], count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        found += [record.value for record in await consumer.poll(5_000)]
    return found


async def test_what_serializers_made_deserializers_read_and_null_is_none_on_both_sides(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    async with Producer(bootstrap, key_serializer=str.encode, value_serializer=as_json) as producer:
        await producer.send(topic, {"cents": 7}, "a")
        await producer.send(topic, None, "b")  # a tombstone: no serializer may make it "null"
        await producer.send(topic, [1])
    async with Consumer(
        bootstrap, key_deserializer=bytes.decode, value_deserializer=json.loads
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        records = []
        while len(records) < 3:
            records += await consumer.poll(5_000)
    assert [(r.key, r.value) for r in records] == [("a", {"cents": 7}), ("b", None), (None, [1])]


async def test_a_record_that_cannot_be_read_is_named_and_can_be_skipped(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    place = TopicPartition(topic, 0)
    await send_all(bootstrap, topic, b"0", b"1", b"not a number", b"3")
    async with Consumer(bootstrap, value_deserializer=int) as consumer:
        consumer.assign([place])
        assert await read(consumer, 2) == [0, 1]  # what comes before is not held back
        for _ in range(2):  # nothing is skipped silently
            with pytest.raises(
                DeserializationError, match=f"the value at offset 2 of {topic}-0"
            ) as e:
                await read(consumer, 1)
            assert await consumer.position(place) == 2
        error = e.value
        assert (error.partition, error.offset, error.record.value) == (place, 2, b"not a number")
        assert isinstance(error.__cause__, ValueError)
        consumer.seek(error.partition, error.offset + 1)
        assert await read(consumer, 1) == [3]
        assert consumer.metrics()["records_undeserialized"] == 2


async def test_a_bad_key_is_told_from_a_bad_value(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    async with Producer(bootstrap) as producer:
        await producer.send(topic, b"v", b"\xff")
    async with Consumer(bootstrap, key_deserializer=bytes.decode) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(DeserializationError, match="the key at offset 0"):
            await read(consumer, 1)


async def test_a_paused_partition_s_bad_record_keeps_nobody_from_the_others(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(partitions=2)
    async with Producer(bootstrap) as producer:
        await producer.send(topic, b"bad", partition=0)
        await producer.send(topic, b"1", partition=1)
    bad, good = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with Consumer(bootstrap, value_deserializer=int) as consumer:
        consumer.assign([bad, good])
        consumer.pause(good)
        with pytest.raises(DeserializationError):
            await read(consumer, 1)
        consumer.pause(bad)
        consumer.resume(good)
        assert consumer.paused() == {bad}
        assert await read(consumer, 1) == [1]


async def test_a_deserializer_that_ends_the_program_passes_over_nothing(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    await send_all(bootstrap, topic, b"0", b"1", b"2")
    place, patience = TopicPartition(topic, 0), [1]

    def stubborn(value: bytes) -> int:
        if value == b"1" and patience:
            patience.pop()
            raise SystemExit
        return int(value)

    async with Consumer(bootstrap, value_deserializer=stubborn) as consumer:
        consumer.assign([place])
        with pytest.raises(SystemExit):
            await read(consumer, 3)
        assert await consumer.position(place) == 0
        assert await read(consumer, 3) == [0, 1, 2]


async def test_iteration_goes_on_after_a_record_that_cannot_be_read(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    await send_all(bootstrap, topic, b"0", b"bad", b"2")
    async with Consumer(bootstrap, value_deserializer=int) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert (await anext(consumer)).value == 0
        with pytest.raises(DeserializationError) as caught:
            await anext(consumer)
        consumer.seek(caught.value.partition, caught.value.offset + 1)
        async for record in consumer:
            assert record.value == 2
            break


async def test_a_script_s_loop_skips_and_goes_on_too(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    await send_all(bootstrap, topic, b"0", b"bad", b"2")

    def script() -> list[int | None]:
        found: list[int | None] = []
        with blocking.Consumer(bootstrap, value_deserializer=int) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            while len(found) < 2:
                try:
                    for record in consumer:
                        found.append(record.value)
                        if len(found) == 2:
                            break
                except DeserializationError as error:
                    consumer.seek(error.partition, error.offset + 1)
        return found

    import asyncio

    assert await asyncio.to_thread(script) == [0, 2]


async def test_transact_deserializes_and_a_bad_record_can_be_skipped(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    source, target = await make_topic(), await make_topic()
    await send_all(bootstrap, source, b"1", b"bad", b"3")
    given = {"inputs": source, "group_id": unique, "transactional_id": unique}
    skipped: list[int] = []
    async with transact(
        bootstrap, value_deserializer=int, value_serializer=as_json, **given
    ) as batches:
        done = 0
        while done < 2:
            try:
                async for batch in batches:
                    for record in batch:
                        await batch.send(target, {"number": record.value})
                    done += len(batch)
                    if done == 2:
                        batches.stop()
            except DeserializationError as error:
                skipped.append(error.offset)
                batches.consumer.seek(error.partition, error.offset + 1)
        assert batches.producer.metrics()["transactions_committed"] == 2
    assert skipped == [1]
    async with Consumer(bootstrap, group_id=unique, value_deserializer=json.loads) as consumer:
        consumer.assign([TopicPartition(target, 0)])
        assert await read(consumer, 2) == [{"number": 1}, {"number": 3}]
        committed = await consumer.committed([TopicPartition(source, 0)])
        assert committed[TopicPartition(source, 0)].offset == 3


async def test_the_ledger_s_own_records_are_not_given_to_the_producer_s_serializers(
    bootstrap: str, unique: str
) -> None:
    ledger = Ledger(bootstrap, topic=f"ledger-{unique}")
    async with (
        Producer(
            bootstrap, transactional_id=unique, key_serializer=as_json, value_serializer=as_json
        ) as producer,
        ledger.once(producer, "billing", 1) as fresh,
    ):
        assert fresh
        await producer.send(f"t-{unique}", {"cents": 7}, "a")
    assert await ledger.last("billing") == 1
