"""Errors say what happened, why, and what to do: a full disk, a transaction that took too long."""

from pathlib import Path

import pytest
from tests.support.disks import DISK_FULL, FaultyFiles

from semel import Broker
from semel.broker.partitions.partitions import Partitions
from semel.client import Admin, NewTopic, Producer, RetriableError, SemelError
from semel.wire.errors import ErrorCode


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FaultyFiles:
    """What brokers of this test write their logs to, once it has their topic."""
    disk = FaultyFiles(tmp_path)
    monkeypatch.setattr(Partitions, "files", disk)
    return disk


async def make_topic(broker: Broker) -> None:
    async with Admin(broker.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic("t", partitions=1)])


async def test_a_full_disk_is_said_by_flush_and_by_the_delivery(
    tmp_path: Path, disk: FaultyFiles
) -> None:
    async with Broker(tmp_path) as broker:
        await make_topic(broker)
        disk.fail("write", DISK_FULL, "t-0")
        async with Producer(
            broker.bootstrap_servers, delivery_timeout_ms=1_000, request_timeout_ms=500
        ) as producer:
            delivery = await producer.send("t", b"v")
            with pytest.raises(RetriableError, match="No space left on device") as caught:
                await producer.flush(timeout_ms=300)
            assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
            assert "cannot write to its disk" in str(caught.value)
            with pytest.raises(RetriableError, match="No space left on device") as caught:
                await delivery
            assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_full_disk_is_said_by_a_commit_and_by_a_full_buffer(
    tmp_path: Path, disk: FaultyFiles
) -> None:
    async with Broker(tmp_path) as broker:
        await make_topic(broker)
        disk.fail("write", DISK_FULL, "t-0")
        async with Producer(
            broker.bootstrap_servers, transactional_id="x", buffer_memory=200, max_block_ms=1_000
        ) as producer:
            await producer.init_transactions(timeout_ms=60_000)
            await producer.begin_transaction()
            await producer.send("t", bytes(150))
            with pytest.raises(RetriableError, match="No space left on device"):
                await producer.send("t", bytes(150))
            with pytest.raises(RetriableError, match="No space left on device") as caught:
                await producer.commit_transaction(timeout_ms=300)
            assert "call commit_transaction again" in str(caught.value)


async def test_a_full_disk_is_said_by_init_transactions(tmp_path: Path, disk: FaultyFiles) -> None:
    async with Broker(tmp_path) as broker:
        async with Producer(broker.bootstrap_servers, transactional_id="x") as first:
            await first.init_transactions()
        disk.fail("write", DISK_FULL)
        async with Producer(broker.bootstrap_servers, transactional_id="x") as second:
            with pytest.raises(RetriableError, match="No space left on device") as caught:
                await second.init_transactions(timeout_ms=4_000)
            assert "COORDINATOR_NOT_AVAILABLE: __transaction_state-" in str(caught.value)
            assert "call init_transactions again" in str(caught.value)
            disk.heal()
            for partition in broker.partitions:
                broker.partitions.housekeeping.reopen(partition)
            await second.init_transactions()


async def timed_out(broker: Broker, producer: Producer) -> None:
    """Begins a transaction, and waits until its coordinator has aborted it."""
    await producer.init_transactions()
    await producer.begin_transaction()
    await producer.send("t", b"v")
    await producer.flush()
    async with Admin(broker.bootstrap_servers) as admin:
        while (await admin.describe_transaction("x")).state == "Ongoing":
            await producer.partitions_for("t")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("next_call", ["commit", "send"])
async def test_a_transaction_past_its_timeout_names_the_timeout(
    tmp_path: Path, version: int, next_call: str
) -> None:
    settings = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 50}
    async with Broker(tmp_path, settings=settings) as broker:
        await make_topic(broker)
        async with Producer(
            broker.bootstrap_servers,
            transactional_id="x",
            transaction_timeout_ms=200,
            max_transaction_version=version,
        ) as producer:
            await timed_out(broker, producer)
            if next_call == "send":
                await producer.send("t", b"late")
            with pytest.raises(SemelError) as caught:
                await producer.commit_transaction()
            assert "longer than its timeout (transaction.timeout.ms, 200 ms)" in str(caught.value)
            assert "raise transaction_timeout_ms" in str(caught.value)
            assert "report a bug" not in str(caught.value)
