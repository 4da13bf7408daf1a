"""One set of promises, kept by the memory engine and by the disk engine."""

from pathlib import Path
from random import Random
from uuid import uuid4

import pytest
from tests.support.memory_log import MemoryStore

from semel.broker.partitions.log_settings import log_config
from semel.broker.settings.settings import Settings, TopicConfig
from semel.store.directory import DiskStore
from semel.store.interface import DURABLE, LogConfig, OffsetOutOfRange
from semel.wire.batches import BatchHeader

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)


@pytest.fixture(params=["memory", "disk", "disk with few files"])
def store(request, tmp_path, clock):
    if request.param == "memory":
        yield MemoryStore()
    else:
        few = 2 if "few" in request.param else 1024
        store = DiskStore(tmp_path, clock=clock, open_files=few)
        yield store
        store.close()


@pytest.fixture
def log(store):
    return store.create("orders", 3, uuid4(), SMALL)


def fill(log, batch, batches=20, records=3):
    for number in range(batches):
        log.append([batch(number * records, records, timestamp=1_000 + number * 10)])


def test_a_new_log_is_empty(log, offsets):
    assert (log.start_offset, log.next_offset, log.size) == (0, 0, 0)
    assert log.offline is None
    assert offsets(log.read(0, 1000)) == []
    assert log.max_timestamp() is None
    assert log.offset_for_timestamp(0) is None


def test_what_is_appended_is_durable_at_once_and_can_be_read(log, batch, offsets):
    assert log.append([batch(0, 3), batch(3, 2)]) is DURABLE
    assert log.next_offset == 5
    region = log.read(0, 10_000)
    assert bytes(region) == bytes(batch(0, 3) + batch(3, 2))
    assert region.end_offset == 5
    assert len(region) == log.size


def test_one_buffer_may_hold_several_batches(log, batch, offsets):
    log.append([memoryview(batch(0, 3) + batch(3, 2)), batch(5)])
    assert offsets(log.read(0, 10_000)) == [0, 1, 2, 3, 4, 5]
    assert offsets(log.read(4, 10_000)) == [3, 4, 5]


@pytest.mark.parametrize("seed", range(4))
def test_the_next_batch_alone_leads_to_the_same_log(store, log, batch, clock, seed):
    """Whatever its size and time, and whatever the settings become meanwhile."""
    other = store.create("orders", 4, uuid4(), SMALL)
    random = Random(seed)
    for number in range(400):
        if not number % 50:
            log.config = other.config = LogConfig(
                segment_bytes=random.choice((400, 3000, 20_000)),
                index_interval_bytes=random.choice((1, 100, 300, 10_000)),
                segment_index_bytes=random.choice((48, 10_000)),
                segment_ms=random.choice((5, 50, 10_000)),
            )
        if not number % 30:
            for each in (log, other):
                each.truncate(max(0, each.next_offset - 20))
        timestamp = -1 if number % 100 < 40 else 1_000 + random.randrange(number % 60 + 1)
        value = b"v" * random.choice((1, 20, 20, 20, 300))
        count = random.randint(1, 3) if timestamp >= 0 else 1
        data = batch(log.next_offset, count, timestamp=timestamp, value=value)
        header = BatchHeader(data)
        assert log.append_next(data, header.last_offset, header.max_timestamp) is DURABLE
        assert other.append([data]) is DURABLE
        clock.now_ms += 1
        offset = max(log.start_offset, log.next_offset - random.randint(1, 40))
        region = log.read(offset, 500)
        assert bytes(region) == bytes(other.read(offset, 500))
        assert BatchHeader(bytes(region)).last_offset >= offset
    # Of each segment where it begins, where it ends and its size: without timestamps it counts from
    # when its file was written, which is not the same for both.
    assert [info[:3] for info in log.segments()] == [info[:3] for info in other.segments()]
    store.close()
    if isinstance(store, DiskStore):
        for path in Path(store.root).glob("orders-3/*[xg]"):
            twin = path.parent.with_name("orders-4") / path.name
            assert path.read_bytes() == twin.read_bytes()


def test_offsets_never_go_back(log, batch):
    log.append([batch(0, 3)])
    with pytest.raises(ValueError, match="below"):
        log.append([batch(2)])


def test_a_buffer_that_ends_within_a_batch_is_refused(log, batch):
    with pytest.raises(ValueError, match="does not end"):
        log.append([batch(0)[:-1]])
    assert log.next_offset == 0


def test_a_read_begins_with_the_batch_that_holds_the_offset(log, batch, offsets):
    fill(log, batch)
    for offset in range(60):
        assert offsets(log.read(offset, 1))[0] == offset - offset % 3


def test_reading_on_from_each_end_meets_every_record_once(log, batch, offsets):
    fill(log, batch)
    for max_bytes in (1, 200, 350, 100_000):
        offset, seen = 0, []
        while offset < log.next_offset:
            region = log.read(offset, max_bytes)
            seen += offsets(region)
            offset = region.end_offset
        assert seen == list(range(60))


def test_only_whole_batches_that_fit_are_returned(log, batch, offsets):
    log.append([batch(0), batch(1), batch(2)])
    size = len(batch(0))
    assert offsets(log.read(0, 2 * size)) == [0, 1]
    assert offsets(log.read(0, 3 * size - 1)) == [0, 1]
    assert offsets(log.read(1, 3 * size)) == [1, 2]


def test_the_first_batch_comes_even_if_it_is_too_large_unless_told_otherwise(log, batch, offsets):
    log.append([batch(0), batch(1)])
    assert offsets(log.read(0, 1)) == [0]
    assert offsets(log.read(0, 0)) == [0]
    region = log.read(0, 1, at_least_one=False)
    assert (len(region), region.end_offset) == (0, 0)


def test_nothing_at_or_above_the_limit_is_returned(log, batch, offsets):
    fill(log, batch)
    assert (
        offsets(log.read(0, 10_000, limit_offset=6))
        == [0, 1, 2, 3, 4, 5][: len(offsets(log.read(0, 10_000)))]
    )
    assert offsets(log.read(0, 10_000, limit_offset=3)) == [0, 1, 2]
    assert offsets(log.read(3, 10_000, limit_offset=3)) == []
    assert offsets(log.read(0, 10_000, limit_offset=2)) == []


def test_reading_outside_the_log_is_refused(log, batch):
    fill(log, batch, 2)
    assert len(log.read(6, 100)) == 0
    with pytest.raises(OffsetOutOfRange):
        log.read(7, 100)
    log.delete_below(3)
    with pytest.raises(OffsetOutOfRange):
        log.read(2, 100)


def test_a_segment_rolls_when_it_is_full(log, batch):
    fill(log, batch)
    segments = log.segments()
    assert len(segments) > 3
    assert all(segment.size <= 400 for segment in segments)
    assert [s.next_offset for s in segments[:-1]] == [s.base_offset for s in segments[1:]]
    assert segments[-1].next_offset == log.next_offset


def test_a_batch_larger_than_a_segment_gets_its_own(log, batch, offsets):
    log.append([batch(0)])
    log.append([batch(1, value=b"x" * 1000)])
    log.append([batch(2)])
    assert [segment.base_offset for segment in log.segments()] == [0, 1, 2]
    assert offsets(log.read(1, 10)) == [1]


def test_a_segment_rolls_when_its_records_span_too_much_time(store, batch):
    log = store.create("slow", 0, uuid4(), LogConfig(segment_ms=100))
    log.append([batch(0, timestamp=1_000)])
    log.append([batch(1, timestamp=1_100)])
    log.append([batch(2, timestamp=1_101)])
    assert [segment.base_offset for segment in log.segments()] == [0, 2]


@pytest.mark.parametrize(("compact", "segments"), [(True, [0, 2]), (False, [0])])
def test_a_segment_that_is_to_be_compacted_does_not_outlive_the_compaction_lag(
    store, batch, compact, segments
):
    config = log_config(
        TopicConfig(
            Settings(),
            {"cleanup.policy": "compact", "max.compaction.lag.ms": "100"} if compact else {},
        )
    )
    log = store.create("lag", 0, uuid4(), config)
    for offset, timestamp in enumerate((1_000, 1_100, 1_101)):
        log.append([batch(offset, timestamp=timestamp)])
    assert [segment.base_offset for segment in log.segments()] == segments


def test_rolling_by_hand_begins_a_segment_unless_the_last_is_empty(log, batch):
    assert log.roll() == 0
    log.append([batch(0)])
    assert log.roll() == 1
    assert log.roll() == 1
    log.append([batch(1)])
    assert [segment.base_offset for segment in log.segments()] == [0, 1]


@pytest.mark.parametrize("offset", [0, 1, 3, 17, 30, 59])
def test_truncation_drops_every_batch_that_reaches_the_offset(log, batch, offsets, offset):
    fill(log, batch)
    log.truncate(offset)
    end = offset - offset % 3
    assert log.next_offset == end
    assert sorted({o for s in range(end) for o in offsets(log.read(s, 1))}) == list(range(end))
    log.append([batch(end, 2)])
    assert offsets(log.read(end, 1000)) == [end, end + 1]
    assert log.size == sum(segment.size for segment in log.segments())


def test_truncating_beyond_the_end_changes_nothing(log, batch):
    fill(log, batch)
    log.truncate(60)
    assert log.next_offset == 60


def test_truncating_fully_begins_anew_elsewhere(log, batch, offsets):
    fill(log, batch)
    log.truncate_fully(500)
    assert (log.start_offset, log.next_offset, log.size) == (500, 500, 0)
    log.append([batch(500)])
    assert offsets(log.read(500, 100)) == [500]


def test_truncation_forgets_later_epochs_snapshots_and_transaction_indexes(log, batch):
    fill(log, batch)
    log.assign_epoch(1, 0)
    log.assign_epoch(2, 30)
    log.write_side_file(9, "snapshot", b"early")
    log.write_side_file(45, "snapshot", b"late")
    base = log.segments()[-1].base_offset
    log.append_side_file(base, "txnindex", b"aborted")
    log.truncate(20)
    assert log.epochs == [(1, 0)]
    assert log.side_files("snapshot") == [9]
    assert log.side_files("txnindex") == []


def test_deleting_below_an_offset_moves_the_start_and_drops_whole_segments(log, batch, offsets):
    fill(log, batch)
    before = log.size
    assert log.delete_below(31) == 31
    assert log.start_offset == 31
    assert log.size < before
    assert log.segments()[0].base_offset <= 31 < log.segments()[0].next_offset
    assert offsets(log.read(31, 1)) == [30, 31, 32]
    assert log.delete_below(5) == 31
    assert log.delete_below(10_000) == 60
    assert log.next_offset == 60


def test_retention_by_time_drops_old_segments_and_keeps_the_young(store, batch):
    config = LogConfig(segment_bytes=400, retention_ms=100)
    log = store.create("aging", 0, uuid4(), config)
    fill(log, batch)
    youngest = log.segments()[-1]
    assert log.retain(now_ms=youngest.max_timestamp + 100) > 0
    assert log.segments()[-1] == youngest
    assert log.start_offset == log.segments()[0].base_offset
    assert log.retain(now_ms=youngest.max_timestamp + 100) == 0


def test_retention_may_empty_a_log_but_keeps_its_end(store, batch, offsets):
    log = store.create("aging", 0, uuid4(), LogConfig(segment_bytes=400, retention_ms=100))
    fill(log, batch)
    log.retain(now_ms=10**9)
    assert (log.start_offset, log.next_offset, log.size) == (60, 60, 0)
    log.append([batch(60)])
    assert offsets(log.read(60, 100)) == [60]


def test_retention_by_size_keeps_at_least_the_size(store, batch):
    log = store.create(
        "fat", 0, uuid4(), LogConfig(segment_bytes=400, retention_bytes=900, retention_ms=-1)
    )
    fill(log, batch)
    log.retain(now_ms=0)
    assert log.size >= 900
    assert log.size - log.segments()[0].size < 900


def test_retention_stops_at_the_limit(store, batch):
    log = store.create("aging", 0, uuid4(), LogConfig(segment_bytes=400, retention_ms=100))
    fill(log, batch)
    second = log.segments()[1]
    assert log.retain(now_ms=10**9, limit_offset=second.next_offset - 1) == 1
    assert log.start_offset == second.base_offset


def test_a_compacted_log_is_not_shortened_by_retention(store, batch):
    config = LogConfig(segment_bytes=400, retention_ms=1, compact=True, delete=False)
    log = store.create("table", 0, uuid4(), config)
    fill(log, batch)
    assert log.retain(now_ms=10**9) == 0


def test_the_first_record_of_a_time_is_found_anywhere(log, batch):
    fill(log, batch)
    for number in range(20):
        for record in range(3):
            found = log.offset_for_timestamp(1_000 + number * 10 + record)
            assert found == (1_000 + number * 10 + record, number * 3 + record, 0)
    assert log.offset_for_timestamp(0).offset == 0
    assert log.offset_for_timestamp(1_003).offset == 3
    assert log.offset_for_timestamp(5_000) is None
    assert log.offset_for_timestamp(1_100, limit_offset=30) is None


def test_times_out_of_order_still_give_the_first_record(log, batch):
    for offset, timestamp in enumerate([50, 10, 90, 20, 90, 30]):
        log.append([batch(offset, timestamp=timestamp)])
    assert log.offset_for_timestamp(60).offset == 2
    assert log.offset_for_timestamp(15).offset == 0
    assert log.max_timestamp() == (90, 2, 0)


def test_times_below_the_start_are_not_found(log, batch):
    fill(log, batch)
    log.delete_below(32)
    assert log.offset_for_timestamp(0).offset == 32


def test_the_largest_timestamp_lies_inside_a_batch(log, batch):
    log.append([batch(0, 3, timestamp=70)])
    assert log.max_timestamp() == (72, 2, 0)


def test_side_files_belong_to_their_owner_until_their_segment_goes(log, batch):
    fill(log, batch)
    bases = [segment.base_offset for segment in log.segments()]
    for base in bases:
        log.write_side_file(base, "snapshot", b"state %d" % base)
        log.append_side_file(base, "txnindex", b"one")
        log.append_side_file(base, "txnindex", b"two")
    assert log.read_side_file(bases[1], "txnindex") == b"onetwo"
    assert log.read_side_file(bases[1], "snapshot") == b"state %d" % bases[1]
    assert log.read_side_file(12345, "snapshot") is None
    log.delete_below(bases[2])
    assert log.side_files("txnindex") == bases[2:]
    assert log.side_files("snapshot") == bases[2:]
    log.delete_side_file(bases[2], "snapshot")
    assert log.side_files("snapshot") == bases[3:]


def test_an_epoch_begins_once(log):
    log.assign_epoch(0, 0)
    log.assign_epoch(0, 5)
    log.assign_epoch(2, 7)
    log.assign_epoch(1, 9)
    assert log.epochs == [(0, 0), (2, 7)]
    log.assign_epoch(3, 7)
    assert log.epochs == [(0, 0), (3, 7)]


def test_every_batch_can_be_walked(log, batch):
    fill(log, batch)
    assert [bytes(data) for data in log.batches(0)] == [
        bytes(batch(n * 3, 3, timestamp=1_000 + n * 10)) for n in range(20)
    ]
    assert len(list(log.batches(4, limit_offset=9))) == 2


def test_logs_are_found_by_name_and_deleted_ones_are_gone(store, log, batch):
    store.create("orders", 4, uuid4())
    assert store.list() == [("orders", 3), ("orders", 4)]
    assert store.open("orders", 3) is log
    with pytest.raises(FileExistsError):
        store.create("orders", 3, uuid4())
    store.delete("orders", 3)
    assert store.list() == [("orders", 4)]
    with pytest.raises(FileNotFoundError):
        store.open("orders", 3)
    ticket = log.append([batch(0)])
    assert ticket.error is not None
    assert store.create("orders", 3, uuid4()).next_offset == 0


async def test_a_broken_ticket_raises_when_awaited_and_calls_back_at_once(store, log, batch):
    store.delete("orders", 3)
    ticket = log.append([batch(0)])
    seen = []
    ticket.add_callback(seen.append)
    assert seen == [ticket]
    with pytest.raises(type(ticket.error)):
        await ticket
    await DURABLE
