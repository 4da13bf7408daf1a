"""Produce over the wire: what is taken, and how precisely the rest is refused."""

import logging
import time
import uuid

import pytest

from semel.broker.server import Broker
from semel.core.partition.record_faults import MOST_NAMED
from semel.wire.batches import BatchBuilder, decoded_records
from semel.wire.compression import Compression
from semel.wire.errors import ErrorCode
from semel.wire.messages.produce import ProduceRequest


def name_of(answer) -> str:
    return ErrorCode(answer.error_code).name


def test_every_version_appends_and_answers_with_the_offset(broker, talk, build_batch):
    talk.create("t")
    for offset, version in enumerate(range(3, 13)):
        answer = talk.produce("t", build_batch(b"v%d" % version), version=version)
        assert (name_of(answer), answer.base_offset) == ("NONE", offset)
        assert answer.log_append_time_ms == -1
        assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert [record.value for record in talk.read("t")] == [b"v%d" % v for v in range(3, 13)]


def test_version_thirteen_names_topics_by_id(broker, talk, build_batch, new_produce):
    talk.create("t")
    request = new_produce("", build_batch(b"v"))
    request.topic_data[0].topic_id = broker.catalog.topics["t"].id
    answer = talk.ask(request, 13)
    assert answer.responses[0].topic_id == broker.catalog.topics["t"].id
    assert name_of(answer.responses[0].partition_responses[0]) == "NONE"
    request = new_produce("", build_batch(b"v"))
    request.topic_data[0].topic_id = uuid.uuid4()
    answer = talk.ask(request, 13)
    assert name_of(answer.responses[0].partition_responses[0]) == "UNKNOWN_TOPIC_ID"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_versions_from_before_record_batches_close_the_connection(talk, version):
    frame = bytes((0, 0, 0, 10, 0, 0, 0, version, 0, 0, 0, 1, 0xFF, 0xFF))
    talk._socket.sendall(frame)
    assert talk._socket.recv(1) == b""


def corrupt(batch: bytearray) -> bytearray:
    batch[-1] ^= 0xFF
    return batch


def with_length(batch: bytearray, length: int) -> bytearray:
    batch[8:12] = length.to_bytes(4, signed=True)
    return batch


def with_count(batch: bytearray, count: int) -> bytearray:
    """The count lies, the checksum does not."""
    from crc32c import crc32c

    batch[57:61] = count.to_bytes(4, signed=True)
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4)
    return batch


def with_magic(batch: bytearray, magic: int) -> bytearray:
    batch[16] = magic
    return batch


BAD = {
    "corrupt checksum": (lambda b: corrupt(b(b"v")), "CORRUPT_MESSAGE"),
    "length beyond the bytes": (lambda b: with_length(b(b"v"), 9_999), "CORRUPT_MESSAGE"),
    "length below the header": (lambda b: with_length(b(b"v"), 10), "CORRUPT_MESSAGE"),
    "negative length": (lambda b: with_length(b(b"v"), -1), "CORRUPT_MESSAGE"),
    "half a header": (lambda b: b(b"v")[:40], "CORRUPT_MESSAGE"),
    "half a batch": (lambda b: b(b"v" * 100)[:-10], "CORRUPT_MESSAGE"),
    "a few bytes": (lambda b: bytearray(b"abc"), "CORRUPT_MESSAGE"),
    "no bytes": (lambda b: b"", "INVALID_RECORD"),
    "null": (lambda b: None, "INVALID_RECORD"),
    "an old format": (lambda b: with_magic(b(b"v"), 1), "INVALID_RECORD"),
    "a format of the future": (lambda b: with_magic(b(b"v"), 3), "CORRUPT_MESSAGE"),
    "two batches": (lambda b: b(b"v") + b(b"w"), "INVALID_RECORD"),
    "bytes behind the batch": (lambda b: b(b"v") + b"\0", "INVALID_RECORD"),
    "too many records declared": (lambda b: with_count(b(b"v"), 2), "INVALID_RECORD"),
    "no records declared": (lambda b: with_count(b(b"v"), 0), "INVALID_RECORD"),
    "a negative count": (lambda b: with_count(b(b"v"), -1), "CORRUPT_MESSAGE"),
    "too large": (lambda b: b(b"v" * 1_048_600), "MESSAGE_TOO_LARGE"),
    "far future": (lambda b: b(b"v", timestamp=2**52), "INVALID_TIMESTAMP"),
    "a sequence without a producer's epoch": (
        lambda b: b(b"v", producer_id=1, epoch=-1, sequence=0),
        "INVALID_RECORD",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_gets_a_precise_error_is_logged_once_and_not_appended(
    broker, talk, build_batch, caplog, kind
):
    make, expected = BAD[kind]
    talk.create("t")
    with caplog.at_level(logging.INFO, "semel"):
        answer = talk.produce("t", make(build_batch))
    assert name_of(answer) == expected
    assert answer.error_message
    assert answer.base_offset == -1
    assert len([line for line in caplog.records if line.name == "semel.produce"]) == 1
    assert talk.fetch("t", 0).high_watermark == 0
    assert name_of(talk.produce("t", build_batch(b"good"))) == "NONE"


@pytest.mark.parametrize(
    ("topic", "partition", "expected"),
    [
        ("nobody", 0, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("t", 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("t", -1, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("t", 2**31 - 1, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_a_place_that_does_not_exist_is_refused(talk, build_batch, topic, partition, expected):
    talk.create("t")
    assert name_of(talk.produce(topic, build_batch(b"v"), partition)) == expected


def test_internal_topics_are_the_brokers_own(broker, talk, build_batch, in_loop):
    in_loop(broker, lambda: broker.catalog.ensure_topic("__consumer_offsets", 1))
    answer = talk.produce("__consumer_offsets", build_batch(b"v"))
    assert name_of(answer) == "INVALID_TOPIC_EXCEPTION"


def test_acks_other_than_none_one_and_all_are_refused(talk, build_batch):
    talk.create("t")
    assert name_of(talk.produce("t", build_batch(b"v"), acks=2)) == "INVALID_REQUIRED_ACKS"


def test_a_topic_that_wants_more_replicas_than_there_are_refuses_acks_all(talk, build_batch):
    talk.create("t", min_insync_replicas="2")
    assert name_of(talk.produce("t", build_batch(b"v"), acks=-1)) == "NOT_ENOUGH_REPLICAS"
    assert name_of(talk.produce("t", build_batch(b"v"), acks=1)) == "NONE"


def test_zstd_is_refused_below_version_seven_and_taken_from_there(talk, build_batch):
    talk.create("t")
    batch = build_batch(b"v", codec=Compression.ZSTD)
    answer = talk.produce("t", bytearray(batch), version=6)
    assert name_of(answer) == "UNSUPPORTED_COMPRESSION_TYPE"
    assert name_of(talk.produce("t", batch, version=7)) == "NONE"


def test_acks_zero_is_not_answered_but_written(talk, build_batch, new_produce):
    talk.create("t")
    talk.tell(new_produce("t", build_batch(b"silent"), acks=0), 9)
    assert [record.value for record in talk.read("t")] == [b"silent"]


def test_acks_zero_with_bad_input_closes_the_connection(talk, build_batch, new_produce):
    talk.create("t")
    talk.tell(new_produce("nobody", build_batch(b"v"), acks=0), 9)
    assert talk._socket.recv(1) == b""


def test_one_bad_partition_does_not_harm_the_others(talk, build_batch):
    talk.create("t", partitions=3)
    parts = [
        ProduceRequest.PartitionProduceData(index=0, records=build_batch(b"a")),
        ProduceRequest.PartitionProduceData(index=1, records=corrupt(build_batch(b"b"))),
        ProduceRequest.PartitionProduceData(index=2, records=build_batch(b"c")),
    ]
    data = ProduceRequest.TopicProduceData(name="t", partition_data=parts)
    answer = talk.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 9)
    names = [name_of(part) for part in answer.responses[0].partition_responses]
    assert names == ["NONE", "CORRUPT_MESSAGE", "NONE"]


def test_a_repeated_idempotent_batch_is_answered_alike_and_stored_once(talk, build_batch):
    talk.create("t")
    talk.produce("t", build_batch(b"before"))
    first = talk.produce("t", build_batch(b"a", b"b", producer_id=9, epoch=0, sequence=0))
    again = talk.produce("t", build_batch(b"a", b"b", producer_id=9, epoch=0, sequence=0))
    assert (first.base_offset, again.base_offset) == (1, 1)
    assert len(talk.read("t")) == 3
    gap = talk.produce("t", build_batch(b"c", producer_id=9, epoch=0, sequence=5))
    assert name_of(gap) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    newer = talk.produce("t", build_batch(b"c", producer_id=9, epoch=1, sequence=0))
    assert name_of(newer) == "NONE"
    zombie = talk.produce("t", build_batch(b"c", producer_id=9, epoch=0, sequence=2))
    assert name_of(zombie) == "INVALID_PRODUCER_EPOCH"


def test_an_append_time_topic_answers_with_the_time(talk, build_batch):
    talk.create("t", message_timestamp_type="LogAppendTime")
    answer = talk.produce("t", build_batch(b"v", timestamp=5))
    assert answer.log_append_time_ms > 1_600_000_000_000
    [record] = talk.read("t")
    assert record.timestamp == answer.log_append_time_ms


def of_records(*records, codec=Compression.NONE):
    """A batch of (key, timestamp) pairs."""
    builder = BatchBuilder(codec)
    for key, timestamp in records:
        builder.append(key, b"v", timestamp)
    return builder.build()


def named(answer):
    return {error.batch_index: error.batch_index_error_message for error in answer.record_errors}


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_every_record_without_a_key_is_named_on_a_compacted_topic(talk, codec):
    talk.create("t", cleanup_policy="compact")
    now_ms = time.time_ns() // 1_000_000
    keys = [None if number % 10 == 0 else b"k" for number in range(30)]
    answer = talk.produce("t", of_records(*((key, now_ms) for key in keys), codec=codec))
    assert name_of(answer) == "INVALID_RECORD"
    why = "Compacted topic cannot accept message without key in topic partition t-0"
    assert named(answer) == dict.fromkeys((0, 10, 20), why)
    assert "3 record errors in total" in answer.error_message
    assert (answer.base_offset, answer.log_start_offset) == (-1, 0)
    assert talk.read("t") == []


def test_before_version_8_an_answer_names_no_records(talk, build_batch):
    talk.create("t", cleanup_policy="compact")
    answer = talk.produce("t", build_batch(b"v", key=None), version=7)
    assert name_of(answer) == "INVALID_RECORD"
    assert named(answer) == {}


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_every_record_with_a_timestamp_out_of_bounds_is_named(talk, codec):
    talk.create("t", message_timestamp_before_max_ms="600000")
    now_ms = time.time_ns() // 1_000_000
    early = now_ms - 10_000_000
    times = [early, now_ms, early, now_ms]
    answer = talk.produce("t", of_records(*((b"k", at) for at in times), codec=codec))
    assert name_of(answer) == "INVALID_TIMESTAMP"
    assert answer.error_message == "One or more records have been rejected due to invalid timestamp"
    assert list(named(answer)) == [0, 2]
    assert f"Timestamp {early} of message with offset 2 is out of range" in named(answer)[2]


def test_a_compacted_topic_names_records_of_both_faults(talk):
    talk.create("t", cleanup_policy="compact", message_timestamp_before_max_ms="600000")
    now_ms = time.time_ns() // 1_000_000
    records = (b"k", now_ms), (None, now_ms), (b"k", now_ms - 10_000_000)
    for batch in (of_records(*records), of_records(*reversed(records))):
        answer = talk.produce("t", batch)
        assert name_of(answer) == "INVALID_TIMESTAMP"
        assert len(named(answer)) == 2
    assert talk.read("t") == []


def test_a_batch_too_large_to_look_into_is_refused_without_naming_records(talk):
    talk.create("t")
    far = 2**52
    bomb = of_records(*((b"", far) for _ in range(MOST_NAMED + 1)), codec=Compression.ZSTD)
    before = decoded_records()
    answer = talk.produce("t", bomb)
    assert name_of(answer) == "INVALID_TIMESTAMP"
    assert named(answer) == {}
    assert decoded_records() == before


def test_a_transactional_batch_without_a_transactional_id_is_refused(talk, build_batch):
    talk.create("t")
    batch = build_batch(b"v", producer_id=1, epoch=0, sequence=0, transactional=True)
    assert name_of(talk.produce("t", batch)) == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    anonymous = build_batch(b"v", transactional=True)
    answer = talk.produce("t", anonymous, transactional_id="x")
    assert name_of(answer) == "INVALID_RECORD"


def test_producing_and_fetching_decode_no_record(talk, build_batch, new_fetch):
    talk.create("t")
    before = decoded_records()
    for number in range(50):
        sequence = 2 * number
        batch = build_batch(b"a", b"b", producer_id=3, epoch=0, sequence=sequence)
        assert name_of(talk.produce("t", batch)) == "NONE"
    for isolation_level in (0, 1):
        answer = talk.ask(new_fetch("t", 0, isolation_level=isolation_level), 12)
        assert len(answer.responses[0].partitions[0].records) > 1_000
    assert decoded_records() == before


def test_under_fsync_acks_all_waits_for_the_disk_and_everything_survives(
    tmp_path, new_talk, build_batch
):
    for run in range(2):
        settings = {"durability": "fsync"}
        with (
            Broker(data=tmp_path / "data", settings=settings) as broker,
            new_talk(broker.bootstrap_servers) as talk,
        ):
            if run == 0:
                talk.create("t")
            for number in range(10):
                answer = talk.produce("t", build_batch(b"%d" % number))
                assert answer.base_offset == 10 * run + number
            assert len(talk.read("t")) == 10 * (run + 1)
