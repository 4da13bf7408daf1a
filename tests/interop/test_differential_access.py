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


class Side:
    """One of the two brokers: a super user's connection, and one per set of rules."""

    def __init__(self, bootstrap: str, secured: str, is_sasl: bool) -> None:
        self._secured, self._is_sasl = secured, is_sasl
        self.root = RawClient(bootstrap)
        self._clients: dict[str, RawClient] = {}
        self.ids: dict[UUID, UUID] = {}
        self._set_up()

    def client(self, name: str) -> RawClient:
        found = self._clients.get(name)
        if found is None:
            found = self._clients[name] = RawClient(self._secured, client_id=name)
            if self._is_sasl:
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


@pytest.fixture(scope="module")
def kafka() -> Iterator[Side]:
    broker = ApacheKafka(features={"share.version": 0, "streams.version": 0})
    secured, controller = free_port(), free_port()
    users = " ".join(f'user_{name}="{PASSWORD}"' for name in sets())
    broker.settings = {
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker.port},SASL://127.0.0.1:{secured},"
        f"CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker.port},SASL://127.0.0.1:{secured}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
        "SASL:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": f"{PLAIN} required {users};",
        "authorizer.class.name": STANDARD,
        "super.users": SUPER_USERS,
        "auto.create.topics.enable": "false",
    }
    with broker:
        side = Side(broker.bootstrap, f"127.0.0.1:{secured}", is_sasl=True)
        yield side
        side.close()


@pytest.fixture(scope="module")
def semel(tmp_path_factory: pytest.TempPathFactory, named_clients: None) -> Iterator[Side]:
    settings = {
        "authorizer.class.name": STANDARD,
        "super.users": SUPER_USERS,
        "auto.create.topics.enable": "false",
    }
    with Broker(tmp_path_factory.mktemp("semel"), settings=settings) as broker:
        side = Side(broker.bootstrap_servers, broker.bootstrap_servers, is_sasl=False)
        yield side
        side.close()


@pytest.fixture(scope="module")
def named_clients() -> Iterator[None]:
    """A client is who its client id says."""
    from semel.broker import dispatch
    from semel.broker.context import Context
    from semel.core.access.principals import USER, KafkaPrincipal

    class Named(Context):
        def __init__(self, broker: Any, connection: Any, client_id: Any, name: bytes) -> None:
            if client_id != "raw":
                connection.principal = KafkaPrincipal(USER, client_id)
            super().__init__(broker, connection, client_id, name)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dispatch, "Context", Named)
        yield


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
    different = {}
    for name in sets():
        theirs = kafka.answer(name, question, version)
        ours = semel.answer(name, question, version)
        if ours != theirs:
            different[name] = {"kafka": theirs, "semel": ours}
    assert different == {}
