"""Topics on the wire: created, deleted, grown, and told by Metadata and DescribeTopicPartitions."""

import uuid

import pytest

from semel.wire.errors import ErrorCode
from semel.wire.messages.create_partitions import CreatePartitionsRequest
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.delete_topics import DeleteTopicsRequest
from semel.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from semel.wire.messages.metadata import MetadataRequest

NO_ID = uuid.UUID(int=0)


def wanted(name, partitions=1, replicas=1, assignments=(), **configs):
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=nodes)
            for index, nodes in assignments
        ],
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def named(*names):
    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
    )


async def create(ask, *topics, version=7, validate_only=False):
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    return (await ask(request, version)).topics


@pytest.mark.parametrize("version", range(2, 8))
async def test_a_topic_is_there_once_it_is_created(ask, broker, version):
    (result,) = await create(ask, wanted("t", 3, retention_ms="1000"), version=version)
    assert (result.name, result.error_code, result.error_message) == ("t", 0, None)
    topic = broker.catalog.topics["t"]
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        configs = {one.name: (one.value, one.config_source) for one in result.configs}
        assert configs["retention.ms"] == ("1000", 1)
        assert configs["segment.bytes"] == ("1073741824", 5)
    if version >= 7:
        assert result.topic_id == topic.id
    (told,) = (await ask(named("t"), 12)).topics
    assert (told.name, told.topic_id, len(told.partitions)) == ("t", topic.id, 3)
    assert told.partitions[2].leader_id == broker.catalog.node_id


@pytest.mark.parametrize(
    ("topic", "code", "says"),
    [
        (wanted(""), 17, "the empty string is not allowed"),
        (wanted("."), 17, "'.' or '..' is not allowed"),
        (wanted("a b"), 17, "other than ASCII alphanumerics"),
        (wanted("x" * 250), 17, "longer than the max allowed length 249"),
        (wanted("here"), 36, "Topic 'here' already exists."),
        (wanted("a_b"), 17, "collides with existing topic: a.b"),
        (wanted("__cluster_metadata"), 42, "prohibited"),
        (wanted("t", replicas=3), 38, "only 1 broker(s) are registered"),
        (wanted("t", replicas=0), 38, "Replication factor must be larger than 0"),
        (wanted("t", partitions=0), 37, "invalid non-positive value"),
        (wanted("t", partitions=-2), 37, "invalid non-positive value"),
        (wanted("t", partitions=10_001), 37, "Excessively large"),
        (
            wanted("t", retentoin_ms="1"),
            40,
            "Unknown topic config name: retentoin.ms (did you mean",
        ),
        (wanted("t", retention_ms="soon"), 40, "Not a number of type LONG"),
        (wanted("t", retention_ms="-2"), 40, "Value must be at least -1"),
        (wanted("t", retention_ms=None), 40, "Null value not supported"),
        (wanted("t", cleanup_policy="shred"), 40, "Entries must be among"),
        (wanted("t", min_compaction_lag_ms="9", max_compaction_lag_ms="8"), 40, "conflict"),
        (wanted("t", remote_storage_enable="true"), 40, "Tiered storage is not available"),
        (wanted("t", 1, -1, [(0, [1])]), 42, "numPartitions was not set to -1"),
        (wanted("t", -1, 1, [(0, [1])]), 42, "replication factor was not set to -1"),
        (wanted("t", -1, -1, [(1, [1])]), 39, "consecutive 0-based"),
        (wanted("t", -1, -1, [(0, [])]), 39, "an empty replica list"),
        (wanted("t", -1, -1, [(0, [2])]), 39, "broker 2, but no such broker"),
        (wanted("t", -1, -1, [(0, [1, 1])]), 39, "the broker 1 more than once"),
    ],
)
async def test_a_topic_that_cannot_be_is_refused_with_the_reason(ask, broker, topic, code, says):
    broker.catalog.create_topics([("here", 1, {}), ("a.b", 1, {})])
    refused, made = await create(ask, topic, wanted("fine"))
    assert (refused.error_code, made.error_code) == (code, 0)
    assert says in refused.error_message
    assert set(broker.catalog.topics) == {"here", "a.b", "fine"}


async def test_a_name_asked_for_twice_is_made_not_at_all(ask, broker):
    (result,) = await create(ask, wanted("t"), wanted("t"))
    assert (result.error_code, result.error_message) == (42, "Duplicate topic name.")
    assert not broker.catalog.topics


async def test_validating_makes_nothing(ask, broker):
    good, bad = await create(ask, wanted("t", 3), wanted("u", 0), validate_only=True)
    assert (good.error_code, good.num_partitions) == (0, 3)
    assert bad.error_code == 37
    assert not broker.catalog.topics


async def test_validating_tells_an_id_as_kafka_does_though_no_topic_will_have_it(ask, broker):
    (result,) = await create(ask, wanted("t"), validate_only=True)
    assert result.topic_id != NO_ID
    (made,) = await create(ask, wanted("t"))
    assert made.topic_id not in (NO_ID, result.topic_id)


async def test_manual_assignments_to_this_broker_are_taken(ask, broker):
    (result,) = await create(ask, wanted("t", -1, -1, [(1, [1]), (0, [1])]))
    assert result.error_code == 0
    assert broker.catalog.topics["t"].partition_count == 2


async def test_defaults_are_the_brokers(start_broker, connect):
    broker = await start_broker(num_partitions=4)
    await create(await connect(broker), wanted("t", -1, -1))
    assert broker.catalog.topics["t"].partition_count == 4


# DeleteTopics


@pytest.mark.parametrize("version", range(1, 7))
async def test_a_deleted_topic_is_gone_and_its_name_free(ask, broker, version):
    broker.catalog.create_topic("t", 2)
    state = DeleteTopicsRequest.DeleteTopicState(name="t")
    request = DeleteTopicsRequest(topic_names=["t"], topics=[state] if version >= 6 else [])
    (result,) = (await ask(request, version)).responses
    assert (result.name, result.error_code) == ("t", 0)
    assert (await ask(named("t"), 12)).topics[0].error_code == 3
    (again,) = await create(ask, wanted("t"))
    assert again.error_code == 0


async def test_deleting_by_id_tells_the_name(ask, broker):
    topic = broker.catalog.create_topic("t", 1)
    states = [DeleteTopicsRequest.DeleteTopicState(topic_id=topic.id)]
    (result,) = (await ask(DeleteTopicsRequest(topics=states), 6)).responses
    assert (result.name, result.topic_id, result.error_code) == ("t", topic.id, 0)


SOME_ID = uuid.UUID(int=7)


@pytest.mark.parametrize(
    ("states", "codes"),
    [
        ([("nobody", NO_ID)], [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]),
        ([(None, SOME_ID)], [ErrorCode.UNKNOWN_TOPIC_ID]),
        ([(None, NO_ID)], [ErrorCode.INVALID_REQUEST]),
        ([("t", SOME_ID)], [ErrorCode.INVALID_REQUEST]),
        ([("t", NO_ID), ("t", NO_ID)], [ErrorCode.INVALID_REQUEST]),
    ],
)
async def test_what_cannot_be_deleted_is_told(ask, broker, states, codes):
    broker.catalog.create_topic("t", 1)
    topics = [DeleteTopicsRequest.DeleteTopicState(name=n, topic_id=i) for n, i in states]
    results = (await ask(DeleteTopicsRequest(topics=topics), 6)).responses
    assert [result.error_code for result in results] == codes
    assert "t" in broker.catalog.topics


@pytest.mark.parametrize(("version", "code"), [(2, 42), (3, 73), (6, 73)])
async def test_deleting_can_be_switched_off(start_broker, connect, version, code):
    broker = await start_broker(delete_topic_enable="false")
    broker.catalog.create_topic("t", 1)
    state = DeleteTopicsRequest.DeleteTopicState(name="t")
    request = DeleteTopicsRequest(topic_names=["t"], topics=[state] if version >= 6 else [])
    (result,) = (await (await connect(broker))(request, version)).responses
    assert (result.name, result.error_code) == ("t", code)


# CreatePartitions


def grow(name, count, assignments=None, validate_only=False):
    if assignments is not None:
        assignments = [
            CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=nodes)
            for nodes in assignments
        ]
    topic = CreatePartitionsRequest.CreatePartitionsTopic(
        name=name, count=count, assignments=assignments
    )
    return CreatePartitionsRequest(topics=[topic], validate_only=validate_only)


@pytest.mark.parametrize("version", range(0, 4))
async def test_a_topic_grows(ask, broker, version):
    broker.catalog.create_topic("t", 2)
    (result,) = (await ask(grow("t", 5), version)).results
    assert (result.error_code, result.error_message) == (0, None)
    assert len((await ask(named("t"), 12)).topics[0].partitions) == 5


@pytest.mark.parametrize(
    ("request_", "code", "says"),
    [
        (grow("t", 2), 37, "Topic already has 2 partition(s)."),
        (grow("t", 1), 37, "currently has 2 partition(s); 1 would not be an increase"),
        (grow("t", 20_000), 37, "Excessively large"),
        (grow("u", 2), 3, None),
        (grow("t", 4, [[1]]), 39, "but only 1 assignment(s) were specified"),
        (grow("t", 3, [[9]]), 39, "no such broker"),
        (grow("t", 3, [[1]], validate_only=True), 0, None),
    ],
)
async def test_a_topic_grows_only_as_it_can(ask, broker, request_, code, says):
    broker.catalog.create_topic("t", 2)
    (result,) = (await ask(request_, 3)).results
    assert result.error_code == code
    assert result.error_message is None if says is None else says in result.error_message
    assert broker.catalog.topics["t"].partition_count == 2


# Metadata


@pytest.mark.parametrize("version", range(14))
async def test_metadata_of_every_version_tells_broker_and_topics(ask, broker, version):
    topic = broker.catalog.create_topic("t", 2)
    request = named("t")
    request.allow_auto_topic_creation = version < 4  # older versions cannot say no
    response = await ask(request, version)
    (node,) = response.brokers
    assert (node.node_id, node.host, node.port) == (1, "127.0.0.1", broker.port)
    (told,) = response.topics
    assert (told.error_code, told.name, len(told.partitions)) == (0, "t", 2)
    if version >= 2:
        assert response.cluster_id == broker.catalog.cluster_id
    if version >= 10:
        assert told.topic_id == topic.id


async def test_asking_for_all_topics_or_none(ask, broker):
    broker.catalog.create_topics([("a", 1, {}), ("b", 1, {})])

    async def names(version, topics):
        response = await ask(MetadataRequest(topics=topics), version)
        return {topic.name for topic in response.topics}

    assert await names(0, []) == {"a", "b"}
    assert await names(1, []) == set()
    assert await names(1, None) == {"a", "b"}


async def test_topics_can_be_asked_for_by_id(ask, broker):
    topic = broker.catalog.create_topic("t", 1)
    topics = [
        MetadataRequest.MetadataRequestTopic(name=None, topic_id=id) for id in (topic.id, SOME_ID)
    ]
    found, missing = (await ask(MetadataRequest(topics=topics), 12)).topics
    assert (found.name, found.error_code) == ("t", 0)
    assert (missing.name, missing.topic_id, missing.error_code) == (None, SOME_ID, 100)


async def test_asking_for_a_topic_makes_it_where_that_is_allowed(ask, broker):
    request = named("new")
    assert (await ask(request, 4)).topics[0].error_code == 3
    request.allow_auto_topic_creation = True
    (told,) = (await ask(request, 4)).topics
    assert (told.error_code, len(told.partitions)) == (0, 1)
    bad = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="not a name")])
    assert (await ask(bad, 4)).topics[0].error_code == 17


async def test_asking_makes_no_topic_where_that_is_switched_off(start_broker, connect):
    broker = await start_broker(auto_create_topics_enable="false")
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="new")])
    assert (await (await connect(broker))(request, 4)).topics[0].error_code == 3
    assert not broker.catalog.topics


async def test_internal_topics_are_made_as_the_settings_say_and_marked(start_broker, connect):
    broker = await start_broker(offsets_topic_num_partitions=5)
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name="__consumer_offsets")]
    )
    (told,) = (await (await connect(broker))(request, 4)).topics
    assert (told.is_internal, len(told.partitions)) == (True, 5)
    assert broker.catalog.topics["__consumer_offsets"].config["cleanup.policy"] == ("compact",)


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
async def test_an_internal_topic_is_made_alike_whoever_asks_for_it_first(
    start_broker, connect, tmp_path, name
):
    by_client = await start_broker(tmp_path / "client")
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)])
    await (await connect(by_client))(request, 4)
    by_coordinator = await start_broker(tmp_path / "coordinator")
    by_coordinator.groups.ensure_topic()
    by_coordinator.transactions.shard_of("id")
    one, other = (broker.catalog.topics[name] for broker in (by_client, by_coordinator))
    assert one.partition_count == other.partition_count
    assert one.config.own == other.config.own


async def test_authorized_operations_are_told_only_on_request(ask, broker):
    broker.catalog.create_topic("t", 1)
    request = named("t")
    assert (await ask(request, 8)).topics[0].topic_authorized_operations == -(2**31)
    request.include_topic_authorized_operations = True
    request.include_cluster_authorized_operations = True
    response = await ask(request, 8)
    # READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS
    assert response.topics[0].topic_authorized_operations == 0b110111111000
    assert response.cluster_authorized_operations == 0b1111110100000


# DescribeTopicPartitions


async def test_partitions_are_told_page_by_page(ask, broker):
    broker.catalog.create_topics([("b", 3, {}), ("a", 2, {}), ("c", 1, {})])
    request = DescribeTopicPartitionsRequest(response_partition_limit=2)
    pages = []
    while True:
        response = await ask(request, 0)
        pages.append([(t.name, p.partition_index) for t in response.topics for p in t.partitions])
        if response.next_cursor is None:
            break
        request.cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=response.next_cursor.topic_name,
            partition_index=response.next_cursor.partition_index,
        )
    assert pages == [[("a", 0), ("a", 1)], [("b", 0), ("b", 1)], [("b", 2), ("c", 0)]]


async def test_an_unknown_topic_is_told_among_the_others(ask, broker):
    broker.catalog.create_topic("a", 1)
    topics = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in ("zz", "a")]
    found, missing = (await ask(DescribeTopicPartitionsRequest(topics=topics), 0)).topics
    assert (found.name, found.error_code) == ("a", 0)
    assert (missing.name, missing.error_code) == ("zz", 3)
