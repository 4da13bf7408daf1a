"""What works in the background and yields, while clients delete topics and make them again.

After each yield the partition in hand may belong to a topic that is gone, and its name and its
directory to another topic. Acknowledged records of that one must not suffer.
"""

import asyncio
import os
import shutil

import pytest
from tests.support.disks import BROKEN, NO_PERMISSION

from semel.broker.coordinators import shards
from semel.broker.partitions import housekeeping
from semel.wire.batches import BatchBuilder, headers, records_of
from semel.wire.errors import ErrorCode as E
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.delete_records import DeleteRecordsRequest
from semel.wire.messages.delete_topics import DeleteTopicsRequest
from semel.wire.messages.fetch import FetchRequest
from semel.wire.messages.init_producer_id import InitProducerIdRequest
from semel.wire.messages.produce import ProduceRequest

SMALL_SEGMENTS = {"segment.bytes": "1048576"}
COMPACTED = SMALL_SEGMENTS | {"cleanup.policy": "compact,delete"}


async def create(ask, name, partitions=1, configs=None):
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
            for key, value in (configs or {}).items()
        ],
    )
    answer = await ask(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 7)
    assert answer.topics[0].error_code == 0
    return answer.topics[0].topic_id


async def delete(ask, name):
    state = DeleteTopicsRequest.DeleteTopicState(name=name)
    assert (await ask(DeleteTopicsRequest(topics=[state]), 6)).responses[0].error_code == 0


async def recreate(ask, name, partitions=1, configs=None):
    await delete(ask, name)
    return await create(ask, name, partitions, configs)


async def produce(ask, topic, *values, index=0, key=b"k"):
    builder = BatchBuilder()
    for value in values:
        builder.append(key, value, 0)
    data = ProduceRequest.PartitionProduceData(index=index, records=builder.build())
    part = ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[part])
    return (await ask(request, 9)).responses[0].partition_responses[0].error_code


async def fill(ask, topic, count, size=200_000):
    for number in range(count):
        assert await produce(ask, topic, b"%d" % number + b"x" * size) == 0


async def read(ask, topic, index=0, offset=0):
    wanted = FetchRequest.FetchPartition(
        partition=index, fetch_offset=offset, partition_max_bytes=1 << 24
    )
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=[wanted])]
    answer = await ask(
        FetchRequest(topics=topics, max_wait_ms=0, min_bytes=1, max_bytes=1 << 24), 12
    )
    data = answer.responses[0].partitions[0]
    assert data.error_code == 0, E.of(data.error_code)
    batches = headers(bytes(data.records or b""))
    return [record.value for batch in batches for record in records_of(batch)]


async def delete_records(ask, topic, offset):
    asked = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=offset)
    of = DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[asked])
    answer = await ask(DeleteRecordsRequest(topics=[of], timeout_ms=5_000), 2)
    assert answer.topics[0].partitions[0].error_code == 0


def directories(broker):
    """Those that hold a topic's partition; not those on their way out."""
    names = (entry.name for entry in os.scandir(broker.data) if entry.is_dir())
    return sorted(name for name in names if not name.endswith("-delete"))


def leftovers(broker, directory):
    names = os.listdir(broker.data / directory)
    return [name for name in names if name.endswith((".cleaned", ".swap", ".tmp"))]


async def begun(coroutine, turns=1):
    """A task that has come as far as its first yields."""
    task = asyncio.create_task(coroutine)
    for _ in range(turns):
        await asyncio.sleep(0)
    assert not task.done()
    return task


def walk(broker):
    house = broker.partitions.housekeeping
    return house._each("reopening", 0, house.reopen)


class TestAWalkOverThePartitions:
    """Housekeeping visits one partition per turn of the loop."""

    async def test_spares_the_records_of_a_topic_that_was_made_again(self, broker, ask):
        await create(ask, "first", 3)
        await create(ask, "t")
        assert await produce(ask, "t", b"old") == 0
        walking = await begun(walk(broker))
        broker.catalog.delete_topic("t")
        broker.catalog.create_topic("t", 1)
        partition = broker.partitions.find("t", 0)
        builder = BatchBuilder()
        builder.append(None, b"new", 0)
        [batch] = headers(builder.build())
        assert partition.append(batch).ticket.durable
        await walking
        await walk(broker)
        assert partition.log.offline is None
        assert await read(ask, "t") == [b"new"]

    async def test_makes_no_directory_of_a_deleted_topic_again(self, broker, ask):
        await create(ask, "first", 3)
        await create(ask, "t", 2)
        walking = await begun(walk(broker))
        broker.catalog.delete_topic("t")
        await walking
        assert directories(broker) == ["first-0", "first-1", "first-2"]
        assert broker.partitions.store.list() == [("first", index) for index in range(3)]

    async def test_leaves_out_what_never_came_to_be_and_is_deleted(
        self, disk, start_broker, connect
    ):
        broker = await start_broker()
        ask = await connect(broker)
        await create(ask, "first", 3)
        disk.fail("make_directory", NO_PERMISSION, "/t-0")
        await create(ask, "t")
        walking = await begun(walk(broker))
        disk.heal()
        broker.catalog.delete_topic("t")
        await walking
        assert directories(broker) == ["first-0", "first-1", "first-2"]


class TestALargeTopic:
    COUNT = 150

    async def test_deleted_and_made_again_when_its_last_partition_was_made_is_the_new_one(
        self, broker, until
    ):
        broker.catalog.create_topic("large", self.COUNT)
        await until(lambda: ("large", self.COUNT - 1) in broker.partitions.store)
        broker.catalog.delete_topic("large")
        broker.catalog.create_topic("large", 2)
        for _ in range(3):
            await asyncio.sleep(0)
        found = broker.partitions.of("large")
        assert [partition.is_deleted for partition in found] == [False, False]
        assert directories(broker) == ["large-0", "large-1"]

    async def test_deleted_when_its_last_partition_was_made_is_gone(self, broker, until):
        broker.catalog.create_topic("large", self.COUNT)
        await until(lambda: ("large", self.COUNT - 1) in broker.partitions.store)
        broker.catalog.delete_topic("large")
        for _ in range(3):
            await asyncio.sleep(0)
        assert list(broker.partitions) == []
        assert directories(broker) == []


class TestCompaction:
    @pytest.fixture
    async def compacting(self, broker, ask):
        """A compaction that yields after every step and has read the first keys of t."""
        await create(ask, "t", configs=COMPACTED)
        await fill(ask, "t", 20)
        broker.partitions.housekeeping.slice_seconds = 0.0
        task = await begun(broker.partitions.housekeeping.compact(), turns=3)
        yield task
        task.cancel()

    async def test_of_a_topic_made_again_leaves_the_new_one_alone(self, broker, ask, compacting):
        await recreate(ask, "t", configs=COMPACTED)
        assert await produce(ask, "t", b"new") == 0
        await compacting
        assert leftovers(broker, "t-0") == []
        assert await read(ask, "t") == [b"new"]

    async def test_of_a_deleted_topic_ends_in_peace(self, broker, ask, compacting):
        await delete(ask, "t")
        await compacting
        assert directories(broker) == []
        house = broker.partitions.housekeeping
        await create(ask, "u", configs=COMPACTED)
        await fill(ask, "u", 20)
        await house.compact()
        assert broker.partitions.find("u", 0).log.cleaned_to > 0

    async def test_goes_on_when_records_are_deleted_under_it(self, broker, ask, compacting):
        partition = broker.partitions.find("t", 0)
        await delete_records(ask, "t", 15)
        await compacting
        assert leftovers(broker, "t-0") == []
        await broker.partitions.housekeeping.compact()
        assert partition.log.offline is None
        assert (await read(ask, "t", offset=19))[0].startswith(b"19")

    async def test_without_room_on_the_disk_leaves_the_log_as_it_is(
        self, disk, start_broker, connect
    ):
        broker = await start_broker()
        ask = await connect(broker)
        await create(ask, "t", configs=COMPACTED)
        await fill(ask, "t", 20)
        disk.fail("write", BROKEN, ".cleaned")
        await broker.partitions.housekeeping.compact()
        assert await produce(ask, "t", b"more") == 0
        assert leftovers(broker, "t-0") == []

    async def test_is_tried_again_when_the_log_was_opened_again(self, disk, start_broker, connect):
        broker = await start_broker()
        ask = await connect(broker)
        await create(ask, "t", configs=COMPACTED)
        await fill(ask, "t", 20)
        disk.fail("write", BROKEN, ".cleaned")
        await broker.partitions.housekeeping.compact()
        disk.heal()
        partition = broker.partitions.find("t", 0)
        disk.fail("write", BROKEN, "/t-0", once=True)
        assert await produce(ask, "t", b"refused") == E.KAFKA_STORAGE_ERROR
        await walk(broker)
        await broker.partitions.housekeeping.compact()
        assert partition.log.cleaned_to > 0


class TestHousekeeping:
    async def test_goes_on_after_a_chore_that_failed(self, start_broker, monkeypatch, until):
        monkeypatch.setattr(housekeeping, "TICK_MS", 0)
        settings = ("producer_id_expiration_check_interval_ms", "log_retention_check_interval_ms")
        broker = await start_broker(**dict.fromkeys(settings, 1))
        house = broker.partitions.housekeeping
        done = []

        def fail(partition):
            done.append("failed")
            raise RuntimeError("on purpose")

        monkeypatch.setattr(house, "expire", fail)
        monkeypatch.setattr(house, "retain", lambda partition: done.append("retained"))
        broker.catalog.create_topic("t", 1)
        await until(lambda: house._task.done() or done.count("retained") == 3)
        assert "failed" in done
        assert done.count("retained") == 3


class TestWhatTheDiskRemembersOfADeletedTopic:
    async def test_its_start_does_not_hide_its_successors_records_after_a_kill(
        self, start_broker, connect, tmp_path
    ):
        broker = await start_broker()
        ask = await connect(broker)
        await create(ask, "t")
        for number in range(10):
            await produce(ask, "t", b"%d" % number)
        await delete_records(ask, "t", 8)
        await recreate(ask, "t")
        for number in range(10):
            assert await produce(ask, "t", b"new %d" % number) == 0
        again = await start_broker(killed(broker, tmp_path))
        assert again.partitions.find("t", 0).log.start_offset == 0
        assert len(await read(await connect(again), "t")) == 10

    async def test_nor_after_two_kills_with_the_deletion_between_them(
        self, start_broker, connect, tmp_path
    ):
        broker = await start_broker()
        ask = await connect(broker)
        await create(ask, "t")
        await create(ask, "other")
        for number in range(10):
            await produce(ask, "t", b"%d" % number)
            await produce(ask, "other", b"%d" % number)
        await delete_records(ask, "t", 8)
        await delete(ask, "t")
        second = await start_broker(killed(broker, tmp_path))
        ask = await connect(second)
        await create(ask, "t")
        await delete_records(ask, "other", 5)
        for number in range(10):
            assert await produce(ask, "t", b"new %d" % number) == 0
        third = await start_broker(killed(second, tmp_path))
        assert len(await read(await connect(third), "t")) == 10

    async def test_a_log_whose_topic_is_known_under_another_name_is_left_alone(
        self, start_broker, connect, tmp_path
    ):
        first = await start_broker(tmp_path / "data")
        ask = await connect(first)
        await create(ask, "t")
        await produce(ask, "t", b"precious")
        await first.stop()
        (tmp_path / "data" / "t-0").rename(tmp_path / "data" / "x-0")
        second = await start_broker(tmp_path / "data")
        ask = await connect(second)
        await create(ask, "x")
        assert await produce(ask, "x", b"new") == E.KAFKA_STORAGE_ERROR
        assert await delete(ask, "x") is None
        assert any((tmp_path / "data" / "x-0").glob("*.log"))


def killed(broker, tmp_path):
    """A copy of the data directory as a kill would leave it now."""
    copy = tmp_path / f"after {broker.data.name}"
    shutil.copytree(broker.data, copy)
    return copy


class TestAnInternalTopic:
    async def test_deleted_while_its_coordinator_loads_its_last_records_is_not_loaded(
        self, start_broker, connect, tmp_path, monkeypatch, until
    ):
        first = await start_broker(tmp_path / "data")
        ask = await connect(first)
        for _ in range(20):
            init = InitProducerIdRequest(transactional_id="etl", transaction_timeout_ms=60_000)
            assert (await ask(init, 4)).error_code == 0
        await first.stop()
        monkeypatch.setattr(shards, "LOAD_AT_ONCE_BYTES", 0)
        second = await start_broker(tmp_path / "data")
        shard = second.transactions.shard_of("etl")
        ordered = []
        monkeypatch.setattr(shard, "_run", ordered.append)
        await until(lambda: shard.error is E.COORDINATOR_LOAD_IN_PROGRESS)
        second.catalog.delete_topic("__transaction_state")
        for _ in range(60):
            await asyncio.sleep(0)
        assert shard.machine is None
        assert ordered == []
