"""Every message in every version: all there, to bytes and back, and the very bytes of kio."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semel.wire.messages import ADVERTISED, APIS, request_class, response_class
from semel.wire.schema import Message

# Few examples by default, since there are some five hundred messages and versions; more on demand.
EXAMPLES = settings(
    max_examples=int(os.environ.get("SEMEL_EXAMPLES", "5")),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

# What Apache Kafka 4.3.1 advertises, in the words of its own documentation, and what it has
# besides: UpdateFeatures, AllocateProducerIds, and the unstable InitProducerId 6.
EXPECTED = """
    Produce 3-13, Fetch 4-18, ListOffsets 1-11, Metadata 0-13, OffsetCommit 2-10, OffsetFetch 1-10,
    FindCoordinator 0-6, JoinGroup 0-9, Heartbeat 0-4, LeaveGroup 0-5, SyncGroup 0-5,
    DescribeGroups 0-6, ListGroups 0-5, SaslHandshake 0-1, ApiVersions 0-4, CreateTopics 2-7,
    DeleteTopics 1-6, DeleteRecords 0-2, InitProducerId 0-6, OffsetForLeaderEpoch 2-4,
    AddPartitionsToTxn 0-5, AddOffsetsToTxn 0-4, EndTxn 0-5, WriteTxnMarkers 1-2,
    TxnOffsetCommit 0-5, DescribeAcls 1-3, CreateAcls 1-3, DeleteAcls 1-3, DescribeConfigs 1-4,
    AlterConfigs 0-2, AlterReplicaLogDirs 1-2, DescribeLogDirs 1-5, SaslAuthenticate 0-2,
    CreatePartitions 0-3, CreateDelegationToken 1-3, RenewDelegationToken 1-2,
    ExpireDelegationToken 1-2, DescribeDelegationToken 1-3, DeleteGroups 0-2, ElectLeaders 0-2,
    IncrementalAlterConfigs 0-1, AlterPartitionReassignments 0-1, ListPartitionReassignments 0-0,
    OffsetDelete 0-0, DescribeClientQuotas 0-1,
    AlterClientQuotas 0-1, DescribeUserScramCredentials 0-0, AlterUserScramCredentials 0-0,
    DescribeQuorum 0-2, UpdateFeatures 0-2, DescribeCluster 0-2, DescribeProducers 0-0,
    DescribeTransactions 0-0, ListTransactions 0-2, AllocateProducerIds 0-0,
    ConsumerGroupHeartbeat 0-1, ConsumerGroupDescribe 0-1, ListConfigResources 0-1,
    DescribeTopicPartitions 0-0,
    UnregisterBroker 0-0, ShareGroupHeartbeat 1-1, ShareGroupDescribe 1-1, ShareFetch 1-2,
    ShareAcknowledge 1-2, AddRaftVoter 0-1, RemoveRaftVoter 0-0, InitializeShareGroupState 0-0,
    ReadShareGroupState 0-0, WriteShareGroupState 0-1, DeleteShareGroupState 0-0,
    ReadShareGroupStateSummary 0-1, StreamsGroupHeartbeat 0-0, StreamsGroupDescribe 0-0,
    DescribeShareGroupOffsets 0-1, AlterShareGroupOffsets 0-0, DeleteShareGroupOffsets 0-0
"""

REQUESTS_AND_RESPONSES = [
    load(api_key) for api_key in APIS for load in (request_class, response_class)
]


def _record_formats() -> list[type[Message]]:
    modules = ("transaction_state", "consumer_offsets", "consumer_groups", "consumer_protocol")
    return [
        value
        for module in modules
        for value in vars(import_module(f"semel.wire.records.{module}")).values()
        if isinstance(value, type) and issubclass(value, Message) and value is not Message
    ]


RECORD_FORMATS = _record_formats()
CONSUMER_PROTOCOL = [m for m in RECORD_FORMATS if m.__name__.startswith("ConsumerProtocol")]


def test_every_api_and_version_of_the_list_has_its_messages() -> None:
    expected = {}
    for entry in EXPECTED.replace("\n", " ").split(","):
        name, versions = entry.split()
        low, high = map(int, versions.split("-"))
        expected[name] = range(low, high + 1)
    ours = {name: request_class(key).VERSIONS for key, (name, _) in APIS.items()}
    assert ours == expected
    assert ours == {name: response_class(key).VERSIONS for key, (name, _) in APIS.items()}


@pytest.mark.parametrize("api_key", APIS)
def test_messages_know_their_key_and_request_and_response_agree(api_key: int) -> None:
    request, response = request_class(api_key), response_class(api_key)
    name, _ = APIS[api_key]
    assert (request.__name__, response.__name__) == (f"{name}Request", f"{name}Response")
    assert request.API_KEY == response.API_KEY == api_key
    assert request.FLEXIBLE == response.FLEXIBLE


def test_what_is_advertised_can_be_decoded() -> None:
    for api_key, versions in ADVERTISED.items():
        ours = request_class(api_key).VERSIONS
        first = 3 if api_key == 0 else versions.start  # Produce: see ADVERTISED
        assert first == ours.start
        assert versions.stop in (ours.stop, 6 if api_key == 22 else ours.stop)
    assert set(APIS) - set(ADVERTISED) == {67}


@pytest.mark.parametrize("cls", REQUESTS_AND_RESPONSES + RECORD_FORMATS, ids=lambda c: c.__name__)
def test_a_message_survives_its_bytes(cls: type[Message], messages_of: Any) -> None:
    @EXAMPLES
    @given(st.data())
    def check(data: st.DataObject) -> None:
        for version in cls.VERSIONS:
            message = data.draw(messages_of(cls, version))
            out = bytearray(b"before")
            message.encode(out, version)
            out += b"after"
            for buffer in (bytes(out), out, memoryview(out)):
                again, end = cls.decode(buffer, 6, version)
                assert again == message
                assert end == len(out) - 5

    check()


@pytest.mark.parametrize(
    "cls", REQUESTS_AND_RESPONSES + CONSUMER_PROTOCOL, ids=lambda c: c.__name__
)
def test_kio_writes_and_reads_the_same_bytes(
    cls: type[Message], kio: Any, messages_of: Any
) -> None:
    @EXAMPLES
    @given(st.data())
    def check(data: st.DataObject) -> None:
        for version in cls.VERSIONS:
            their_class = kio.class_of(cls, version)
            assert their_class.__flexible__ == cls.is_flexible(version)
            message = data.draw(messages_of(cls, version, their_class))
            entity = kio.entity(message, version, their_class)
            out = bytearray()
            message.encode(out, version)
            assert bytes(out) == kio.encode(entity)
            assert kio.decode(their_class, bytes(out)) == entity
            assert cls.decode(kio.encode(entity), 0, version) == (message, len(out))

    check()


@pytest.mark.parametrize("cls", REQUESTS_AND_RESPONSES + RECORD_FORMATS, ids=lambda c: c.__name__)
def test_defaults_are_encoded_and_come_back(cls: type[Message]) -> None:
    for version in cls.VERSIONS:
        out = bytearray()
        cls().encode(out, version)
        assert cls.decode(bytes(out), 0, version) == (cls(), len(out))
