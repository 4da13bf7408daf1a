"""The coordinators' own topics are made with the settings that Apache Kafka gives them."""

import pytest
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.process import SemelProcess
from tests.support.conversations.raw_client import RawClient

from semel.client import blocking
from semel.wire.messages.describe_configs import DescribeConfigsRequest

pytestmark = pytest.mark.interop

# Their defaults are those of three brokers (differences.md); the test compares one with one.
SETTINGS = {
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "offsets.topic.num.partitions": "3",
}
INTERNAL = ("__consumer_offsets", "__transaction_state")
TOPIC, DYNAMIC_TOPIC_CONFIG = 2, 1  # ConfigResource.Type, ConfigEntry.ConfigSource


def test_coordinators_make_their_topics_with_kafkas_settings(
    kafka: ApacheKafka, alike: SemelProcess
) -> None:
    assert made_by_coordinators(alike.bootstrap) == made_by_coordinators(kafka.bootstrap)


def made_by_coordinators(bootstrap: str) -> dict[str, tuple[int, dict[str, str]]]:
    """Use both coordinators, then: each internal topic's partition count and own settings."""
    with blocking.Producer(bootstrap, transactional_id="any") as producer:
        producer.init_transactions()
    with blocking.Consumer(bootstrap, group_id="any") as consumer:
        consumer.subscribe(["any"])
        consumer.poll(100)
    with blocking.Admin(bootstrap) as admin:
        counts = {n: len(t.partitions) for n, t in admin.describe_topics(INTERNAL).items()}
    return {name: (counts[name], own_settings(bootstrap, name)) for name in INTERNAL}


def own_settings(bootstrap: str, topic: str) -> dict[str, str]:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=TOPIC, resource_name=topic, configuration_keys=None
    )
    with RawClient(bootstrap) as client:
        (result,) = client.ask(DescribeConfigsRequest(resources=[resource]), 4).results
    assert result.error_code == 0
    return {
        config.name: config.value
        for config in result.configs
        if config.config_source == DYNAMIC_TOPIC_CONFIG
    }
