"""The consumer on a real broker: positions, groups, transact, the ledger, the administrator."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import islice

import pytest

from semel.client import (
    AbortableError,
    Admin,
    Consumer,
    FatalError,
    Ledger,
    NewTopic,
    Producer,
    RetriableError,
    TopicPartition,
    UsageError,
    blocking,
    transact,
)
from semel.client.machines.ledger import LedgerEntry
from semel.client.transacting import TransactBatch

MakeTopic = Callable[..., Awaitable[str]]


async def fill(bootstrap: str, topic: str, count: int, partitions: int = 1) -> None:
    async with Producer(bootstrap) as producer:
        for number in range(count):
            await producer.send(topic, b"%d" % number, partition=number % partitions)


async def numbers(bootstrap: str, topic: str, count: int, partitions: int = 1) -> list[int]:
    """Values of a topic as a committed reader sees them, until `count` are there and no more."""
    async with Consumer(
        bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        places = [TopicPartition(topic, index) for index in range(partitions)]
        consumer.assign(places)
        found: list[int] = []
        ends = await consumer.end_offsets(places)
        while len(found) < count or any([await consumer.position(p) < ends[p] for p in places]):
            found += [int(r.value or b"") for r in await consumer.poll(1_000)]
            ends = await consumer.end_offsets(places)
        return found


async def test_positions_can_be_moved_and_asked_for(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    place = TopicPartition(topic, 0)
    await fill(bootstrap, topic, 100)
    async with Consumer(bootstrap, auto_offset_reset="earliest", max_poll_records=10) as consumer:
        consumer.assign([place])
        assert [r.offset for r in await consumer.poll(5_000)] == list(range(10))
        assert await consumer.position(place) == 10
        consumer.seek(place, 95)
        assert [r.offset for r in await consumer.poll(5_000)] == [95, 96, 97, 98, 99]
        assert consumer.lag(place) == 0
        consumer.seek_to_beginning()
        assert (await consumer.poll(5_000))[0].offset == 0
        consumer.seek_to_end(place)
        assert await consumer.poll(50) == []
        assert await consumer.position(place) == 100
        assert await consumer.beginning_offsets([place]) == {place: 0}
        assert await consumer.end_offsets([place]) == {place: 100}
        consumer.pause(place)
        consumer.seek(place, 0)
        assert await consumer.poll(50) == []
        consumer.resume(place)
        assert (await consumer.poll(5_000))[0].offset == 0


async def test_polls_that_find_nothing_let_others_work(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    await fill(bootstrap, topic, 20)
    turns = 0

    async def another() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with Consumer(bootstrap, auto_offset_reset="earliest", max_poll_records=1) as consumer:
        consumer.assign([(topic, 0)])
        while not await consumer.poll(0):
            pass
        other = asyncio.create_task(another())
        consumer.pause(TopicPartition(topic, 0))  # the rest is here already, and must wait
        assert await consumer.poll(50) == []
        assert turns > 2
        consumer.resume(TopicPartition(topic, 0))
        assert (await consumer.poll(5_000))[0].offset == 1
        other.cancel()


async def test_offsets_are_found_by_time(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    place = TopicPartition(topic, 0)
    async with Producer(bootstrap) as producer:
        for stamp in (1000, 2000, 3000):
            await producer.send_and_wait(topic, b"x", timestamp_ms=stamp)
    async with Consumer(bootstrap) as consumer:
        assert (await consumer.offsets_for_times({place: 1500}))[place].offset == 1
        assert await consumer.offsets_for_times({place: 9000}) == {}


async def test_iteration_commits_only_what_was_yielded(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic()
    await fill(bootstrap, topic, 20)
    async with Consumer(bootstrap, group_id=unique, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        async for record in consumer:
            if record.offset == 4:
                await consumer.commit()
                break
    async with Consumer(bootstrap, group_id=unique) as consumer:
        consumer.subscribe([topic])
        assert (await consumer.poll(10_000))[0].offset == 5


async def test_a_position_outside_the_log_is_reset_or_reported(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    place = TopicPartition(topic, 0)
    await fill(bootstrap, topic, 5)
    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([place])
        consumer.seek(place, 1000)
        assert (await consumer.poll(5_000))[0].offset == 0
    async with Consumer(bootstrap, auto_offset_reset="none") as consumer:
        consumer.assign([place])
        with pytest.raises(FatalError, match="auto_offset_reset is none"):
            await consumer.poll(30_000)
        consumer.seek(place, 1000)
        with pytest.raises(FatalError, match="auto_offset_reset is none"):
            await consumer.poll(30_000)


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
async def test_members_share_partitions_and_take_over_from_those_who_leave(
    bootstrap: str, make_topic: MakeTopic, unique: str, strategy: str
) -> None:
    topic = await make_topic(4)
    given = {
        "group_id": unique,
        "partition_assignment_strategy": strategy,
        "heartbeat_interval_ms": 50,
    }
    async with Consumer(bootstrap, **given) as first:
        first.subscribe([topic])
        while len(first.assignment()) < 4:
            await first.poll(100)
        async with Consumer(bootstrap, **given) as second:
            second.subscribe([topic])
            while not len(first.assignment()) == len(second.assignment()) == 2:
                await asyncio.gather(first.poll(50), second.poll(50))
            assert not first.assignment() & second.assignment()
        while len(first.assignment()) < 4:
            await first.poll(100)


async def test_new_partitions_reach_the_group(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic(1)
    async with (
        Consumer(bootstrap, group_id=unique, metadata_max_age_ms=100) as consumer,
        Admin(bootstrap) as admin,
    ):
        consumer.subscribe([topic])
        while len(consumer.assignment()) < 1:
            await consumer.poll(100)
        await admin.create_partitions({topic: 3})
        while len(consumer.assignment()) < 3:
            await consumer.poll(100)


async def test_a_member_that_the_group_left_behind_cannot_commit(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    """KIP-447: the transaction of a member of an older generation is refused, not the producer."""
    topic = await make_topic(2)
    await fill(bootstrap, topic, 10, partitions=2)
    given = {"group_id": unique, "auto_offset_reset": "earliest"}
    async with (
        Consumer(bootstrap, **given, heartbeat_interval_ms=100) as slow,
        Producer(bootstrap, transactional_id=unique) as producer,
    ):
        slow.subscribe([topic])
        while not await slow.poll(100):
            pass
        stale = slow.group_metadata()
        async with Consumer(bootstrap, **given) as other:
            other.subscribe([topic])
            joining = asyncio.create_task(other.poll(10_000))
            while slow.group_metadata().generation_id == stale.generation_id:
                await slow.poll(100)
            await joining
            await producer.init_transactions()
            await producer.begin_transaction()
            with pytest.raises(AbortableError, match="another generation"):
                await producer.send_offsets_to_transaction({TopicPartition(topic, 0): 5}, stale)
            await producer.abort_transaction()
            await producer.begin_transaction()
            await producer.send_offsets_to_transaction(
                {TopicPartition(topic, 0): 5}, slow.group_metadata()
            )
            await producer.commit_transaction()


async def test_the_loop_moves_every_record_once_though_its_body_fails(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    source, target = await make_topic(2), await make_topic(1)
    await fill(bootstrap, source, 200, partitions=2)
    failures = iter([True, False] * 1000)
    moved = 0

    async def work(batch: TransactBatch) -> None:
        nonlocal moved
        for record in batch.records:
            await batch.send(target, record.value)
        if next(failures):
            raise RetriableError("the body failed after it had sent")
        moved += len(batch)
        if moved == 200:
            batches.stop()

    async with transact(
        bootstrap, inputs=[source], group_id=unique, transactional_id=unique, max_poll_records=30
    ) as batches:
        await batches.run(work)
    assert sorted(await numbers(bootstrap, target, 200)) == list(range(200))
    async with Admin(bootstrap) as admin:
        assert all(lag.lag == 0 for lag in await admin.group_lag(unique))


async def test_leaving_the_loop_early_leaves_its_batch_undone(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    source, target = await make_topic(), await make_topic()
    await fill(bootstrap, source, 10)
    given = {"inputs": [source], "group_id": unique, "transactional_id": unique}
    async with transact(bootstrap, **given) as batches:
        async for batch in batches:
            await batch.send(target, b"-1")
            break
    async with transact(bootstrap, **given) as batches:
        async for batch in batches:
            for record in batch.records:
                await batch.send(target, record.value)
            batches.stop()
    assert await numbers(bootstrap, target, 10) == list(range(10))


async def test_the_ledger_runs_a_number_once_also_after_a_restart(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    target = await make_topic()
    ran = []
    for numbers_of_this_run in ([1, 2, 3], [2, 3, 4]):
        ledger = Ledger(bootstrap, topic=f"ledger-{unique}")
        async with Producer(bootstrap, transactional_id=unique) as producer:
            for number in numbers_of_this_run:
                async with ledger.once(producer, "app", number) as fresh:
                    if fresh:
                        ran.append(number)
                        await producer.send(target, b"%d" % number)
    assert ran == [1, 2, 3, 4]
    assert await numbers(bootstrap, target, 4) == [1, 2, 3, 4]
    assert await Ledger(bootstrap, topic=f"ledger-{unique}").last("app") == 4
    assert await Ledger(bootstrap, topic=f"ledger-{unique}").last("other") is None


async def test_an_aborted_number_is_not_in_the_ledger(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    ledger = Ledger(bootstrap, topic=f"ledger-{unique}")
    async with Producer(bootstrap, transactional_id=unique) as producer:
        with pytest.raises(KeyError):
            async with ledger.once(producer, "app", 1):
                raise KeyError
        assert await ledger.last("app") is None
        async with ledger.once(producer, "app", 1) as fresh:
            assert fresh


async def test_another_applications_open_transaction_does_not_hide_the_last_commit(
    bootstrap: str, unique: str
) -> None:
    ledger = Ledger(bootstrap, topic=f"ledger-{unique}", timeout_ms=300)
    async with (
        Producer(bootstrap, transactional_id=unique) as mine,
        Producer(bootstrap, transactional_id=f"{unique}-other") as other,
    ):
        await ledger.entries()
        await other.init_transactions()
        await other.begin_transaction()
        await ledger.record(other, "other", 1)
        await other.flush()
        await mine.init_transactions()
        await mine.begin_transaction()
        await ledger.record(mine, "mine", 7)
        await mine.commit_transaction()
        with pytest.raises(RetriableError, match="another transaction has been open"):
            await ledger.last("mine")
        await other.commit_transaction()
        assert await ledger.last("mine") == 7


async def test_a_topic_that_forgets_is_no_ledger(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(1, cleanup_policy="delete")
    with pytest.raises(UsageError, match="must be compacted"):
        await Ledger(bootstrap, topic=topic).last("app")


async def test_an_application_of_a_spark_query_is_not_taken_for_the_clients(
    bootstrap: str, unique: str
) -> None:
    ledger = Ledger(bootstrap, topic=f"ledger-{unique}")
    query = LedgerEntry("app", 7, {"query": "q", "start": [], "end": []}, "spark")
    await ledger.entries()
    async with Producer(bootstrap, transactional_id=unique) as producer:
        async with producer.transaction():
            await producer.send(ledger.topic, query.encode(), query.key)
        with pytest.raises(UsageError, match="by spark, not by client"):
            async with ledger.once(producer, "app", 8):
                raise AssertionError("ran")
    assert await ledger.entries() == {"app": query}
    assert await ledger.last("app") == 7


async def test_an_administrator_sees_topics_groups_and_transactions(
    bootstrap: str, unique: str
) -> None:
    async with (
        Admin(bootstrap) as admin,
        Producer(bootstrap, transactional_id=unique) as producer,
    ):
        topic = f"admin-{unique}"
        await admin.create_topics([NewTopic(topic, 2, configs={"retention.ms": "9999"})])
        with pytest.raises(FatalError, match="exists already"):
            await admin.create_topics([topic])
        await admin.create_topics([topic], exist_ok=True)
        assert topic in await admin.list_topics()
        assert (await admin.describe_configs(topic))["retention.ms"] == "9999"
        await admin.alter_configs(topic, {"retention.ms": "8888"})
        while (await admin.describe_configs(topic, only_changed=True))["retention.ms"] != "8888":
            pass  # Kafka's brokers hear of it a moment later
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send(topic, b"x", partition=1)
        await producer.flush()
        place = TopicPartition(topic, 1)
        seen = await admin.describe_transaction(unique)
        assert (seen.state, seen.partitions) == ("Ongoing", {place})
        listed = await admin.list_transactions(states=["Ongoing"], pattern=f"{unique}.*")
        assert [each.transactional_id for each in listed] == [unique]
        (active,) = await admin.describe_producers([place])
        assert active.transaction_start_offset == 0
        far = active.last_timestamp_ms + 10**9
        assert await admin.find_hanging([place], now_ms=far) == []
        await admin.fence_producer(unique)
        with pytest.raises(FatalError):
            await producer.commit_transaction()
        await admin.delete_topics([topic])
        with pytest.raises(Exception, match="no such topic"):
            await admin.describe_topics([topic])


def test_scripts_can_do_without_await(bootstrap: str, unique: str) -> None:
    with blocking.Admin(bootstrap) as admin:
        admin.create_topics([f"blocking-{unique}"])
    with blocking.Producer(bootstrap, transactional_id=unique) as producer:
        with producer.transaction():
            delivery = producer.send(f"blocking-{unique}", b"1")
            producer.send_many(f"blocking-{unique}", [(b"2", None), (b"3", None)])
        assert delivery.result().offset == 0
        with suppress(KeyError), producer.transaction():
            producer.send(f"blocking-{unique}", b"void")
            raise KeyError
    with blocking.Consumer(
        bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign([(f"blocking-{unique}", 0)])
        values = [record.value for record in islice(consumer, 3)]
    assert values == [b"1", b"2", b"3"]
    with blocking.transact(
        bootstrap, inputs=[f"blocking-{unique}"], group_id=unique, transactional_id=unique
    ) as batches:
        for batch in batches:
            for record in batch:
                batch.send(f"copies-{unique}", record.value)
            batches.stop()
    with blocking.Consumer(bootstrap, auto_offset_reset="earliest", group_id=unique) as consumer:
        consumer.subscribe([f"copies-{unique}"], on_assigned=lambda _: consumer.commit())
        with pytest.raises(UsageError, match="a listener runs on the clients' own thread"):
            consumer.poll(30_000)
        consumer.subscribe([f"copies-{unique}"], on_assigned=print)
        assert [record.value for record in islice(consumer, 3)] == [b"1", b"2", b"3"]
    with (
        blocking.Producer(bootstrap, transactional_id=unique) as producer,
        blocking.Ledger(bootstrap, topic=f"bl-{unique}").once(producer, "a", 1) as fresh,
    ):
        assert fresh
