"""Bytes that are written in two ways for speed are the same bytes."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semel.wire.batches import (
    HEADER_SIZE,
    BatchBuilder,
    build_few,
    control_batch,
    header_before,
    write_header,
)
from semel.wire.batches.header import _COVERED, batch_of
from semel.wire.frames import (
    RequestHeader,
    decode_request,
    encode_request,
    encode_response,
    request_reader,
    response_writer,
)
from semel.wire.messages import APIS, request_class, response_class

LONG = st.integers(-(2**63), 2**63 - 1)
INT = st.integers(-(2**31), 2**31 - 1)
SHORT = st.integers(-(2**15), 2**15 - 1)
COUNT = st.integers(1, 2**31 - 1)


@given(st.binary(max_size=300), SHORT, COUNT, LONG, LONG, LONG, SHORT, INT, LONG, INT)
def test_a_header_is_the_same_in_place_in_front_and_with_its_records(
    records: bytes, attributes: int, count: int, base_ms: int, max_ms: int, producer_id: int,
    epoch: int, sequence: int, offset: int, leader_epoch: int,
) -> None:  # fmt: skip
    fields: dict[str, int] = {
        "attributes": attributes, "count": count, "base_timestamp": base_ms,
        "max_timestamp": max_ms, "producer_id": producer_id, "producer_epoch": epoch,
        "base_sequence": sequence,
    }  # fmt: skip
    in_place = bytearray(HEADER_SIZE) + records
    write_header(in_place, **fields)
    assert header_before(records, **fields) + records == in_place
    write_header(in_place, **fields, base_offset=offset, leader_epoch=leader_epoch)
    covered = _COVERED.pack(
        attributes, count - 1, base_ms, max_ms, producer_id, epoch, sequence, count
    )
    assert batch_of(covered + records, offset, leader_epoch) == in_place


@given(
    records=st.lists(
        st.tuples(
            st.none() | st.binary(max_size=3000),
            st.none() | st.binary(max_size=3000),
            st.integers(),
        ),
        min_size=1,
    ),
    timestamp=st.integers(0, 2**62),
    transactional=st.booleans(),
    producer_id=LONG,
    epoch=SHORT,
    offset=LONG,
    leader_epoch=INT,
)
def test_a_batch_of_few_is_what_the_builder_builds(
    records: list[tuple[bytes | None, bytes | None, int]], timestamp: int, transactional: bool,
    producer_id: int, epoch: int, offset: int, leader_epoch: int,
) -> None:  # fmt: skip
    builder = BatchBuilder()
    for key, value, _ in records:
        builder.append(key, value, timestamp)
    where: dict[str, int] = {
        "producer_id": producer_id, "producer_epoch": epoch, "base_offset": offset,
        "leader_epoch": leader_epoch,
    }  # fmt: skip
    few = build_few(records, timestamp, attributes=0x10 if transactional else 0, **where)
    assert few == builder.build(transactional=transactional, **where)


@given(LONG, SHORT, st.booleans(), INT, st.integers(0, 2**62), LONG, INT)
def test_a_marker_packed_at_once_is_what_the_builder_builds(
    producer_id: int, epoch: int, commit: bool, coordinator_epoch: int, timestamp: int,
    offset: int, leader_epoch: int,
) -> None:  # fmt: skip
    where: dict[str, int] = {
        "producer_id": producer_id, "producer_epoch": epoch, "base_offset": offset,
        "leader_epoch": leader_epoch,
    }  # fmt: skip
    builder = BatchBuilder()
    value = b"\0\0" + coordinator_epoch.to_bytes(4, "big", signed=True)
    builder.append(b"\0\0\0\1" if commit else b"\0\0\0\0", value, timestamp)
    assert control_batch(
        commit=commit, coordinator_epoch=coordinator_epoch, timestamp=timestamp, **where
    ) == builder.build(transactional=True, control=True, **where)


@pytest.mark.parametrize("api_key", APIS)
@settings(max_examples=15, database=None)
@given(data=st.data())
def test_readers_and_writers_of_many_do_as_those_of_one(
    messages_of: Any, api_key: int, data: Any
) -> None:
    asked, answered = request_class(api_key), response_class(api_key)
    version = data.draw(st.sampled_from(asked.VERSIONS))
    request = data.draw(messages_of(asked, version, None))
    frame = encode_request(RequestHeader(api_key, version, 7, "me"), request)[4:]
    read = request_reader(api_key, version)(frame, 12)
    assert read == decode_request(bytes(frame))[1]
    response = data.draw(messages_of(answered, version, None))
    written = response_writer(api_key, version)(response, 7)
    assert written == encode_response(7, response, version)
