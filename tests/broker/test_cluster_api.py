"""DescribeCluster, DescribeQuorum, DescribeLogDirs and UpdateFeatures on the wire."""

import pytest

from semel.wire.errors import ErrorCode
from semel.wire.messages.describe_cluster import DescribeClusterRequest
from semel.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from semel.wire.messages.describe_quorum import DescribeQuorumRequest
from semel.wire.messages.update_features import UpdateFeaturesRequest


@pytest.mark.parametrize("version", range(3))
async def test_the_cluster_is_this_broker(ask, broker, version):
    response = await ask(DescribeClusterRequest(), version)
    assert response.cluster_id == broker.catalog.cluster_id
    assert response.controller_id == 1
    (node,) = response.brokers
    assert (node.broker_id, node.host, node.port) == (1, "127.0.0.1", broker.port)


@pytest.mark.parametrize(
    ("endpoint", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
async def test_only_brokers_are_told(ask, endpoint, code):
    assert (await ask(DescribeClusterRequest(endpoint_type=endpoint), 1)).error_code == code


async def test_an_advertised_address_is_what_clients_are_told(start_broker, connect):
    broker = await start_broker(advertised_listeners="PLAINTEXT://kafka.example.org:19092")
    (node,) = (await (await connect(broker))(DescribeClusterRequest(), 0)).brokers
    assert (node.host, node.port) == ("kafka.example.org", 19092)
    assert broker.bootstrap_servers == "kafka.example.org:19092"


async def test_a_broker_on_every_interface_tells_the_address_the_client_came_to(
    start_broker, connect
):
    broker = await start_broker(listeners="PLAINTEXT://0.0.0.0:0")
    (node,) = (await (await connect(broker))(DescribeClusterRequest(), 0)).brokers
    assert (node.host, node.port) == ("127.0.0.1", broker.port)


@pytest.mark.parametrize("version", range(3))
async def test_the_quorum_is_this_node_and_its_offset_grows(ask, broker, version):
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])

    async def asked():
        (answer,) = (await ask(DescribeQuorumRequest(topics=[topic]), version)).topics
        return answer.partitions[0]

    before = await asked()
    broker.catalog.create_topic("t", 1)
    after = await asked()
    assert after.leader_id == 1
    assert after.high_watermark == before.high_watermark + 1
    assert [voter.log_end_offset for voter in after.current_voters] == [after.high_watermark]
    topic.topic_name = "other"
    assert (await asked()).error_code == 3


@pytest.mark.parametrize("version", range(1, 6))
async def test_log_dirs_tell_the_size_of_partitions(ask, broker, version):
    broker.catalog.create_topic("t", 2)
    everything = await ask(DescribeLogDirsRequest(topics=None), version)
    (told,) = everything.results
    assert told.log_dir == str(broker.data)
    ((name, partitions),) = [(topic.name, topic.partitions) for topic in told.topics]
    assert (name, [one.partition_index for one in partitions]) == ("t", [0, 1])
    if version >= 4:
        assert told.total_bytes >= told.usable_bytes > 0
    asked = DescribeLogDirsRequest.DescribableLogDirTopic(topic="t", partitions=[1, 7])
    (told,) = (await ask(DescribeLogDirsRequest(topics=[asked]), version)).results
    assert [one.partition_index for one in told.topics[0].partitions] == [1]


UPGRADE, SAFE, UNSAFE = 1, 2, 3


def update(level, kind=UPGRADE, name="transaction.version", **options):
    one = UpdateFeaturesRequest.FeatureUpdateKey(
        feature=name, max_version_level=level, upgrade_type=kind
    )
    return UpdateFeaturesRequest(feature_updates=[one], **options)


@pytest.mark.parametrize(
    ("request_", "code", "level"),
    [
        (update(1, SAFE), 0, 1),
        (update(2), 0, 2),
        (update(1), 95, 2),
        (update(3), 95, 2),
        (update(1, name="no.such.feature"), 95, 2),
        (update(1, 9), 95, 2),
        (update(1, SAFE, validate_only=True), 0, 2),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
async def test_features_change_within_their_levels(ask, broker, request_, code, level, version):
    response = await ask(request_, version)
    assert response.error_code == code
    assert len(response.results) == (version < 2 and not code)
    assert broker.catalog.features["transaction.version"] == level


async def test_one_refused_feature_keeps_all_as_they_were(ask, broker):
    request = update(1, SAFE)
    request.feature_updates += update(99, name="group.version").feature_updates
    assert (await ask(request, 2)).error_code == 95
    assert broker.catalog.features["transaction.version"] == 2
