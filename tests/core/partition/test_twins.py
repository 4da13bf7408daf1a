"""Rules that are stated twice for speed: the short form and the rules one by one agree."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from semel.core.partition.admission import BatchLimits, refusal, refusal_by_rules
from semel.core.partition.state import PartitionState, _goes_on
from semel.core.partition.verification import AT_ONCE
from semel.wire.batches import HEADER_SIZE, BatchHeader, write_header

NOW = 1_000_000
NEAR = st.sampled_from([-2, -1, 0, 1, 2, 6, 7, 8])
TIMES = st.sampled_from([-1, 0, 1, NOW - 101, NOW - 100, NOW, NOW + 50, NOW + 51, 2**62])

limits = st.builds(
    BatchLimits,
    max_message_bytes=st.sampled_from([HEADER_SIZE, HEADER_SIZE + 7, 10_000]),
    log_append_time=st.booleans(),
    timestamp_before_max_ms=st.sampled_from([100, 2**63 - 1]),
    timestamp_after_max_ms=st.just(50),
)


GOOD = {
    "body_size": 100,
    "attributes": 0x10,
    "count": 3,
    "base_timestamp": NOW,
    "max_timestamp": NOW,
    "producer_id": 5,
    "producer_epoch": 0,
    "base_sequence": 0,
    "base_offset": 0,
    "last_offset_delta": 2,
}
#: What may differ from a good batch: at most three fields at once, or nothing would ever pass.
OTHERWISE = {
    "body_size": st.sampled_from([0, 6, 7, 14, 20, 21, 1000]),
    "attributes": st.integers(0, 0x7F) | st.integers(-(2**15), 2**15 - 1),
    "count": NEAR,
    "base_timestamp": TIMES,
    "max_timestamp": TIMES,
    "producer_id": NEAR,
    "producer_epoch": NEAR,
    "base_sequence": NEAR,
    "base_offset": st.sampled_from([-1, 1]),
    "last_offset_delta": NEAR,
}


@st.composite
def headers(draw: st.DrawFn) -> BatchHeader:
    changed = draw(st.lists(st.sampled_from(sorted(OTHERWISE)), max_size=3))
    fields = GOOD | {name: draw(OTHERWISE[name]) for name in changed}
    buffer = bytearray(HEADER_SIZE + fields.pop("body_size"))
    write_header(buffer, **fields)
    return BatchHeader(buffer)


@settings(max_examples=2000)
@given(headers(), limits)
def test_a_batch_is_refused_by_the_short_form_as_by_the_rules(
    header: BatchHeader, allowed: BatchLimits
) -> None:
    assert refusal(header, allowed, NOW) == refusal_by_rules(header, allowed, NOW)


steps = st.lists(
    st.tuples(
        st.sampled_from(["batch", "batch", "batch", "marker"]),
        st.integers(0, 1),  # producer
        st.integers(0, 2),  # epoch
        st.sampled_from([0, 0, 1, 2, 3, 2**31 - 2, 2**31 - 1]),  # how far from the next sequence
        st.integers(1, 3),  # records
        st.booleans(),  # transactional, or a commit
        st.booleans(),  # verified at once
    ),
    max_size=40,
)


@settings(max_examples=300)
@given(steps)
def test_a_batch_that_goes_on_is_one_that_the_rules_let_through(
    new_log: Any, make_batch: Any, steps: list[tuple[str, int, int, int, int, bool, bool]]
) -> None:
    log = new_log()
    for kind, producer_id, epoch, ahead, count, flag, at_once in steps:
        if kind == "marker":
            log.end(producer_id, epoch, flag)
            continue
        known = log.state.producers.get(producer_id)
        sequence = ((known.next_sequence if known else 0) + ahead) & (2**31 - 1)
        header = make_batch(producer_id, epoch, sequence, count, transactional=flag)
        agree(log.state, header, AT_ONCE if at_once else None)
        log.send(header)


def agree(state: PartitionState, header: BatchHeader, guard: Any) -> None:
    """Asked of a known producer without an open verification, as `look_batch` does."""
    producer = state.producers.get(header.producer_id)
    if producer is not None and header.producer_id not in state.verifications:
        verdict = state.judge(producer, header, None, guard)
        assert _goes_on(producer, header, guard) == (
            verdict is None and header.producer_epoch == producer.epoch
        )
