"""Record batches: equal to Apache Kafka's bytes, round trips, and damage that ends in one error."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as OracleBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as OracleBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch

from semel.wire.batches import (
    HEADER_SIZE,
    BatchBuilder,
    BatchHeader,
    ControlType,
    Marker,
    OldFormatError,
    Record,
    advance_sequence,
    control_batch,
    decoded_records,
    header_at,
    headers,
    parse_marker,
    patch,
    records_of,
    restamp,
    verify_crc,
)
from semel.wire.compression import Compression
from semel.wire.errors import ProtocolError

# ruff: noqa: E501  (what Kafka wrote stays in one piece)
# Written by Apache Kafka 4.3.1: MemoryRecords.withTransactionalRecords and withEndTransactionMarker.
# fmt: off
JAVA = {
    "none": "0000000000000007000000bb0000000502ad7ab23400100000000200000000000003e800000000000005dc000000000000002a00030000000b0000000320000000026b0476300402680278026e01d80100e8070201c80176317631763176317631763176317631763176317631763176317631763176317631763176317631763176317631763176317631763176317631763176317631763176317631763176317631763176317631763176317631763176317631763176317631001400c70104066b65790100",
    "gzip": "00000000000000070000006f00000005027f8f856800110000000200000000000003e800000000000005dc000000000000002a00030000000b000000031f8b08000000000000ff5360606060ca6629336061ca60aa60ca63bcc1c8f0829d89f104639921ed218308c3714616b6ecd44a460600ec8e43f38a000000",
    "snappy": "0000000000000007000000770000000502a26eede700120000000200000000000003e800000000000005dc000000000000002a00030000000b0000000382534e41505059000000000100000001000000328a016c20000000026b0476300402680278026e01d80100e8070201c8017631fe02008602002c001400c70104066b65790100",
    "lz4": "00000000000000070000006e00000005028b0ec06b00130000000200000000000003e800000000000005dc000000000000002a00030000000b0000000304224d186040822e000000ff0d20000000026b0476300402680278026e01d80100e8070201c801763102004fc0001400c70104066b6579010000000000",
    "zstd": "00000000000000070000006d0000000502c955e74000140000000200000000000003e800000000000005dc000000000000002a00030000000b0000000328b52ffd0058840100840220000000026b0476300402680278026e01d80100e8070201c8017631001400c70104066b6579010001007c937302010000",
    "marker": "00000000000000090000004200000005028bc752c900300000000000000000000004d200000000000004d2000000000000002a0003ffffffff000000012000000008000000010c00000000000800",
}
# fmt: on
JAVA_RECORDS = [
    Record(7, 1000, b"k", b"v0", (("h", b"x"), ("n", None))),
    Record(8, 1500, None, b"v1" * 50),
    Record(9, 900, b"key", None),
]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def java(name: str) -> BatchHeader:
    return header_at(bytearray.fromhex(JAVA[name]))


def build(records: list[Record], codec: Compression = Compression.NONE, **stamp: int) -> bytearray:
    builder = BatchBuilder(codec)
    for record in records:
        builder.append(record.key, record.value, record.timestamp, record.headers)
    return builder.build(**stamp)


def test_an_uncompressed_batch_has_the_bytes_that_kafka_writes() -> None:
    ours = build(
        JAVA_RECORDS, producer_id=42, producer_epoch=3, base_sequence=11, transactional=True,
        base_offset=7, leader_epoch=5,
    )  # fmt: skip
    assert ours.hex() == JAVA["none"]


@pytest.mark.parametrize("name", CODECS)
def test_a_batch_of_kafka_is_read_in_every_compression(name: str) -> None:
    batch = java(name)
    assert verify_crc(batch)
    assert batch.compression == Compression.named(name)
    assert batch.is_transactional
    assert not batch.is_control
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (42, 3, 11)
    assert (batch.last_offset, batch.next_offset, batch.last_sequence) == (9, 10, 13)
    assert (batch.leader_epoch, batch.count, batch.max_timestamp) == (5, 3, 1500)
    assert records_of(batch) == JAVA_RECORDS


def test_a_marker_has_the_bytes_that_kafka_writes_and_is_read_back() -> None:
    marker = control_batch(
        producer_id=42, producer_epoch=3, commit=True, coordinator_epoch=8, timestamp=1234,
        base_offset=9, leader_epoch=5,
    )  # fmt: skip
    assert marker.hex() == JAVA["marker"]
    batch = header_at(marker)
    assert batch.is_control
    assert batch.is_transactional
    assert parse_marker(batch) == Marker(42, 3, ControlType.COMMIT, 8)


def test_an_abort_marker_is_told_from_a_commit_marker() -> None:
    marker = control_batch(
        producer_id=1, producer_epoch=0, commit=False, coordinator_epoch=2, timestamp=0
    )
    parsed = parse_marker(header_at(marker))
    assert parsed is not None
    assert not parsed.is_commit
    assert parsed.coordinator_epoch == 2


def test_a_control_batch_of_another_type_is_no_marker() -> None:
    leader_change = build([Record(0, 0, b"\0\0\0\2", b"")], control=True)
    assert parse_marker(header_at(leader_change)) is None


def test_data_is_not_mistaken_for_a_marker() -> None:
    with pytest.raises(ProtocolError, match="not a marker"):
        parse_marker(header_at(build(JAVA_RECORDS)))


fields = st.none() | st.binary(max_size=300)
record_lists = st.lists(
    st.builds(
        Record,
        offset=st.just(0),
        timestamp=st.integers(-1, 2**62),
        key=fields,
        value=fields,
        headers=st.lists(st.tuples(st.text(max_size=20), fields), max_size=4).map(tuple),
    ),
    min_size=1,
    max_size=20,
)
codecs = st.sampled_from(Compression)


@given(record_lists, codecs)
def test_what_is_built_is_read_back(records: list[Record], codec: Compression) -> None:
    batch = header_at(build(records, codec, base_offset=100))
    assert verify_crc(batch)
    expected = [record._replace(offset=100 + index) for index, record in enumerate(records)]
    assert records_of(batch) == expected
    assert batch.max_timestamp == max(record.timestamp for record in records)


@given(record_lists)
def test_kafka_python_reads_our_batches(records: list[Record]) -> None:
    theirs = KafkaPythonBatch(bytes(build(records)))
    assert theirs.validate_crc()
    seen = [(r.timestamp, r.key, r.value, tuple(r.headers)) for r in theirs]
    assert seen == [(r.timestamp, r.key, r.value, r.headers) for r in records]


# aiokafka's own framing of lz4 links its blocks, which Java refuses; it does read ours.
@pytest.mark.parametrize("codec", list(Compression))
@given(record_lists)
def test_aiokafka_reads_our_batches(codec: Compression, records: list[Record]) -> None:
    theirs = OracleBatch(bytes(build(records, codec)))
    assert theirs.validate_crc()
    seen = [(r.timestamp, r.key, r.value, tuple(r.headers)) for r in theirs]
    assert seen == [(r.timestamp, r.key, r.value, r.headers) for r in records]


@pytest.mark.parametrize("codec", list(Compression))
@given(record_lists)
def test_we_read_the_batches_of_aiokafka(codec: Compression, records: list[Record]) -> None:
    builder = OracleBuilder(
        magic=2, compression_type=int(codec), is_transactional=0, producer_id=5, producer_epoch=1,
        base_sequence=0, batch_size=1 << 30,
    )  # fmt: skip
    # aiokafka's builder takes a base timestamp of -1 for "none yet".
    records = [record._replace(timestamp=abs(record.timestamp)) for record in records]
    for index, record in enumerate(records):
        builder.append(index, record.timestamp, record.key, record.value, list(record.headers))
    batch = header_at(bytes(builder.build()))
    assert verify_crc(batch)
    assert [r._replace(offset=0) for r in records_of(batch)] == records


def test_a_batch_larger_than_a_block_of_its_codec_survives() -> None:
    records = [Record(i, i, b"%d" % i, bytes([i % 251]) * 997) for i in range(500)]
    for codec in Compression:
        assert records_of(header_at(build(records, codec))) == records


def test_log_append_time_overrides_the_records_timestamps() -> None:
    data = build([Record(0, 5, None, b"a"), Record(1, 6, None, b"b")])
    data[22] |= 0x08
    assert [record.timestamp for record in records_of(header_at(data))] == [6, 6]


def test_all_batches_of_a_buffer_are_found_with_position_and_size() -> None:
    first, second = build(JAVA_RECORDS), build(JAVA_RECORDS[:1], Compression.GZIP)
    found = list(headers(memoryview(first + second)))
    assert [(batch.position, batch.size) for batch in found] == [
        (0, len(first)),
        (len(first), len(second)),
    ]
    assert bytes(found[1].view) == second


def test_a_batch_cut_off_is_refused_or_left_out_where_a_fetch_allows_it() -> None:
    whole = build(JAVA_RECORDS)
    for missing in range(1, len(whole)):
        records = bytes(whole + whole[:-missing])
        with pytest.raises(ProtocolError):
            list(headers(records))
        assert len(list(headers(records, partial_tail=True))) == 1


def test_offset_and_leader_epoch_are_patched_in_place_under_the_same_checksum() -> None:
    data = b"xx" + build(JAVA_RECORDS)
    batch = header_at(memoryview(bytearray(data)), 2)
    patch(batch, 1 << 40, 9)
    again = header_at(batch.buffer, 2)
    assert (again.base_offset, again.leader_epoch) == (1 << 40, 9)
    assert verify_crc(again)
    assert records_of(again)[2].offset == (1 << 40) + 2


def test_a_batch_can_be_stamped_for_another_epoch() -> None:
    data = build(JAVA_RECORDS, Compression.LZ4, producer_id=1, producer_epoch=1, base_sequence=70)
    restamp(data, 1, 2, 0)
    batch = header_at(data)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (1, 2, 0)
    assert verify_crc(batch)


def test_sequences_go_on_at_zero_after_the_largest() -> None:
    assert advance_sequence(2**31 - 1, 1) == 0
    assert advance_sequence(5, 3) == 8
    data = build(JAVA_RECORDS, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    assert header_at(data).last_sequence == 0
    assert header_at(build(JAVA_RECORDS)).last_sequence == -1


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_are_refused_by_name(magic: int) -> None:
    data = build(JAVA_RECORDS)
    data[16] = magic
    with pytest.raises(OldFormatError, match=f"format {magic} is not supported") as caught:
        header_at(data)
    assert caught.value.magic == magic


@pytest.mark.parametrize(
    ("length", "text"),
    [(-1, "cannot have the length -1"), (48, "header is longer"), (2**31 - 1, "only .* are there")],
)
def test_a_lying_length_is_named(length: int, text: str) -> None:
    data = build(JAVA_RECORDS)
    data[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(ProtocolError, match=text):
        header_at(data)


def test_a_record_count_that_cannot_be_true_is_refused_before_anything_is_allocated() -> None:
    data = build(JAVA_RECORDS)
    data[57:61] = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(ProtocolError, match="2147483647 records do not fit"):
        records_of(header_at(data))


def test_more_records_than_counted_are_noticed() -> None:
    data = build(JAVA_RECORDS)
    data[57:61] = (2).to_bytes(4, "big")
    with pytest.raises(ProtocolError, match="left behind the last record"):
        records_of(header_at(data))


def test_decoding_is_counted_and_reading_headers_is_not() -> None:
    data = build(JAVA_RECORDS)
    before = decoded_records()
    for batch in headers(data):
        assert verify_crc(batch)
        patch(batch, 5, 1)
    assert decoded_records() == before
    records_of(header_at(data))
    assert decoded_records() == before + 3


def test_an_empty_batch_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        BatchBuilder().build()


def read_all(data: bytes) -> None:
    """All that anyone does with bytes of others; ProtocolError is the only way to fail."""
    try:
        for batch in headers(data):
            verify_crc(batch)
            records_of(batch, limit=1 << 20)
            if batch.is_control:
                parse_marker(batch)
    except ProtocolError:
        pass


@given(st.sampled_from(sorted(JAVA)), st.lists(st.tuples(st.integers(0), st.integers(0, 255))))
def test_damaged_batches_end_in_a_protocol_error(name: str, damage: list[tuple[int, int]]) -> None:
    data = bytearray.fromhex(JAVA[name])
    for position, byte in damage:
        data[position % len(data)] = byte
    read_all(bytes(data))


@given(st.sampled_from(sorted(JAVA)), st.integers(0), st.binary(max_size=64))
def test_truncated_or_prolonged_batches_end_in_a_protocol_error(
    name: str, cut: int, tail: bytes
) -> None:
    data = bytes.fromhex(JAVA[name])
    read_all(data[: cut % len(data)] + tail)


@given(st.binary(max_size=200))
def test_random_bodies_end_in_a_protocol_error(body: bytes) -> None:
    for codec in range(8):
        data = build(JAVA_RECORDS)
        del data[HEADER_SIZE:]
        data += body
        data[8:12] = (len(data) - 12).to_bytes(4, "big")
        data[22] = codec
        read_all(bytes(data))
