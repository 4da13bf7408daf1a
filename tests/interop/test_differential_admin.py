"""What administrators' tools ask of a cluster of one node without an authorizer: Apache Kafka 4.3.1
and Semel answer alike.

Lists are compared without their order, which in Kafka is a hash map's; a text that is null in one
and empty in the other is the same to every client.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.process import SemelProcess
from tests.support.conversations.raw_client import RawClient

from semel.wire.errors import ProtocolError
from semel.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from semel.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from semel.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from semel.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from semel.wire.messages.create_acls import CreateAclsRequest
from semel.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.delete_acls import DeleteAclsRequest
from semel.wire.messages.describe_acls import DescribeAclsRequest
from semel.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from semel.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from semel.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from semel.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from semel.wire.messages.elect_leaders import ElectLeadersRequest
from semel.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from semel.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from semel.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from semel.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from semel.wire.messages.sasl_handshake import SaslHandshakeRequest
from semel.wire.schema import Message, Struct

pytestmark = pytest.mark.interop

TOPIC = "here"
#: Stands for the broker's own data directory.
DATA = "DATA"
ANY = 1  # of ACL filters
CASES: dict[str, Message] = {}


def asked(name: str, request: Message) -> None:
    assert name not in CASES
    CASES[name] = request


# Leaders and replicas


def elect(kind: int, **topics: list[int]) -> ElectLeadersRequest:
    wanted = [
        ElectLeadersRequest.TopicPartitions(topic=name, partitions=partitions)
        for name, partitions in topics.items()
    ]
    return ElectLeadersRequest(election_type=kind, topic_partitions=wanted)


asked("elect some", elect(0, here=[0, 1, 9, -1], nobody=[0]))
asked("elect none", elect(0))
asked("elect uncleanly", elect(1, here=[0]))
asked("elect strangely", elect(2, here=[0], nobody=[3]))
asked("elect all strangely", ElectLeadersRequest(election_type=-1, topic_partitions=None))
asked("elect all", ElectLeadersRequest(topic_partitions=None))


def reassign(
    replicas: list[int] | None, topic: str = TOPIC, partition: int = 0, **fields: Any
) -> AlterPartitionReassignmentsRequest:
    moved = AlterPartitionReassignmentsRequest.ReassignablePartition(
        partition_index=partition, replicas=replicas
    )
    wanted = AlterPartitionReassignmentsRequest.ReassignableTopic(name=topic, partitions=[moved])
    return AlterPartitionReassignmentsRequest(topics=[wanted], **fields)


for replicas in ([1], [2], [1, 2], [1, 1], [], [-1], None):
    asked(f"reassign to {replicas}", reassign(replicas))
    asked(f"reassign what is not there to {replicas}", reassign(replicas, "nobody"))
    asked(f"reassign a partition that is not there to {replicas}", reassign(replicas, partition=9))
asked("reassign, as many replicas", reassign([1], allow_replication_factor_change=False))
asked("reassign nothing", AlterPartitionReassignmentsRequest())

Listed = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
asked("list all reassignments", ListPartitionReassignmentsRequest())
asked(
    "list some reassignments",
    ListPartitionReassignmentsRequest(
        topics=[Listed(name=name, partition_indexes=[0, 9]) for name in (TOPIC, "nobody")]
    ),
)


def move(**paths: str) -> AlterReplicaLogDirsRequest:
    Dir, Topic = (
        AlterReplicaLogDirsRequest.AlterReplicaLogDir,
        AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic,
    )
    return AlterReplicaLogDirsRequest(
        dirs=[
            Dir(path=path, topics=[Topic(name=name, partitions=[0, 1, 9])])
            for name, path in paths.items()
        ]
    )


asked("move to where they are", move(here=DATA, nobody=DATA))
asked("move to where nothing is", move(here="/nowhere", nobody="/nowhere"))
asked("move to here", move(here=""))
asked("move nothing", move())

# Tokens

Owner = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
Renewer = CreateDelegationTokenRequest.CreatableRenewers
asked("create a token", CreateDelegationTokenRequest(max_lifetime_ms=-1))
asked(
    "create a token that a group renews",
    CreateDelegationTokenRequest(renewers=[Renewer(principal_type="Group", principal_name="b")]),
)
asked("renew a token", RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=1))
asked("expire a token", ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=-1))
asked("describe all tokens", DescribeDelegationTokenRequest(owners=None))
asked("describe no tokens", DescribeDelegationTokenRequest(owners=[]))
asked(
    "describe somebody's tokens",
    DescribeDelegationTokenRequest(owners=[Owner(principal_type="User", principal_name="a")]),
)

# Quotas


def quotas(*components: tuple[str, int, str | None], **fields: Any) -> DescribeClientQuotasRequest:
    Component = DescribeClientQuotasRequest.ComponentData
    return DescribeClientQuotasRequest(
        components=[
            Component(entity_type=kind, match_type=how, match=match)
            for kind, how, match in components
        ],
        **fields,
    )


asked("all quotas", quotas())
asked("all quotas, strictly", quotas(strict=True))
for kind in ("user", "client-id", "ip", "group", ""):
    for how in (-1, 0, 1, 2, 3):
        for match in (None, "a"):
            asked(f"quotas of {kind!r} {how} {match}", quotas((kind, how, match)))
asked("quotas of users by address", quotas(("user", 2, None), ("ip", 2, None)))
asked("quotas of users twice", quotas(("user", 2, None), ("user", 0, "a")))
asked("quotas of users' client ids", quotas(("user", 2, None), ("client-id", 0, "a")))


def set_quotas(
    entity: dict[str, str | None], *changes: tuple[str, float | None], times: int = 1
) -> AlterClientQuotasRequest:
    Entry, Part, Change = (
        AlterClientQuotasRequest.EntryData,
        AlterClientQuotasRequest.EntityData,
        AlterClientQuotasRequest.OpData,
    )
    entry = Entry(
        entity=[Part(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[Change(key=key, value=value or 0, remove=value is None) for key, value in changes],
    )
    return AlterClientQuotasRequest(entries=[entry] * times)


RATE = "producer_byte_rate"
asked("set no quotas", AlterClientQuotasRequest())
asked("set nothing of a quota", set_quotas({"user": "a"}))
asked("remove a quota", set_quotas({"user": "a"}, (RATE, None)))
asked("remove an unknown quota", set_quotas({"user": "a"}, ("shoe_size", None)))
asked("remove the default quota of addresses", set_quotas({"ip": None}, (RATE, None)))
asked("set an unknown quota", set_quotas({"user": "a"}, ("shoe_size", 5)))
asked("set a quota of nobody", set_quotas({}, (RATE, 5)))
asked("set a quota of a group", set_quotas({"group": "a"}, (RATE, 5)))
asked("set a quota of an empty type", set_quotas({"": "a"}, (RATE, 5)))
asked("set a quota of a nameless user", set_quotas({"user": ""}, (RATE, 5)))
asked("set a quota of a strange address", set_quotas({"ip": "no address!"}, (RATE, 5)))
asked("set a user's quota of an address", set_quotas({"ip": "1.2.3.4"}, (RATE, 5)))
asked(
    "set an address's quota of a user", set_quotas({"user": "a"}, ("connection_creation_rate", 5))
)
asked("set a quota of a user's address", set_quotas({"user": "a", "ip": "1.2.3.4"}, (RATE, 5)))
asked(
    "set a large quota of an address", set_quotas({"ip": None}, ("connection_creation_rate", 1e10))
)
for value in (-1.0, 0.0, 1.5, 1e30):
    asked(f"set a quota of {value}", set_quotas({"user": "a"}, (RATE, value)))
asked("set a quota twice", set_quotas({"user": "a"}, (RATE, 5), times=2))
asked("set a quota to two values", set_quotas({"user": "a"}, (RATE, 5), (RATE, 6)))

# Credentials


def users(*names: str) -> DescribeUserScramCredentialsRequest:
    Name = DescribeUserScramCredentialsRequest.UserName
    return DescribeUserScramCredentialsRequest(users=[Name(name=name) for name in names])


asked("all users", DescribeUserScramCredentialsRequest(users=None))
asked("no users", users())
asked("two users", users("a", "b"))
asked("a user twice", users("a", "a", "b"))
asked("a nameless user", users(""))

Delete = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsert = AlterUserScramCredentialsRequest.ScramCredentialUpsertion


def credentials(
    *deletions: tuple[str, int], upsertions: tuple[tuple[str, int, int], ...] = ()
) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=[Delete(name=name, mechanism=mechanism) for name, mechanism in deletions],
        upsertions=[
            Upsert(
                name=name,
                mechanism=mechanism,
                iterations=iterations,
                salt=bytes(8),
                salted_password=bytes(32),
            )
            for name, mechanism, iterations in upsertions
        ],
    )


asked("alter no credentials", credentials())
for mechanism in (-1, 0, 1, 2, 3):
    asked(f"delete credentials {mechanism}", credentials(("a", mechanism)))
    for iterations in (1, 100_000):
        case = f"set credentials {mechanism} {iterations}"
        asked(case, credentials(upsertions=(("a", mechanism, iterations),)))
asked("delete a nameless user's credentials", credentials(("", 1)))
asked("set a nameless user's credentials", credentials(upsertions=(("", 1, 4096),)))
asked("delete credentials twice", credentials(("a", 1), ("a", 2)))
asked("delete and set credentials", credentials(("a", 1), upsertions=(("a", 1, 4096),)))
asked("set credentials twice", credentials(upsertions=(("a", 1, 4096), ("a", 2, 4096))))
asked("alter some", credentials(("b", 1), ("c", 9), upsertions=(("a", 1, 1),)))

# Access rules

rule = CreateAclsRequest.AclCreation(
    resource_type=2,
    resource_name="t",
    principal="User:a",
    host="*",
    operation=3,
    permission_type=3,
)
rules = DeleteAclsRequest.DeleteAclsFilter(
    resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY
)
asked(
    "describe all rules",
    DescribeAclsRequest(
        resource_type_filter=ANY, pattern_type_filter=3, operation=ANY, permission_type=ANY
    ),
)
asked("create two rules", CreateAclsRequest(creations=[rule, rule]))
asked("create no rules", CreateAclsRequest())
asked("delete rules by two filters", DeleteAclsRequest(filters=[rules, rules]))
asked("delete no rules", DeleteAclsRequest())

# SASL

for mechanism_name in ("PLAIN", "SCRAM-SHA-256", ""):
    asked(f"shake hands {mechanism_name!r}", SaslHandshakeRequest(mechanism=mechanism_name))
asked("authenticate", SaslAuthenticateRequest(auth_bytes=b"\0a\0b"))


class Broker(RawClient):
    """One of the two, with the topic there."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        wanted = CreateTopicsRequest.CreatableTopic(
            name=TOPIC, num_partitions=2, replication_factor=1
        )
        self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7)
        while not self.data_directory():
            pass  # Kafka's broker hears of the topic a moment later

    def data_directory(self) -> str:
        [found] = self.ask(DescribeLogDirsRequest(topics=None), 4).results
        has = {topic.name: len(topic.partitions) for topic in found.topics}
        return found.log_dir if has.get(TOPIC) == 2 else ""

    def answer(self, request: Message, version: int) -> Any:
        if isinstance(request, AlterReplicaLogDirsRequest):
            request = deepcopy(request)
            for directory in request.dirs:
                directory.path = directory.path.replace(DATA, self.data_directory())
        answer = plain(self.ask(request, version))
        answer.pop("throttle_time_ms", None)
        return answer


def plain(value: Any) -> Any:
    if isinstance(value, Struct):
        told = {name: plain(getattr(value, name)) for name in value.FIELDS}
        if not told.get("error_message", "unsaid"):
            told["error_message"] = None
        return told
    if isinstance(value, list):
        return sorted((plain(item) for item in value), key=repr)
    return value


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[Broker, Broker]]:
    """Of their own: what is there shall be what these questions are about."""
    with (
        ApacheKafka() as kafka,
        SemelProcess() as semel,
        Broker(kafka.bootstrap) as theirs,
        Broker(semel.bootstrap) as ours,
    ):
        yield theirs, ours


@pytest.mark.parametrize("case", CASES)
def test_tools_are_answered_as_kafka_answers_them(
    case: str, brokers: tuple[Broker, Broker]
) -> None:
    request = CASES[case]
    for version in request.VERSIONS:
        try:
            request.encode(bytearray(), version)
        except ProtocolError:
            continue  # says what this version has no field for
        theirs, ours = (broker.answer(request, version) for broker in brokers)
        assert ours == theirs, f"version {version}"


def test_every_api_that_is_refused_or_empty_here_is_asked(brokers: tuple[Broker, Broker]) -> None:
    """So that one more cannot be forgotten."""
    wanted = {17, 29, 30, 31, 34, 36, 38, 39, 40, 41, 43, 45, 46, 48, 49, 50, 51}
    assert {request.API_KEY for request in CASES.values()} == wanted
