"""Brokers for the client's tests: Semel always, Apache Kafka where interop tests run."""

import uuid
from collections.abc import Awaitable, Callable, Iterator

import pytest
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.process import SemelProcess

from semel.client import Admin, NewTopic

# Members of consumer groups (KIP-848) hear of changes with their heartbeats: have them often.
QUICK_GROUPS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
}

MakeTopic = Callable[..., Awaitable[str]]


@pytest.fixture(scope="session")
def semel_broker() -> Iterator[SemelProcess]:
    with SemelProcess(QUICK_GROUPS) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[ApacheKafka]:
    with ApacheKafka(QUICK_GROUPS) as broker:
        yield broker


@pytest.fixture(params=["semel", pytest.param("kafka", marks=pytest.mark.interop)])
def bootstrap(request: pytest.FixtureRequest) -> str:
    """The address of a broker; with interop tests each test runs on both."""
    broker: SemelProcess | ApacheKafka = request.getfixturevalue(f"{request.param}_broker")
    return broker.bootstrap


@pytest.fixture
def unique() -> str:
    return uuid.uuid4().hex[:10]


@pytest.fixture
def make_topic(bootstrap: str) -> MakeTopic:
    async def make(partitions: int = 1, **configs: str) -> str:
        name = f"t-{uuid.uuid4().hex[:10]}"
        named = {key.replace("_", "."): value for key, value in configs.items()}
        async with Admin(bootstrap) as admin:
            await admin.create_topics([NewTopic(name, partitions, configs=named)])
        return name

    return make
