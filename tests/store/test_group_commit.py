"""Under `fsync` a ticket is kept when the disk has the data, and many share one fdatasync."""

import asyncio
from uuid import uuid4

import pytest
from tests.support.disks import BROKEN, FaultyFiles

from semel.store.directory import DiskStore
from semel.store.interface import LogDeleted


@pytest.fixture
def files(tmp_path):
    return FaultyFiles(tmp_path)


@pytest.fixture
async def log(tmp_path, files):
    store = DiskStore(tmp_path, files=files, durability="fsync")
    log = store.create("t", 0, uuid4())
    await log.sync()
    yield log
    store.close()


async def test_appends_of_one_turn_share_one_sync(log, files, batch):
    before = files.syncs
    tickets = [log.append([batch(offset)]) for offset in range(50)]
    assert not any(ticket.durable for ticket in tickets)
    await asyncio.gather(*(wait(ticket) for ticket in tickets))
    assert all(ticket.durable for ticket in tickets)
    assert files.syncs == before + 1


async def test_what_comes_during_a_sync_shares_the_next(log, files, batch):
    before = files.syncs
    late = []

    def add_more(_):
        late.extend(log.append([batch(offset)]) for offset in (1, 2, 3))

    first = log.append([batch(0)])
    first.add_callback(add_more)
    await first
    assert [ticket.durable for ticket in late] == [False] * 3
    for ticket in late:
        await ticket
    assert files.syncs == before + 2


async def test_callbacks_run_on_the_loop_in_order(log, batch):
    seen = []
    tickets = [log.append([batch(offset)]) for offset in range(3)]
    for number, ticket in enumerate(tickets):
        ticket.add_callback(lambda _, number=number: seen.append((number, running_loop())))
    await tickets[-1]
    assert seen == [(0, True), (1, True), (2, True)]


async def test_data_can_be_read_before_it_is_durable(log, batch, offsets):
    ticket = log.append([batch(0)])
    assert offsets(log.read(0, 100)) == [0]
    await ticket


async def test_a_failed_sync_breaks_every_ticket_that_waits(log, files, batch):
    files.fail("sync", BROKEN)
    tickets = [log.append([batch(offset)]) for offset in range(3)]
    for ticket in tickets:
        with pytest.raises(type(log.offline or Exception())):
            await ticket
    assert all(ticket.error is log.offline for ticket in tickets)


async def test_a_sync_covers_the_segment_just_left_and_the_directory_of_the_new_one(log, batch):
    log.append([batch(0)])
    log.roll()
    ticket = log.append([batch(1)])
    await ticket
    assert ticket.durable


async def wait(ticket):
    await ticket


def running_loop() -> bool:
    return asyncio.get_running_loop().is_running()


@pytest.fixture
def held(log):
    """What is done after syncs that the disk takes its time for."""
    done = []
    log._store.syncer.run = lambda work, then: done.append(then)
    return done


async def test_a_sync_still_under_way_keeps_no_promise_of_a_log_that_was_opened_again(
    log, held, batch
):
    """Its owner cuts off what was not promised durable when it opens the log."""
    ticket = log.append([batch(0)])
    while not held:  # noqa: ASYNC110  (there is no event to wait for)
        await asyncio.sleep(0)
    log._fail(OSError("on purpose"))
    again = log._store.open("t", 0)
    again.truncate(0)
    assert ticket.error is log.offline
    held.pop()(None)
    assert not ticket.durable


async def test_a_sync_still_under_way_keeps_no_promise_of_a_deleted_log(log, held, batch):
    ticket = log.append([batch(0)])
    while not held:  # noqa: ASYNC110  (there is no event to wait for)
        await asyncio.sleep(0)
    log._store.delete("t", 0)
    assert isinstance(ticket.error, LogDeleted)
    held.pop()(None)
    assert not ticket.durable
