"""Clients nobody here wrote: the Java client (transaction version 2) and franz-go."""

import uuid
from collections.abc import Callable

import pytest
from tests.support.brokers.process import SemelProcess

pytestmark = pytest.mark.interop

Client = Callable[..., None]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(params=["franz", "java_client"])
def client(request: pytest.FixtureRequest) -> Client:
    chosen: Client = request.getfixturevalue(request.param)
    return chosen


def test_franz_go_takes_us_for_a_kafka_4(semel: SemelProcess, franz: Client) -> None:
    """As kcl does: by the APIs and versions that we tell of. It took us for 0.9 once."""
    franz("version", semel.bootstrap)


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_as_they_were_sent(
    semel: SemelProcess, topic: Callable[..., str], client: Client, codec: str
) -> None:
    client("roundtrip", semel.bootstrap, topic(), codec)


def test_committed_transactions_are_seen_and_aborted_ones_are_not(
    semel: SemelProcess, topic: Callable[..., str], client: Client
) -> None:
    client("transactions", semel.bootstrap, topic(), f"id-{uuid.uuid4()}")


def test_a_second_producer_of_an_id_fences_the_first(
    semel: SemelProcess, topic: Callable[..., str], java_client: Client
) -> None:
    java_client("fencing", semel.bootstrap, topic(), f"id-{uuid.uuid4()}")


def test_franz_go_copies_a_topic_exactly_once(
    semel: SemelProcess, topic: Callable[..., str], franz: Client
) -> None:
    source, target = topic(), topic()
    franz("roundtrip", semel.bootstrap, source, "none")
    franz("copy", semel.bootstrap, source, target, f"g-{uuid.uuid4()}", f"id-{uuid.uuid4()}")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_java_copies_a_topic_exactly_once(
    semel: SemelProcess, topic: Callable[..., str], java_client: Client, protocol: str
) -> None:
    source, target = topic(), topic()
    java_client("roundtrip", semel.bootstrap, source, "none")
    group, transactional_id = f"g-{uuid.uuid4()}", f"id-{uuid.uuid4()}"
    java_client("copy", semel.bootstrap, source, target, group, transactional_id, protocol)
