"""The broker as a whole: its life, its two forms, its directory, what survives a restart."""

import asyncio
import threading

import pytest

import semel
from semel.broker.directory import DirectoryInUse
from semel.broker.settings.definitions import BadSetting
from semel.wire.messages.metadata import MetadataRequest


async def test_topics_survive_a_restart(start_broker, tmp_path):
    first = await start_broker()
    topic = first.catalog.create_topic("t", 3, {"retention.ms": "5"})
    cluster = first.catalog.cluster_id
    await first.stop()
    async with semel.Broker(tmp_path / "data") as second:
        again = second.catalog.topics["t"]
        assert (again.id, again.partition_count, again.config.own) == (
            topic.id,
            3,
            {"retention.ms": "5"},
        )
        assert second.catalog.cluster_id == cluster
        assert second.partitions.find("t", 2) is not None


async def test_a_stopped_broker_is_not_started_again(start_broker):
    broker = await start_broker()
    await broker.stop()
    with pytest.raises(RuntimeError, match="starts once"):
        await broker.start()


async def test_a_second_broker_on_the_same_directory_is_refused(broker):
    with pytest.raises(DirectoryInUse, match="in use by another broker"):
        await semel.Broker(broker.data).start()


async def test_a_broker_that_could_not_start_leaves_the_directory_free(broker, tmp_path):
    other = tmp_path / "other"
    with pytest.raises(OSError, match="address already in use"):
        await semel.Broker(other, port=broker.port).start()
    async with semel.Broker(other) as second:
        assert second.port != broker.port


async def test_without_a_directory_nothing_is_left_behind():
    async with semel.Broker() as broker:
        data = broker.data
        assert data.exists()
    assert not data.exists()


def test_the_blocking_form_runs_in_a_thread_that_ends(tmp_path):
    before = threading.active_count()
    with semel.Broker(tmp_path / "data", settings={"num.partitions": 3}) as broker:
        assert broker.port > 0
        assert broker.settings["num.partitions"] == 3
    assert threading.active_count() == before


def test_the_blocking_form_raises_what_kept_it_from_starting(tmp_path):
    with (
        semel.Broker(tmp_path / "data"),
        pytest.raises(DirectoryInUse),
        semel.Broker(tmp_path / "data"),
    ):
        pass


@pytest.mark.parametrize(
    "listeners",
    ["9092", "PLAINTEXT://host", "PLAINTEXT://host:port", "EXTERNAL://host:1", "x://:99999"],
)
def test_a_bad_address_is_refused_at_once(listeners):
    with pytest.raises(BadSetting, match="for configuration listeners"):
        semel.Broker(settings={"listeners": listeners})


async def test_a_failed_background_task_is_logged_and_harms_nobody(broker, ask, caplog):
    async def fail():
        raise RuntimeError("a bug")

    task = broker.spawn(fail())
    await asyncio.wait([task])
    assert [record.message for record in caplog.records] == ["a background task failed"]
    assert (await ask(MetadataRequest(topics=[]), 1)).topics == []


async def test_background_tasks_end_with_the_broker(start_broker):
    broker = await start_broker()
    task = broker.spawn(asyncio.Event().wait())
    await broker.stop()
    with pytest.raises(asyncio.CancelledError):
        await task
