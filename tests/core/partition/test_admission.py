"""What a batch's header alone decides."""

import pytest

from semel.core.partition.admission import BatchLimits, refusal
from semel.wire.batches import BatchHeader, header_at

NOW = 1_700_000_000_000


def verdict(batch: BatchHeader, limits: BatchLimits | None = None) -> str | None:
    found = refusal(batch, limits or BatchLimits(), NOW)
    return found.error.name if found else None


def test_a_plain_batch_is_welcome(make_batch):
    assert verdict(make_batch(count=3)) is None


def test_an_idempotent_and_a_transactional_batch_are_welcome(make_batch):
    assert verdict(make_batch(7, 0, 0)) is None
    assert verdict(make_batch(7, 0, 0, transactional=True)) is None


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_every_compression_that_exists_is_welcome(make_batch, codec):
    batch = make_batch()
    batch.attributes |= codec
    assert verdict(batch) is None


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_compression_that_does_not_exist_is_refused(make_batch, codec):
    batch = make_batch()
    batch.attributes |= codec
    assert verdict(batch) == "UNSUPPORTED_COMPRESSION_TYPE"


def test_a_batch_of_exactly_the_limit_is_welcome_and_one_byte_more_is_not(make_batch):
    batch = make_batch()
    assert verdict(batch, BatchLimits(max_message_bytes=batch.size)) is None
    assert verdict(batch, BatchLimits(max_message_bytes=batch.size - 1)) == "MESSAGE_TOO_LARGE"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("base_offset", 5),
        ("base_offset", -1),
        ("count", 0),
        ("count", -3),
        ("count", 2),
        ("last_offset_delta", 1),
        ("last_offset_delta", -1),
        ("attributes", 0x20),
        ("attributes", 0x30),
        ("attributes", 0x40),
        ("attributes", 0x80),
        ("attributes", -0x8000),
    ],
)
def test_a_header_that_lies_or_claims_what_is_the_brokers_is_refused(make_batch, field, value):
    batch = make_batch()
    setattr(batch, field, value)
    assert verdict(batch) == "INVALID_RECORD"


def test_more_records_than_the_bytes_could_hold_are_refused(make_batch):
    batch = make_batch()
    batch.count, batch.last_offset_delta = 1_000, 999
    assert verdict(batch) == "INVALID_RECORD"
    batch.attributes |= 1  # compressed, the header cannot know better
    assert verdict(batch) is None


def test_as_many_records_as_the_bytes_can_hold_are_welcome():
    smallest = bytes((12, 0, 0, 0, 1, 1, 0))
    batch = header_at(_with_body(smallest * 4, count=4))
    assert verdict(batch) is None


@pytest.mark.parametrize(
    ("producer_id", "epoch", "sequence"), [(7, 0, -1), (7, -1, 0), (-2, 0, 0), (7, 0, -5)]
)
def test_a_producer_without_epoch_or_sequence_is_refused(make_batch, producer_id, epoch, sequence):
    assert verdict(make_batch(producer_id, epoch, sequence)) == "INVALID_RECORD"


def test_a_transactional_batch_without_a_producer_is_refused_although_kafka_takes_it(make_batch):
    assert verdict(make_batch(transactional=True)) == "INVALID_RECORD"


def test_only_the_broker_stamps_append_times(make_batch):
    batch = make_batch()
    batch.attributes |= 0x08
    assert verdict(batch) == "INVALID_TIMESTAMP"


def test_timestamps_must_lie_within_the_topics_bounds(make_batch):
    limits = BatchLimits(timestamp_before_max_ms=1_000, timestamp_after_max_ms=500)
    assert verdict(make_batch(timestamp=NOW - 1_000), limits) is None
    assert verdict(make_batch(timestamp=NOW + 500), limits) is None
    assert verdict(make_batch(timestamp=NOW - 1_001), limits) == "INVALID_TIMESTAMP"
    assert verdict(make_batch(timestamp=NOW + 501), limits) == "INVALID_TIMESTAMP"


def test_a_batch_that_begins_too_early_is_refused_although_it_ends_in_time(make_batch):
    batch = make_batch(timestamp=NOW)
    batch.base_timestamp = NOW - 2_000
    assert verdict(batch, BatchLimits(timestamp_before_max_ms=1_000)) == "INVALID_TIMESTAMP"


def test_a_batch_without_timestamps_and_an_append_time_topic_know_no_bounds(make_batch):
    limits = BatchLimits(timestamp_before_max_ms=0, timestamp_after_max_ms=0)
    assert verdict(make_batch(timestamp=-1), limits) is None
    stamped = BatchLimits(log_append_time=True, timestamp_before_max_ms=0, timestamp_after_max_ms=0)
    assert verdict(make_batch(timestamp=5), stamped) is None


def _with_body(body: bytes, count: int) -> bytearray:
    from semel.wire.batches.header import write_header

    buffer = bytearray(61) + body
    write_header(
        buffer, attributes=0, count=count, base_timestamp=NOW, max_timestamp=NOW,
        producer_id=-1, producer_epoch=-1, base_sequence=-1,
    )  # fmt: skip
    return buffer
