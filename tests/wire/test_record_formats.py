"""The records that coordinators write, against bytes and content from Apache Kafka 4.3.1 itself.

kio knows none of these formats, so `kafka_records.txt` holds what Kafka's own classes say of them.
"""

from __future__ import annotations

import base64
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from semel.wire.records.consumer_groups import ConsumerGroupMemberMetadataValue
from semel.wire.records.transaction_state import TransactionLogKey, TransactionLogValue
from semel.wire.schema import Message, Struct

MODULES = ("transaction_state", "consumer_offsets", "consumer_groups", "consumer_protocol")
FORMATS: dict[str, type[Message]] = {
    name: value
    for module in MODULES
    for name, value in vars(import_module(f"semel.wire.records.{module}")).items()
    if isinstance(value, type) and issubclass(value, Message) and value is not Message
}
SAMPLES = [
    line.split(" ", 3)
    for line in Path(__file__).with_name("kafka_records.txt").read_text().splitlines()
    if not line.startswith("#")
]


def test_every_format_and_version_has_bytes_from_kafka() -> None:
    sampled = {(name, int(version)) for name, version, _, _ in SAMPLES}
    assert sampled == {(n, v) for n, message in FORMATS.items() for v in message.VERSIONS}


@pytest.mark.parametrize(
    ("name", "version", "raw", "content"),
    SAMPLES,
    ids=[f"{name}-v{v}" for name, v, _, _ in SAMPLES],
)
def test_kafkas_records_are_read_and_written_as_kafka_does(
    name: str, version: str, raw: str, content: str
) -> None:
    data = bytes.fromhex(raw)
    record, end = FORMATS[name].decode(data, 0, int(version))
    assert end == len(data)
    assert_same(record, json.loads(content), int(version))
    out = bytearray()
    record.encode(out, int(version))
    assert bytes(out) == data


def assert_same(record: Struct, content: dict[str, Any], version: int) -> None:
    theirs = {re.sub("(?<!^)([A-Z])", r"_\1", key).lower(): content[key] for key in content}
    ours = {f.name: f for f in record.FIELDS.values() if version in f.versions}
    assert set(theirs) <= set(ours)
    assert all(ours[name].tag is not None for name in set(ours) - set(theirs))
    for name, expected in theirs.items():
        assert_value(getattr(record, name), expected, version)


def assert_value(value: Any, expected: Any, version: int) -> None:
    if isinstance(value, list):
        assert len(value) == len(expected)
        for item, expected_item in zip(value, expected, strict=True):
            assert_value(item, expected_item, version)
    elif isinstance(value, Struct):
        assert_same(value, expected, version)
    elif isinstance(value, bytes):
        assert value == base64.b64decode(expected)
    elif isinstance(value, UUID):
        assert value == UUID(bytes=base64.urlsafe_b64decode(expected + "=="))
    else:
        assert value == expected


def test_a_transactions_key_and_value_are_the_documented_bytes() -> None:
    key, value = bytearray(), bytearray()
    TransactionLogKey(transactional_id="tx").encode(key, 0)
    assert bytes(key) == b"\0\2tx"
    TransactionLogValue(
        producer_id=7,
        producer_epoch=1,
        transaction_timeout_ms=60_000,
        transaction_status=1,
        transaction_partitions=[
            TransactionLogValue.PartitionsSchema(topic="t", partition_ids=[3]),
        ],
        previous_producer_id=6,
        client_transaction_version=2,
    ).encode(value, 1)
    fixed = "000000000000000700010000ea6001"
    partitions = "020274020000000300"
    times = "00" * 16
    tags = "020008000000000000000602020002"
    assert value.hex() == fixed + partitions + times + tags


def test_a_tagged_struct_that_is_null_is_told_from_one_that_is_absent() -> None:
    absent, null = bytearray(), bytearray()
    ConsumerGroupMemberMetadataValue().encode(absent, 0)
    ConsumerGroupMemberMetadataValue(classic_member_metadata=None).encode(null, 0)
    assert absent[-1:] == b"\0"
    assert null == absent[:-1] + b"\1\0\1\0"
    again, _ = ConsumerGroupMemberMetadataValue.decode(bytes(null), 0, 0)
    assert again.classic_member_metadata is None
    again, _ = ConsumerGroupMemberMetadataValue.decode(bytes(absent), 0, 0)
    assert again.classic_member_metadata == ConsumerGroupMemberMetadataValue.ClassicMemberMetadata()
