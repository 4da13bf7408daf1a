"""Changes of settings, asked of Apache Kafka 4.3.1 and of Semel: the same answers and effects."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.process import SemelProcess
from tests.support.conversations.raw_client import RawClient

from semel.wire.messages.alter_configs import AlterConfigsRequest
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.describe_configs import DescribeConfigsRequest
from semel.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

pytestmark = pytest.mark.interop

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
HERE, EVERYWHERE = (BROKER, "1"), (BROKER, "")
Resource = tuple[int, str]
Change = tuple[str, int, str | None]

MIN_INSYNC = "min.insync.replicas"
RELOGIN = "sasl.kerberos.min.time.before.relogin"

#: Each after those before it: what is changed where, or (with a dict) what it is replaced by.
CHANGES: dict[str, tuple[Resource, list[Change] | dict[str, str]]] = {
    "replicas in sync, everywhere": (EVERYWHERE, [(MIN_INSYNC, SET, "2")]),
    "replicas in sync, nowhere": (EVERYWHERE, [(MIN_INSYNC, DELETE, None)]),
    "replicas in sync, here": (HERE, [(MIN_INSYNC, SET, "1")]),
    "replicas in sync, no longer here": (HERE, [(MIN_INSYNC, DELETE, None)]),
    "all but replicas in sync": (EVERYWHERE, {"log.retention.ms": "1000"}),
    "replicas in sync and retention": (EVERYWHERE, {MIN_INSYNC: "1", "log.retention.ms": "1000"}),
    "replicas in sync of a topic": ((TOPIC, "t"), [(MIN_INSYNC, SET, "3")]),
    "not here": (HERE, [("log.dirs", SET, "/x"), ("num.partitions", SET, "2")]),
    "what is not there, away": (HERE, [("log.dirs", DELETE, None)]),
    "relogin": (HERE, [(RELOGIN, SET, "58000")]),
    "relogin, everywhere": (EVERYWHERE, [(RELOGIN, SET, "58000")]),
    "relogin, badly": (HERE, [(RELOGIN, SET, "soon")]),
    "throttles": (
        HERE,
        [
            ("leader.replication.throttled.rate", SET, "100"),
            ("follower.replication.throttled.rate", SET, "100"),
            ("replica.alter.log.dirs.io.max.bytes.per.second", SET, "100"),
        ],
    ),
    "throttles, everywhere": (EVERYWHERE, [("leader.replication.throttled.rate", SET, "7")]),
    "throttles, badly": (HERE, [("leader.replication.throttled.rate", SET, "x")]),
    "threads": (HERE, [("num.io.threads", SET, "9"), ("background.threads", SET, "9")]),
    "threads, badly": (HERE, [("num.io.threads", SET, "x")]),
    "threads, added": (HERE, [("num.io.threads", APPEND, "1")]),
    "threads, subtracted": (HERE, [("num.io.threads", SUBTRACT, "1")]),
    "ciphers": (HERE, [("ssl.cipher.suites", APPEND, "a")]),
    "ciphers, everywhere": (EVERYWHERE, [("ssl.cipher.suites", SET, "a")]),
    "nothing but threads": (HERE, {"num.io.threads": "10"}),
    "nothing": (HERE, {}),
    "assignments": (HERE, [("group.consumer.assignment.interval.ms", SET, "500")]),
    "assignments, badly": (EVERYWHERE, [("group.consumer.assignment.interval.ms", SET, "-5")]),
    "assignments, seldom": (HERE, [("group.consumer.assignment.interval.ms", SET, "20000")]),
    "a group's": ((GROUP, "g"), [("consumer.assignment.interval.ms", SET, "500")]),
    "a group's, seldom": ((GROUP, "g"), [("consumer.assignment.interval.ms", SET, "20000")]),
    "a topic's, added": ((TOPIC, "t"), [("retention.ms", APPEND, "1")]),
}
LOOKS = 2_000
LOOKED_AT = {
    (TOPIC, "t"): [MIN_INSYNC],
    EVERYWHERE: [],
    HERE: [
        MIN_INSYNC,
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "group.consumer.assignment.interval.ms",
    ],
    (GROUP, "g"): ["consumer.assignment.interval.ms"],
}


class Broker(RawClient):
    """One of the two, with the topic there."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        wanted = CreateTopicsRequest.CreatableTopic(
            name="t", num_partitions=1, replication_factor=1
        )
        self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7)

    def change(self, resource: Resource, what: list[Change] | dict[str, str]) -> tuple[int, Any]:
        kind, name = resource
        request: Any
        if isinstance(what, dict):
            New = AlterConfigsRequest.AlterableConfig
            configs = [New(name=key, value=value) for key, value in what.items()]
            Whole = AlterConfigsRequest.AlterConfigsResource
            whole = Whole(resource_type=kind, resource_name=name, configs=configs)
            request = AlterConfigsRequest(resources=[whole])
        else:
            One = IncrementalAlterConfigsRequest.AlterableConfig
            changes = [One(name=key, config_operation=op, value=value) for key, op, value in what]
            Part = IncrementalAlterConfigsRequest.AlterConfigsResource
            part = Part(resource_type=kind, resource_name=name, configs=changes)
            request = IncrementalAlterConfigsRequest(resources=[part])
        [answer] = self.ask(request, request.VERSIONS[-1]).responses
        message = answer.error_message
        if message is not None and message.startswith("Cannot update these configs"):
            where, _, names = message.partition(": ")
            message = where, sorted(names.strip("[]").split(", "))  # a set's order
        return answer.error_code, message

    def look(self) -> dict[Resource, Any]:
        """Those settings that somebody set, or that are looked at here."""
        Asked = DescribeConfigsRequest.DescribeConfigsResource
        request = DescribeConfigsRequest(
            resources=[
                Asked(resource_type=kind, resource_name=name, configuration_keys=keys or None)
                for (kind, name), keys in LOOKED_AT.items()
            ],
            include_synonyms=False,
        )
        return {
            (result.resource_type, result.resource_name): {
                one.name: (one.value, one.config_source, one.config_type, one.read_only)
                for one in result.configs
            }
            for result in self.ask(request, 4).results
        }


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[Broker, Broker]]:
    settings = {"group.consumer.assignment.interval.ms": "100"}
    with (
        ApacheKafka(settings) as kafka,
        SemelProcess(settings) as semel,
        Broker(kafka.bootstrap) as theirs,
        Broker(semel.bootstrap) as ours,
    ):
        yield theirs, ours


def test_settings_change_as_in_kafka(brokers: tuple[Broker, Broker]) -> None:
    theirs, ours = brokers
    for case, (resource, what) in CHANGES.items():
        assert ours.change(resource, what) == theirs.change(resource, what), case
        seen = ours.look()
        for _ in range(LOOKS):  # Kafka's broker hears of a change a moment later
            if theirs.look() == seen:
                break
        assert theirs.look() == seen, case
