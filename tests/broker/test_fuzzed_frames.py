"""Whatever bytes come, the broker goes on: it answers, refuses or closes, and keeps nothing."""

import asyncio
import logging
import random
import resource

import pytest
from tests.support.fuzzed_frames import FuzzedFrames, feed

from semel.wire.messages.describe_cluster import DescribeClusterRequest
from semel.wire.messages.metadata import MetadataRequest

SMALL = {"transaction.state.log.num.partitions": 2, "offsets.topic.num.partitions": 2}


@pytest.fixture
async def broker(start_broker):
    settings = {name.replace(".", "_"): value for name, value in SMALL.items()}
    broker = await start_broker(**settings)
    broker.catalog.create_topic("t", 2)
    return broker


def unforeseen(caplog):
    """What was logged as an error: a handler that failed, or a callback that nobody looks after."""
    return [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_thousands_of_fuzzed_frames_leave_the_broker_as_able_as_before(
    broker, ask, caplog, start_broker
):
    counts = await feed(broker, FuzzedFrames(20_261, broker.settings), 6_000)
    assert counts["frames"] == 6_000
    assert counts["answered"] > 2_000
    assert counts["refused"] > 1_500
    assert not unforeseen(caplog)
    assert (await ask(DescribeClusterRequest(), 1)).error_code == 0
    await broker.stop()
    again = await start_broker()  # what was written can be read
    assert again.catalog.cluster_id == broker.catalog.cluster_id


async def test_fuzzed_frames_through_sockets_close_at_most_their_own_connection(
    broker, ask, connect, caplog
):
    frames = FuzzedFrames(7, broker.settings)
    dice = random.Random(7)
    for _ in range(300):
        other = await connect(broker)
        frame = bytes(frames.next())
        size = len(frame)
        if dice.random() < 0.1:
            size = dice.choice((0, -1, 2**31 - 1, size + 5, max(size - 5, 1)))
        other.writer.write(size.to_bytes(4, "big", signed=True) + frame)
        other.writer.write_eof()
        try:
            await other.reader.read(1 << 16)
        except ConnectionResetError:
            continue
    assert (await ask(DescribeClusterRequest(), 1)).error_code == 0
    assert not unforeseen(caplog)


@pytest.mark.parametrize("version", [10, 11])
async def test_a_topic_without_a_name_is_refused_where_names_are_all_there_is(ask, version):
    """Found by fuzzing: the answer could not be written, nor could that of the failure."""
    nameless = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=None)])
    answer = await ask(nameless, version)
    assert [(topic.error_code, topic.name) for topic in answer.topics] == [(42, "")]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
async def test_ten_million_fuzzed_frames(broker, ask, caplog, seed):
    frames = FuzzedFrames(seed, broker.settings)
    await feed(broker, frames, 100_000)
    warm = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await feed(broker, frames, 900_000)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - warm
    assert grown < 100_000  # KB
    assert len(asyncio.all_tasks()) < 1_000
    assert not unforeseen(caplog)
    assert (await ask(DescribeClusterRequest(), 1)).error_code == 0
