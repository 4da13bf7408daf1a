"""Who may do what: Apache Kafka 4.3.1 and Semel answer every API alike, under every set of rules.

Every API in its oldest and newest version × every operation of every type of resource, allowed by
exact name, by prefix, by wildcard, or denied; hosts; super users; nobody. Each set of rules is a
principal of its own, so that no rule changes while questions are asked. Compared are the errors,
the names they are about and the operations that are told; the rest of an answer is compared
elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from tests.interop.access_questions import (
    GROUP,
    ID,
    OTHER,
    OTHER_ID,
    TOPIC,
    TXN,
    Question,
    questions,
)
from tests.interop.access_sets import SUPER, rules, sets
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.ports import free_port
from tests.support.conversations.raw_client import RawClient

from semel.broker.server import Broker
from semel.core.access.rules import Rule
from semel.wire.acls import (
    OPERATION_CODES,
    PATTERN_TYPE_CODES,
    PERMISSION_CODES,
    RESOURCE_TYPE_CODES,
)
from semel.wire.errors import ErrorCode
from semel.wire.messages.create_acls import CreateAclsRequest
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.describe_acls import DescribeAclsRequest
from semel.wire.messages.find_coordinator import FindCoordinatorRequest
from semel.wire.messages.init_producer_id import InitProducerIdRequest
from semel.wire.messages.metadata import MetadataRequest
from semel.wire.messages.offset_commit import OffsetCommitRequest
from semel.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from semel.wire.messages.sasl_handshake import SaslHandshakeRequest
from semel.wire.schema import Struct

pytestmark = pytest.mark.interop

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SUPER_USERS = f"User:ANONYMOUS;User:{SUPER}"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
PASSWORD = "secret"
PROTOCOLS = "listener.security.protocol.map"
#: Fields that are compared; beside them every list of structures is looked into.
COMPARED = {
    "name", "topic", "topic_name", "group_id", "transactional_id", "resource_name",
    "resource_type", "key", "index", "partition", "partition_index", "feature", "user",
    "member_id", "protocol_type", "entity_type",
}  # fmt: skip
#: Lists whose content is compared elsewhere.
SKIPPED = {
    "configs", "brokers", "node_endpoints", "nodes", "active_producers", "aborted_transactions",
}  # fmt: skip

DENIED = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
#: Questions of which only denials are compared: why who may hears something else here.
ELSEWHERE = {
    "Fetch as a follower": "this broker has no followers",
    "FindCoordinator of a share": "shares have no coordinator here",
    "DescribeConfigs of loggers": "loggers and client metrics have no configs here",
}


class Side:
    """One of the two brokers: a super user's connection, and one per set of rules."""

    def __init__(self, bootstrap: str, secured: str) -> None:
        self._secured = secured
        self.root = RawClient(bootstrap)
        self._clients: dict[str, RawClient] = {}
        self.ids: dict[UUID, UUID] = {}
        self._set_up()

    def client(self, name: str) -> RawClient:
        found = self._clients.get(name)
        if found is None:
            found = self._clients[name] = RawClient(self._secured, client_id=name)
            found.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            token = f"\0{name}\0{PASSWORD}".encode()
            answer = found.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
            assert answer.error_code == 0, answer
        return found

    def answer(self, name: str, question: Question, version: int) -> Any:
        try:
            answer = self.client(name).ask(question.request(self.ids), version)
        except ConnectionError:
            self._clients.pop(name).close()
            return "the connection is closed"
        told = shape(answer)
        known = {real: symbol for symbol, real in self.ids.items()}
        return _with_symbols(told, known)

    def close(self) -> None:
        for client in (self.root, *self._clients.values()):
            client.close()

    def _set_up(self) -> None:
        wanted = [
            CreateTopicsRequest.CreatableTopic(name=name, num_partitions=2, replication_factor=1)
            for name in (TOPIC, OTHER)
        ]
        self.root.ask(CreateTopicsRequest(topics=wanted, timeout_ms=10_000), 7)
        self._make_rules()
        asked = [MetadataRequest.MetadataRequestTopic(name=name) for name in (TOPIC, OTHER)]
        topics: dict[str, UUID] = {}
        while len(topics) < 2:  # Kafka's broker hears of them a moment later
            answer = self.root.ask(MetadataRequest(topics=asked), 12)
            topics = {
                topic.name: topic.topic_id
                for topic in answer.topics
                if not topic.error_code and len(topic.partitions) == 2
            }
        self.ids = {ID: topics[TOPIC], OTHER_ID: topics[OTHER]}
        self._make_group_and_producer()

    def _make_rules(self) -> None:
        wanted = list(rules())
        answer = self.root.ask(CreateAclsRequest(creations=[_creation(one) for one in wanted]), 3)
        assert not any(result.error_code for result in answer.results), answer
        everything = DescribeAclsRequest(
            resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1,
            principal_filter=None, host_filter=None, operation=1, permission_type=1,
        )  # fmt: skip
        count = 0
        while count < len(set(wanted)):
            found = self.root.ask(everything, 3).resources
            count = sum(len(resource.acls) for resource in found)

    def _make_group_and_producer(self) -> None:
        for kind, key in enumerate((GROUP, TXN)):
            self.root.ask(FindCoordinatorRequest(key=key, key_type=kind), 3)  # makes their topics
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=1, committed_metadata=""
        )
        topics = [
            OffsetCommitRequest.OffsetCommitRequestTopic(name=name, partitions=[partition])
            for name in (TOPIC, OTHER)
        ]
        error = 1
        while error:
            answer = self.root.ask(OffsetCommitRequest(group_id=GROUP, topics=topics), 9)
            error = answer.topics[0].partitions[0].error_code
        error = 1
        while error:
            request = InitProducerIdRequest(transactional_id=TXN, transaction_timeout_ms=60_000)
            error = self.root.ask(request, 4).error_code


def _creation(rule: Rule) -> CreateAclsRequest.AclCreation:
    return CreateAclsRequest.AclCreation(
        resource_type=RESOURCE_TYPE_CODES[rule.resource_type],
        resource_name=rule.name,
        resource_pattern_type=PATTERN_TYPE_CODES[rule.pattern],
        principal=rule.principal,
        host=rule.host,
        operation=OPERATION_CODES[rule.operation],
        permission_type=PERMISSION_CODES[rule.permission],
    )


def shape(value: Any) -> Any:
    """What is compared of an answer."""
    told = {}
    for name in value.FIELDS:
        found = getattr(value, name)
        is_named = name in COMPARED or name.endswith(("error_code", "authorized_operations"))
        if is_named or isinstance(found, UUID):
            told[name] = found
        elif isinstance(found, list) and name not in SKIPPED and _are_structures(found):
            told[name] = sorted((shape(item) for item in found), key=repr)
    return told


def _are_structures(items: list[Any]) -> bool:
    return all(isinstance(item, Struct) for item in items)


def _with_symbols(value: Any, known: dict[UUID, UUID]) -> Any:
    if isinstance(value, dict):
        return {name: _with_symbols(one, known) for name, one in value.items()}
    if isinstance(value, list):
        return sorted((_with_symbols(one, known) for one in value), key=repr)
    if isinstance(value, UUID):
        return str(known.get(value, "of its own")) if value.int else None
    return value


def secured(port: int, secured_port: int) -> dict[str, str]:
    """The settings of both: one listener for the super user ANONYMOUS, one for who has a name."""
    users = " ".join(f'user_{name}="{PASSWORD}"' for name in sets())
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{secured_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": f"{PLAIN} required {users};",
        "authorizer.class.name": STANDARD,
        "super.users": SUPER_USERS,
        "auto.create.topics.enable": "false",
    }


@pytest.fixture(scope="module")
def kafka() -> Iterator[Side]:
    broker = ApacheKafka(features={"share.version": 0, "streams.version": 0})
    secured_port, controller = free_port(), free_port()
    settings = secured(broker.port, secured_port)
    broker.settings = settings | {
        "advertised.listeners": settings["listeners"],
        "listeners": f"{settings['listeners']},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{settings[PROTOCOLS]}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "inter.broker.listener.name": "PLAINTEXT",
    }
    with broker:
        side = Side(broker.bootstrap, f"127.0.0.1:{secured_port}")
        yield side
        side.close()


@pytest.fixture(scope="module")
def semel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    port, secured_port = free_port(), free_port()
    settings = secured(port, secured_port)
    with Broker(tmp_path_factory.mktemp("semel"), settings=settings):
        side = Side(f"127.0.0.1:{port}", f"127.0.0.1:{secured_port}")
        yield side
        side.close()


@pytest.mark.parametrize(
    ("question", "version"),
    [
        pytest.param(question, version, id=f"{question.name} v{version}")
        for question in questions()
        for version in question.versions
    ],
)
def test_access_is_asked_as_apache_kafka_asks(
    kafka: Side, semel: Side, question: Question, version: int
) -> None:
    is_elsewhere = question.name.startswith(tuple(ELSEWHERE))
    different = {}
    for name in sets():
        theirs = kafka.answer(name, question, version)
        ours = semel.answer(name, question, version)
        if is_elsewhere:
            theirs, ours = denials(theirs), denials(ours)
        if ours != theirs:
            different[name] = {"kafka": theirs, "semel": ours}
    assert different == {}


def denials(told: Any) -> list[Any]:
    """Of an answer, only what was denied."""
    if isinstance(told, list):
        return [found for one in told for found in denials(one)]
    if not isinstance(told, dict):
        return []
    below = [found for one in told.values() for found in denials(one)]
    named = sorted((k, v) for k, v in told.items() if not isinstance(v, list | dict))
    return below + ([named] if told.get("error_code") in DENIED else [])
