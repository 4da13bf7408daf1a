"""Topics that are deleted while something is on its way to them."""

import asyncio

import pytest

from semel.wire.errors import ErrorCode as E


@pytest.fixture
async def slow(start_broker, new_peer):
    broker = await start_broker(durability="fsync")
    peer = await new_peer(broker)
    await peer.create_topic()
    await peer.init()
    return broker, peer


async def test_a_batch_whose_topic_went_while_its_coordinator_was_asked_is_told_so(
    slow, hold_syncs, until
):
    broker, peer = slow
    held = hold_syncs(broker)
    partition = broker.partitions.find("t", 0)
    producing = asyncio.create_task(peer.produce(b"x", version=12))
    await until(lambda: partition.state.verifications)
    broker.catalog.delete_topic("t")
    broker.catalog.create_topic("t", 1)
    await until(lambda: held.release() or producing.done())
    assert (await producing).error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.partitions.find("t", 0).log.next_offset == 0


async def test_a_batch_whose_topic_goes_before_it_is_durable_is_told_so(slow, hold_syncs, until):
    broker, peer = slow
    await peer.add()
    held = hold_syncs(broker)
    partition = broker.partitions.find("t", 0)
    producing = asyncio.create_task(peer.produce(b"x"))
    await until(lambda: partition.log.next_offset == 1)
    broker.catalog.delete_topic("t")
    assert (await producing).error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    held.release()
