"""Groups and their offsets across restarts, reloads and failing disks; offsets in transactions."""

import asyncio
from types import SimpleNamespace

import pytest
from tests.support.disks import BROKEN

from semel.broker import api
from semel.broker.context import Context
from semel.core.access.principals import ANONYMOUS
from semel.core.placing import partition_of
from semel.wire.errors import ErrorCode
from semel.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from semel.wire.messages.end_txn import EndTxnRequest
from semel.wire.messages.heartbeat import HeartbeatRequest
from semel.wire.messages.init_producer_id import InitProducerIdRequest
from semel.wire.messages.list_groups import ListGroupsRequest
from semel.wire.messages.txn_offset_commit import TxnOffsetCommitRequest


class Producer:
    """A transactional producer that sends one request at a time, as told."""

    def __init__(self, speak, started):
        self.speak = speak
        self.ids = {"producer_id": started.producer_id, "producer_epoch": started.producer_epoch}

    @classmethod
    async def start(cls, speak, name="tx"):
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        started = await speak.ask(request, 5)
        assert started.error_code == 0
        return cls(speak, started)

    async def add_offsets(self, group="g"):
        request = AddOffsetsToTxnRequest(transactional_id="tx", group_id=group, **self.ids)
        return (await self.speak.ask(request, 3)).error_code

    def offset_request(self, offset, topic="t", **fields):
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset
        )
        wanted = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
            name=topic, partitions=[partition]
        )
        given = {"transactional_id": "tx", "group_id": "g", "topics": [wanted]}
        return TxnOffsetCommitRequest(**(given | self.ids | fields))

    async def commit_offset(self, offset, version=3, topic="t", **fields):
        request = self.offset_request(offset, topic, **fields)
        response = await self.speak.ask(request, version)
        return response.topics[0].partitions[0].error_code

    async def end(self, commit, version=3):
        request = EndTxnRequest(transactional_id="tx", committed=commit, **self.ids)
        response = await self.speak.ask(request, version)
        if version >= 5:
            self.ids["producer_epoch"] = response.producer_epoch
            self.ids["producer_id"] = response.producer_id
        return response.error_code


@pytest.fixture
async def producer(speak):
    await speak.create("t")
    return await Producer.start(speak)


@pytest.mark.parametrize("commit", [True, False])
async def test_offsets_move_with_the_transaction_or_not_at_all(speak, producer, commit):
    await speak.commit(5)
    assert await producer.add_offsets() == 0
    assert await producer.commit_offset(9) == 0
    assert (await speak.fetch()).committed_offset == 5
    unstable = await speak.fetch(require_stable=True)
    assert unstable.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert await producer.end(commit) == 0
    stable = await speak.fetch(require_stable=True)
    assert (stable.error_code, stable.committed_offset) == (0, 9 if commit else 5)


async def test_version_5_adds_the_offsets_to_the_transaction_by_itself(speak, producer):
    assert await producer.commit_offset(9, version=5) == 0
    assert await producer.end(True, version=5) == 0
    assert (await speak.fetch()).committed_offset == 9
    assert await producer.commit_offset(11, version=5) == 0
    assert await producer.end(False, version=5) == 0
    assert (await speak.fetch()).committed_offset == 9


@pytest.mark.parametrize(
    ("version", "error"),
    [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)],
)
async def test_offsets_outside_the_transaction_are_refused(speak, producer, version, error):
    assert await producer.commit_offset(9, version=version) == error
    assert (await speak.fetch(require_stable=True)).error_code == 0


async def test_a_fenced_producer_cannot_commit_offsets(speak, producer):
    await producer.add_offsets()
    await producer.commit_offset(9)
    newcomer = await Producer.start(speak)  # aborts the open transaction
    assert (await speak.fetch(require_stable=True)).error_code == 0
    assert await producer.commit_offset(10) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await newcomer.add_offsets() == 0
    assert await newcomer.commit_offset(11) == 0
    assert await newcomer.end(True) == 0
    assert (await speak.fetch()).committed_offset == 11


async def test_what_does_not_exist_cannot_be_committed_in_a_transaction(producer):
    await producer.add_offsets()
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await producer.commit_offset(1, topic="nowhere") == unknown
    assert await producer.commit_offset(1, group_id="") == ErrorCode.INVALID_GROUP_ID


async def test_a_generation_of_no_group_is_illegal(producer):
    await producer.add_offsets()
    error = await producer.commit_offset(9, generation_id=3, member_id="m")
    assert error == ErrorCode.ILLEGAL_GENERATION


# Waiting for the disk


async def test_under_fsync_everything_is_answered_once_it_is_on_the_disk(
    start_broker, speak_to, parked
):
    broker = await start_broker(durability="fsync")
    speak, other = await speak_to(broker), await speak_to(broker)
    await speak.create("t")
    first = await speak.join()
    assert (await speak.sync(first)).assignment == first.member_id.encode()
    waiting = asyncio.ensure_future(other.join())
    await parked(broker, 2)
    again = await speak.ask(speak.join_request(member=first.member_id), 9)
    second = await waiting
    late = asyncio.ensure_future(other.sync(second))
    assert (await speak.sync(again)).assignment == again.member_id.encode()
    assert (await late).assignment == second.member_id.encode()
    me = {"member_id": again.member_id, "generation_id_or_member_epoch": again.generation_id}
    assert await speak.commit(5, **me) == 0
    producer = await Producer.start(speak)
    assert await producer.add_offsets() == 0
    member = {"member_id": again.member_id, "generation_id": again.generation_id}
    assert await producer.commit_offset(9, **member) == 0
    assert await producer.end(True) == 0
    assert (await speak.fetch(require_stable=True)).committed_offset == 9


# Restarts


async def test_groups_and_offsets_survive_a_restart(start_broker, speak_to, tmp_path):
    first = await start_broker(tmp_path / "d")
    speak = await speak_to(first)
    await speak.create("t")
    joined = await speak.join()
    await speak.sync(joined)
    me = {"member_id": joined.member_id, "generation_id_or_member_epoch": joined.generation_id}
    assert await speak.commit(5, **me) == 0
    await first.stop()

    speak = await speak_to(await start_broker(tmp_path / "d"))
    assert (await speak.fetch()).committed_offset == 5
    beat = HeartbeatRequest(
        group_id="g", generation_id=joined.generation_id, member_id=joined.member_id
    )
    assert (await speak.ask(beat, 4)).error_code == 0, "the member did not notice"
    assert await speak.commit(6, **me) == 0


@pytest.mark.parametrize("commit", [True, False])
async def test_an_open_transactions_offsets_survive_a_restart(
    start_broker, speak_to, tmp_path, commit
):
    first = await start_broker(tmp_path / "d")
    speak = await speak_to(first)
    await speak.create("t")
    await speak.commit(5)
    producer = await Producer.start(speak)
    await producer.add_offsets()
    assert await producer.commit_offset(9) == 0
    await first.stop()

    second = await start_broker(tmp_path / "d")
    speak = producer.speak = await speak_to(second)
    unstable = await speak.fetch(require_stable=True)
    assert unstable.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert await producer.end(commit) == 0
    assert (await speak.fetch()).committed_offset == (9 if commit else 5)
    await second.stop()

    speak = await speak_to(await start_broker(tmp_path / "d"))
    assert (await speak.fetch(require_stable=True)).committed_offset == (9 if commit else 5)


async def test_requests_during_a_reload_are_told_to_wait_and_heartbeats_are_not_bothered(
    broker, speak
):
    await speak.create("t")
    await speak.commit(5)
    shard = broker.groups.shards[partition_of("g", 50)]
    shard.unload()
    next(shard.load_steps())
    broker.groups._loader._loading.add(shard)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert await speak.commit(6) == loading
    assert (await speak.join()).error_code == loading
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert (await speak.ask(beat, 4)).error_code == 0
    assert (await speak.ask(ListGroupsRequest(), 5)).error_code == loading
    broker.groups._loader._loading.discard(shard)
    assert (await speak.fetch()).committed_offset == 5


async def test_a_setting_that_changes_while_a_coordinator_is_loaded_counts(broker, speak):
    await speak.create("t")
    await speak.commit(5)
    await speak.commit(6)
    shard = broker.groups.shards[partition_of("g", 50)]
    shard.unload()
    steps = shard.load_steps()
    next(steps)
    broker.settings.change({"message.max.bytes": "10"}, {})
    for _ in steps:
        pass
    refused = await speak.sync(await speak.join())
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR, "no assignment is that small"
    broker.settings.change({}, {})
    assert (await speak.sync(await speak.join())).error_code == 0


async def test_a_failing_disk_sends_everybody_away_and_comes_back_with_what_was_heard(
    disk, start_broker, speak_to, parked
):
    broker = await start_broker()
    speak = await speak_to(broker)
    await speak.create("t")
    assert await speak.commit(5) == 0
    joined = await speak.join()
    await speak.sync(joined)
    other = await speak_to(broker)
    waiting = asyncio.ensure_future(other.join())  # parked until the first comes back
    await parked(broker, 2)

    disk.fail("write", BROKEN, f"__consumer_offsets-{partition_of('g', 50)}/", once=True)
    me = {"member_id": joined.member_id, "generation_id_or_member_epoch": joined.generation_id}
    assert await speak.commit(6, **me) == ErrorCode.NOT_COORDINATOR
    assert (await waiting).error_code == ErrorCode.NOT_COORDINATOR

    assert (await speak.fetch()).committed_offset == 5
    assert await speak.commit(6, **me) == 0


async def test_who_finds_out_that_the_disk_fails_is_sent_away_like_the_others(
    disk, start_broker, speak_to
):
    """Seed 1013 of the simulated brokers: the one whose append failed was answered twice."""
    broker = await start_broker()
    speak = await speak_to(broker)
    await speak.create("t")
    joined = await speak.join()
    disk.fail("write", BROKEN, f"__consumer_offsets-{partition_of('g', 50)}/", once=True)
    assert (await speak.sync(joined)).error_code == ErrorCode.NOT_COORDINATOR
    rejoined = await speak.join()
    assert (await speak.sync(rejoined)).error_code == 0


# Topics that are deleted, and made again under their name


async def test_offsets_of_a_topic_deleted_while_its_coordinator_loads_are_forgotten(
    start_broker, speak_to, tmp_path, monkeypatch, until
):
    first = await start_broker(tmp_path / "d")
    speak = await speak_to(first)
    await speak.create("t")
    for offset in range(5):
        assert await speak.commit(offset) == 0
    await first.stop()
    monkeypatch.setattr("semel.broker.coordinators.shards.LOAD_AT_ONCE_BYTES", 0)
    second = await start_broker(tmp_path / "d")
    shard = second.groups.shard_of("g")
    assert shard.machine is None
    second.catalog.delete_topic("t")
    second.catalog.create_topic("t", 2)
    await until(lambda: shard.machine is not None)
    assert (await (await speak_to(second)).fetch()).committed_offset == -1


async def test_offsets_of_a_topic_are_forgotten_though_a_crash_came_between(
    start_broker, speak_to, tmp_path
):
    """The catalog knows of the deletion, the log of the offsets does not yet."""
    first = await start_broker(tmp_path / "d")
    speak = await speak_to(first)
    await speak.create("t")
    producer = await Producer.start(speak)
    assert await producer.add_offsets() == 0
    assert await producer.commit_offset(7) == 0
    assert await producer.end(True) == 0
    first.catalog.listeners.remove(first.groups)
    first.catalog.delete_topic("t")
    first.catalog.create_topic("t", 2)
    await first.stop()
    second = await start_broker(tmp_path / "d")
    assert (await (await speak_to(second)).fetch()).committed_offset == -1


async def test_an_offset_of_the_new_topic_survives_the_news_of_the_old_ones_deletion(
    broker, speak, producer
):
    """All within one turn of the loop, before the coordinators are told."""
    assert await producer.add_offsets() == 0
    broker.loop.call_soon(broker.catalog.delete_topic, "t")
    broker.loop.call_soon(broker.catalog.create_topic, "t", 2)
    asked = producer.offset_request(1)
    context = Context(
        broker, SimpleNamespace(peer_host="", peer_port=0, principal=ANONYMOUS), "tester", b""
    )
    broker.loop.call_soon(api.handler(asked.API_KEY), context, asked, 3)
    await asyncio.sleep(0)
    assert await producer.end(True) == 0
    assert (await speak.fetch(require_stable=True)).committed_offset == 1


async def test_an_offset_on_its_way_when_its_topic_is_deleted_does_not_count_for_the_next(
    start_broker, speak_to, hold_syncs, until
):
    broker = await start_broker(durability="fsync")
    speak = await speak_to(broker)
    await speak.create("t")
    assert await speak.commit(1, group="g") == 0
    producer = await Producer.start(speak)
    held = hold_syncs(broker)
    partition = broker.groups.shard_of("g").partition
    committing = asyncio.create_task(producer.commit_offset(7, version=5))
    await until(lambda: partition.state.verifications)
    broker.catalog.delete_topic("t")
    broker.catalog.create_topic("t", 2)
    await until(lambda: held.release() or committing.done())
    assert await committing == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_coordinator_whose_log_was_opened_again_is_built_from_it(broker, speak, until):
    """Somebody else than the coordinator found the disk broken, and housekeeping healed it."""
    await speak.create("t")
    assert await speak.commit(5) == 0
    shard = broker.groups.shard_of("g")
    before = shard.machine
    shard.partition.log._fail(OSError("on purpose"))
    broker.partitions.housekeeping.reopen(shard.partition)
    assert shard.machine is None
    await until(lambda: shard.machine is not None)
    assert await speak.commit(6) == 0
    assert shard.machine is not before
    assert (await speak.fetch()).committed_offset == 6
