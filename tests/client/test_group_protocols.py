"""Groups by both protocols: dividing, static members, patterns, being expelled, other clients."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from confluent_kafka import Consumer as RdConsumer
from tests.support.brokers.process import SemelProcess

from semel.client import (
    AbortableError,
    Admin,
    Consumer,
    FatalError,
    NewTopic,
    Producer,
    TopicPartition,
    UsageError,
    transact,
)

MakeTopic = Callable[..., Awaitable[str]]
protocols = pytest.mark.parametrize("protocol", ["classic", "consumer"])


def member(bootstrap: str, group: str, protocol: str = "consumer", **given: object) -> Consumer:
    quick = {"heartbeat_interval_ms": 100} if protocol == "classic" else {}
    return Consumer(
        bootstrap, group_id=group, group_protocol=protocol, auto_offset_reset="earliest",
        metadata_max_age_ms=200, **quick, **given,
    )  # fmt: skip


async def poll_until(settled: Callable[[], bool], *consumers: Consumer) -> None:
    while not settled():
        await asyncio.gather(*(consumer.poll(50) for consumer in consumers))


@pytest.mark.parametrize("assignor", [None, "range", "uniform"])
async def test_the_broker_divides_and_divides_anew(
    bootstrap: str, make_topic: MakeTopic, unique: str, assignor: str | None
) -> None:
    topic = await make_topic(4)
    given = {"group_remote_assignor": assignor}
    async with member(bootstrap, unique, **given) as first:
        first.subscribe([topic])
        await poll_until(lambda: len(first.assignment()) == 4, first)
        async with member(bootstrap, unique, **given) as second:
            second.subscribe([topic])
            await poll_until(
                lambda: len(first.assignment()) == len(second.assignment()) == 2, first, second
            )
            assert not first.assignment() & second.assignment()
        await poll_until(lambda: len(first.assignment()) == 4, first)


async def test_partitions_change_hands_without_a_record_read_twice(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    """What is revoked is committed before another gets it."""
    topic = await make_topic(4)
    async with Producer(bootstrap) as producer:
        for number in range(400):
            await producer.send(topic, b"%d" % number, partition=number % 4)
    read: list[int] = []
    given = {"enable_auto_commit": True, "max_poll_records": 5}

    async def take(consumer: Consumer) -> None:
        read.extend(int(record.value or b"") for record in await consumer.poll(50))

    async with AsyncExitStack() as stack:
        group = [await stack.enter_async_context(member(bootstrap, unique, **given))]
        group[0].subscribe([topic])
        while len(read) < 400:
            await asyncio.gather(*(take(consumer) for consumer in group))
            if len(group) < 3 and len(read) >= 100 * len(group):
                group.append(await stack.enter_async_context(member(bootstrap, unique, **given)))
                group[-1].subscribe([topic])
    assert sorted(read) == list(range(400))


async def test_a_static_member_finds_its_partitions_where_it_left_them(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic(4)
    async with member(bootstrap, unique, group_instance_id="b") as other:
        async with member(bootstrap, unique, group_instance_id="a") as first:
            for each in (first, other):
                each.subscribe([topic])
            await poll_until(
                lambda: len(first.assignment()) == len(other.assignment()) == 2, first, other
            )
            mine, others = first.assignment(), other.assignment()
            async with member(bootstrap, unique, group_instance_id="a") as rival:
                rival.subscribe([topic])
                with pytest.raises(FatalError, match="still holds this group instance id"):
                    await rival.poll(30_000)
        async with member(bootstrap, unique, group_instance_id="a") as again:
            again.subscribe([topic])
            await poll_until(lambda: len(again.assignment()) == 2, again, other)
            assert again.assignment() == mine
            assert other.assignment() == others


@protocols
async def test_topics_that_match_are_read_also_those_made_later(
    bootstrap: str, unique: str, protocol: str
) -> None:
    async with Admin(bootstrap) as admin, member(bootstrap, unique, protocol) as consumer:
        await admin.create_topics([f"{unique}-a", f"not-{unique}-a", f"{unique}-a-b"])
        consumer.subscribe(pattern=f"{unique}-[a-z]")
        await poll_until(lambda: bool(consumer.assignment()), consumer)
        assert consumer.assignment() == {(f"{unique}-a", 0)}
        await admin.create_topics([NewTopic(f"{unique}-b", 2)])
        await poll_until(lambda: len(consumer.assignment()) == 3, consumer)
        async with Producer(bootstrap) as producer:
            await producer.send_and_wait(f"{unique}-b", b"x", partition=1)
        while not (records := await consumer.poll(1_000)):
            pass
        assert records[0].topic == f"{unique}-b"
        consumer.subscribe([f"{unique}-a-b"])
        await poll_until(lambda: consumer.assignment() == {(f"{unique}-a-b", 0)}, consumer)


@protocols
async def test_a_member_that_is_stuck_is_let_go_and_cannot_commit_what_it_read(
    bootstrap: str, make_topic: MakeTopic, unique: str, protocol: str
) -> None:
    topic = await make_topic(1)
    lost: list[frozenset[TopicPartition]] = []

    async def on_lost(partitions: frozenset[TopicPartition]) -> None:
        lost.append(partitions)

    async with (
        member(bootstrap, unique, protocol, max_poll_interval_ms=300) as stuck,
        member(bootstrap, unique, protocol) as heir,
        Producer(bootstrap, transactional_id=unique) as producer,
    ):
        async with Producer(bootstrap) as plain:
            await plain.send_and_wait(topic, b"x")
        stuck.subscribe([topic], on_lost=on_lost)
        while not await stuck.poll(100):
            pass
        stale = stuck.group_metadata()
        heir.subscribe([topic])
        while not await heir.poll(100):
            pass  # it reads what the other has read, since that was never committed
        with pytest.raises(AbortableError):
            await stuck.commit()
        await producer.init_transactions()
        await producer.begin_transaction()
        with pytest.raises(AbortableError):
            await producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, stale)
        await producer.abort_transaction()
        assert lost == []
        await stuck.poll(0)
        assert lost == [{(topic, 0)}]
        await heir.commit()
        await poll_until(lambda: stuck.group_metadata() != stale, stuck, heir)


async def test_old_and_new_members_and_librdkafkas_share_a_group(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic(6)
    theirs = RdConsumer(
        {"bootstrap.servers": bootstrap, "group.id": unique, "group.protocol": "consumer"}
    )
    try:
        async with (
            member(bootstrap, unique) as newer,
            member(bootstrap, unique, "classic") as older,
        ):
            theirs.subscribe([topic])
            newer.subscribe([topic])
            older.subscribe([topic])

            def settled() -> bool:
                shares = [newer.assignment(), older.assignment(), theirs.assignment()]
                return [len(share) for share in shares] == [2, 2, 2]

            while not settled():
                await asyncio.gather(
                    newer.poll(50), older.poll(50), asyncio.to_thread(theirs.poll, 0.05)
                )
            given = {(each.topic, each.partition) for each in theirs.assignment()}
            assert len(given | newer.assignment() | older.assignment()) == 6
            await asyncio.to_thread(theirs.close)
            await poll_until(
                lambda: len(newer.assignment()) == len(older.assignment()) == 3, newer, older
            )
    finally:
        theirs.close()


async def test_the_loop_is_exactly_once_in_groups_of_the_newer_kind(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    """Two loops, one after the other started in the middle of the first one's work."""
    source, target = await make_topic(4), await make_topic(1)
    async with Producer(bootstrap) as producer:
        for number in range(300):
            await producer.send(source, b"%d" % number, partition=number % 4)
    moved: list[int] = []
    loops = []

    async def loop(name: str) -> None:
        async with transact(
            bootstrap, inputs=[source], group_id=unique, transactional_id=f"{unique}-{name}",
            group_protocol="consumer", max_poll_records=10,
        ) as batches:  # fmt: skip
            loops.append(batches)
            async for batch in batches:
                for record in batch:
                    await batch.send(target, record.value)

    async with Consumer(
        bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as reader:
        reader.assign([(target, 0)])
        working = [asyncio.create_task(loop("a"))]
        while len(moved) < 300:
            moved += [int(record.value or b"") for record in await reader.poll(50)]
            if len(working) == 1 and moved:
                working.append(asyncio.create_task(loop("b")))
        for each in loops:
            each.stop()
        await asyncio.gather(*working)
        end = (await reader.end_offsets([TopicPartition(target, 0)]))[TopicPartition(target, 0)]
        while await reader.position(TopicPartition(target, 0)) < end:
            moved += [int(record.value or b"") for record in await reader.poll(50)]
    assert sorted(moved) == list(range(300))


async def test_a_cluster_without_the_newer_protocol_is_said_to_be_one(unique: str) -> None:
    with SemelProcess({"group.coordinator.rebalance.protocols": "classic"}) as broker:
        async with member(broker.bootstrap, unique) as consumer:
            consumer.subscribe(["t"])
            with pytest.raises(FatalError, match="use group_protocol='classic'"):
                await consumer.poll(30_000)


async def test_who_leaves_reads_nothing_and_may_come_back(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic(2)
    async with member(bootstrap, unique) as consumer, member(bootstrap, unique) as other:
        consumer.subscribe([topic])
        await poll_until(lambda: len(consumer.assignment()) == 2, consumer)
        await consumer.unsubscribe()
        assert consumer.assignment() == frozenset()
        other.subscribe([topic])
        await poll_until(lambda: len(other.assignment()) == 2, other)
        consumer.subscribe([topic])
        await poll_until(lambda: len(consumer.assignment()) == 1, consumer, other)


def test_settings_that_are_the_brokers_are_refused() -> None:
    with pytest.raises(UsageError, match="session_timeout_ms: under group_protocol='consumer'"):
        Consumer("h:1", group_protocol="consumer", session_timeout_ms=1)
    with pytest.raises(UsageError, match="needs group_protocol='consumer'"):
        Consumer("h:1", group_remote_assignor="range")
    with pytest.raises(UsageError, match="isolation_level: transact decides this itself"):
        transact("h:1", inputs="t", group_id="g", transactional_id="t", isolation_level="x")


async def test_what_is_subscribed_to_must_make_sense(bootstrap: str, unique: str) -> None:
    async with member(bootstrap, unique, "classic") as consumer:
        with pytest.raises(UsageError, match="no regular expression"):
            consumer.subscribe(pattern="(")
        with pytest.raises(UsageError, match="one of the two"):
            consumer.subscribe([])
        with pytest.raises(UsageError, match="one of the two"):
            consumer.subscribe(["t"], pattern="t")
    async with member(bootstrap, unique) as consumer:
        consumer.subscribe(pattern="(")
        with pytest.raises(FatalError, match="regular expression"):
            await consumer.poll(30_000)
