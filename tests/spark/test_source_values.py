"""Values decoded by a schema, without Spark: Arrow in, Arrow out."""

import datetime
import io
import json
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql import types as T

from semel.errors import UsageError
from semel.spark.source.avro import ddl_of
from semel.spark.source.options import SourceOptions
from semel.spark.source.values import BadValue, decoder_of

ORDER = T.StructType(
    [
        T.StructField("id", T.LongType()),
        T.StructField("name", T.StringType()),
        T.StructField("day", T.DateType()),
        T.StructField("at", T.TimestampType()),
        T.StructField("prices", T.ArrayType(T.DecimalType(10, 2))),
    ]
)
DDL = "id long, name string, day date, at timestamp, prices array<decimal(10,2)>"


def decoder(kind, form, schema, bad="fail"):
    given = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t"}
    more = {"valueFormat": form, "valueSchema": schema, "badValues": bad}
    return decoder_of(SourceOptions.of({**given, **more}), kind)


def decoded(values, form="json", kind=ORDER, schema=DDL, bad="fail"):
    return decoder(kind, form, schema, bad).decode(pa.array(values, pa.binary())).to_pylist()


def test_json_values_become_columns_and_unknown_fields_are_left_out():
    pretty = b'{\n  "id": 7, "name": "caf\\u00e9", "day": "2024-02-29",\n "other": {"x": [1]},'
    pretty += b' "at": "2024-02-29T12:00:00Z", "prices": ["1.25", "3.00"]}'
    noon = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
    assert decoded([pretty, None, b"null", b"{}"]) == [
        {
            "id": 7,
            "name": "café",
            "day": datetime.date(2024, 2, 29),
            "at": noon,
            "prices": [Decimal("1.25"), Decimal("3.00")],
        },
        None,
        None,
        dict.fromkeys(("id", "name", "day", "at", "prices")),
    ]


BAD = [
    b"", b" ", b"{", b"5", b"[1]", b"{}{}", b"{}}\n{\"v\":{}", b'{"id":1},"i":7', b'{"id":"x"}',
    b'{"id":1.5}', b'{"name":"\xff"}', b'{"day":"yesterday"}', b'{"id":1,"id":2}',
]  # fmt: skip


@pytest.mark.parametrize("value", BAD)
def test_a_bad_json_value_is_null_or_an_error_at_its_place_and_never_shifts_its_neighbours(value):
    rows = [b'{"id":%d}' % number for number in range(9)]
    rows[5] = value
    with pytest.raises(BadValue) as failed:
        decoded(rows)
    assert failed.value.place == 5
    ids = [row and row["id"] for row in decoded(rows, bad="null")]
    assert ids == [0, 1, 2, 3, 4, None, 6, 7, 8]


def test_halves_of_a_json_value_in_two_records_are_two_bad_values():
    """Joined by a line feed they would be one good value."""
    rows = decoded([b'{"id":', b"1}", b'{"id":2}{"id":3}'], bad="null")
    assert rows == [None, None, None]


AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "token", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "was", "type": {"type": "array", "items": "Kind"}},
    ],
}
AVRO_TYPE = T.StructType(
    [
        T.StructField("id", T.LongType()),
        T.StructField("note", T.StringType()),
        T.StructField("at", T.TimestampType()),
        T.StructField("token", T.StringType()),
        T.StructField("counts", T.MapType(T.StringType(), T.IntegerType())),
        T.StructField("kind", T.StringType()),
        T.StructField("was", T.ArrayType(T.StringType())),
    ]
)


def avro_bytes(**more):
    row = {
        "id": 1,
        "note": None,
        "at": datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC),
        "token": "abc",
        "counts": {"x": 3},
        "kind": "B",
        "was": ["A"],
        **more,
    }
    plain = json.loads(json.dumps(AVRO).replace('"logicalType": "uuid"', '"doc": "plain"'))
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, plain, row)
    return stream.getvalue()


def test_avro_values_become_columns_of_the_schemas_types():
    assert ddl_of(AVRO) == (
        "struct<`id`: bigint, `note`: string, `at`: timestamp, `token`: string,"
        " `counts`: map<string, int>, `kind`: string, `was`: array<string>>"
    )
    rows = decoded([avro_bytes(note="hi"), None], "avro", AVRO_TYPE, json.dumps(AVRO))
    assert rows[0]["note"] == "hi"
    assert rows[0]["at"] == datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)
    assert (dict(rows[0]["counts"]), rows[0]["token"]) == ({"x": 3}, "abc")
    assert (rows[0]["kind"], rows[0]["was"]) == ("B", ["A"])
    assert rows[1] is None


@pytest.mark.parametrize("value", [b"", b"\x02", avro_bytes() + b"x", avro_bytes()[:-1]])
def test_a_bad_avro_value_is_null_or_an_error_at_its_place(value):
    rows = [avro_bytes(), value, avro_bytes()]
    with pytest.raises(BadValue) as failed:
        decoded(rows, "avro", AVRO_TYPE, json.dumps(AVRO))
    assert failed.value.place == 1
    kept = decoded(rows, "avro", AVRO_TYPE, json.dumps(AVRO), "null")
    assert [row and row["id"] for row in kept] == [1, None, 1]


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        (["int", "string"], "one type or null"),
        ({"type": "array", "items": "Missing"}, "does not define"),
        (
            {"type": "record", "name": "Tree", "fields": [{"name": "c", "type": ["null", "Tree"]}]},
            "recursive",
        ),
    ],
)
def test_avro_schemas_that_no_column_can_hold_are_refused(schema, sentence):
    with pytest.raises(UsageError, match=sentence):
        ddl_of(schema)
