"""The admin clients that people use create, describe, alter, list and delete topics.

librdkafka's (confluent-kafka), aiokafka's and kafka-python's: none of them written here.
"""

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewPartitions as AioNewPartitions
from aiokafka.admin import NewTopic as AioNewTopic
from aiokafka.admin.config_resource import ConfigResource as AioConfigResource
from aiokafka.admin.config_resource import ConfigResourceType as AioConfigResourceType
from aiokafka.errors import TopicAlreadyExistsError as AioTopicAlreadyExistsError
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from kafka.admin import ConfigResource as PythonConfigResource
from kafka.admin import ConfigResourceType as PythonConfigResourceType
from kafka.admin import KafkaAdminClient
from kafka.errors import TopicAlreadyExistsError as PythonTopicAlreadyExistsError

import semel


@pytest.fixture
def served(tmp_path):
    """A broker in a thread of its own, for clients that block."""
    with semel.Broker(tmp_path / "data") as broker:
        yield broker


class TestConfluentKafka:
    @pytest.fixture
    def admin(self, served):
        return AdminClient({"bootstrap.servers": served.bootstrap_servers})

    def test_topics_come_and_go(self, admin):
        admin.create_topics([NewTopic("a", 3), NewTopic("b", 1)])["a"].result()
        topics = admin.list_topics(timeout=10).topics
        assert {name: len(topic.partitions) for name, topic in topics.items()} == {"a": 3, "b": 1}
        admin.create_partitions([NewPartitions("b", 4)])["b"].result()
        described = admin.describe_topics(TopicCollection(["b"]))["b"].result()
        assert [one.id for one in described.partitions] == [0, 1, 2, 3]
        assert described.partitions[0].leader.port == admin.list_topics(timeout=10).brokers[1].port
        admin.delete_topics(["a"])["a"].result()
        assert list(admin.list_topics(timeout=10).topics) == ["b"]

    def test_configs_are_told_and_changed(self, admin):
        topic = NewTopic("t", 1, config={"retention.ms": "1000"})
        admin.create_topics([topic])["t"].result()
        resource = ConfigResource(ResourceType.TOPIC, "t")

        def told(name):
            return admin.describe_configs([resource])[resource].result()[name].value

        assert told("retention.ms") == "1000"
        set_ = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
        change = ConfigResource(ResourceType.TOPIC, "t", incremental_configs=[set_])
        admin.incremental_alter_configs([change])[change].result()
        assert (told("cleanup.policy"), told("retention.ms")) == ("compact", "1000")
        replace = ConfigResource(ResourceType.TOPIC, "t", set_config={"segment.ms": "5"})
        admin.alter_configs([replace])[replace].result()
        assert (told("segment.ms"), told("retention.ms")) == ("5", "604800000")
        broker = ConfigResource(ResourceType.BROKER, "1")
        configs = admin.describe_configs([broker])[broker].result()
        assert configs["node.id"].value == "1"

    @pytest.mark.parametrize(
        ("topic", "code"),
        [
            (NewTopic("there", 1), KafkaError.TOPIC_ALREADY_EXISTS),
            (NewTopic("a b", 1), KafkaError.TOPIC_EXCEPTION),
            (NewTopic("t", 1, 3), KafkaError.INVALID_REPLICATION_FACTOR),
            (NewTopic("t", 1, config={"no.such": "1"}), KafkaError.INVALID_CONFIG),
        ],
    )
    def test_refusals_are_told_by_code(self, admin, topic, code):
        admin.create_topics([NewTopic("there", 1)])["there"].result()
        with pytest.raises(KafkaException) as problem:
            admin.create_topics([topic])[topic.topic].result()
        assert problem.value.args[0].code() == code

    def test_the_cluster_is_described(self, admin, served):
        cluster = admin.describe_cluster(include_authorized_operations=True).result()
        assert cluster.cluster_id == served.catalog.cluster_id
        assert [(node.id, node.port) for node in cluster.nodes] == [(1, served.port)]
        assert cluster.authorized_operations


class TestAioKafka:
    @pytest.fixture
    async def admin(self, broker):
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        await admin.start()
        yield admin
        await admin.close()

    async def test_topics_come_and_go(self, admin):
        await admin.create_topics([AioNewTopic("a", 3, 1), AioNewTopic("b", 1, 1)])
        assert sorted(await admin.list_topics()) == ["a", "b"]
        await admin.create_partitions({"b": AioNewPartitions(4)})
        (described,) = await admin.describe_topics(["b"])
        assert len(described["partitions"]) == 4
        response = await admin.create_topics([AioNewTopic("a", 1, 1)])
        assert response.topic_errors[0][1] == AioTopicAlreadyExistsError.errno
        await admin.delete_topics(["a"])
        assert await admin.list_topics() == ["b"]

    async def test_configs_are_told_and_changed(self, admin, broker):
        await admin.create_topics([AioNewTopic("t", 1, 1)])
        kind = AioConfigResourceType.TOPIC
        await admin.alter_configs([AioConfigResource(kind, "t", {"retention.ms": "77"})])
        assert broker.catalog.topics["t"].config["retention.ms"] == 77
        wanted = AioConfigResource(kind, "t", {"retention.ms": None})
        (response,) = await admin.describe_configs([wanted])
        assert response.resources[0][4][0][:2] == ("retention.ms", "77")

    async def test_the_cluster_is_described(self, admin, broker):
        cluster = await admin.describe_cluster()
        assert cluster["cluster_id"] == broker.catalog.cluster_id
        assert [node["port"] for node in cluster["brokers"]] == [broker.port]


class TestKafkaPython:
    @pytest.fixture
    def admin(self, served):
        admin = KafkaAdminClient(bootstrap_servers=served.bootstrap_servers)
        yield admin
        admin.close()

    def test_topics_come_and_go(self, admin):
        admin.create_topics({"a": {"num_partitions": 3}, "b": {"num_partitions": 1}})
        assert sorted(admin.list_topics()) == ["a", "b"]
        admin.create_partitions({"b": 4})
        described = {topic["name"]: len(topic["partitions"]) for topic in admin.describe_topics()}
        assert described == {"a": 3, "b": 4}
        with pytest.raises(PythonTopicAlreadyExistsError):
            admin.create_topics(["a"])
        admin.delete_topics(["a"])
        assert admin.list_topics() == ["b"]

    def test_configs_are_told_and_changed(self, admin, served):
        admin.create_topics(["t"])
        kind = PythonConfigResourceType.TOPIC
        admin.alter_configs([PythonConfigResource(kind, "t", {"retention.ms": "77"})])
        assert served.catalog.topics["t"].config["retention.ms"] == 77
        told = admin.describe_configs([PythonConfigResource(kind, "t")])
        assert told["topic"]["t"]["retention.ms"]["value"] == "77"

    def test_the_cluster_is_described(self, admin, served):
        assert admin.describe_cluster()["cluster_id"] == served.catalog.cluster_id
