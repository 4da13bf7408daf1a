"""Compaction keeps the last record of every key, and all that transactions and producers need."""

import asyncio
import os
from uuid import uuid4

import pytest
from tests.support.transactional_log import TransactionalLog

from semel.store.cleanable import measure
from semel.store.compaction import CorruptSegment, compact_gently
from semel.store.directory import DiskStore
from semel.store.interface import LogConfig
from semel.wire.batches import Attribute, records_of
from semel.wire.compression import Compression

CONFIG = LogConfig(
    segment_bytes=1 << 20,
    index_interval_bytes=100,
    compact=True,
    delete=False,
    delete_retention_ms=1_000,
    file_delete_delay_ms=0,
)


@pytest.fixture
def store(tmp_path, clock):
    store = DiskStore(tmp_path, clock=clock)
    yield store
    store.close()


@pytest.fixture
def world(store):
    return TransactionalLog(store.create("table", 0, uuid4(), CONFIG))


def pairs_in(world):
    return [(r.key, r.value) for b in world.batches() if not b.is_control for r in records_of(b)]


def offsets_of(world):
    return [r.offset for b in world.batches() if not b.is_control for r in records_of(b)]


def seal(world):
    """Data compaction may see: followed by a segment that is active."""
    world.log.roll()
    world.write([(b"end", b"of the round")])


def test_only_the_last_record_of_a_key_stays_at_its_offset(world):
    world.write([(b"a", b"1"), (b"b", b"1")])
    world.write([(b"a", b"2"), (b"c", b"1")])
    world.write([(b"b", b"2")])
    seal(world)
    world.compact()
    assert pairs_in(world)[:-1] == [(b"a", b"2"), (b"c", b"1"), (b"b", b"2")]
    assert offsets_of(world) == [2, 3, 4, 5]
    assert world.log.cleaned_to == 5


def test_the_active_segment_is_never_touched(world):
    world.write([(b"a", b"1")])
    world.write([(b"a", b"2")])
    world.compact()
    assert len(pairs_in(world)) == 2


def test_a_second_round_cleans_what_the_first_left(world):
    world.write([(b"a", b"1"), (b"b", b"1")])
    seal(world)
    world.compact()
    world.write([(b"a", b"2")])
    seal(world)
    world.compact()
    assert world.latest() == {b"a": b"2", b"b": b"1", b"end": b"of the round"}
    assert (b"a", b"1") not in pairs_in(world)


def test_reading_on_passes_over_the_gaps(world, offsets):
    for number in range(50):
        world.write([(b"k%d" % (number % 5), b"v" * 50)])
    seal(world)
    world.compact()
    for offset in range(51):
        assert offsets(world.log.read(offset, 1)) == [max(offset, 45)]
    assert world.log.offset_for_timestamp(0).offset == 45


@pytest.mark.parametrize("compression", list(Compression))
def test_a_rebuilt_batch_keeps_its_compression_times_and_headers(world, compression):
    world.write([(b"a", b"1" * 90), (b"b", b"2" * 90), (b"c", b"3" * 90)], compression=compression)
    before = records_of(world.batches()[0])
    world.write([(b"b", b"4")])
    seal(world)
    world.compact()
    batch = world.batches()[0]
    assert batch.compression == compression
    assert (batch.base_offset, batch.last_offset, batch.count) == (0, 2, 2)
    assert records_of(batch) == [before[0], before[2]]


def test_records_without_a_key_are_dropped(world):
    world.write([(None, b"1"), (b"a", b"1")])
    world.write([(None, b"2")])
    seal(world)
    world.compact()
    assert pairs_in(world)[:-1] == [(b"a", b"1")]


def test_the_last_offset_of_a_round_is_not_forgotten(world):
    world.write([(b"a", b"1")])
    world.write([(None, b"gone")])
    world.log.roll()
    world.write([(b"b", b"1")])
    world.compact()
    emptied = world.batches()[1]
    assert (emptied.base_offset, emptied.last_offset, emptied.count) == (1, 1, 0)


def test_a_tombstone_stays_for_its_time_and_then_goes(world):
    world.write([(b"a", b"1"), (b"b", b"1")])
    world.write([(b"a", None)])
    world.write([(b"z", b"1")])
    seal(world)
    world.compact(now_ms=5_000)
    assert (b"a", None) in pairs_in(world)
    stamped = next(b for b in world.batches() if b.delete_horizon_ms is not None)
    assert stamped.attributes & Attribute.DELETE_HORIZON
    assert stamped.delete_horizon_ms == 6_000
    assert records_of(stamped)[0].timestamp == 1_010

    seal(world)
    world.compact(now_ms=5_999)
    assert (b"a", None) in pairs_in(world)
    assert next(b for b in world.batches() if b.delete_horizon_ms).delete_horizon_ms == 6_000
    seal(world)
    world.compact(now_ms=6_000)
    assert (b"a", None) not in pairs_in(world)
    assert b"a" not in world.latest()


def test_aborted_data_goes_and_does_not_hide_committed_data(world):
    world.write([(b"a", b"good")], producer_id=1, transactional=True)
    world.end(1, commit=True)
    world.write([(b"a", b"bad"), (b"b", b"bad")], producer_id=1, transactional=True)
    world.end(1, commit=False)
    world.write([(b"x", b"later")], producer_id=1, transactional=True)
    world.end(1, commit=True)
    seal(world)
    world.compact()
    assert world.latest()[b"a"] == b"good"
    assert (b"a", b"bad") not in pairs_in(world)


def test_nothing_past_the_last_stable_offset_is_touched(world):
    world.write([(b"a", b"1")])
    world.log.roll()
    world.write([(b"b", b"open")], producer_id=7, transactional=True)
    world.write([(b"a", b"2")])
    seal(world)
    world.compact()
    assert pairs_in(world)[:3] == [(b"a", b"1"), (b"b", b"open"), (b"a", b"2")]
    assert world.log.cleaned_to == 1


def test_a_marker_outlives_its_data_and_then_its_horizon(world):
    world.write([(b"a", b"1")], producer_id=1, transactional=True)
    world.end(1, commit=True)
    world.write([(b"a", b"2")])
    world.write([(b"p", b"1")], producer_id=1, transactional=True)
    world.end(1, commit=True)
    seal(world)
    assert [m.base_offset for m in markers(world)] == [1, 4]

    world.compact(now_ms=5_000)  # the data of the first transaction goes with this round
    assert [m.base_offset for m in markers(world)] == [1, 4]
    seal(world)
    world.compact(now_ms=6_000)  # nothing is left of it now: the clock of its marker starts
    assert [m.delete_horizon_ms for m in markers(world)] == [7_000, None]
    seal(world)
    world.compact(now_ms=6_999)
    assert [m.base_offset for m in markers(world)] == [1, 4]
    seal(world)
    world.compact(now_ms=7_000)
    assert [m.base_offset for m in markers(world)] == [4]


def markers(world):
    return [batch for batch in world.batches() if batch.is_control and batch.count]


def test_the_aborted_index_of_a_cleaned_segment_holds_only_what_is_left(world):
    world.write([(b"a", b"bad")], producer_id=1, transactional=True)
    world.end(1, commit=False)
    world.write([(b"p", b"1")], producer_id=1, transactional=True)
    world.end(1, commit=True)
    seal(world)
    world.compact(now_ms=5_000)
    assert len(world.aborted) == 1  # the data went in this round; the marker still stands
    seal(world)
    world.compact(now_ms=6_000)
    assert world.aborted == []
    assert world.log.read_side_file(0, "txnindex") is None
    assert world.latest()[b"p"] == b"1"


def test_the_last_batch_of_an_active_producer_is_kept_emptied(world):
    world.write([(b"a", b"1"), (b"b", b"1")], producer_id=5)
    world.write([(b"a", b"2"), (b"b", b"2")])
    world.write([(b"z", b"1")])
    seal(world)
    world.compact()
    kept = world.batches()[0]
    assert (kept.producer_id, kept.base_sequence, kept.last_sequence) == (5, 0, 1)
    assert (kept.base_offset, kept.last_offset, kept.count) == (0, 1, 0)


def test_the_last_batch_of_a_forgotten_producer_goes(world):
    world.write([(b"a", b"1")], producer_id=5)
    world.write([(b"a", b"2")])
    seal(world)
    world.state.expire(before_ms=10**12)
    world.compact()
    assert world.batches()[0].producer_id == -1


def test_a_full_map_cleans_a_part_and_the_next_round_goes_on(world):
    for number in range(40):
        world.write([(b"key %d" % (number % 20), b"%d" % number)])
    seal(world)
    before = world.latest()
    rounds = 0
    while world.log.cleaned_to < 40:
        cleaned_to = world.log.cleaned_to
        world.compact(map_bytes=1_000)
        assert world.log.cleaned_to > cleaned_to
        assert world.latest() == before
        rounds += 1
    assert rounds > 2
    assert len(pairs_in(world)) == 21


def test_long_keys_are_told_apart(world):
    one, other = b"x" * 500 + b"1", b"x" * 500 + b"2"
    world.write([(one, b"1"), (other, b"1")])
    world.write([(one, b"2")])
    seal(world)
    world.compact()
    assert pairs_in(world)[:-1] == [(other, b"1"), (one, b"2")]


def test_small_segments_are_merged_and_the_old_files_go(store, tmp_path):
    world = TransactionalLog(
        store.create(
            "small",
            0,
            uuid4(),
            LogConfig(
                segment_bytes=500, index_interval_bytes=50, compact=True, file_delete_delay_ms=0
            ),
        )
    )
    for number in range(60):
        world.write([(b"k%d" % (number % 4), b"%d" % number)])
    world.log.write_side_file(world.log.segments()[2].base_offset, "snapshot", b"s")
    before = world.latest()
    assert len(world.log.segments()) > 8
    world.compact()
    world.write([(b"k0", b"last")])
    world.log.roll()
    world.write([(b"end", b"")])
    world.compact()  # groups are made of sizes before cleaning: the second round merges
    assert len(world.log.segments()) <= 3
    assert world.latest() == before | {b"k0": b"last", b"end": b""}
    assert world.log.side_files("snapshot") == []
    list(store.sweep())
    bases = [segment.base_offset for segment in world.log.segments()]
    logs = sorted(n for n in os.listdir(tmp_path / "small-0") if ".log" in n)
    assert logs == [f"{base:020d}.log" for base in bases]


def test_a_cleaned_log_is_the_same_after_a_restart(store, world, tmp_path, clock):
    for number in range(30):
        world.write([(b"k%d" % (number % 7), b"%d" % number)])
        if number % 10 == 9:
            world.log.roll()
    world.compact()
    before, segments = world.latest(), world.log.segments()
    for clean in (True, False):
        store.close()
        if not clean:
            (tmp_path / ".kafka_cleanshutdown").unlink()
        store = DiskStore(tmp_path, clock=clock)
        world.log = store.open("table", 0, CONFIG)
        assert world.log.segments() == segments
        assert world.log.cleaned_to == 30
        assert world.latest() == before
    store.close()


def test_a_segment_may_be_cleaned_to_nothing(world, offsets):
    world.write([(b"a", b"1")])
    world.log.roll()
    world.write([(b"a", b"2")])
    world.log.roll()
    world.log.config = LogConfig(compact=True, segment_bytes=70, file_delete_delay_ms=0)
    world.write([(b"b", b"1")])
    world.compact()
    assert [segment.size > 0 for segment in world.log.segments()] == [False, True, True]
    assert offsets(world.log.read(0, 100)) == [1]
    assert world.log.retain(now_ms=10**15) == 0 or world.log.next_offset == 3


def test_compact_and_delete_work_together(store):
    config = LogConfig(segment_bytes=400, compact=True, delete=True, retention_ms=100)
    world = TransactionalLog(store.create("both", 0, uuid4(), config))
    world.write([(b"old", b"and alone")])
    for number in range(40):
        world.write([(b"k%d" % (number % 3), b"%d" % number)])
    world.compact()
    assert world.latest()[b"old"] == b"and alone"
    compacted = world.log.size
    world.log.retain(world.now_ms)
    assert world.log.start_offset > 0
    assert world.log.size < compacted
    assert b"old" not in world.latest()
    world.write([(b"k0", b"new")])
    world.log.roll()
    world.write([(b"end", b"")])
    world.compact()
    assert world.latest()[b"k0"] == b"new"


def test_segments_that_vanish_meanwhile_are_not_brought_back(world):
    world.write([(b"a", b"1")])
    world.write([(b"a", b"2")])
    seal(world)
    policy = world.policy()

    class Deleting(type(policy)):
        def tracker(self, first, end):
            if world.log.start_offset == 0 and self.calls:
                world.log.delete_below(2)
            self.calls += 1
            return super().tracker(first, end)

    policy.__class__ = Deleting
    policy.calls = 0
    world.policy = lambda: policy
    world.compact()
    assert world.log.start_offset == 2
    assert [segment.base_offset for segment in world.log.segments()] == [2]


def test_a_damaged_segment_is_left_alone(world, tmp_path):
    world.write([(b"a", b"1")])
    world.write([(b"a", b"2")])
    seal(world)
    path = tmp_path / "table-0" / f"{0:020d}.log"
    damaged = bytearray(path.read_bytes())
    damaged[-2] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(CorruptSegment):
        world.compact()
    assert path.read_bytes() == damaged


async def test_the_event_loop_goes_on_meanwhile(world):
    for number in range(600):
        world.write([(b"k%d" % (number % 50), b"%d" % number)])
    world.write([(b"big %d" % n, b"x") for n in range(1_000)])
    seal(world)
    before = world.latest()
    turns = 0

    async def count_turns():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counter = asyncio.ensure_future(count_turns())
    log = world.log
    section = measure(log.segments(), log.config, 0, 0, log.next_offset, 5_000)
    result = await compact_gently(log, world.policy(), section, 5_000)
    counter.cancel()
    assert turns > 3
    assert result.bytes_after < result.bytes_before
    assert world.latest() == before
