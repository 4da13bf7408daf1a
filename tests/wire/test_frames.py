"""Frames: headers by version, lengths that count file regions, and kio's opinion of the bytes."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from semel.wire.errors import ProtocolError
from semel.wire.frames import (
    Frame,
    RequestHeader,
    correlation_id_of,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    peek_request,
    request_reader,
    response_writer,
)
from semel.wire.messages import APIS, request_class, response_class
from semel.wire.messages.api_versions import ApiVersionsResponse
from semel.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from semel.wire.messages.fetch import FetchResponse
from semel.wire.messages.produce import ProduceRequest


class Region:
    """A stretch of a file, as the store hands it out: sized, not a buffer."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __bytes__(self) -> bytes:
        return self.data


def sent(frame: Frame) -> bytes:
    """What a connection sends of a frame."""
    out, last = bytearray(), 0
    for position, region in frame.regions:
        out += frame[last:position]
        out += bytes(region)  # type: ignore[call-overload]
        last = position
    return bytes(out + frame[last:])


@pytest.mark.parametrize("client_id", [None, "", "semel", "é" * 200])
@pytest.mark.parametrize("api_key", APIS)
def test_a_request_comes_back_from_its_frame(api_key: int, client_id: str | None) -> None:
    cls = request_class(api_key)
    for version in cls.VERSIONS:
        header = RequestHeader(api_key, version, 77, client_id)
        frame = encode_request(header, cls())
        assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
        assert decode_request(memoryview(frame)[4:]) == (header, cls())
        assert peek_request(bytes(frame), 4)[0] == header
        body_at = 10 + len((client_id or "").encode())
        assert request_reader(api_key, version)(frame[4:], body_at) == cls()


@pytest.mark.parametrize("api_key", APIS)
def test_a_response_comes_back_from_its_frame(api_key: int) -> None:
    cls = response_class(api_key)
    for version in cls.VERSIONS:
        frame = encode_response(-5, cls(), version)
        assert response_writer(api_key, version)(cls(), -5) == frame
        assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
        assert correlation_id_of(frame, 4) == -5
        assert decode_response(bytes(frame[4:]), api_key, version) == (-5, cls())


@pytest.mark.parametrize("api_key", APIS)
def test_kio_writes_the_same_headers(api_key: int, kio: Any) -> None:
    for version in request_class(api_key).VERSIONS:
        request, response = request_class(api_key)(), response_class(api_key)()
        header_class = kio.class_of(type(request), version).__header_schema__
        header = kio.encode(
            header_class(
                request_api_key=api_key,
                request_api_version=version,
                correlation_id=9,
                client_id="semel",
            )
        )
        frame = encode_request(RequestHeader(api_key, version, 9, "semel"), request)
        body = bytearray()
        request.encode(body, version)
        assert bytes(frame[4:]) == header + body

        header_class = kio.class_of(type(response), version).__header_schema__
        body = bytearray()
        response.encode(body, version)
        answer = encode_response(9, response, version)
        assert bytes(answer[4:]) == kio.encode(header_class(correlation_id=9)) + body


def test_the_answer_to_api_versions_never_has_the_flexible_header() -> None:
    assert bytes(encode_response(1, ApiVersionsResponse(), 3)[4:10]) == b"\0\0\0\1\0\0"
    assert bytes(encode_response(1, EndTxnResponse(), 3)[4:9]) == b"\0\0\0\1\0"


def test_a_file_region_is_noted_and_counted_but_not_copied() -> None:
    first, second = Region(b"first batch"), Region(b"2nd")
    partitions = [
        FetchResponse.PartitionData(partition_index=0, records=first),
        FetchResponse.PartitionData(partition_index=1, records=b"bytes"),
        FetchResponse.PartitionData(partition_index=2, records=second),
        FetchResponse.PartitionData(partition_index=3, records=None),
    ]
    topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=partitions)
    frame = encode_response(3, FetchResponse(responses=[topic]), 12)
    assert [region for _, region in frame.regions] == [first, second]
    assert b"batch" not in frame
    data = sent(frame)
    assert struct.unpack_from(">i", data) == (len(data) - 4,)
    _, decoded = decode_response(data[4:], 1, 12)
    contents = [partition.records for partition in decoded.responses[0].partitions]
    assert contents == [b"first batch", b"bytes", b"2nd", None]


@pytest.mark.parametrize(
    "kind", [bytes, bytearray, memoryview, lambda b: __import__("array").array("B", b)]
)
def test_any_buffer_is_taken_as_records(kind: Any) -> None:
    partition = ProduceRequest.PartitionProduceData(index=1, records=kind(b"abc"))
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
    frame = encode_request(RequestHeader(0, 9, 1), ProduceRequest(topic_data=[topic]))
    assert not frame.regions
    _, decoded = decode_request(bytes(frame[4:]))
    assert decoded.topic_data[0].partition_data[0].records == b"abc"  # type: ignore[attr-defined]


def test_a_region_goes_as_bytes_where_there_is_no_frame() -> None:
    partition = ProduceRequest.PartitionProduceData(records=Region(b"abc"))
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
    out = bytearray()
    ProduceRequest(topic_data=[topic]).encode(out, 3)
    assert out.endswith(b"abc")


def test_what_follows_a_request_in_its_frame_is_ignored_as_by_kafka() -> None:
    frame = encode_request(RequestHeader(26, 3, 1, "c"), EndTxnRequest(transactional_id="t"))
    _, request = decode_request(bytes(frame[4:]) + b"more")
    assert request == EndTxnRequest(transactional_id="t")


@pytest.mark.parametrize("size", range(30))
def test_a_frame_cut_short_is_a_protocol_error(size: int) -> None:
    request = EndTxnRequest(transactional_id="txn", producer_id=1)
    frame = encode_request(RequestHeader(26, 3, 1, "abc"), request)
    assert len(frame) - 4 == 30
    with pytest.raises(ProtocolError):
        decode_request(bytes(frame[4 : 4 + size]))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\0\x1a\0\3\0\0\0\1\0\2a",
        b"\0\x1a\0\3\0\0\0\1\0\1\xff",
        b"\x12\x34\0\0\0\0\0\1\0\0",
    ],
)
def test_a_bad_header_is_a_protocol_error(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_request(data)
    with pytest.raises(ProtocolError):
        decode_response(data[:3], 26, 3)


def test_an_unknown_version_can_still_be_answered_by_its_header() -> None:
    header, _ = peek_request(struct.pack(">hhih", 18, 99, 4, 1) + b"x?????")
    assert header == RequestHeader(18, 99, 4, "x")
