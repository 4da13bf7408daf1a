"""The answer to a failed request: every error code filled, every thing asked about mirrored."""

import pytest

from semel.broker.failures import failure
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED, APIS, request_class, response_class
from semel.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from semel.wire.messages.fetch import FetchRequest
from semel.wire.messages.offset_fetch import OffsetFetchRequest
from semel.wire.messages.produce import ProduceRequest
from semel.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from semel.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from semel.wire.schema import Struct

CODE = ErrorCode.UNKNOWN_SERVER_ERROR


def filled(shape, owner, version):
    """A structure with one entry in every list of the version."""
    value = shape()
    for name, field in shape.FIELDS.items():
        if version not in field.versions:
            continue
        if field.kind == "array":
            element = getattr(owner, field.element, None)
            items = {"string": "x", "int32": 1, "int8": 1}
            entry = items.get(field.element) if element is None else filled(element, owner, version)
            setattr(value, name, [entry])
        elif field.kind == "string":
            setattr(value, name, f"a {name}")
    return value


def codes(struct):
    for name in struct.FIELDS:
        value = getattr(struct, name)
        if name in ("error_code", "partition_error_code"):
            yield value
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Struct):
                    yield from codes(item)


def has_room(shape, owner, version):
    return any(
        name in ("error_code", "partition_error_code")
        or (
            field.kind == "array"
            and hasattr(owner, field.element)
            and has_room(getattr(owner, field.element), owner, version)
        )
        for name, field in shape.FIELDS.items()
        if version in field.versions
    )


def every_version():
    for key, versions in ADVERTISED.items():
        for version in versions:
            if version in request_class(key).VERSIONS:
                yield pytest.param(key, version, id=f"{APIS[key][0]}-{version}")


@pytest.mark.parametrize(("key", "version"), [*every_version()])
def test_every_response_tells_the_failure_wherever_it_has_room(key, version):
    request = filled(request_class(key), request_class(key), version)
    response = failure(request, version, CODE, "went wrong")
    told = list(codes(response))
    if has_room(response_class(key), response_class(key), version):
        assert CODE in told or key == 35  # DescribeLogDirs 1-2 can only be empty
        encoded = bytearray()
        response.encode(encoded, version)
        again, _ = response_class(key).decode(bytes(encoded), 0, version)
        assert CODE in codes(again) or not told or key == 35


def test_a_failed_produce_names_its_partitions():
    request = ProduceRequest(
        topic_data=[
            ProduceRequest.TopicProduceData(
                name="t",
                partition_data=[
                    ProduceRequest.PartitionProduceData(index=index) for index in (3, 5)
                ],
            )
        ]
    )
    (topic,) = failure(request, 9, CODE, "no").responses
    assert topic.name == "t"
    assert [(one.index, one.error_code) for one in topic.partition_responses] == [
        (3, CODE),
        (5, CODE),
    ]


def test_a_failed_fetch_tells_it_for_the_whole_and_for_each_partition():
    request = FetchRequest(
        topics=[
            FetchRequest.FetchTopic(
                topic="t", partitions=[FetchRequest.FetchPartition(partition=2)]
            )
        ]
    )
    response = failure(request, 12, CODE)
    assert response.error_code == CODE
    assert response.responses[0].topic == "t"
    assert response.responses[0].partitions[0].partition_index == 2
    assert response.responses[0].partitions[0].error_code == CODE


def test_a_failed_offset_fetch_tells_it_for_each_group():
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name) for name in ("a", "b")]
    )
    response = failure(request, 9, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert [(group.group_id, group.error_code) for group in response.groups] == [
        ("a", 15),
        ("b", 15),
    ]


def test_plain_partition_numbers_become_answers_with_codes():
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0, 4])
    response = failure(AddPartitionsToTxnRequest(v3_and_below_topics=[topic]), 3, CODE)
    (result,) = response.results_by_topic_v3_and_below
    assert result.name == "t"
    assert [
        (one.partition_index, one.partition_error_code) for one in result.results_by_partition
    ] == [(0, CODE), (4, CODE)]


def test_failed_markers_are_answered_per_producer_and_partition():
    topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic(name="t", partition_indexes=[7])
    marker = WriteTxnMarkersRequest.WritableTxnMarker(producer_id=9, topics=[topic])
    (result,) = failure(WriteTxnMarkersRequest(markers=[marker]), 1, CODE).markers
    assert result.producer_id == 9
    assert result.topics[0].partitions[0].partition_index == 7
    assert result.topics[0].partitions[0].error_code == CODE


def test_a_failure_does_not_send_a_secret_back():
    response = failure(SaslAuthenticateRequest(auth_bytes=b"password"), 2, CODE, "no")
    assert (response.error_code, response.auth_bytes) == (CODE, b"")
