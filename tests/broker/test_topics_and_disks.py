"""Topics of thousands of partitions, of a disk that refuses them, and internal ones deleted."""

import pytest
from tests.support.disks import DISK_FULL, NO_PERMISSION

from semel.wire.batches import BatchBuilder
from semel.wire.errors import ErrorCode as E
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.delete_topics import DeleteTopicsRequest
from semel.wire.messages.init_producer_id import InitProducerIdRequest
from semel.wire.messages.metadata import MetadataRequest
from semel.wire.messages.offset_commit import OffsetCommitRequest
from semel.wire.messages.produce import ProduceRequest


async def create(ask, name, partitions):
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1
    )
    answer = await ask(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 7)
    return answer.topics[0].error_code


async def delete(ask, name):
    state = DeleteTopicsRequest.DeleteTopicState(name=name)
    return (await ask(DeleteTopicsRequest(topics=[state]), 6)).responses[0].error_code


async def produce(ask, topic, index):
    builder = BatchBuilder()
    builder.append(None, b"x", 0)
    data = ProduceRequest.PartitionProduceData(index=index, records=builder.build())
    part = ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[part])
    return (await ask(request, 9)).responses[0].partition_responses[0].error_code


def made(broker, topic):
    return [partition.index for partition in broker.partitions if partition.topic.name == topic]


class TestALargeTopic:
    COUNT = 1_000

    async def test_is_made_while_others_are_served_and_can_be_used_at_once(self, broker, connect):
        creator, other = await connect(broker), await connect(broker)
        assert await create(creator, "large", self.COUNT) == 0
        for _ in range(3):
            await other(MetadataRequest(topics=[]), 12)
        assert 3 <= len(made(broker, "large")) < self.COUNT / 2
        last = self.COUNT - 1
        assert await produce(other, "large", last) == 0
        assert made(broker, "large")[-1] == last

    async def test_deleted_while_it_is_made_leaves_nothing(self, broker, ask, until):
        await create(ask, "large", self.COUNT)
        assert await delete(ask, "large") == 0
        assert await create(ask, "large", 1) == 0
        assert broker.partitions.store.list() == [("large", 0)]

    async def test_grows_while_it_is_made(self, broker, until):
        topic = broker.catalog.create_topic("large", 150)
        broker.catalog.add_partitions(topic, 300)
        broker.catalog.add_partitions(topic, 310)
        await until(lambda: len(made(broker, "large")) == 310)
        assert made(broker, "large") == list(range(310))
        assert len(broker.partitions.store.list()) == 310

    async def test_is_completed_by_the_next_start(self, start_broker, tmp_path):
        first = await start_broker(tmp_path / "data")
        first.catalog.create_topic("large", 150)
        await first.stop()
        assert len(made(first, "large")) < 150
        second = await start_broker(tmp_path / "data")
        assert made(second, "large") == list(range(150))


class TestADiskThatRefusesATopic:
    @pytest.mark.parametrize(
        ("operation", "path"),
        [("make_directory", "/t-1"), ("write", "/t-1/partition.metadata"), ("open", "/t-1/0")],
    )
    async def test_one_partition_is_offline_until_the_disk_agrees(
        self, disk, start_broker, connect, operation, path
    ):
        broker = await start_broker()
        ask = await connect(broker)
        disk.fail(operation, NO_PERMISSION, path)
        assert await create(ask, "t", 2) == 0  # the catalog knows it, as a controller would
        assert await produce(ask, "t", 0) == 0
        assert await produce(ask, "t", 1) == E.KAFKA_STORAGE_ERROR
        house = broker.partitions.housekeeping
        await house._each("reopening", 0, house.reopen)
        assert await produce(ask, "t", 1) == E.KAFKA_STORAGE_ERROR
        disk.heal()
        await house._each("reopening", 0, house.reopen)
        assert await produce(ask, "t", 1) == 0

    async def test_a_topic_that_was_never_made_can_be_deleted(self, disk, start_broker, connect):
        broker = await start_broker()
        ask = await connect(broker)
        disk.fail("make_directory", DISK_FULL)
        await create(ask, "t", 2)
        assert await delete(ask, "t") == 0
        disk.heal()
        assert await create(ask, "t", 1) == 0
        assert await produce(ask, "t", 0) == 0

    async def test_what_cannot_be_removed_is_gone_for_clients_and_removed_at_the_next_start(
        self, disk, start_broker, connect, tmp_path
    ):
        broker = await start_broker(tmp_path / "data")
        ask = await connect(broker)
        await create(ask, "t", 2)
        disk.fail("rename", NO_PERMISSION, "/t-")
        assert await delete(ask, "t") == 0
        assert await produce(ask, "t", 0) == E.UNKNOWN_TOPIC_OR_PARTITION
        assert (tmp_path / "data" / "t-0").exists()
        disk.heal()
        await broker.stop()
        again = await start_broker(tmp_path / "data")
        assert again.partitions.store.list() == []

    async def test_a_disk_that_failed_at_the_start_comes_back_with_all_its_records(
        self, disk, start_broker, connect, tmp_path
    ):
        first = await start_broker(tmp_path / "data")
        await create(await connect(first), "t", 1)
        assert await produce(await connect(first), "t", 0) == 0
        await first.stop()
        disk.fail("open", NO_PERMISSION, "/t-0/0")
        second = await start_broker(tmp_path / "data")
        ask = await connect(second)
        assert await produce(ask, "t", 0) == E.KAFKA_STORAGE_ERROR
        disk.heal()
        house = second.partitions.housekeeping
        await house._each("reopening", 0, house.reopen)
        assert await produce(ask, "t", 0) == 0
        assert second.partitions.find("t", 0).high_watermark == 2

    async def test_a_log_that_can_be_opened_but_not_read_takes_one_partition_offline_at_the_start(
        self, disk, start_broker, connect, tmp_path
    ):
        first = await start_broker(tmp_path / "data")
        ask = await connect(first)
        await create(ask, "t", 2)
        assert await produce(ask, "t", 0) == 0
        first.partitions.find("t", 0).log.roll()
        assert await produce(ask, "t", 0) == 0
        await first.stop()
        disk.fail("open", NO_PERMISSION, f"/t-0/{0:020d}.timeindex")
        second = await start_broker(tmp_path / "data")
        ask = await connect(second)
        assert await produce(ask, "t", 0) == E.KAFKA_STORAGE_ERROR
        assert await produce(ask, "t", 1) == 0
        disk.heal()
        house = second.partitions.housekeeping
        await house._each("reopening", 0, house.reopen)
        assert await produce(ask, "t", 0) == 0
        assert second.partitions.find("t", 0).high_watermark == 3

    async def test_a_log_that_cannot_be_read_at_two_tries_keeps_all_its_records(
        self, start_broker, connect, tmp_path
    ):
        """What was never read is not what a failed sync refused: nothing of it is cut off."""
        first = await start_broker(tmp_path / "data")
        ask = await connect(first)
        await create(ask, "t", 1)
        assert await produce(ask, "t", 0) == 0
        await first.stop()
        snapshots = [tmp_path / f"data/t-0/{offset:020d}.snapshot" for offset in (0, 1)]
        for path in snapshots:
            path.unlink(missing_ok=True)
            path.mkdir()  # the log opens, and what belongs to it cannot be read
        second = await start_broker(tmp_path / "data")
        house = second.partitions.housekeeping
        await house._each("reopening", 0, house.reopen)
        assert second.partitions.find("t", 0).log.offline is not None
        for path in snapshots:
            path.rmdir()
        await house._each("reopening", 0, house.reopen)
        assert second.partitions.find("t", 0).high_watermark == 1

    async def test_a_snapshot_that_cannot_be_written_does_not_keep_a_broker_from_stopping(
        self, disk, start_broker, connect, tmp_path
    ):
        broker = await start_broker(tmp_path / "data")
        ask = await connect(broker)
        await create(ask, "t", 1)
        await produce(ask, "t", 0)
        disk.fail("open", DISK_FULL, ".snapshot")
        await broker.stop()
        disk.heal()
        again = await start_broker(tmp_path / "data")
        assert again.partitions.find("t", 0).high_watermark == 1


class TestInternalTopics:
    """Apache Kafka 4.3.1 lets a client delete them; what they knew is forgotten."""

    async def test_transactional_ids_are_forgotten_with_their_topic_and_it_is_made_again(
        self, broker, ask
    ):
        init = InitProducerIdRequest(transactional_id="etl", transaction_timeout_ms=60_000)
        old = await ask(init, 4)
        assert await delete(ask, "__transaction_state") == 0
        assert broker.transactions.shards == []
        init.producer_id, init.producer_epoch = old.producer_id, old.producer_epoch
        again = await ask(init, 4)
        assert (again.error_code, again.producer_epoch) == (0, 0)
        assert again.producer_id != old.producer_id
        assert len(broker.transactions.shards) == 50

    async def test_a_client_may_make_it_with_as_many_partitions_as_it_likes(self, broker, ask):
        await ask(InitProducerIdRequest(transactional_id="a", transaction_timeout_ms=60_000), 4)
        await delete(ask, "__transaction_state")
        assert await create(ask, "__transaction_state", 3) == 0
        assert len(broker.transactions.shards) == 3

    async def test_committed_offsets_are_forgotten_with_their_topic(self, broker, ask):
        await create(ask, "t", 1)
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=5
        )
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])
        commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=[topic])
        for _ in range(2):
            answer = await ask(commit, 8)
            assert answer.topics[0].partitions[0].error_code == 0
            assert [group.group_id for group in broker.groups.list([], [])[1]] == ["g"]
            assert await delete(ask, "__consumer_offsets") == 0
            assert broker.groups.list([], [])[1] == []
