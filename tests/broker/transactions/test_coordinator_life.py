"""Coordinators that start, crash, lose their disk and come back; time that passes."""

import asyncio

import pytest
from tests.support.disks import BROKEN, DISK_FULL

from semel.broker.coordinators import marker_sender, shards
from semel.broker.coordinators.marker_sender import NOWHERE
from semel.core.transactions.commands import EndTxn
from semel.core.transactions.states import TxnState
from semel.wire.errors import ErrorCode as E


def state(broker, name="etl"):
    return broker.transactions.shard_of(name).machine.transactions[name]


async def in_a_transaction(new_peer, broker, **init):
    """Somebody whose transaction includes the one partition of a topic."""
    peer = await new_peer(broker)
    await peer.create_topic()
    await peer.init(**init)
    await peer.add()
    return peer


async def test_what_was_known_is_known_after_a_restart(start_broker, new_peer, tmp_path):
    first = await start_broker(tmp_path / "d")
    peer = await in_a_transaction(new_peer, first)
    await peer.produce(b"one")
    before = state(first)
    await first.stop()

    second = await start_broker(tmp_path / "d")
    again = await new_peer(second)
    again.producer_id, again.epoch = peer.producer_id, peer.epoch
    assert state(second) == before._replace(last_epoch=-1, cause=None)
    assert (await again.end(True)).error_code == 0
    assert await again.read() == [b"one"]


async def test_producer_ids_are_not_handed_out_twice(start_broker, new_peer, tmp_path):
    seen = []
    for name in ("a", "b", "c"):
        broker = await start_broker(tmp_path / "d")
        peer = await new_peer(broker, name)
        await peer.init()
        seen.append(peer.producer_id)
        await broker.stop()
    assert len(set(seen)) == 3


async def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_learns_why(
    start_broker, new_peer, until
):
    broker = await start_broker(
        **{"transaction_abort_timed_out_transaction_cleanup_interval_ms": 5}
    )
    peer = await in_a_transaction(new_peer, broker, timeout_ms=1)
    await until(lambda: state(broker).state is TxnState.COMPLETE_ABORT)
    answer = await peer.produce(b"late", version=10)
    assert answer.error_code == E.INVALID_PRODUCER_EPOCH
    assert answer.error_message.endswith("It was timed out after 1 ms.")
    assert (await peer.end(True, version=1)).error_code == E.INVALID_PRODUCER_EPOCH


async def test_who_was_taken_over_learns_by_whom(broker, ready, new_peer):
    await ready.add()
    await ready.produce(b"one")
    newcomer = await new_peer(broker)
    await newcomer.init()
    answer = await ready.produce(b"two")
    assert answer.error_code == E.INVALID_PRODUCER_EPOCH
    assert "taken over by client tester from 127.0.0.1" in answer.error_message
    reasons = [move.reason for move in broker.transactions.timeline.moves("etl")]
    assert "taken over by client tester from 127.0.0.1" in reasons


async def test_the_timeline_tells_the_moves_of_a_transaction(broker, ready):
    await ready.add()
    await ready.end(True)
    moves = broker.transactions.timeline.moves("etl")
    assert [move.state for move in moves] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "CompleteCommit",
    ]


async def test_an_idle_id_is_forgotten_and_stays_forgotten(start_broker, new_peer, until, tmp_path):
    settings = {
        "transactional_id_expiration_ms": 1,
        "transaction_remove_expired_transaction_cleanup_interval_ms": 5,
    }
    broker = await start_broker(tmp_path / "d", **settings)
    peer = await new_peer(broker)
    await peer.create_topic()
    await peer.init()
    machine = broker.transactions.shard_of("etl").machine
    await until(lambda: "etl" not in machine.transactions)
    assert await peer.add() == [E.INVALID_PRODUCER_ID_MAPPING]
    await broker.stop()
    broker = await start_broker(tmp_path / "d")
    assert broker.transactions.shard_of("etl").machine.transactions == {}


async def test_a_partition_that_moves_away_answers_not_coordinator_and_loads_when_it_is_back(
    broker, ready
):
    await ready.add()
    shard = broker.transactions.shard_of("etl")
    shard.unload()
    command = EndTxn("etl", ready.producer_id, ready.epoch, True)
    assert shard.submit(command).error is E.NOT_COORDINATOR
    steps = shard.load_steps()
    next(steps)
    assert shard.submit(command).error is E.COORDINATOR_LOAD_IN_PROGRESS
    for _ in steps:
        pass
    assert (await ready.end(True)).error_code == 0


async def test_a_prepared_transaction_is_completed_when_its_coordinator_is_loaded(broker, ready):
    await ready.add()
    await ready.produce(b"one")
    markers = broker.transactions.markers
    markers.leader_of = lambda topic, index: NOWHERE
    await ready.end(True)
    assert state(broker).state is TxnState.PREPARE_COMMIT
    assert markers.queued == {"unknown": 1}
    assert await ready.read() == []
    shard = broker.transactions.shard_of("etl")
    shard.unload()
    markers.leader_of = None
    shard.load()
    assert state(broker).state is TxnState.COMPLETE_COMMIT
    assert await ready.read() == [b"one"]


async def test_a_disk_that_fails_once_costs_one_retry(disk, start_broker, new_peer):
    peer = await in_a_transaction(new_peer, await start_broker())
    await peer.produce(b"one")
    disk.fail("write", BROKEN, "__transaction_state-", once=True)
    assert (await peer.end(True)).error_code == E.NOT_COORDINATOR
    assert (await peer.end(True)).error_code == 0
    assert await peer.read() == [b"one"]


async def test_a_disk_that_keeps_failing_is_tried_again_until_it_is_back(
    disk, start_broker, new_peer, until, monkeypatch
):
    monkeypatch.setattr(shards, "RELOAD_SECONDS", 0.001)
    broker = await start_broker()
    peer = await in_a_transaction(new_peer, broker)
    partition = broker.transactions.shard_of("etl").partition
    disk.fail("write", DISK_FULL, "__transaction_state-")
    disk.fail("open", BROKEN, "__transaction_state-")
    for _ in range(3):
        assert (await peer.end(True)).error_code == E.NOT_COORDINATOR
    disk.heal()
    await until(lambda: partition.log.offline is None)
    assert (await peer.end(True)).error_code == 0


async def test_a_coordinator_whose_disk_failed_at_the_start_is_loaded_without_being_asked(
    disk, start_broker, new_peer, until, monkeypatch
):
    """Otherwise nobody would end the transactions that it left open: readers would wait forever."""
    monkeypatch.setattr(shards, "RELOAD_SECONDS", 0.001)
    broker = await start_broker()
    peer = await in_a_transaction(new_peer, broker, timeout_ms=1)
    await peer.produce(b"open")
    await broker.stop()
    disk.fail("open", BROKEN, "__transaction_state-")
    broker = await start_broker(
        **{"transaction_abort_timed_out_transaction_cleanup_interval_ms": 5}
    )
    partition = broker.partitions.find("t", 0)
    assert partition.last_stable_offset == 0
    disk.heal()
    await until(lambda: partition.last_stable_offset == 2)


async def test_a_marker_that_has_to_wait_is_told_once(
    disk, start_broker, new_peer, until, caplog, monkeypatch
):
    monkeypatch.setattr(marker_sender, "RETRY_SECONDS", 0.001)
    caplog.set_level("INFO", "semel.markers")
    broker = await start_broker()
    peer = await in_a_transaction(new_peer, broker)
    await peer.produce(b"one")
    tries = []
    appending = broker.transactions.markers.append_here
    broker.transactions.markers.append_here = lambda *marker: (
        tries.append(marker) or appending(*marker)
    )
    disk.fail("write", BROKEN, "/t-0/")
    assert (await peer.end(True)).error_code == 0
    await until(lambda: len(tries) > 3)
    assert len([line for line in caplog.records if line.name == "semel.markers"]) == 1
    disk.heal()
    broker.partitions.reopen(broker.partitions.find("t", 0))
    await until(lambda: state(broker).state is TxnState.COMPLETE_COMMIT)
    assert await peer.read() == [b"one"]


async def test_a_sync_that_failed_leaves_nothing_of_what_it_refused(
    disk, start_broker, new_peer, until
):
    broker = await start_broker(durability="fsync")
    peer = await in_a_transaction(new_peer, broker)
    before = state(broker)
    disk.fail("sync", BROKEN, "__transaction_state-", once=True)
    assert (await peer.end(True)).error_code == E.NOT_COORDINATOR
    shard = broker.transactions.shard_of("etl")
    await until(lambda: shard.machine is not None)
    assert state(broker) == before._replace(last_epoch=-1, cause=None)
    assert (await peer.end(False)).error_code == 0


async def test_while_the_markers_are_late_the_next_request_waits_a_little_and_then_hears_51(
    start_broker, new_peer
):
    broker = await start_broker(add_partitions_to_txn_retry_backoff_max_ms=20)
    peer = await in_a_transaction(new_peer, broker)
    markers = broker.transactions.markers
    markers.leader_of = lambda topic, index: NOWHERE
    await peer.end(True)
    assert await peer.add() == [E.CONCURRENT_TRANSACTIONS]
    broker.settings.change({"add.partitions.to.txn.retry.backoff.max.ms": "60000"}, {})
    waiting = asyncio.ensure_future(peer.add())
    markers.leader_of = None  # the next try finds the leader
    assert await waiting == [0]


async def test_a_deleted_topic_does_not_hang_a_transaction(broker, ready):
    await ready.create_topic("gone")
    await ready.add("gone")
    await ready.add()
    await ready.produce(b"one")
    broker.catalog.delete_topic("gone")
    assert (await ready.end(True)).error_code == 0
    assert state(broker).state is TxnState.COMPLETE_COMMIT
    assert await ready.read() == [b"one"]


@pytest.mark.parametrize("durability", ["os", "fsync"])
async def test_many_ids_at_once(start_broker, new_peer, until, durability):
    broker = await start_broker(durability=durability)
    peers = [await new_peer(broker, f"id-{number}") for number in range(8)]
    await peers[0].create_topic(partitions=4)

    async def work(peer, number):
        await peer.init()
        for round_number in range(5):
            assert await peer.add("t", number % 4) == [0]
            value = b"%d/%d" % (number, round_number)
            assert (await peer.produce(value, partition=number % 4)).error_code == 0
            assert (await peer.end(round_number % 2 == 0)).error_code == 0

    await asyncio.gather(*(work(peer, number) for number, peer in enumerate(peers)))
    partitions = broker.partitions.of("t")
    await until(lambda: all(one.last_stable_offset == one.log.next_offset for one in partitions))
    read = [value for index in range(4) for value in await peers[0].read(partition=index)]
    expected = [b"%d/%d" % (number, even) for number in range(8) for even in (0, 2, 4)]
    assert sorted(read) == sorted(expected)


async def test_an_abort_whose_index_cannot_be_written_ends_when_the_disk_is_well_again(
    disk, start_broker, new_peer, until
):
    """The marker is in the log by then: it is cut off with the rest, and written again."""
    broker = await start_broker()
    peer = await in_a_transaction(new_peer, broker)
    await peer.produce(b"aborted")
    disk.fail("open", BROKEN, ".txnindex")
    assert (await peer.end(False)).error_code == 0
    assert state(broker).state is TxnState.PREPARE_ABORT
    disk.heal()
    broker.partitions.housekeeping.reopen(broker.partitions.find("t", 0))
    await until(lambda: state(broker).state is TxnState.COMPLETE_ABORT)
    assert await peer.read() == []
