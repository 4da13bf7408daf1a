"""Arrow columns to record batches and back, against two independent encoders of the format."""

import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2
from kafka.record import MemoryRecords, MemoryRecordsBuilder

from semel.columnar.columns import Rows
from semel.columnar.decode import to_columns
from semel.columnar.encode import Body, BufferPool, Lanes, batch_header
from semel.wire.batches import (
    BatchBuilder,
    control_batch,
    header_at,
    headers,
    records_of,
    verify_crc,
)
from semel.wire.batches.committed import committed_only, fetched_batches
from semel.wire.compression import Compression, compress
from semel.wire.errors import ProtocolError

NOW = 1_700_000_000_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

BINARY = pa.binary()

blob = st.one_of(st.none(), st.binary(max_size=200))
record = st.tuples(
    blob,
    blob,
    st.lists(
        st.tuples(st.text(max_size=5), st.one_of(st.none(), st.binary(max_size=9))), max_size=3
    ),
    st.one_of(st.none(), st.integers(0, 2**45)),
)


def encode(
    rows, *, partitions=5, topic="t", kind=BINARY, capacity=4000, buffers=64, skip=0, **columns
):
    """Bodies made from (key, value, headers, timestamp) tuples."""
    arrays = {
        "key": pa.array([row[0] for row in rows], kind),
        "value": pa.array([row[1] for row in rows], kind),
        "headers": pa.array([[{"key": k, "value": v} for k, v in row[2]] for row in rows], HEADERS),
        "timestamp": pa.array([row[3] for row in rows], pa.timestamp("ms")),
        **columns,
    }
    batch = pa.RecordBatch.from_pydict(arrays)
    bodies: list[tuple[Body, bytes]] = []
    pool = BufferPool(buffers, capacity)

    def emit(body):
        bodies.append((body, bytes(body.records)))
        pool.give_back(body.slot)

    lanes = Lanes(lambda name: partitions, emit, pool)
    lanes.add(Rows.of(batch.slice(skip), topic, NOW), NOW)
    lanes.finish()
    return bodies


def whole(body, records, codec=Compression.NONE, sequence=7):
    packed = bytes(compress(codec, records))
    header = batch_header(
        records=packed,
        count=body.count,
        base_ms=body.base_ms,
        max_ms=body.max_ms,
        producer_id=12,
        epoch=3,
        sequence=sequence,
        codec=codec,
    )
    return header + packed


def contents(batch):
    return [
        (r.key, r.value, [tuple(h) for h in r.headers], r.timestamp)
        for r in records_of(header_at(batch))
    ]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(record, max_size=40),
    st.sampled_from([pa.binary(), pa.large_binary()]),
    st.integers(0, 3),
)
def test_what_is_written_is_what_the_record_reader_finds(rows, kind, skip):
    skip = min(skip, len(rows))
    bodies = encode(rows, kind=kind, skip=skip)
    expected: dict = {}
    for key, value, heads, timestamp in rows[skip:]:
        place = None if key is None else (murmur2(key) & 0x7FFFFFFF) % 5
        stamp = NOW if timestamp is None else timestamp
        expected.setdefault(place, []).append((key, value, heads, stamp))
    found: dict = {}
    for body, records in bodies:
        batch = whole(body, records)
        assert verify_crc(header_at(batch))
        found.setdefault(body.partition, []).extend(contents(batch))
    assert found == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(record, min_size=1, max_size=30), st.sampled_from(list(Compression)))
def test_columns_decoded_equal_the_rows_encoded(rows, codec):
    rows = [(None, *row[1:]) for row in rows]
    log = b""
    for body, records in encode(rows, buffers=8):
        batch = bytearray(whole(body, records, codec))
        struct.pack_into(">q", batch, 0, sum(h.count for h in headers(log)))
        log += batch
    columns = to_columns(fetched_batches(memoryview(log)), 0, 1 << 60, with_headers=True)
    assert columns.offsets.to_pylist() == list(range(len(rows)))
    assert columns.keys.to_pylist() == [row[0] for row in rows]
    assert columns.values.to_pylist() == [row[1] for row in rows]
    assert columns.timestamps_ms.to_pylist() == [NOW if r[3] is None else r[3] for r in rows]
    found = [[(h["key"], h["value"]) for h in heads] for heads in columns.headers.to_pylist()]
    assert found == [row[2] for row in rows]
    columns.keys.validate(full=True)
    columns.headers.validate(full=True)


def test_another_implementation_reads_what_the_kernels_write():
    rows = [(b"k%d" % i, b"v" * i, [("h", b"x")], NOW + i) for i in range(50)]
    found = []
    for body, records in encode(rows, partitions=1):
        for batch in MemoryRecords(whole(body, records)):
            assert batch.validate_crc()
            found += [(r.key, r.value, r.timestamp, r.headers) for r in batch]
    assert found == [(k, v, t, h) for k, v, h, t in rows]


def test_the_kernels_read_what_another_implementation_writes():
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=100_000)
    for i in range(50):
        key = b"k%d" % i if i % 3 else None
        builder.append(key=key, value=b"v" * i, timestamp=NOW + i, headers=[("a", b"b")])
    builder.close()
    batches = list(fetched_batches(memoryview(builder.buffer())))
    columns = to_columns(batches, 10, 20, with_headers=True)
    assert columns.offsets.to_pylist() == list(range(10, 20))
    assert columns.keys.to_pylist() == [b"k%d" % i if i % 3 else None for i in range(10, 20)]
    assert columns.headers.to_pylist()[0] == [{"key": "a", "value": b"b"}]


def test_a_row_larger_than_a_buffer_travels_alone():
    rows = [(b"a", b"small", [], NOW), (b"a", b"x" * 50_000, [], NOW), (b"a", b"after", [], NOW)]
    bodies = encode(rows, partitions=1)
    assert [body.count for body, _ in bodies] == [1, 1, 1]
    assert [contents(whole(*body))[0][1] for body in bodies] == [row[1] for row in rows]


def test_fewer_buffers_than_partitions_are_enough():
    rows = [(b"key %d" % i, b"v" * 100, [], NOW) for i in range(2000)]
    bodies = encode(rows, partitions=300, buffers=8)
    assert sum(body.count for body, _ in bodies) == 2000


def test_a_partition_column_wins_and_null_falls_back_to_the_key():
    rows = [(b"k", b"1", [], NOW), (b"k", b"2", [], NOW), (None, b"3", [], NOW)]
    bodies = encode(rows, partition=pa.array([4, None, None], pa.int32()))
    places = {contents(whole(*body))[0][1]: body[0].partition for body in bodies}
    assert places == {b"1": 4, b"2": (murmur2(b"k") & 0x7FFFFFFF) % 5, b"3": None}


def test_a_partition_that_does_not_exist_is_named():
    with pytest.raises(ValueError, match="'t' has no partition 9"):
        encode([(b"k", b"1", [], NOW)], partition=pa.array([9]))


def test_a_timestamp_before_1970_is_refused():
    encode([(b"k", b"1", [], 0)])
    with pytest.raises(ValueError, match="before 1970"):
        encode([(b"k", b"1", [], NOW), (b"k", b"2", [], -1)])


def test_rows_may_name_their_topics():
    rows = [(None, b"%d" % i, [], NOW) for i in range(4)]
    batch = pa.RecordBatch.from_pydict(
        {"value": [row[1] for row in rows], "topic": ["a", "b", "c", "b"]}
    ).slice(1)
    bodies = []
    pool = BufferPool(8, 1000)
    lanes = Lanes(lambda name: 3, lambda body: bodies.append((body.topic, body.count)), pool)
    lanes.add(Rows.of(batch, None, NOW), NOW)
    lanes.finish()
    assert sorted(bodies) == [("b", 2), ("c", 1)]


def test_a_batch_without_a_producer_is_never_made():
    with pytest.raises(AssertionError):
        batch_header(
            records=b"x",
            count=1,
            base_ms=0,
            max_ms=0,
            producer_id=-1,
            epoch=0,
            sequence=0,
            codec=0,
        )


def data(producer_id, offset, value):
    builder = BatchBuilder()
    builder.append(None, value, NOW)
    return bytes(
        builder.build(
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
            base_offset=offset,
        )
    )


def marker(producer_id, offset, commit):
    return bytes(
        control_batch(
            producer_id=producer_id,
            producer_epoch=0,
            commit=commit,
            coordinator_epoch=0,
            timestamp=NOW,
            base_offset=offset,
        )
    )


def test_only_the_aborted_transaction_of_a_producer_is_left_out():
    log = (
        data(1, 0, b"committed")
        + marker(1, 1, True)
        + data(1, 2, b"aborted")
        + data(2, 3, b"other")
        + marker(1, 4, False)
        + data(1, 5, b"again")
        + marker(1, 6, True)
        + marker(2, 7, True)
    )
    batches = committed_only(fetched_batches(memoryview(log)), [(1, 2)])
    assert to_columns(batches, 0, 100).values.to_pylist() == [b"committed", b"other", b"again"]


def test_a_batch_cut_short_by_the_fetch_is_left_out():
    log = data(1, 0, b"a") + data(1, 1, b"b")
    assert to_columns(fetched_batches(memoryview(log)[:-1]), 0, 9).values.to_pylist() == [b"a"]


@settings(max_examples=200, deadline=None)
@given(st.binary(min_size=1, max_size=60), st.integers(1, 5))
def test_malformed_records_are_a_protocol_error_and_nothing_else(body, count):
    batch = whole(Body("t", 0, memoryview(body), count, 0, 0), body)
    try:
        columns = to_columns(fetched_batches(memoryview(batch)), 0, 10, with_headers=True)
    except ProtocolError:
        return
    columns.values.validate(full=True)
    assert columns.count <= count


def test_a_wrong_checksum_is_noticed():
    batch = bytearray(data(1, 0, b"a"))
    batch[-1] ^= 1
    with pytest.raises(ProtocolError, match="checksum"):
        list(fetched_batches(memoryview(batch)))


def test_no_rows_make_no_batches():
    assert encode([]) == []
