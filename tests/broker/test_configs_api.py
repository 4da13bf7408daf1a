"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources on the wire."""

import pytest

from semel.broker.settings.of_brokers import BROKER_SETTINGS
from semel.broker.settings.of_topics import TOPIC_SETTINGS
from semel.wire.messages.alter_configs import AlterConfigsRequest
from semel.wire.messages.describe_configs import DescribeConfigsRequest
from semel.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from semel.wire.messages.list_config_resources import ListConfigResourcesRequest
from semel.wire.messages.update_features import UpdateFeaturesRequest

TOPIC, BROKER, BROKER_LOGGER, GROUP = 2, 4, 8, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT, DYNAMIC_GROUP = 1, 2, 3, 4, 5, 8


@pytest.fixture
def describe(ask):
    async def describe(kind, name, keys=None, version=4, **options):
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=keys
        )
        request = DescribeConfigsRequest(resources=[resource], **options)
        (result,) = (await ask(request, version)).results
        return result

    return describe


@pytest.fixture
def values(describe):
    async def values(kind, name, *keys):
        result = await describe(kind, name, list(keys))
        assert result.error_code == 0
        return {one.name: (one.value, one.config_source) for one in result.configs}

    return values


def change(kind, name, *changes, validate_only=False):
    Config = IncrementalAlterConfigsRequest.AlterableConfig
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[Config(name=n, config_operation=op, value=v) for n, op, v in changes],
    )
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)


def replace(kind, name, validate_only=False, **configs):
    resource = AlterConfigsRequest.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterConfigsRequest.AlterableConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )
    return AlterConfigsRequest(resources=[resource], validate_only=validate_only)


async def altered(ask, request, version):
    (result,) = (await ask(request, version)).responses
    return result.error_code, result.error_message


@pytest.mark.parametrize("version", range(1, 5))
async def test_a_topic_tells_every_setting_with_its_source(describe, broker, version):
    broker.catalog.create_topic("t", 1, {"retention.ms": "7"})
    result = await describe(TOPIC, "t", version=version)
    told = {one.name: one for one in result.configs}
    assert set(told) == set(TOPIC_SETTINGS)
    assert (told["retention.ms"].value, told["retention.ms"].config_source) == ("7", DYNAMIC_TOPIC)
    assert (told["segment.ms"].value, told["segment.ms"].config_source) == ("604800000", DEFAULT)
    assert told["retention.ms"].synonyms == []
    if version >= 3:
        assert told["cleanup.policy"].config_type == 7
        assert told["preallocate"].config_type == 1


async def test_synonyms_and_documentation_are_told_on_request(start_broker, connect):
    broker = await start_broker(log_segment_bytes=2_000_000)
    broker.catalog.create_topic("t", 1, {"segment.bytes": "3000000"})
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=TOPIC, resource_name="t", configuration_keys=["segment.bytes"]
    )
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=True, include_documentation=True
    )
    ((told,),) = [one.configs for one in (await (await connect(broker))(request, 4)).results]
    assert [(one.name, one.value, one.source) for one in told.synonyms] == [
        ("segment.bytes", "3000000", DYNAMIC_TOPIC),
        ("log.segment.bytes", "2000000", STATIC),
        ("log.segment.bytes", "1073741824", DEFAULT),
    ]
    assert told.documentation == TOPIC_SETTINGS["segment.bytes"].doc


async def test_a_broker_tells_its_settings_and_which_can_change(describe):
    told = {one.name: one for one in (await describe(BROKER, "1")).configs}
    assert set(told) == set(BROKER_SETTINGS)
    assert told["listeners"].read_only
    assert told["listeners"].config_source == STATIC
    assert not told["log.retention.ms"].read_only
    assert told["log.retention.ms"].value == "604800000"


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nobody", 3),
        (TOPIC, "not a name", 17),
        (BROKER, "2", 42),
        (BROKER, "one", 42),
        (BROKER_LOGGER, "1", 42),
        (GROUP, "", 42),
        (99, "x", 42),
    ],
)
async def test_what_is_not_there_cannot_be_described_or_altered(ask, describe, kind, name, code):
    assert (await describe(kind, name)).error_code == code
    assert (await altered(ask, change(kind, name), 1))[0] == code
    assert (await altered(ask, replace(kind, name), 2))[0] == code


@pytest.mark.parametrize("version", range(2))
async def test_settings_change_one_by_one(ask, broker, values, version):
    broker.catalog.create_topic("t", 1, {"retention.ms": "7", "segment.ms": "8"})
    request = change(
        TOPIC,
        "t",
        ("retention.ms", DELETE, None),
        ("max.message.bytes", SET, "9"),
        ("cleanup.policy", APPEND, "compact"),
    )
    assert await altered(ask, request, version) == (0, None)
    assert await values(TOPIC, "t", "retention.ms", "segment.ms") == {
        "retention.ms": ("604800000", DEFAULT),
        "segment.ms": ("8", DYNAMIC_TOPIC),
    }
    assert broker.catalog.topics["t"].config["cleanup.policy"] == ("delete", "compact")
    assert broker.catalog.topics["t"].config["max.message.bytes"] == 9
    await altered(ask, change(TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete")), version)
    assert broker.catalog.topics["t"].config["cleanup.policy"] == ("compact",)


@pytest.mark.parametrize(
    ("changes", "code", "says"),
    [
        ([("retentoin.ms", SET, "1")], 40, "Unknown topic config name: retentoin.ms"),
        ([("retentoin.ms", APPEND, "1")], 40, "Unknown topic config name: retentoin.ms"),
        ([("retention.ms", SET, "x")], 40, "Not a number"),
        ([("retention.ms", SET, None)], 42, "Null value not supported for : retention.ms"),
        ([("retention.ms", APPEND, "1")], 40, "Can't APPEND to key retention.ms"),
        ([("retention.ms", 9, "1")], 42, "Unknown operation type 9"),
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], 42, "duplicate config keys"),
    ],
)
async def test_a_bad_change_changes_nothing(ask, broker, changes, code, says):
    topic = broker.catalog.create_topic("t", 1, {"segment.ms": "8"})
    request = change(TOPIC, "t", ("segment.bytes", SET, "1048576"), *changes)
    told, message = await altered(ask, request, 1)
    assert told == code
    assert says in message
    assert topic.config.own == {"segment.ms": "8"}


@pytest.mark.parametrize("version", range(3))
async def test_settings_are_replaced_all_at_once(ask, broker, version):
    topic = broker.catalog.create_topic("t", 1, {"retention.ms": "7"})
    assert await altered(ask, replace(TOPIC, "t", segment_ms="8"), version) == (0, None)
    assert topic.config.own == {"segment.ms": "8"}


async def test_validating_changes_nothing(ask, broker):
    topic = broker.catalog.create_topic("t", 1)
    ok = change(TOPIC, "t", ("retention.ms", SET, "7"), validate_only=True)
    assert await altered(ask, ok, 1) == (0, None)
    assert await altered(ask, replace(TOPIC, "t", True, retention_ms="7"), 2) == (0, None)
    bad = change(TOPIC, "t", ("retention.ms", SET, "x"), validate_only=True)
    assert (await altered(ask, bad, 1))[0] == 40
    assert topic.config.own == {}


async def test_a_resource_named_twice_is_not_altered(ask, broker):
    broker.catalog.create_topic("t", 1)
    request = change(TOPIC, "t", ("retention.ms", SET, "7"))
    request.resources *= 2
    assert (await altered(ask, request, 1))[0] == 42


async def test_a_brokers_settings_change_while_it_runs_and_topics_follow(ask, broker, values):
    topic = broker.catalog.create_topic("t", 1)
    everywhere = change(BROKER, "", ("log.retention.ms", SET, "11"), ("max.connections", SET, "9"))
    assert await altered(ask, everywhere, 1) == (0, None)
    assert broker.settings["log.retention.ms"] == topic.config["retention.ms"] == 11
    assert broker.listeners.first.net.limits.max_connections == 9
    here = change(BROKER, "1", ("log.retention.ms", SET, "12"))
    assert await altered(ask, here, 1) == (0, None)
    assert topic.config["retention.ms"] == 12
    assert await values(BROKER, "1", "log.retention.ms") == {
        "log.retention.ms": ("12", DYNAMIC_BROKER)
    }
    assert await values(BROKER, "") == {
        "log.retention.ms": ("11", DYNAMIC_DEFAULT),
        "min.insync.replicas": ("1", DYNAMIC_DEFAULT),
        "max.connections": ("9", DYNAMIC_DEFAULT),
    }
    assert await values(TOPIC, "t", "retention.ms") == {"retention.ms": ("12", DYNAMIC_BROKER)}


@pytest.mark.parametrize(
    ("name", "value", "code", "says"),
    [
        ("listeners", "PLAINTEXT://:1", 42, "Cannot update these configs dynamically: [listeners]"),
        ("log.dirs", "/x", 42, "Cannot update these configs dynamically: [log.dirs]"),
        ("ssl.keystore.password", "x", 42, "Cannot update these configs dynamically: [ssl.key"),
        ("no.such.setting", "1", 40, "Unknown broker config name"),
        ("log.retention.ms", "-2", 42, "Value must be at least -1"),
        ("num.io.threads", "many", 42, "Not a number of type INT"),
    ],
)
async def test_a_brokers_fixed_or_unknown_settings_do_not_change(ask, name, value, code, says):
    told, message = await altered(ask, change(BROKER, "1", (name, SET, value)), 1)
    assert told == code
    assert says in message


async def test_what_kafka_knows_and_we_ignore_is_taken_kept_and_told(
    ask, values, start_broker, broker, connect
):
    name = "sasl.kerberos.min.time.before.relogin"
    assert await values(BROKER, "1", name) == {}
    assert await altered(ask, change(BROKER, "1", (name, SET, "58000")), 1) == (0, None)
    assert await values(BROKER, "1", name) == {name: ("58000", DYNAMIC_BROKER)}
    told, message = await altered(ask, change(BROKER, "", (name, SET, "58000")), 1)
    assert told == 42
    assert "at default cluster level, broker id must be specified" in message
    everywhere = change(BROKER, "", ("leader.replication.throttled.rate", SET, "7"))
    assert await altered(ask, everywhere, 1) == (0, None)
    await broker.stop()
    again = await start_broker(broker.data)
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=BROKER, resource_name="1"
    )
    response = await (await connect(again))(DescribeConfigsRequest(resources=[resource]), 4)
    kept = {one.name: one.value for one in response.results[0].configs}
    assert (kept[name], kept["leader.replication.throttled.rate"]) == ("58000", "7")


async def test_replicas_in_sync_are_set_for_the_whole_cluster_and_told_of_every_topic(
    ask, broker, values
):
    """As in a Kafka with eligible leader replicas (KIP-966)."""
    broker.catalog.create_topic("t", 1)
    name = "min.insync.replicas"
    assert await values(TOPIC, "t", name) == {name: ("1", DYNAMIC_DEFAULT)}
    assert await values(BROKER, "1", name) == {name: ("1", DYNAMIC_DEFAULT)}
    assert await altered(ask, change(BROKER, "", (name, SET, "2")), 1) == (0, None)
    assert await values(TOPIC, "t", name) == {name: ("2", DYNAMIC_DEFAULT)}
    removal = f"Cluster-level {name} cannot be removed while ELR is enabled."
    assert await altered(ask, change(BROKER, "", (name, DELETE, None)), 1) == (40, removal)
    assert await altered(ask, replace(BROKER, ""), 2) == (40, removal)
    alone = f"Broker-level {name} cannot be altered while ELR is enabled."
    assert await altered(ask, change(BROKER, "1", (name, SET, "1")), 1) == (40, alone)
    assert await altered(ask, change(BROKER, "1", (name, DELETE, None)), 1) == (40, alone)
    assert await altered(ask, replace(BROKER, "1", min_insync_replicas="1"), 2) == (40, alone)
    assert await altered(ask, change(TOPIC, "t", (name, SET, "3")), 1) == (0, None)
    assert await values(TOPIC, "t", name) == {name: ("3", DYNAMIC_TOPIC)}


async def test_the_feature_of_eligible_leader_replicas_raises_replicas_in_sync_to_the_cluster(
    ask, broker, values
):
    Update = UpdateFeaturesRequest.FeatureUpdateKey
    name, feature = "min.insync.replicas", "eligible.leader.replicas.version"

    async def finalize(level, upgrade_type):
        update = Update(feature=feature, max_version_level=level, upgrade_type=upgrade_type)
        assert (await ask(UpdateFeaturesRequest(feature_updates=[update]), 2)).error_code == 0

    await finalize(0, 2)
    assert await altered(ask, change(BROKER, "", (name, DELETE, None)), 1) == (0, None)
    assert await altered(ask, change(BROKER, "1", (name, SET, "2")), 1) == (0, None)
    assert await values(BROKER, "1", name) == {name: ("2", DYNAMIC_BROKER)}
    await finalize(1, 1)
    assert await values(BROKER, "1", name) == {name: ("2", DYNAMIC_DEFAULT)}
    assert broker.catalog.configs == {("broker", ""): {name: "2"}}


async def test_a_broker_tells_the_address_that_clients_are_told(start_broker, connect, tmp_path):
    async def told(broker):
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=BROKER, resource_name="1", configuration_keys=["advertised.listeners"]
        )
        response = await (await connect(broker))(DescribeConfigsRequest(resources=[resource]), 4)
        [one] = response.results[0].configs
        return one.value, one.config_source

    silent = await start_broker(tmp_path / "one")
    assert await told(silent) == (f"PLAINTEXT://127.0.0.1:{silent.port}", STATIC)
    given = "PLAINTEXT://kafka.example:9092"
    spoken = await start_broker(tmp_path / "two", advertised_listeners=given)
    assert await told(spoken) == (given, STATIC)


async def test_a_group_has_settings_of_its_own(ask, values):
    request = change(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))
    assert await altered(ask, request, 1) == (0, None)
    assert await values(GROUP, "g", "consumer.session.timeout.ms") == {
        "consumer.session.timeout.ms": ("50000", DYNAMIC_GROUP)
    }
    assert await values(GROUP, "other", "consumer.session.timeout.ms") == {
        "consumer.session.timeout.ms": ("45000", DEFAULT)
    }


async def test_resources_with_configs_are_listed_by_type(ask, broker):
    broker.catalog.create_topic("t", 1)
    await ask(change(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")), 1)

    async def listed(version, *types):
        request = ListConfigResourcesRequest(resource_types=list(types))
        response = await ask(request, version)
        names = [(one.resource_type, one.resource_name) for one in response.config_resources]
        return response.error_code, names

    assert await listed(1) == (0, [(TOPIC, "t"), (BROKER, "1"), (GROUP, "g")])
    assert await listed(1, GROUP) == (0, [(GROUP, "g")])
    assert await listed(1, 77) == (35, [])
    assert await listed(0) == (0, [])
