"""The notation: what a declaration promises when messages are made, encoded and decoded."""

from __future__ import annotations

from uuid import UUID

import pytest

from semel.wire.errors import ProtocolError
from semel.wire.messages import request_class
from semel.wire.messages.end_txn import EndTxnRequest
from semel.wire.messages.fetch import FetchRequest, FetchResponse
from semel.wire.messages.find_coordinator import FindCoordinatorRequest
from semel.wire.messages.metadata import MetadataRequest
from semel.wire.messages.produce import ProduceRequest
from semel.wire.primitives import NO_UUID, known_uuids, read_uvarint, uvarint
from semel.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int16,
    int32,
    nested,
    string,
    version_range,
)


class Parcel(Message, api_key=99, versions="0-3", flexible="2+"):
    name: str = string()
    note: str | None = string(None, versions="1+", nullable="1+")
    weight: int = int32(7, versions="1-2")
    hint: int = int32(versions="3+", ignorable=True)
    items: list[Parcel.Item] = array("Item")
    numbers: list[int] | None = array(int16, versions="2+", nullable="3+")
    label: str = string(versions="2+", tag=3)
    box: Parcel.Box = nested("Box", versions="2+", tag=1)
    lid: Parcel.Box | None = nested("Box", None, versions="3+", nullable="3+")

    class Item(Struct):
        name: str = string()
        fragile: bool = boolean()

    class Box(Struct):
        width: int = int32(-1)


def encoded(message: Message, version: int) -> bytes:
    out = bytearray()
    message.encode(out, version)
    return bytes(out)


@pytest.mark.parametrize(
    ("text", "versions"),
    [("3-9", range(3, 10)), ("4", range(4, 5)), ("2+", range(2, 0x8000)), ("none", range(0))],
)
def test_version_ranges_are_written_as_kafka_writes_them(text: str, versions: range) -> None:
    assert version_range(text) == versions


def test_a_message_takes_any_subset_of_its_fields_by_keyword() -> None:
    parcel = Parcel(name="a", weight=3)
    assert (parcel.name, parcel.weight, parcel.note, parcel.items) == ("a", 3, None, [])
    assert Parcel() == Parcel(name="", weight=7)
    assert Parcel() != Parcel(weight=8)
    assert "weight=3" in repr(parcel)
    with pytest.raises(TypeError):
        Parcel(nmae="a")  # type: ignore[call-arg]


def test_a_message_has_slots_only() -> None:
    with pytest.raises(AttributeError):
        Parcel().nmae = "a"  # type: ignore[attr-defined]


def test_new_messages_do_not_share_their_lists() -> None:
    one, other = Parcel(), Parcel()
    one.items.append(Parcel.Item())
    assert other.items == []


def test_the_shared_default_of_a_tagged_struct_cannot_be_changed() -> None:
    parcel = Parcel()
    assert parcel.box == Parcel.Box()
    with pytest.raises(AttributeError, match="assign a new Box"):
        parcel.box.width = 3
    parcel.box = Parcel.Box(width=3)
    assert Parcel().box.width == -1


def test_versions_write_exactly_the_fields_that_they_have() -> None:
    item = Parcel.Item(name="i", fragile=True)
    assert encoded(Parcel(name="n", items=[item]), 0) == b"\0\1n\0\0\0\1\0\1i\1"
    assert encoded(Parcel(name="n", note="x", weight=1), 1) == (b"\0\1n\0\1x\0\0\0\1\0\0\0\0")
    assert encoded(Parcel(name="n", items=[item], numbers=[258]), 2) == (
        b"\2n\0\0\0\0\7\2\2i\1\0\2\1\2\0"
    )


def test_tagged_fields_are_written_in_order_of_number_and_only_if_set() -> None:
    parcel = Parcel(label="ab", box=Parcel.Box(width=5))
    start = b"\1\0\0\0\0\7\1\1"
    assert encoded(parcel, 2) == start + b"\2\1\5\0\0\0\5\0\3\3\3ab"
    assert Parcel.decode(encoded(parcel, 2), 0, 2)[0] == parcel


def test_unknown_tagged_fields_are_skipped() -> None:
    data = encoded(Parcel(label="ab"), 2)
    assert data.endswith(b"\1\3\3\3ab")
    more = data[:-6] + b"\3\3\3\3ab\x09\2??\xac\2\1?"
    assert Parcel.decode(more, 0, 2) == (Parcel(label="ab"), len(more))


def test_a_nullable_struct_has_a_mark_before_it() -> None:
    assert encoded(Parcel(lid=None), 3) == b"\1\0\0\0\0\0\1\1\xff\0"
    assert encoded(Parcel(lid=Parcel.Box(width=2)), 3) == b"\1\0\0\0\0\0\1\1\1\0\0\0\2\0\0"
    assert Parcel.decode(encoded(Parcel(lid=Parcel.Box(width=2)), 3), 0, 3)[0].lid == Parcel.Box(
        width=2
    )


@pytest.mark.parametrize(
    ("parcel", "version", "complaint"),
    [
        (Parcel(name=None), 0, "name may not be null"),  # type: ignore[arg-type]
        (Parcel(items=None), 2, "items may not be null"),  # type: ignore[arg-type]
        (Parcel(numbers=None), 2, "numbers may not be null"),
        (Parcel(weight=None), 1, "weight may not be null"),  # type: ignore[arg-type]
        (Parcel(items=[Parcel.Item(), None]), 1, r"items\[1\] must be a Item"),  # type: ignore[list-item]
        (
            Parcel(items=[Parcel.Item(fragile=None)]),  # type: ignore[arg-type]
            1,
            r"items\[0\]\.fragile may not be null",
        ),
        (Parcel(note="x"), 0, "note is not in this version"),
        (Parcel(weight=8), 3, "weight is not in this version"),
        (Parcel(box=Parcel.Box(width=1)), 1, "box is not in this version"),
        (Parcel(numbers=[1]), 1, "numbers is not in this version"),
        (Parcel(weight=1 << 40), 1, "weight cannot be 1099511627776"),
        (Parcel(numbers=[1, 70_000]), 2, r"numbers\[1\] cannot be 70000"),
        (Parcel(name="x" * 32_768), 1, "name is longer than 32767 bytes"),
        (Parcel(name="x" * 32_768), 2, "name is longer than 32767 bytes"),
        (Parcel(name=b"x"), 2, "name must be a str, not bytes"),  # type: ignore[arg-type]
        (Parcel(name="\ud800"), 2, "name is not valid Unicode"),
        (Parcel(), 4, "has no version 4"),
    ],
)
def test_what_a_version_cannot_carry_is_refused_by_name(
    parcel: Parcel, version: int, complaint: str
) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        encoded(parcel, version)


def test_an_ignorable_field_is_dropped_by_versions_without_it() -> None:
    assert encoded(Parcel(hint=5), 1) == encoded(Parcel(), 1)
    assert encoded(FetchRequest(rack_id="r"), 4) == encoded(FetchRequest(), 4)


def test_kafkas_own_rules_for_dropping_fields_hold() -> None:
    with pytest.raises(ProtocolError, match="coordinator_keys"):
        encoded(FindCoordinatorRequest(coordinator_keys=["a"]), 3)
    with pytest.raises(ProtocolError, match="topics may not be null"):
        encoded(MetadataRequest(topics=None), 0)
    assert encoded(MetadataRequest(topics=None), 1) == b"\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("version", "data", "complaint"),
    [
        (0, b"\xff\xff\0\0\0\0", "name may not be null"),
        (0, b"\xff\xfe\0\0\0\0", "name has the impossible length -2"),
        (0, b"\0\7n", "unpack_from requires"),
        (0, b"\0\0\0\0\0\5", "unpack_from requires"),
        (0, b"\0\0\x7f\xff\xff\xff", "unpack_from requires"),
        (0, b"\0\0\xff\xff\xff\xff", "items may not be null"),
        (0, b"\0\0\x80\0\0\0", "items has the impossible length"),
        (0, b"\0\1\xff\0\0\0\0", "utf-8"),
        (2, b"\0\0\0\0\0\7\1\1\0", "name may not be null"),
        (2, b"\xff\xff\xff\xff\x7f\0\0\0\0\7\1\1\0", "32 bits"),
        (2, b"\xff\xff\xff\xff\xff\1\0\0\0\0\7\1\1\0", "five bytes"),
        (2, b"\xff\xff\x03\0\0\0\0\7\1\1\0", "longer than 32767"),
        (2, b"\1\0\0\0\0\7\1\xff\xff\xff\xff\x0f", "unpack_from requires"),
        (2, b"\1\0\0\0\0\7\1\1\1\3\5\3ab", "tagged field 3 does not end where its size says"),
        (2, b"\1\0\0\0\0\7\1\1\1\x09\x50", "end before the message"),
        (2, b"", "index out of range|out of bounds"),
    ],
)
def test_malformed_bytes_are_protocol_errors(version: int, data: bytes, complaint: str) -> None:
    for buffer in (data, bytearray(data), memoryview(data)):
        with pytest.raises(ProtocolError, match=complaint):
            Parcel.decode(buffer, 0, version)


def test_unknown_versions_and_apis_are_protocol_errors() -> None:
    for version in (-1, 6, 1000):
        with pytest.raises(ProtocolError, match="has no version"):
            EndTxnRequest.decode(b"", 0, version)
    with pytest.raises(ProtocolError, match="no API with key 4711"):
        request_class(4711)


def test_records_stay_a_view_of_the_input() -> None:
    batch = bytes(range(200))
    request = ProduceRequest(
        acks=-1,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name="t",
                partition_data=[ProduceRequest.PartitionProduceData(index=0, records=batch)],
            )
        ],
    )
    data = bytearray()
    request.encode(data, 9)
    for buffer in (bytes(data), data, memoryview(data)):
        decoded, _ = ProduceRequest.decode(buffer, 0, 9)
        view = decoded.topic_data[0].partition_data[0].records
        assert type(view) is memoryview
        assert view == batch
        whole = buffer.obj if isinstance(buffer, memoryview) else buffer
        assert view.obj is whole


def test_fetched_records_stay_a_view_of_the_input() -> None:
    topic = FetchResponse.FetchableTopicResponse(
        topic="t", partitions=[FetchResponse.PartitionData(records=b"abc")]
    )
    data = encoded(FetchResponse(responses=[topic]), 12)
    decoded, _ = FetchResponse.decode(data, 0, 12)
    view = decoded.responses[0].partitions[0].records
    assert type(view) is memoryview
    assert view.obj is data


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 16_383, 16_384, 0xFFFFFFFF])
def test_varints_come_back(value: int) -> None:
    data = b"??" + uvarint(value) + b"?"
    assert read_uvarint(data, 2) == (value, len(data) - 1)


def test_uuids_are_shared_while_they_are_few_and_right_when_they_are_many() -> None:
    ids = [UUID(int=n << 64 | 5) for n in range(10_000)]
    assert [known_uuids[one.bytes] for one in ids] == ids
    assert known_uuids[bytes(16)] == NO_UUID
    assert known_uuids[ids[-1].bytes] is known_uuids[ids[-1].bytes]
