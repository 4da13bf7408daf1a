"""What lies on disk: names, clean and unclean starts, bounded descriptors, lasting regions."""

import os
from uuid import UUID, uuid4

import pytest
from tests.support.disks import NO_PERMISSION, FaultyFiles
from tests.support.transactional_log import TransactionalLog

from semel.store.directory import DiskStore
from semel.store.interface import LogConfig, LogDeleted, StorageError

CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=150, file_delete_delay_ms=500)


@pytest.fixture
def store(tmp_path, clock):
    return DiskStore(tmp_path, clock=clock)


@pytest.fixture
def log(store, batch):
    log = store.create("t", 0, uuid4(), CONFIG)
    for number in range(30):
        log.append([batch(number * 3, 3, timestamp=1_000 + number * 10)])
    return log


def kill(store):
    """What the end of the process does to a store."""
    store._lock = None


def restart(store, tmp_path, clock, **options):
    kill(store)
    return DiskStore(tmp_path, clock=clock, **options)


def files_of(path, ending):
    return sorted(name for name in os.listdir(path) if name.endswith(ending))


def test_names_are_kafkas(store, log, tmp_path):
    bases = [segment.base_offset for segment in log.segments()]
    assert len(bases) > 2
    for suffix in ("log", "index", "timeindex"):
        assert files_of(tmp_path / "t-0", f".{suffix}") == [f"{b:020d}.{suffix}" for b in bases]


def test_the_topic_id_is_kept_beside_the_log(store, tmp_path, clock):
    topic_id = UUID("9fb45dd4-9c58-4eaf-9067-cc0c069fa2ac")
    store.create("named", 7, topic_id)
    text = (tmp_path / "named-7" / "partition.metadata").read_text()
    assert text == "version: 0\ntopic_id: n7Rd1JxYTq-QZ8wMBp-irA"
    store.close()
    assert DiskStore(tmp_path, clock=clock).open("named", 7).topic_id == topic_id


def test_a_topic_name_may_hold_dashes_and_digits(store, tmp_path, clock):
    store.create("a-1-b-2", 3, uuid4())
    store.close()
    assert DiskStore(tmp_path, clock=clock).list() == [("a-1-b-2", 3)]


def test_a_second_store_is_kept_out_of_the_directory(store, tmp_path):
    with pytest.raises(StorageError, match="another process"):
        DiskStore(tmp_path)


def test_after_a_clean_stop_nothing_is_scanned(store, log, tmp_path, clock, monkeypatch):
    log.assign_epoch(0, 0)
    log.delete_below(40)
    before = log.segments()
    store.close()
    files = FaultyFiles(tmp_path)
    monkeypatch.setattr("semel.store.recovery.rebuild", pytest.fail)
    again = DiskStore(tmp_path, clock=clock, files=files).open("t", 0, CONFIG)
    assert again.recovered_from is None
    assert (again.start_offset, again.next_offset, again.size) == (40, 90, log.size)
    assert again.epochs == log.epochs == [(0, 40)]
    assert again.segments() == before


def test_reading_and_appending_go_on_after_a_clean_stop(
    store, log, tmp_path, clock, batch, offsets
):
    store.close()
    again = DiskStore(tmp_path, clock=clock).open("t", 0, CONFIG)
    again.append([batch(90, 3)])
    seen = [o for offset in range(0, 93, 3) for o in offsets(again.read(offset, 1))]
    assert seen == list(range(93))
    assert again.offset_for_timestamp(1_100).offset == 30


def test_a_kill_makes_the_next_start_scan_from_the_recovery_point(store, log, tmp_path, clock):
    store.checkpoint()
    last = log.segments()[-1].base_offset
    again = restart(store, tmp_path, clock).open("t", 0, CONFIG)
    assert again.recovered_from == last
    assert again.next_offset == 90
    assert again.segments() == log.segments()


def test_without_a_checkpoint_everything_is_scanned(store, log, tmp_path, clock):
    again = restart(store, tmp_path, clock).open("t", 0, CONFIG)
    assert again.recovered_from == 0
    assert again.next_offset == 90


@pytest.mark.parametrize("damage", ["torn", "zeros", "flipped", "garbage", "old offset"])
def test_a_damaged_end_is_cut_at_the_last_good_batch(
    store, log, tmp_path, clock, batch, offsets, damage
):
    path = tmp_path / "t-0" / f"{log.segments()[-1].base_offset:020d}.log"
    good = path.read_bytes()
    tail = bytes(batch(90, 3))
    flipped = tail[:-3] + bytes([tail[-3] ^ 1]) + tail[-2:]
    path.write_bytes(
        good
        + {
            "torn": tail[:-1],
            "zeros": bytes(5000),
            "flipped": flipped + bytes(batch(93)),
            "garbage": b"\xff" * 200,
            "old offset": bytes(batch(5)),
        }[damage]
    )
    again = restart(store, tmp_path, clock).open("t", 0, CONFIG)
    assert again.next_offset == 90
    assert path.read_bytes() == good
    again.append([batch(90, 2)])
    assert offsets(again.read(90, 100)) == [90, 91]


def test_segments_behind_a_damaged_one_are_dropped(store, log, tmp_path, clock, offsets):
    second = log.segments()[1]
    path = tmp_path / "t-0" / f"{second.base_offset:020d}.log"
    with open(path, "r+b") as file:
        file.seek(second.size - 1)
        file.write(b"\xee")
    again = restart(store, tmp_path, clock).open("t", 0, CONFIG)
    assert [segment.base_offset for segment in again.segments()] == [0, second.base_offset]
    assert second.base_offset < again.next_offset < second.next_offset
    assert len(files_of(tmp_path / "t-0", ".log")) == 2


def test_lost_or_shortened_indexes_are_rebuilt(store, log, tmp_path, clock):
    store.close()
    directory = tmp_path / "t-0"
    expected = {name: (directory / name).read_bytes() for name in files_of(directory, "index")}
    assert any(expected.values())
    for name in expected:
        (directory / name).unlink()
    again = DiskStore(tmp_path, clock=clock)
    assert again.open("t", 0, CONFIG).next_offset == 90
    assert {name: (directory / name).read_bytes() for name in expected} == expected


def test_an_unclean_start_rebuilds_the_same_indexes(store, log, tmp_path, clock):
    store.close()
    directory = tmp_path / "t-0"
    expected = {name: (directory / name).read_bytes() for name in files_of(directory, "index")}
    for name in expected:
        (directory / name).write_bytes(b"nonsense of some length")
    (tmp_path / ".kafka_cleanshutdown").unlink()
    DiskStore(tmp_path, clock=clock).open("t", 0, CONFIG)
    assert {name: (directory / name).read_bytes() for name in expected} == expected


def test_an_unclean_start_drops_side_files_it_cannot_vouch_for(store, log, tmp_path, clock):
    store.checkpoint()
    bases = [segment.base_offset for segment in log.segments()]
    log.append_side_file(bases[0], "txnindex", b"old")
    log.append_side_file(bases[-1], "txnindex", b"young")
    log.write_side_file(bases[-1], "snapshot", b"state")
    log.write_side_file(1000, "snapshot", b"of offsets that are lost")
    again = restart(store, tmp_path, clock).open("t", 0, CONFIG)
    assert again.side_files("txnindex") == [bases[0]]
    assert again.side_files("snapshot") == [bases[-1]]


def test_epochs_are_found_again_in_the_batches(store, tmp_path, clock, batch):
    log = store.create("e", 0, uuid4())
    log.append([batch(0, epoch=0)])
    log.append([batch(1, epoch=4)])
    again = restart(store, tmp_path, clock).open("e", 0)
    assert again.epochs == [(0, 0), (4, 1)]


def test_the_start_offset_survives_a_kill(store, log, tmp_path, clock):
    log.delete_below(40)
    assert restart(store, tmp_path, clock).open("t", 0, CONFIG).start_offset == 40


def test_a_region_outlives_its_segment_and_its_log(store, log, offsets):
    region = log.read(0, 600)
    before = bytes(region)
    log.delete_below(60)
    store.delete("t", 0)
    store.clock.now_ms += 100_000
    list(store.sweep())
    assert bytes(region) == before


def test_deleted_segments_are_renamed_at_once_and_removed_later(store, log, tmp_path):
    log.delete_below(60)
    doomed = files_of(tmp_path / "t-0", ".deleted")
    assert f"{0:020d}.log.deleted" in doomed
    list(store.sweep())
    assert files_of(tmp_path / "t-0", ".deleted") == doomed
    store.clock.now_ms += 500
    list(store.sweep())
    assert files_of(tmp_path / "t-0", ".deleted") == []


def test_what_was_doomed_at_a_kill_is_removed_at_the_next_start(store, log, tmp_path, clock):
    log.delete_below(60)
    store.create("u", 0, uuid4())
    store.delete("u", 0)
    assert any(name.endswith("-delete") for name in os.listdir(tmp_path))
    again = restart(store, tmp_path, clock)
    again.open("t", 0, CONFIG)
    assert files_of(tmp_path / "t-0", ".deleted") == []
    assert not any(name.endswith("-delete") for name in os.listdir(tmp_path))
    assert again.list() == [("t", 0)]


def test_a_creation_cut_short_is_forgotten(store, tmp_path, clock):
    (tmp_path / "half-0").mkdir()
    again = restart(store, tmp_path, clock)
    assert again.list() == []
    again.create("half", 0, uuid4())


def test_descriptors_stay_bounded_however_many_logs_are_in_use(tmp_path, batch, offsets):
    store = DiskStore(tmp_path, open_files=10)
    before = len(os.listdir("/dev/fd"))
    logs = [store.create("many", number, uuid4(), CONFIG) for number in range(60)]
    for offset in range(3):
        for log in logs:
            log.append([batch(offset)])
            assert offsets(log.read(0, 1000)) == list(range(offset + 1))
            assert len(os.listdir("/dev/fd")) <= before + 13
    store.close()


def test_a_deep_index_is_searched_on_disk_as_in_memory(store, batch, offsets):
    """More entries than are held back in memory: reads find their way through both."""
    log = store.create("deep", 0, uuid4(), LogConfig(index_interval_bytes=60))
    for offset in range(700):
        log.append([batch(offset, timestamp=offset)])
    for offset in [*range(0, 700, 7), 511, 512, 513]:
        assert offsets(log.read(offset, 1)) == [offset]
        assert log.offset_for_timestamp(offset).offset == offset
    region = log.read(3, 20_000)
    assert offsets(region) == list(range(3, region.end_offset))
    assert 20_000 - 100 < len(region) <= 20_000


def test_a_segment_rolls_when_its_index_is_full(store, batch):
    log = store.create(
        "full", 0, uuid4(), LogConfig(index_interval_bytes=1, segment_index_bytes=48)
    )
    for offset in range(20):
        log.append([batch(offset, timestamp=1_000 + offset)])
    directory = f"{store.root}/full-0"
    assert len(log.segments()) > 3
    store.close()
    for name in files_of(directory, "index"):
        assert os.path.getsize(f"{directory}/{name}") <= 48


def test_a_segment_without_timestamps_rolls_by_the_clock(store, batch, clock):
    log = store.create("old", 0, uuid4(), LogConfig(segment_ms=1000))
    log.append([batch(0, timestamp=-1)])
    log.append([batch(1, timestamp=-1)])
    clock.now_ms += 1001
    log.append([batch(2, timestamp=-1)])
    assert [segment.base_offset for segment in log.segments()] == [0, 2]


def test_a_segment_holds_no_offset_that_its_index_cannot(store, batch, offsets):
    log = store.create("far", 0, uuid4())
    log.append([batch(0)])
    log.append([batch(2**31 - 1)])
    log.append([batch(2**31)])
    assert [segment.base_offset for segment in log.segments()] == [0, 2**31]
    assert offsets(log.read(5, 100)) == [2**31 - 1]


def test_offsets_on_file_of_a_deleted_log_are_not_those_of_the_next_of_its_name(
    store, log, tmp_path, clock, batch
):
    log.delete_below(40)
    store.checkpoint()
    store.delete("t", 0)
    fresh = store.create("t", 0, uuid4())
    fresh.append([batch(offset) for offset in range(50)])
    again = restart(store, tmp_path, clock).open("t", 0)
    assert (again.start_offset, again.recovered_from) == (0, 0)


def test_a_directory_that_could_not_be_removed_is_not_in_the_way_of_the_next(tmp_path, batch):
    files = FaultyFiles(tmp_path)
    store = DiskStore(tmp_path, files=files)
    store.create("t", 0, uuid4()).append([batch(0)])
    files.fail("rename", NO_PERMISSION, "/t-0")
    with pytest.raises(StorageError):
        store.delete("t", 0)
    with pytest.raises(StorageError):
        store.create("t", 0, uuid4())
    files.heal()
    assert store.create("t", 0, uuid4()).next_offset == 0
    list(store.sweep())
    assert [name for name in os.listdir(tmp_path) if "t-0" in name] == ["t-0"]


def test_a_directory_made_by_somebody_else_is_left_alone(tmp_path):
    store = DiskStore(tmp_path)
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "precious").touch()
    with pytest.raises(StorageError):
        store.create("t", 0, uuid4())
    assert (tmp_path / "t-0" / "precious").exists()


@pytest.mark.parametrize("text", ["", "version: 0", "version: 0\ntopic_id: AAAA", "nonsense"])
def test_a_log_that_names_no_topic_cannot_be_opened(store, log, tmp_path, clock, text):
    (tmp_path / "t-0" / "partition.metadata").write_text(text)
    again = restart(store, tmp_path, clock)
    with pytest.raises(StorageError):
        again.topic_id("t", 0)
    with pytest.raises(StorageError):
        again.open("t", 0)


class TestASearchByTime:
    """It pauses after each batch, and the log goes on meanwhile."""

    def test_passes_over_what_was_deleted(self, store, log):
        found = log.batches_at_or_after(0, 90)
        assert next(found).base_offset == 0
        log.delete_below(60)
        store.clock.now_ms += 100_000
        list(store.sweep())
        rest = [batch.base_offset for batch in found]
        assert rest[-1] == 87
        assert log.offline is None

    def test_sees_all_that_follows_what_was_replaced(self, store, clock, batch):
        config = LogConfig(segment_bytes=1000, compact=True, delete=False, file_delete_delay_ms=0)
        log = store.create("k", 0, uuid4(), config)
        for number in range(60):
            log.append([batch(number, key=b"%d" % (number % 40))])
        found = log.batches_at_or_after(0, 60)
        assert next(found).base_offset == 0
        TransactionalLog(log).compact()
        list(store.sweep())
        assert {batch.base_offset for batch in found} >= set(range(40, 60))
        assert log.offline is None

    def test_of_a_deleted_log_ends_with_its_error(self, store, log):
        found = log.batches_at_or_after(0, 90)
        next(found)
        store.delete("t", 0)
        with pytest.raises(LogDeleted):
            list(found)


def test_what_a_failed_opening_removed_is_told_to_the_owner_by_the_next_one(store, log):
    """The owner rebuilds its transaction indexes, but not before it could read the log."""
    for segment in log.segments():
        log.write_side_file(segment.base_offset, "txnindex", b"aborted")
    log._fail(OSError("on purpose"))
    half = store.open("t", 0, CONFIG)
    assert half.recovered_from == 0
    assert half.side_files("txnindex") == []
    half._fail(OSError("before its owner has read it"))
    store.checkpoint()
    assert store.open("t", 0, CONFIG).recovered_from == 0


def test_a_log_that_nobody_could_open_since_a_kill_is_not_clean_after_a_clean_stop(
    store, log, tmp_path, clock
):
    store.checkpoint()
    second = restart(store, tmp_path, clock)
    second.close()  # it was never opened
    third = restart(second, tmp_path, clock)
    assert third.started_clean
    assert third.open("t", 0, CONFIG).recovered_from is not None
