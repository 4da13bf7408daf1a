"""A disk that is full, forbidden or broken takes one log offline; nothing acknowledged is lost."""

import os
from uuid import uuid4

import pytest
from tests.support.disks import BROKEN, DISK_FULL, NO_PERMISSION, FaultyFiles

from semel.store.directory import DiskStore
from semel.store.interface import LogConfig, StorageError

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100)


@pytest.fixture
def files(tmp_path):
    return FaultyFiles(tmp_path)


@pytest.fixture
def store(tmp_path, files):
    return DiskStore(tmp_path, files=files)


@pytest.fixture
def log(store, batch):
    log = store.create("bad", 0, uuid4(), CONFIG)
    log.append([batch(0, 3)])
    return log


@pytest.mark.parametrize("partial", [0, 1, 61, 100])
def test_a_full_disk_leaves_no_part_of_a_batch_behind(store, log, files, batch, offsets, partial):
    files.fail("write", DISK_FULL, ".log", partial)
    ticket = log.append([batch(3, 2), batch(5)])
    assert isinstance(ticket.error, StorageError)
    assert ticket.error.cause.errno == DISK_FULL
    assert log.offline is ticket.error
    assert os.path.getsize(f"{store.root}/bad-0/{0:020d}.log") == log.size

    files.heal()
    again = store.open("bad", 0)
    assert again is not log
    assert offsets(again.read(0, 1000)) == [0, 1, 2]
    assert again.append([batch(3)]).durable


def test_only_the_log_that_failed_is_offline(store, log, files, batch, offsets):
    good = store.create("good", 0, uuid4(), CONFIG)
    files.fail("write", BROKEN, "/bad-0/")
    assert log.append([batch(3)]).error is not None
    assert good.append([batch(0)]).durable
    assert offsets(good.read(0, 100)) == [0]


def test_an_offline_log_refuses_everything_with_the_same_error(store, log, files, batch):
    files.fail("write", DISK_FULL, ".log")
    error = log.append([batch(3)]).error
    assert log.append([batch(3)]).error is error
    for refused in (
        lambda: log.read(0, 100),
        lambda: log.truncate(0),
        lambda: log.roll(),
        lambda: log.delete_below(1),
        lambda: log.write_side_file(0, "snapshot", b""),
    ):
        with pytest.raises(StorageError) as caught:
            refused()
        assert caught.value is error


def test_a_segment_that_cannot_be_created_takes_the_log_offline(store, log, files, batch, offsets):
    files.fail("open", NO_PERMISSION, ".log")
    ticket = log.append([batch(3, 3, value=b"x" * 200)])
    assert ticket.error.cause.errno == NO_PERMISSION
    files.heal()
    assert offsets(store.open("bad", 0).read(0, 1000)) == [0, 1, 2]


def test_an_offline_log_stays_offline_while_its_disk_is_broken(store, log, files, batch):
    files.fail("write", BROKEN, ".log")
    log.append([batch(3)])
    files.fail("open", BROKEN, "/bad-0/")
    with pytest.raises(StorageError):
        store.open("bad", 0)
    files.heal()
    assert store.open("bad", 0).next_offset == 3


def test_a_failed_sync_breaks_the_ticket_and_is_not_tried_again(tmp_path, batch):
    files = FaultyFiles(tmp_path)
    store = DiskStore(tmp_path, files=files, durability="fsync")
    log = store.create("bad", 0, uuid4(), CONFIG)
    assert log.append([batch(0)]).durable
    files.fail("sync", BROKEN, ".log")
    assert log.append([batch(1)]).error.cause.errno == BROKEN
    files.heal()
    assert log.append([batch(2)]).error is log.offline


def test_a_log_that_cannot_be_created_leaves_nothing(store, files):
    files.fail("make_directory", DISK_FULL)
    with pytest.raises(StorageError):
        store.create("new", 0, uuid4())
    files.heal()
    assert ("new", 0) not in store.list()
    assert store.create("new", 0, uuid4()).next_offset == 0


def test_a_stop_is_not_clean_when_a_file_could_not_be_synced(tmp_path, store, log, files, offsets):
    files.fail("sync", BROKEN, ".log")
    store.close()
    files.heal()
    again = DiskStore(tmp_path, files=files).open("bad", 0, CONFIG)
    assert again.recovered_from == 0
    assert offsets(again.read(0, 100)) == [0, 1, 2]


def test_a_log_that_was_offline_at_a_clean_stop_is_scanned(tmp_path, store, log, files, batch):
    other = store.create("good", 0, uuid4(), CONFIG)
    other.append([batch(0)])
    files.fail("write", DISK_FULL, "/bad-0/", partial=70)
    files.fail("truncate", BROKEN, "/bad-0/")
    log.append([batch(3)])
    store.close()
    files.heal()
    assert os.path.getsize(f"{store.root}/bad-0/{0:020d}.log") > log.size
    again = DiskStore(tmp_path, files=files)
    assert again.open("good", 0).recovered_from is None
    assert again.open("bad", 0, CONFIG).next_offset == 3


def test_a_checkpoint_that_cannot_be_written_loses_nothing(tmp_path, store, log, files, batch):
    files.fail("write", DISK_FULL, "-offset-checkpoint")
    log.append([batch(3)])
    store.checkpoint()
    store.close()
    files.heal()
    assert DiskStore(tmp_path, files=files).open("bad", 0, CONFIG).next_offset == 4
