"""A state read back from its log, or from a snapshot and the rest of the log, is the same state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.core.partition.producers import Duplicate
from semel.core.partition.snapshots import (
    CorruptSnapshot,
    decode_aborted,
    decode_producers,
    encode_aborted_index,
    encode_producers,
)
from semel.core.partition.stability import AbortedTransaction
from semel.core.partition.state import PartitionState
from semel.core.partition.verification import AT_ONCE

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("send"),
            st.integers(-1, 3),  # producer
            st.integers(0, 2),  # epoch
            st.integers(0, 8),  # sequence
            st.integers(1, 3),  # records
            st.booleans(),  # transactional
        ),
        st.tuples(st.just("next"), st.integers(0, 3), st.integers(1, 3), st.booleans()),
        st.tuples(
            st.just("end"),
            st.integers(0, 3),
            st.integers(0, 3),
            st.booleans(),
            st.integers(0, 2),  # coordinator epoch
            st.integers(1, 2),  # transaction version
        ),
    ),
    max_size=40,
)


def run(log, make_batch, step) -> None:
    """One step of a well or badly behaved client; refusals are part of the story."""
    kind, producer_id, *rest = step
    if kind == "end":
        epoch, commit, coordinator_epoch, version = rest
        log.end(producer_id, epoch, commit, coordinator_epoch, version)
        return
    if kind == "next":
        count, transactional = rest
        known = log.state.producers.get(producer_id)
        epoch = known.epoch if known else 0
        sequence = known.last_sequence + 1 if known else 0
    else:
        epoch, sequence, count, transactional = rest
    if producer_id < 0:
        batch = make_batch(count=count)
    else:
        batch = make_batch(producer_id, epoch, sequence, count, transactional)
        check_verdicts(log.state, batch)
    log.send(batch)


def check_verdicts(state, batch) -> None:
    """The quick look says what the rules say one by one, whatever the batch brings along."""
    producer = state.producers.get(batch.producer_id)
    current = state.verifications.get(batch.producer_id)
    for guard in (None, AT_ONCE, current):
        assert state.look_batch(batch, guard) == state.judge(producer, batch, current, guard)


@given(STEPS)
def test_replaying_every_prefix_gives_the_state_the_log_was_written_with(
    make_batch, new_log, replay, steps
):
    log = new_log()
    rebuilt = PartitionState()
    replayed = 0
    for step in steps:
        run(log, make_batch, step)
        replay(log.batches[replayed:], rebuilt)
        replayed = len(log.batches)
        assert rebuilt == log.state
        assert rebuilt.stability.open_transactions == log.state.stability.open_transactions


@given(STEPS, STEPS)
def test_a_snapshot_and_the_rest_of_the_log_give_the_same_state_as_all_of_it(
    make_batch, new_log, replay, before, after
):
    log = new_log()
    for step in before:
        run(log, make_batch, step)
    content = encode_producers(log.state.producers)
    index = encode_aborted_index(log.state.aborted)
    snapshot_at = len(log.batches)
    for step in after:
        run(log, make_batch, step)

    restored = PartitionState()
    restored.producers, restored.stability = decode_producers(content, now_ms=5)
    for entry in decode_aborted(index):
        restored.aborted.add(entry)
    replay(log.batches[snapshot_at:], restored)
    assert restored == log.state


@given(STEPS)
def test_looking_changes_nothing(make_batch, new_log, replay, steps):
    log = new_log()
    for step in steps:
        run(log, make_batch, step)
    log.state.look_batch(make_batch(1, 1, 0))
    log.state.look_batch(make_batch(1, 1, 0, transactional=True))
    log.state.look_internal(make_batch(1, 9, -1))
    assert log.state == replay(log.batches)


@given(STEPS)
def test_every_acknowledged_sequence_is_in_the_log_once_and_in_order(make_batch, new_log, steps):
    """A model that knows nothing of windows: what the log holds, per producer and epoch."""
    from semel.wire.batches import header_at

    log = new_log()
    for step in steps:
        run(log, make_batch, step)
    seen: dict[tuple[int, int], int] = {}
    for content in log.batches:
        batch = header_at(content)
        if batch.has_producer and not batch.is_control:
            key = (batch.producer_id, batch.producer_epoch)
            assert batch.base_sequence == seen.get(key, batch.base_sequence - 1) + 1
            seen[key] = batch.last_sequence


def test_the_whole_window_survives_a_restart(log, make_batch):
    for sequence in range(5):
        log.send(make_batch(7, 0, sequence, timestamp=100 + sequence))
    restored = PartitionState()
    restored.producers, _ = decode_producers(encode_producers(log.state.producers), 0)
    for sequence in range(5):
        verdict = restored.look_batch(make_batch(7, 0, sequence))
        assert isinstance(verdict, Duplicate)
        assert (verdict.batch.base_offset, verdict.batch.timestamp) == (sequence, 100 + sequence)


def test_a_snapshot_that_kafka_wrote_is_understood(log, make_batch):
    log.send(make_batch(7, 0, 0, count=2))
    log.send(make_batch(7, 0, 2, count=3, transactional=True))
    ours = encode_producers(log.state.producers)
    import struct

    from crc32c import crc32c

    body = ours[6 : 6 + 4 + 46]
    kafkas = struct.pack(">hI", 1, crc32c(body)) + body
    producers, stability = decode_producers(kafkas, now_ms=0)
    assert producers.get(7).batches == log.state.producers.get(7).batches[-1:]
    assert stability.open_transactions == {7: 2}


@pytest.mark.parametrize("at", [0, 1, 3, 9, 20, 60, -1])
def test_a_damaged_snapshot_is_noticed(log, make_batch, at):
    log.send(make_batch(7, 0, 0))
    content = bytearray(encode_producers(log.state.producers))
    content[at] ^= 0x10
    with pytest.raises(CorruptSnapshot):
        decode_producers(bytes(content), 0)


@pytest.mark.parametrize("size", [0, 5, 9, 30])
def test_a_torn_snapshot_is_noticed(log, make_batch, size):
    log.send(make_batch(7, 0, 0))
    with pytest.raises(CorruptSnapshot):
        decode_producers(encode_producers(log.state.producers)[:size], 0)


def test_the_aborted_index_has_kafkas_34_bytes_an_entry_and_drops_a_torn_one():
    entries = [AbortedTransaction(1, 2, 3, 4), AbortedTransaction(5, 6, 7, 8)]
    content = encode_aborted_index(entries)
    assert len(content) == 2 * 34
    assert content[:10] == b"\0\0" + (1).to_bytes(8)
    assert list(decode_aborted(content)) == entries
    assert list(decode_aborted(content[:-1])) == entries[:1]
