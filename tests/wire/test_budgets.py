"""Requests with too many elements are refused before they are read."""

import pytest

from semel.wire.errors import ProtocolError
from semel.wire.frames import RequestHeader, encode_request, peek_request, request_checker
from semel.wire.messages.find_coordinator import FindCoordinatorRequest
from semel.wire.messages.list_offsets import ListOffsetsRequest
from semel.wire.messages.metadata import MetadataRequest


def body(message, version):
    frame = bytearray(encode_request(RequestHeader(message.API_KEY, version, 1, "c"), message)[4:])
    return frame, peek_request(frame)[1]


def check(message, version, most):
    request_checker(message.API_KEY, version)(*body(message, version), most)


def list_offsets(topics, partitions):
    parts = [
        ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=-1)
        for index in range(partitions)
    ]
    return ListOffsetsRequest(
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(name=f"t{number}", partitions=parts)
            for number in range(topics)
        ]
    )


@pytest.mark.parametrize("version", [4, 6])
def test_strings_of_an_array_count(version):
    request = FindCoordinatorRequest(coordinator_keys=["k"] * 100)
    check(request, version, 100)
    with pytest.raises(ProtocolError, match="more than 99 elements"):
        check(request, version, 99)


@pytest.mark.parametrize("version", [3, 7])
def test_structs_count_and_so_do_those_inside_them(version):
    request = list_offsets(10, 20)
    check(request, version, 210)
    with pytest.raises(ProtocolError, match="more than 209 elements"):
        check(request, version, 209)


def test_each_request_has_a_budget_of_its_own():
    for _ in range(3):
        check(list_offsets(10, 20), 7, 210)


def test_a_cut_off_array_of_empty_strings_is_given_up_early():
    frame, at = body(FindCoordinatorRequest(coordinator_keys=[""]), 4)
    end = frame.index(b"\x02\x01", at)  # one key: the count, then an empty string
    huge = frame[:end] + b"\xff\xff\xff\x7f" + b"\x01" * 1_000_000
    with pytest.raises(ProtocolError, match="more than 1000 elements"):
        request_checker(10, 4)(huge, at, 1_000)


def test_tagged_fields_count_too():
    frame, at = body(MetadataRequest(topics=None), 12)
    frame[-1:] = b"\xe8\x07" + b"\x63\x00" * 1_000  # a thousand of them, all unknown
    request_checker(3, 12)(frame, at, 1_000)
    with pytest.raises(ProtocolError, match="more than 999 elements"):
        request_checker(3, 12)(frame, at, 999)
