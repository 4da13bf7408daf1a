"""The plain kernels and the compiled ones do the same, byte for byte."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from semel.columnar.columns import Rows
from semel.columnar.decode import HEADERS_TYPE, to_columns
from semel.columnar.encode import BufferPool, Lanes
from semel.columnar.kernels import PLAIN, load
from semel.wire.batches import BatchBuilder, headers
from semel.wire.errors import ProtocolError

NOW = 1_700_000_000_000

blob = st.one_of(st.none(), st.binary(max_size=300))
row = st.fixed_dictionaries(
    {
        "key": blob,
        "value": blob,
        "headers": st.one_of(
            st.none(),
            st.lists(
                st.fixed_dictionaries({"key": st.text(max_size=5), "value": blob}), max_size=3
            ),
        ),
        "timestamp": st.one_of(st.none(), st.integers(0, 2**45)),
        "partition": st.one_of(st.none(), st.integers(0, 4)),
        "topic": st.sampled_from(["a", "b", "c"]),
    }
)
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.large_binary()),
        ("headers", HEADERS_TYPE),
        ("timestamp", pa.int64()),
        ("partition", pa.int32()),
        ("topic", pa.string()),
    ]
)


def bodies(batch, kernels, columns, topic, buffers):
    """What the lanes emit, with the bytes of each body."""
    emitted = []
    pool = BufferPool(buffers, 700)

    def emit(body):
        emitted.append(
            (body.topic, body.partition, body.count, body.base_ms, body.max_ms, bytes(body.records))
        )
        pool.give_back(body.slot)

    lanes = Lanes(lambda name: 5, emit, pool, kernels)
    lanes.add(Rows.of(batch.select(columns), topic, NOW), NOW)
    lanes.finish()
    return emitted


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(row, max_size=40),
    columns=st.sets(st.sampled_from(["key", "value", "headers", "timestamp", "partition"])),
    skip=st.integers(0, 9),
    one_topic=st.booleans(),
    buffers=st.sampled_from([2, 64]),
)
def test_both_write_the_same_bytes(rows, columns, skip, one_topic, buffers):
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA).slice(min(skip, len(rows)))
    chosen = [*columns, "topic"]
    topic = "t" if one_topic else None
    plain = bodies(batch, PLAIN, chosen, topic, buffers)
    assert plain == bodies(batch, load(), chosen, topic, buffers)
    assert sum(body[2] for body in plain) == batch.num_rows


def decoded(log, kernels, low, high, with_headers):
    """The columns as lists, or None where the records are malformed."""
    try:
        columns = to_columns(headers(log), low, high, with_headers, kernels)
    except ProtocolError:
        return None
    arrays = (columns.offsets, columns.timestamps_ms, columns.timestamp_types, columns.keys,
              columns.values, columns.headers)  # fmt: skip
    for array in arrays:
        if array is not None:
            array.validate(full=True)
    return [None if array is None else array.to_pylist() for array in arrays]


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(row, min_size=1, max_size=20),
    low=st.integers(0, 5),
    high=st.integers(0, 30),
    with_headers=st.booleans(),
)
def test_both_read_the_same_columns(rows, low, high, with_headers):
    builder = BatchBuilder()
    for each in rows:
        names = [(header["key"], header["value"]) for header in each["headers"] or ()]
        builder.append(each["key"], each["value"], each["timestamp"] or 0, names)
    log = bytes(builder.build())
    found = decoded(log, PLAIN, low, high, with_headers)
    assert found == decoded(log, load(), low, high, with_headers)
    assert found[3] == [each["key"] for each in rows][low:high]


@settings(max_examples=300, deadline=None)
@given(
    garbage=st.binary(min_size=1, max_size=80),
    count=st.integers(1, 6),
    with_headers=st.booleans(),
)
def test_both_refuse_the_same_garbage(garbage, count, with_headers):
    builder = BatchBuilder()
    builder.append(None, b"", 0)
    builder.body[61:] = garbage
    builder.count = count
    log = bytes(builder.build())
    assert decoded(log, PLAIN, 0, 10, with_headers) == decoded(log, load(), 0, 10, with_headers)


def test_a_header_name_that_is_not_text_is_refused_by_both():
    builder = BatchBuilder()
    builder.append(None, b"", 0, [("ab", b"")])
    at = builder.body.rindex(b"ab")
    builder.body[at : at + 2] = b"\xff\xfe"
    log = bytes(builder.build())
    assert decoded(log, PLAIN, 0, 10, True) is None
    assert decoded(log, load(), 0, 10, True) is None
    assert decoded(log, load(), 0, 10, False) is not None
