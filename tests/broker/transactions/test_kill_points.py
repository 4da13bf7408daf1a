"""A kill between any two writes of a transaction's end leads to exactly one outcome, everywhere.

The broker's directory is copied after each write, which is what a kill -9 right there would leave
behind. A new broker is then started on every copy.
"""

import shutil

import pytest

from semel.core.transactions.states import TxnState
from semel.store.files import Files
from semel.wire.errors import ErrorCode as E

SETTINGS = {"transaction_state_log_num_partitions": 1, "offsets_topic_num_partitions": 1}
PARTITIONS = 3
COMMITTED = [b"0", b"1", b"2"]


class CopiedFiles(Files):
    """Once armed, copies the data directory before the first write and after each."""

    def __init__(self, data, copies) -> None:
        self.data, self.copies = data, copies
        self.taken = []
        self.armed = False

    def arm(self):
        self.armed = True
        self.copy()

    def copy(self):
        target = self.copies / str(len(self.taken))
        shutil.copytree(self.data, target)
        self.taken.append(target)

    def write(self, fd, buffers):
        written = super().write(fd, buffers)
        if self.armed:
            self.copy()
        return written


async def open_transaction(broker, new_peer, version):
    """Three partitions, one record in each, nothing ended yet."""
    peer = await new_peer(broker)
    await peer.create_topic(partitions=PARTITIONS)
    await peer.init()
    for index in range(PARTITIONS):
        if version < 2:
            assert await peer.add("t", index) == [0]
        answer = await peer.produce(
            b"%d" % index, partition=index, version=12 if version == 2 else 10
        )
        assert answer.error_code == 0
    return peer


async def everything_read(peer):
    return [value for index in range(PARTITIONS) for value in await peer.read(partition=index)]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("commit", [True, False])
async def test_a_kill_between_any_two_writes_of_an_end(
    start_broker, new_peer, tmp_path, version, commit
):
    broker = await start_broker(tmp_path / "d", **SETTINGS)
    files = CopiedFiles(tmp_path / "d", tmp_path / "copies")
    broker.partitions.store.pool.files = files
    peer = await open_transaction(broker, new_peer, version)
    held = (peer.producer_id, peer.epoch)
    end_version = 5 if version == 2 else 3
    files.arm()
    assert (await peer.end(commit, version=end_version)).error_code == 0
    broker.transactions.shards[0].flush()
    await broker.stop()
    # Before anything, after Prepare, after each marker, after Complete.
    assert len(files.taken) >= 1 + 1 + PARTITIONS + 1

    for number, copy in enumerate(files.taken):
        again = await start_broker(copy, **SETTINGS)
        client = await new_peer(again)
        client.producer_id, client.epoch = held
        if number == 0:
            assert await everything_read(client) == []
        # The client never heard an answer, so it asks again: whatever was decided stands.
        answer = await client.end(commit, version=end_version)
        assert answer.error_code == 0, number
        assert await everything_read(client) == (COMMITTED if commit else [])
        other = (E.INVALID_TXN_STATE, E.PRODUCER_FENCED)
        client.producer_id, client.epoch = held
        assert (await client.end(not commit, version=end_version)).error_code in other
        txn = again.transactions.shard_of("etl").machine.transactions["etl"]
        assert txn.state is (TxnState.COMPLETE_COMMIT if commit else TxnState.COMPLETE_ABORT)
        for partition in again.partitions.of("t"):
            assert partition.last_stable_offset == partition.log.next_offset
        await again.stop()


async def test_a_kill_before_the_end_leaves_a_transaction_that_a_newcomer_aborts(
    start_broker, new_peer, tmp_path
):
    broker = await start_broker(tmp_path / "d", **SETTINGS)
    files = CopiedFiles(tmp_path / "d", tmp_path / "copies")
    broker.partitions.store.pool.files = files
    peer = await new_peer(broker)
    await peer.create_topic(partitions=PARTITIONS)
    await peer.init()
    files.arm()
    for index in range(PARTITIONS):
        await peer.produce(b"%d" % index, partition=index, version=12)
    await broker.stop()
    for copy in files.taken:
        again = await start_broker(copy, **SETTINGS)
        newcomer = await new_peer(again)
        assert (await newcomer.init()).error_code == 0
        assert await everything_read(newcomer) == []
        for partition in again.partitions.of("t"):
            assert partition.last_stable_offset == partition.log.next_offset, "it hangs"
        await again.stop()
