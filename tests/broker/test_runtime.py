"""The runtime of machines: decide, append, apply, and speak only of what is durable."""

import asyncio
from dataclasses import dataclass

import pytest

from semel.broker.coordinators.runtime import LARGEST_BATCH, Shard
from semel.broker.partitions.partition import Partition
from semel.core.machine import Decision, LogEntry
from semel.core.partition.admission import Refusal
from semel.store.interface import StorageError, Ticket
from semel.wire.errors import ErrorCode as E


@dataclass(frozen=True)
class Add:
    """Adds a number; the reply is the sum, the effect tells it."""

    number: int

    def refused(self, error):
        return error


@dataclass(frozen=True)
class Look:
    def refused(self, error):
        return error


class Sum:
    """The smallest machine there is."""

    def __init__(self):
        self.total = 0
        self.ended = []

    def decide(self, command, now_ms):
        if isinstance(command, Look):
            return Decision(self.total)
        total = self.total + command.number
        return Decision(total, (total,), (f"now {total}",))

    def apply(self, record):
        if isinstance(record, tuple):
            self.ended.append(record)
        else:
            self.total = record

    def resume(self):
        return (f"again {self.total}",)


class SumCodec:
    def encode(self, record):
        return LogEntry(b"total", str(record).encode().rjust(8))

    def decode(self, entry):
        return int(entry.value)

    def decode_marker(self, producer_id, producer_epoch, commit):
        return (producer_id, producer_epoch, commit)


class SlowLog:
    """In front of a partition's real log: appends are durable, or fail, when the test says so."""

    def __init__(self, log):
        self._log = log
        self.tickets = []

    def __getattr__(self, name):
        return getattr(self._log, name)

    def append_next(self, *batch):
        self._log.append_next(*batch)
        self.tickets.append(Ticket())
        return self.tickets[-1]


class Bench:
    def __init__(self, broker):
        topic = broker.catalog.create_topic("sums", 1)
        self.partition: Partition = broker.partitions.find(topic.name, 0)
        self.done, self.failures = [], []
        self.shard = Shard(
            self.partition,
            Sum,
            SumCodec(),
            now_ms=broker.now_ms,
            run=lambda shard, effect: self.done.append(effect),
            failed=self.failures.append,
        )

    def slow_down(self):
        self.partition.log = log = SlowLog(self.partition.log)
        return log.tickets


@pytest.fixture
def bench(broker):
    bench = Bench(broker)
    bench.shard.load()
    bench.done.clear()
    return bench


async def test_what_is_durable_at_once_is_answered_at_once(bench):
    assert bench.shard.submit(Add(3)) == 3
    assert bench.shard.submit(Add(4)) == 7
    assert bench.done == ["now 3", "now 7"]


async def test_several_commands_are_one_batch_and_each_sees_those_before_it(bench):
    start = bench.partition.log.next_offset
    assert bench.shard.submit_all([Add(3), Look(), Add(4)]) == [3, 3, 7]
    assert bench.done == ["now 3", "now 7"]
    assert len(list(bench.partition.log.batches(start))) == 1


async def test_several_commands_wait_together_until_their_batch_is_durable(bench):
    tickets = bench.slow_down()
    replies = bench.shard.submit_all([Add(3), Add(4)])
    assert bench.done == []
    tickets[0].settle()
    assert await asyncio.gather(*replies) == [3, 7]
    assert bench.done == ["now 3", "now 7"]


async def test_several_commands_that_cannot_be_written_are_all_refused(bench):
    bench.partition.log.offline = StorageError("gone")
    assert bench.shard.submit_all([Add(3), Add(4)]) == [E.NOT_COORDINATOR] * 2
    assert bench.shard.submit_all([Add(3), Look()]) == [E.NOT_COORDINATOR] * 2
    assert bench.failures == [bench.shard]


async def test_what_was_decided_before_one_that_fails_is_written_all_the_same(bench):
    with pytest.raises(AttributeError):
        bench.shard.submit_all([Add(3), object()])
    bench.shard.unload()
    bench.shard.load()
    assert bench.shard.submit(Look()) == 3


async def test_replies_and_effects_wait_but_the_next_decision_sees_the_state(bench):
    tickets = bench.slow_down()
    first, second = bench.shard.submit(Add(3)), bench.shard.submit(Add(4))
    assert not first.done()
    assert bench.done == []
    tickets[0].settle()
    assert (await first, bench.done) == (3, ["now 3"])
    assert not second.done()
    tickets[1].settle()
    assert (await second, bench.done) == (7, ["now 3", "now 7"])


async def test_an_answer_that_writes_nothing_waits_for_what_it_speaks_of(bench):
    tickets = bench.slow_down()
    bench.shard.submit(Add(3))
    look = bench.shard.submit(Look())
    assert not look.done()
    tickets[0].settle()
    assert await look == 3
    assert bench.shard.submit(Look()) == 3


async def test_a_failed_append_answers_all_that_waits_and_the_log_is_the_truth(bench):
    tickets = bench.slow_down()
    waiting = [bench.shard.submit(Add(3)), bench.shard.submit(Look())]
    tickets[0].settle(StorageError("the disk is full"))
    assert await asyncio.gather(*waiting) == [E.NOT_COORDINATOR] * 2
    assert bench.done == []
    assert bench.failures == [bench.shard]
    assert bench.shard.submit(Look()) is E.NOT_COORDINATOR
    bench.shard.load()
    assert bench.shard.submit(Look()) == 3  # the bytes were there after all


async def test_an_offline_log_fails_the_command_that_finds_out(bench):
    bench.shard.submit(Add(1))
    bench.partition.log.offline = StorageError("gone")
    assert bench.shard.submit(Add(3)) is E.NOT_COORDINATOR
    assert bench.failures == [bench.shard]


async def test_a_loaded_machine_knows_the_log_and_does_again_what_may_be_undone(bench):
    for number in range(5):
        bench.shard.submit(Add(number))
    bench.shard.unload()
    assert bench.shard.submit(Look()) is E.NOT_COORDINATOR
    bench.done.clear()
    steps = bench.shard.load_steps()
    next(steps)
    assert bench.shard.submit(Look()) is E.COORDINATOR_LOAD_IN_PROGRESS
    assert list(steps) == [None] * 4
    assert bench.shard.submit(Look()) == 10
    assert bench.done == ["again 10"]


class AddQuietly(Add):
    """Without an effect, as what is put off must be."""


class QuietSum(Sum):
    def decide(self, command, now_ms):
        decision = super().decide(command, now_ms)
        quiet = isinstance(command, AddQuietly)
        return Decision(decision.reply, decision.records) if quiet else decision


def quiet(broker):
    bench = Bench(broker)
    bench.shard._new_machine = QuietSum
    bench.shard.load()
    return bench


async def test_what_is_put_off_is_seen_at_once_and_written_with_the_next(broker):
    bench = quiet(broker)
    start = bench.partition.log.next_offset
    bench.shard.submit_lazily(AddQuietly(5), b"another")
    assert bench.shard.submit(Look()) == 5
    assert bench.partition.log.next_offset == start
    bench.shard.submit(Add(1))
    assert bench.partition.log.next_offset == start + 2
    assert len(list(bench.partition.log.batches(start))) == 1  # one batch, one write
    bench.shard.submit_lazily(AddQuietly(5), b"another")
    bench.shard.flush()
    assert bench.partition.log.next_offset == start + 3
    bench.shard.unload()
    bench.shard.load()
    assert bench.shard.submit(Look()) == 11


async def test_what_is_put_off_and_then_said_anew_is_not_written(broker):
    bench = quiet(broker)
    start = bench.partition.log.next_offset
    bench.shard.submit_lazily(AddQuietly(5), b"total")
    bench.shard.submit(Add(1))
    assert bench.partition.log.next_offset == start + 1
    bench.shard.flush()
    assert bench.partition.log.next_offset == start + 1
    bench.shard.unload()
    bench.shard.load()
    assert bench.shard.submit(Look()) == 6


async def test_a_marker_in_its_own_partition_reaches_the_machine_live_and_on_replay(bench):
    ticket = bench.shard.append_marker(7, 3, True, coordinator_epoch=0, version=1)
    assert ticket.durable
    assert bench.shard.machine.ended == [(7, 3, True)]
    bench.shard.unload()
    bench.shard.load()
    assert bench.shard.machine.ended == [(7, 3, True)]


async def test_a_marker_before_the_load_is_to_be_sent_again(broker):
    refusal = Bench(broker).shard.append_marker(7, 3, True, coordinator_epoch=0, version=1)
    assert isinstance(refusal, Refusal)
    assert refusal.error is E.NOT_LEADER_OR_FOLLOWER


class ManySums(Sum):
    def decide(self, command, now_ms):
        return Decision(0, tuple(range(command.number)))


async def test_a_large_decision_takes_several_batches(broker):
    bench = Bench(broker)
    bench.shard._new_machine = ManySums
    bench.shard.load()
    bench.shard.submit(Add(60_000))
    sizes = [len(batch) for batch in bench.partition.log.batches(0)]
    assert len(sizes) > 1
    assert max(sizes) < LARGEST_BATCH + 100
    assert bench.partition.log.next_offset == 60_000


class TransactionalCodec(SumCodec):
    def encode(self, record):
        return super().encode(record)._replace(producer_id=9, producer_epoch=0)


async def test_an_unverified_record_in_a_transaction_is_refused_and_changes_nothing(broker):
    bench = Bench(broker)
    bench.shard._codec = TransactionalCodec()
    bench.shard.load()
    bench.done.clear()
    assert bench.shard.submit(Add(3)) is E.INVALID_TXN_STATE
    assert bench.shard.submit(Look()) == 0
    assert bench.done == []
