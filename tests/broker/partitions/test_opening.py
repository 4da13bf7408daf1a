"""Batches that the broker opens before it stores them: what lies or is too much is refused, and
whatever takes long is done beside the loop."""

import threading
import time

import pytest

from semel.broker.partitions import opening
from semel.broker.server import Broker
from semel.wire.batches import BatchBuilder, BatchHeader, replace_body
from semel.wire.compression import Compression, compress
from semel.wire.errors import ErrorCode
from semel.wire.messages.list_offsets import ListOffsetsRequest

CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
NOW_MS = time.time_ns() // 1_000_000


def name_of(answer) -> str:
    return ErrorCode(answer.error_code).name


def packed(body: bytes, count: int, codec: Compression = Compression.ZSTD) -> bytes:
    """A batch that declares so many records, with whatever body."""
    builder = BatchBuilder()
    builder.append(b"k", b"v", NOW_MS)
    batch = builder.build()
    batch[23:27] = (count - 1).to_bytes(4, "big")  # the last offset delta
    batch[57:61] = count.to_bytes(4, "big")
    return bytes(replace_body(BatchHeader(batch), compress(codec, body), codec).view)


def record(value: bytes = b"") -> bytes:
    """With a key, outside of anything."""
    builder = BatchBuilder()
    builder.append(b"k", value, NOW_MS)
    return bytes(builder.build()[61:])


@pytest.fixture
def opened_by(monkeypatch):
    """The names of the threads in which bodies were unpacked."""
    threads = []
    unpack = opening.body_of

    def noted(batch, limit):
        threads.append(threading.current_thread().name)
        return unpack(batch, limit)

    monkeypatch.setattr(opening, "body_of", noted)
    return threads


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())
def test_a_compressed_batch_that_tells_the_truth_is_stored_as_it_came(talk, build_batch, codec):
    talk.create("t")
    for values in ([b"a"], [b"b"] * 5_000, [bytes(200_000)]):
        batch = build_batch(*values, codec=codec)
        assert name_of(talk.produce("t", batch)) == "NONE"
        end = talk.read("t", partition_max_bytes=1 << 20)
    assert [one.value for one in end][:2] == [b"a", b"b"]


@pytest.mark.parametrize(
    "batch",
    [
        packed(record(), 2**31 - 1),
        packed(record() * 3, 4),
        packed(record() * 3, 2),
        packed(record()[:-1], 1),
        packed(record() + b"x", 1),
        packed(b"\xff" * 50, 5),
        packed(record() * 50_000, 50_001),
    ],
    ids=["two billion", "too few", "too many", "cut off", "a rest", "noise", "large and too few"],
)
def test_a_compressed_batch_that_lies_about_its_records_is_refused(talk, build_batch, batch):
    talk.create("t")
    answer = talk.produce("t", batch)
    assert (name_of(answer), answer.base_offset) == ("INVALID_RECORD", -1)
    assert talk.produce("t", build_batch(b"next")).base_offset == 0


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())
@pytest.mark.parametrize("size", [100, 20_000])
def test_a_body_that_cannot_be_unpacked_is_refused(talk, build_batch, codec, size):
    talk.create("t")
    good = BatchHeader(build_batch(b"v" * 50))
    bad = replace_body(good, b"\x07" * size, codec)
    answer = talk.produce("t", bytes(bad.view))
    assert name_of(answer) == "INVALID_RECORD"
    assert "cannot be read" in answer.error_message


def test_a_batch_that_unpacks_to_too_much_is_refused(talk, opened_by):
    talk.create("t")
    answer = talk.produce("t", packed(bytes(opening.MOST_BYTES + 1), 1))
    assert name_of(answer) == "INVALID_RECORD"
    assert "more than the limit" in answer.error_message
    assert opened_by[-1] == "semel-open_0"


def test_a_batch_of_too_many_records_is_not_even_unpacked(talk, opened_by):
    talk.create("t", cleanup_policy="compact")
    count = opening.MOST_RECORDS + 1
    answer = talk.produce("t", packed(record() * count, count))
    assert name_of(answer) == "INVALID_RECORD"
    assert not opened_by


def test_a_batch_that_grows_beyond_the_topics_limit_by_its_compression_is_refused(talk):
    talk.create("t", compression_type="uncompressed")
    answer = talk.produce("t", packed(record(bytes(2_000_000)), 1))
    assert name_of(answer) == "MESSAGE_TOO_LARGE"
    assert "max.message.bytes is 1048588" in answer.error_message


def test_small_batches_are_opened_where_they_are_and_large_ones_in_a_thread(
    broker, talk, build_batch, opened_by
):
    talk.create("t", cleanup_policy="compact")
    talk.produce("t", build_batch(b"v"))
    talk.produce("t", build_batch(b"v", codec=Compression.LZ4))
    assert "semel-open_0" not in opened_by
    del opened_by[:]
    talk.produce("t", build_batch(*[b"v"] * 5_000))
    talk.produce("t", build_batch(bytes(100_000), codec=Compression.ZSTD))
    assert opened_by[0] == opened_by[-1] == "semel-open_0"


def test_what_is_sent_behind_a_large_batch_does_not_overtake_it(talk, new_produce, build_batch):
    talk.create("t")
    producer = {"producer_id": 7, "epoch": 0}
    large = build_batch(*[b"first"] * 20_000, codec=Compression.GZIP, sequence=0, **producer)
    small = build_batch(b"second", sequence=20_000, **producer)
    third = build_batch(b"third", codec=Compression.GZIP, sequence=20_001, **producer)
    for batch in (large, small, third):
        talk.tell(new_produce("t", batch), 11)
    answers = [talk.hear(0, 11).responses[0].partition_responses[0] for _ in range(3)]
    assert [(name_of(one), one.base_offset) for one in answers] == [
        ("NONE", 0),
        ("NONE", 20_000),
        ("NONE", 20_001),
    ]


def test_a_large_batch_holds_the_connection_until_it_is_appended_not_until_it_is_durable(
    tmp_path, new_talk, new_produce, build_batch, in_loop
):
    with Broker(data=tmp_path / "data", settings={"durability": "fsync"}) as broker:
        talk = new_talk(broker.bootstrap_servers)
        talk.create("t")
        talk.produce("t", build_batch(b"v"))
        syncing, go_on = threading.Event(), threading.Event()
        files = broker.partitions.store.files
        sync = files.sync
        files.sync = lambda fd: (syncing.set(), go_on.wait(), sync(fd))
        large = build_batch(*[b"v"] * 20_000, codec=Compression.GZIP)
        talk.tell(new_produce("t", large), 11)
        talk.tell(new_produce("t", build_batch(b"v")), 11)
        syncing.wait()
        log = broker.partitions.find("t", 0).log
        while in_loop(broker, lambda: log.next_offset) < 20_002:
            pass
        go_on.set()
        for offset in (1, 20_001):
            answer = talk.hear(0, 11).responses[0].partition_responses[0]
            assert (name_of(answer), answer.base_offset) == ("NONE", offset)
        talk.close()


def test_a_topic_deleted_while_its_batch_is_opened_takes_nothing(
    broker, talk, new_talk, new_produce, build_batch, in_loop, monkeypatch
):
    talk.create("t")
    opening_now, go_on = threading.Event(), threading.Event()
    unpack = opening.body_of
    monkeypatch.setattr(
        opening,
        "body_of",
        lambda batch, limit: (opening_now.set(), go_on.wait(), unpack(batch, limit))[2],
    )
    talk.tell(new_produce("t", build_batch(*[b"v"] * 5_000, codec=Compression.GZIP)), 11)
    opening_now.wait()
    in_loop(broker, lambda: broker.catalog.delete_topic("t"))
    with new_talk(broker.bootstrap_servers) as other:
        other.create("t")
        go_on.set()
        answer = talk.hear(0, 11).responses[0].partition_responses[0]
        assert name_of(answer) == "UNKNOWN_TOPIC_OR_PARTITION"
        assert other.read("t") == []


def test_an_offset_by_time_is_found_in_large_and_compressed_batches_beside_the_loop(
    broker, talk, monkeypatch
):
    talk.create("t", partitions=2)
    for partition, codec in enumerate((Compression.NONE, Compression.ZSTD)):
        builder = BatchBuilder(codec)
        for number in range(3_000):
            builder.append(b"k", b"v", NOW_MS + number)
        talk.produce("t", builder.build(), partition)
    threads = []
    run = broker.partitions.opener.run
    monkeypatch.setattr(
        broker.partitions.opener, "run", lambda work: threads.append(work) or run(work)
    )
    asked = [
        ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=NOW_MS + 2_500)
        for index in range(2)
    ]
    topic = ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=asked)
    answer = talk.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), 7)
    assert [one.offset for one in answer.topics[0].partitions] == [2_500, 2_500]
    assert len(threads) == 2
