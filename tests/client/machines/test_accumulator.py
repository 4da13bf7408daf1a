"""Batches on their way out: order, sequences, retries, splits, bounds; and what answers mean."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.client.machines.accumulator import Accumulator, AccumulatorLimits, ProducerBatch
from semel.client.machines.delivery import ProduceVerdict, judge_produce
from semel.client.machines.patience import Backoff, Deadline
from semel.client.machines.types import Failure, ProducerIdentity, TopicPartition
from semel.wire.batches import BatchBuilder, header_at, records_of
from semel.wire.errors import ErrorCode as E
from semel.wire.errors import ErrorKind

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)
ME, ME_LATER = ProducerIdentity(7, 0), ProducerIdentity(7, 1)
LOST = Failure(ErrorKind.RETRIABLE, "lost")


def small(**more: float) -> Accumulator:
    """Two records of this test fill a batch."""
    return Accumulator(AccumulatorLimits(**{"batch_size": 95, "linger_ms": 0.0} | more))


def fill(
    accumulator: Accumulator, count: int, partition: TopicPartition = P
) -> list[ProducerBatch]:
    batches = [
        accumulator.append(accumulator.queue_of(partition), None, b"%d" % number, 0, (), 20, 0)[0]
        for number in range(count)
    ]
    return list(dict.fromkeys(batches))


def take(
    accumulator: Accumulator, who: ProducerIdentity = ME, at: TopicPartition = P
) -> ProducerBatch | None:
    """From a partition that many batches may be on their way to at once."""
    queue = accumulator.queues[at]
    return accumulator.take(queue, who, idempotent=True, transactional=False, begins_at_zero=True)


def taken(accumulator: Accumulator, who: ProducerIdentity = ME) -> ProducerBatch:
    batch = take(accumulator, who)
    assert batch is not None
    return batch


def sequence(batch: ProducerBatch) -> int:
    assert batch.data is not None
    return header_at(batch.data).base_sequence


def test_batches_leave_in_order_with_consecutive_sequences() -> None:
    accumulator = small()
    assert len(fill(accumulator, 6)) == 3
    batches = [taken(accumulator) for _ in range(3)]
    assert [sequence(batch) for batch in batches] == [0, 2, 4]
    assert take(accumulator) is None


def test_the_first_batch_of_a_producer_is_accepted_before_others_follow() -> None:
    """A broker takes any sequence of a producer that it does not know yet."""
    accumulator = small()
    fill(accumulator, 6)
    queue = accumulator.queues[P]

    def next_batch(who: ProducerIdentity = ME) -> ProducerBatch | None:
        return accumulator.take(queue, who, idempotent=True, transactional=False)

    first = next_batch()
    assert first is not None
    assert next_batch() is None
    accumulator.again(first, 0)
    assert next_batch() is first
    accumulator.accepted(first, 0, -1)
    second, third = next_batch(), next_batch()
    assert second is not None
    assert third is not None
    accumulator.accepted(second, 2, -1)
    accumulator.accepted(third, 4, -1)
    fill(accumulator, 4)
    newer = ProducerIdentity(ME.producer_id, ME.epoch + 1)
    assert next_batch(newer) is not None
    assert next_batch(newer) is None


def test_no_more_than_five_batches_are_in_flight() -> None:
    accumulator = small()
    fill(accumulator, 14)
    batches = [taken(accumulator) for _ in range(5)]
    assert take(accumulator) is None
    accumulator.accepted(batches[0], 0, -1)
    assert sequence(taken(accumulator)) == 10


def test_a_batch_sent_again_goes_first_with_its_old_sequence() -> None:
    accumulator = small()
    fill(accumulator, 6)
    first, second = taken(accumulator), taken(accumulator)
    accumulator.again(second, 0)
    assert take(accumulator) is None  # only the oldest is sent again, and `first` is older
    accumulator.again(first, 0)
    assert taken(accumulator) is first
    assert take(accumulator) is None
    accumulator.accepted(first, 0, -1)
    assert taken(accumulator) is second
    assert sequence(second) == 2
    assert sequence(taken(accumulator)) == 4


def test_a_batch_sent_again_waits_its_time() -> None:
    accumulator = small()
    fill(accumulator, 2)
    batch = taken(accumulator)
    accumulator.again(batch, 500)
    assert list(accumulator.sendable(499)) == []
    assert accumulator.wake_at_ms(0) == 500
    assert [queue.partition for queue in accumulator.sendable(500)] == [P]


def test_a_new_identity_begins_at_zero_after_the_old_ones_batches_are_answered() -> None:
    accumulator = small()
    fill(accumulator, 4)
    old = taken(accumulator)
    assert take(accumulator, ME_LATER) is None
    accumulator.accepted(old, 0, -1)
    new = taken(accumulator, ME_LATER)
    assert (sequence(new), new.identity) == (0, ME_LATER)


def test_after_a_gap_everything_is_numbered_anew() -> None:
    accumulator = small()
    fill(accumulator, 6)
    first, second = taken(accumulator), taken(accumulator)
    accumulator.again(first, 0)
    accumulator.again(second, 0)
    accumulator.restart_sequences(P)
    assert taken(accumulator, ME_LATER) is first
    assert taken(accumulator, ME_LATER) is second
    assert [sequence(batch) for batch in (first, second)] == [0, 2]
    assert [header_at(b.data).producer_epoch for b in (first, second) if b.data] == [1, 1]


def test_after_a_batch_of_unknown_fate_nothing_new_follows_until_it_is_resolved() -> None:
    accumulator = small()
    fill(accumulator, 6)
    first, second = taken(accumulator), taken(accumulator)
    accumulator.again(first, 0)
    accumulator.drop(first, LOST)  # its time is over, and nobody knows whether it was written
    assert take(accumulator) is None
    accumulator.accepted(second, 2, -1)  # so the first was written
    assert sequence(taken(accumulator)) == 4


def test_linger_holds_a_batch_back_unless_it_is_full_or_flushed() -> None:
    accumulator = small(linger_ms=10.0)
    fill(accumulator, 1)
    assert list(accumulator.sendable(9)) == []
    assert accumulator.wake_at_ms(0) == 10
    assert len(list(accumulator.sendable(10))) == 1
    accumulator.flushing = 1
    assert len(list(accumulator.sendable(0))) == 1
    accumulator.flushing = 0
    fill(accumulator, 2)
    assert len(list(accumulator.sendable(0))) == 1


def test_memory_is_bounded_and_given_back() -> None:
    accumulator = small(buffer_memory=50)
    assert accumulator.has_room(10_000)  # one record alone always has room
    fill(accumulator, 2)
    assert not accumulator.has_room(20)
    accumulator.accepted(taken(accumulator), 0, -1)
    assert accumulator.buffered == 0
    assert accumulator.has_room(20)


def test_batches_that_waited_too_long_are_found() -> None:
    accumulator = small(delivery_timeout_ms=1000.0)
    (batch,) = fill(accumulator, 1)
    assert accumulator.expired(999) == []
    assert accumulator.expired(1000) == [batch]
    accumulator.drop(batch, LOST)
    assert batch.failure is LOST
    assert not accumulator.has_unsettled


def test_an_abort_drops_what_is_not_in_flight_and_says_if_some_may_be_written() -> None:
    accumulator = small()
    fill(accumulator, 6)
    first = taken(accumulator)
    assert not accumulator.drop_unsent(LOST)
    assert accumulator.unsettled() == [first]
    accumulator.again(first, 0)
    assert accumulator.drop_unsent(LOST)
    assert not accumulator.has_unsettled


def test_a_batch_too_large_is_split_and_keeps_its_sequences() -> None:
    accumulator = Accumulator(AccumulatorLimits(linger_ms=0.0))
    fill(accumulator, 5)
    batch = taken(accumulator)
    assert accumulator.split(batch, 0)
    values = []
    for part, (first, count) in zip(batch.successors, [(0, 2), (2, 3)], strict=True):
        assert taken(accumulator) is part
        assert sequence(part) == first
        assert part.data is not None
        values += [r.value for r in records_of(header_at(part.data))]
        assert part.count == count
        accumulator.accepted(part, first, -1)
    assert values == [b"0", b"1", b"2", b"3", b"4"]
    assert accumulator.buffered == 0


def test_a_batch_made_elsewhere_goes_behind_what_was_appended_before() -> None:
    accumulator = Accumulator(AccumulatorLimits(linger_ms=0.0))
    (open_batch,) = fill(accumulator, 3)
    builder = BatchBuilder()
    builder.append(None, b"made elsewhere", 0)
    made = accumulator.enqueue(P, builder, 0)
    (later,) = fill(accumulator, 2)
    assert accumulator.buffered == 5 * 20 + builder.size
    assert [taken(accumulator) for _ in range(3)] == [open_batch, made, later]
    assert [sequence(batch) for batch in (open_batch, made, later)] == [0, 3, 4]


def test_what_is_settled_keeps_no_records() -> None:
    accumulator = Accumulator(AccumulatorLimits(linger_ms=0.0))
    fill(accumulator, 3)
    batch = taken(accumulator)
    accumulator.accepted(batch, 7, -1)
    assert (batch.base_offset, batch.count, batch.data) == (7, 3, None)
    assert batch.builder.count == 0


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize(
    ("key", "value", "timestamp", "headers"),
    [
        (None, "text", 5, ()),
        ("text", b"v", 5, ()),
        (None, b"v", "text", ()),
        (None, b"v", 5, (("a", "text"),)),
        (None, b"v", 5, (("\ud800", b""),)),
    ],
)
def test_what_cannot_be_encoded_changes_nothing(
    before: int, key: Any, value: Any, timestamp: Any, headers: Any
) -> None:
    accumulator, expected = small(), small()
    queue = accumulator.queue_of(P)
    fill(accumulator, before)
    fill(expected, before)
    expected.queue_of(P)
    with pytest.raises((TypeError, UnicodeError)):
        accumulator.append(queue, key, value, timestamp, headers, 20, 7)
    if before == 1:  # where the open batch has room
        with pytest.raises((TypeError, UnicodeError)):
            accumulator.append_open(queue, key, value, timestamp, headers, 20)
    assert described(accumulator) == described(expected)


def described(accumulator: Accumulator) -> Any:
    return accumulator.buffered, accumulator.has_unsettled, [
        (bytes(b.builder.body), b.builder.count, b.builder.base_timestamp,
         b.builder.max_timestamp, b.reserved, b.created_ms)
        for queue in accumulator.queues.values() for b in queue.batches()
    ]  # fmt: skip


def test_a_single_record_cannot_be_split() -> None:
    accumulator = Accumulator(AccumulatorLimits(linger_ms=0.0))
    fill(accumulator, 1)
    assert not accumulator.split(taken(accumulator), 0)


def test_partitions_do_not_wait_for_each_other() -> None:
    accumulator = small()
    fill(accumulator, 2, P)
    fill(accumulator, 2, Q)
    accumulator.again(taken(accumulator), 1000)
    assert [queue.partition for queue in accumulator.sendable(0)] == [Q]


@given(st.lists(st.sampled_from(["take", "accept", "again", "fill"]), max_size=80), st.randoms())
def test_whatever_happens_the_log_gets_every_record_in_order(steps: list[str], dice) -> None:
    """A broker that refuses gaps and duplicates would have accepted each batch exactly once."""
    accumulator, sent, log, expected = small(), 0, [], 0
    for step in [*steps, *["take", "accept"] * 60]:
        queue = accumulator.queues.get(P)
        flying = queue.in_flight if queue else []
        if step == "fill" and sent < 40:
            accumulator.append(accumulator.queue_of(P), None, b"%d" % sent, 0, (), 20, 0)
            sent += 1
        elif step == "take" and queue:
            take(accumulator)
        elif step == "accept" and flying:
            batch = flying[0]
            header = header_at(batch.data or b"")
            if header.base_sequence != expected:  # its elder waits to be sent again: a gap
                accumulator.again(batch, 0)
                continue
            expected += header.count
            log += [int(record.value or b"") for record in records_of(header)]
            accumulator.accepted(batch, 0, -1)
        elif step == "again" and flying:
            accumulator.again(dice.choice(flying), 0)
    assert log == list(range(sent))


# What an answer means


def judged(code: E, **more: bool | int) -> ProduceVerdict:
    usual = {
        "is_oldest": True, "records": 2, "transactional": False, "idempotent": True,
        "expired": False,
    }  # fmt: skip
    return judge_produce(code, **usual | more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "more", "outcome"),
    [
        (E.NONE, {}, ProduceVerdict.ACCEPTED),
        (E.DUPLICATE_SEQUENCE_NUMBER, {}, ProduceVerdict.ACCEPTED),
        (E.NETWORK_EXCEPTION, {}, ProduceVerdict.AGAIN),
        (E.NOT_LEADER_OR_FOLLOWER, {}, ProduceVerdict.AGAIN),
        (E.NOT_LEADER_OR_FOLLOWER, {"expired": True}, ProduceVerdict.GIVE_UP),
        (E.MESSAGE_TOO_LARGE, {}, ProduceVerdict.SPLIT),
        (E.MESSAGE_TOO_LARGE, {"records": 1}, ProduceVerdict.GIVE_UP),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, {"is_oldest": False}, ProduceVerdict.AGAIN),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, {}, ProduceVerdict.RENUMBER),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, {"transactional": True}, ProduceVerdict.GIVE_UP),
        (E.UNKNOWN_PRODUCER_ID, {}, ProduceVerdict.RENUMBER),
        (E.INVALID_PRODUCER_EPOCH, {"transactional": True}, ProduceVerdict.GIVE_UP),
        (E.TOPIC_AUTHORIZATION_FAILED, {}, ProduceVerdict.GIVE_UP),
    ],
)
def test_a_produce_answer_leads_to(code: E, more: dict[str, bool], outcome: ProduceVerdict) -> None:
    assert judged(code, **more) is outcome


def test_waits_double_up_to_a_bound_and_jitter_stays_within_it() -> None:
    backoff = Backoff(100, 1000, 0.2)
    assert [backoff.delay_ms(attempt) for attempt in (1, 2, 3, 4, 5)] == [100, 200, 400, 800, 1000]
    assert backoff.delay_ms(1, 0.0) == 80
    assert backoff.delay_ms(10**6, 0.999) < 1200
    deadline = Deadline.after(50, 100)
    assert deadline.remaining_ms(100) == 50
    assert deadline.has_passed(150)


records = st.lists(
    st.tuples(st.none() | st.binary(max_size=40), st.binary(max_size=60), st.integers(0, 5)),
    max_size=40,
)


@given(records, st.sampled_from([95, 200, 1000]), st.sampled_from([150, 400, 10_000]))
def test_a_record_goes_into_the_open_batch_as_it_would_the_long_way(
    records: list[tuple[bytes | None, bytes, int]], batch_size: int, memory: int
) -> None:
    short, long = (small(batch_size=batch_size, buffer_memory=memory) for _ in range(2))
    for key, value, timestamp in records:
        size = 20 + len(key or b"") + len(value)
        must_wait = long.must_wait(long.queue_of(P), size)
        index = short.append_open(short.queue_of(P), key, value, timestamp, (), size)
        if not long.has_room(size):
            assert must_wait
            assert index == -1
            continue
        _, place = long.append(long.queue_of(P), key, value, timestamp, (), size, 0)
        assert index == (-1 if must_wait or place == 0 else place)
        if index < 0:
            short.append(short.queue_of(P), key, value, timestamp, (), size, 0)
        assert state(short) == state(long)


def state(accumulator: Accumulator) -> object:
    queue = accumulator.queue_of(P)
    return accumulator.buffered, [
        (bytes(batch.builder.body), batch.count, batch.reserved) for batch in queue.batches()
    ]
