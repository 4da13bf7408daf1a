"""Settings: from where, in which order, checked how, and changed while the broker runs."""

import pytest

from semel.broker.settings.definitions import BadSetting, ConfigSource
from semel.broker.settings.of_brokers import BROKER_SETTINGS
from semel.broker.settings.of_topics import GROUP_SETTINGS, TOPIC_SETTINGS
from semel.broker.settings.settings import (
    ENVIRONMENT_PREFIX,
    Settings,
    TopicConfig,
    from_environment,
    gather,
)


def test_flags_go_before_the_environment_and_that_before_the_file(tmp_path):
    file = tmp_path / "semel.toml"
    file.write_text('num.partitions = 1\nlog.retention.ms = 1\n"node.id" = 1\n')
    environment = {"SEMEL_BROKER_NUM_PARTITIONS": "2", "SEMEL_BROKER_LOG_RETENTION_MS": "2"}
    settings = Settings(gather(file, environment, ["num.partitions=3"]))
    assert settings["num.partitions"] == 3
    assert settings["log.retention.ms"] == 2
    assert settings["node.id"] == 1


def test_a_toml_file_may_group_settings_in_tables(tmp_path):
    file = tmp_path / "semel.toml"
    file.write_text('[log]\nretention.ms = 5\ncleanup.policy = ["compact", "delete"]\n')
    settings = Settings(gather(file, {}))
    assert settings["log.retention.ms"] == 5
    assert settings["log.cleanup.policy"] == ("compact", "delete")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("log.retenton.ms", "1", "Unknown setting name: log.retenton.ms (did you mean log.reten"),
        ("nothing.like.it.at.all", "1", "Unknown setting name: nothing.like.it.at.all"),
        (
            "num.io.threads",
            "8",
            "num.io.threads is a setting of Apache Kafka's, not of this broker",
        ),
        ("security.providers", "x", "security.providers is a setting of Apache Kafka's"),
        ("num.partitions", "0", "Invalid value 0 for configuration num.partitions: Value must be"),
        ("num.partitions", "many", "Invalid value many for configuration num.partitions: Not a n"),
        ("num.partitions", str(2**31), "Not a number of type INT"),
        ("num.partitions", True, "Not a number of type INT"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "Value must be between 0 and 1"),
        ("log.cleaner.min.cleanable.ratio", "half", "Not a number of type DOUBLE"),
        ("auto.create.topics.enable", "maybe", "Expected value to be either true or false"),
        ("log.cleanup.policy", "compact,shred", "Entries must be among compact, delete"),
        ("durability", "hope", "Value must be one of os, fsync"),
        ("default.replication.factor", "3", "One node keeps one replica"),
    ],
)
def test_a_bad_setting_is_told_with_what_is_allowed(name, value, says):
    with pytest.raises(BadSetting) as problem:
        Settings({name: value})
    assert says in str(problem.value)


def test_other_variables_of_ours_are_not_taken_for_settings():
    others = {
        "SEMEL_BOOTSTRAP_SERVERS": "b:1",
        "SEMEL_CACHE": "/c",
        "SEMEL_SEEDS": "9",
        "PATH": "/bin",
    }
    assert from_environment(others | {"SEMEL_BROKER_NODE_ID": "7"}) == {"node.id": "7"}


def test_every_setting_has_one_name_in_the_environment():
    names = [name.upper().replace(".", "_") for name in BROKER_SETTINGS]
    given = from_environment(
        {
            ENVIRONMENT_PREFIX + name: "1" if setting.default is None else setting.default
            for name, setting in zip(names, BROKER_SETTINGS.values(), strict=True)
        }
    )
    assert set(given) == set(BROKER_SETTINGS)


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("NUM_PARTITION", "3", "Unknown setting name: num.partition (did you mean num.partitions"),
        ("NUM_PARTITIONS", "many", "Invalid value many for configuration num.partitions: Not a n"),
        ("BOOTSTRAP", "b:1", "Unknown setting name: bootstrap"),
    ],
)
def test_a_bad_setting_in_the_environment_is_told_with_its_variable(variable, value, says):
    with pytest.raises(BadSetting) as problem:
        from_environment({f"SEMEL_BROKER_{variable}": value})
    assert str(problem.value).startswith(f"SEMEL_BROKER_{variable} in the environment: {says}")


def test_a_bad_setting_in_a_file_is_told_with_the_file(tmp_path):
    file = tmp_path / "semel.toml"
    file.write_text("num.partitions = 0\n")
    with pytest.raises(BadSetting, match=r"semel\.toml: Invalid value 0 for configuration num\.pa"):
        gather(file, {})


@pytest.mark.parametrize("content", ["num.partitions = ", "a = 1\na = 2", "\xff"])
def test_a_file_that_is_not_toml_is_named(tmp_path, content):
    file = tmp_path / "semel.toml"
    file.write_text(content, encoding="latin-1")
    with pytest.raises(BadSetting, match=r"semel\.toml is not TOML"):
        gather(file, {})


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadSetting, match=r"Cannot read .*no\.toml"):
        gather(tmp_path / "no.toml", {})


def test_a_flag_without_a_value_is_refused():
    with pytest.raises(BadSetting, match="name=value"):
        gather(environment={}, flags=["num.partitions"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, 168 * 3_600_000),
        ({"log.retention.hours": 2}, 7_200_000),
        ({"log.retention.hours": 2, "log.retention.minutes": 3}, 180_000),
        ({"log.retention.hours": 2, "log.retention.ms": 4}, 4),
        ({"log.retention.hours": -1}, -1),
    ],
)
def test_retention_is_given_in_the_finest_unit_that_is_set(given, expected):
    assert Settings(given)["log.retention.ms"] == expected


def test_a_dynamic_value_goes_before_a_static_one_and_the_brokers_own_before_the_default():
    settings = Settings({"log.retention.ms": "1"})
    settings.change(default={"log.retention.ms": "2"}, broker={})
    assert settings["log.retention.ms"] == 2
    settings.change(default={"log.retention.ms": "2"}, broker={"log.retention.ms": "3"})
    assert settings["log.retention.ms"] == 3
    assert [
        (name, value, source) for name, value, source in settings.sources("log.retention.ms")
    ] == [
        ("log.retention.ms", 3, ConfigSource.DYNAMIC_BROKER),
        ("log.retention.ms", 2, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("log.retention.ms", 1, ConfigSource.STATIC_BROKER),
        ("log.retention.hours", 168, ConfigSource.DEFAULT),
    ]
    settings.change(default={}, broker={})
    assert settings["log.retention.ms"] == 1


def test_those_who_keep_a_copy_hear_of_a_change():
    settings = Settings()
    heard = []
    settings.observers.append(lambda: heard.append(settings["message.max.bytes"]))
    settings.change(default={"message.max.bytes": "7"}, broker={})
    assert heard == [7]


def test_a_topic_follows_the_broker_where_it_sets_nothing_itself():
    settings = Settings({"log.segment.bytes": 2_000_000})
    config = TopicConfig(settings, {"retention.ms": "9"})
    assert config["retention.ms"] == 9
    assert config["segment.bytes"] == 2_000_000
    assert config["cleanup.policy"] == ("delete",)
    config.change({"cleanup.policy": "compact,delete"})
    assert config["retention.ms"] == 604_800_000
    assert config["cleanup.policy"] == ("compact", "delete")


@pytest.mark.parametrize("table", [BROKER_SETTINGS, TOPIC_SETTINGS, GROUP_SETTINGS])
def test_every_default_is_a_value_its_setting_allows_and_survives_being_text(table):
    for setting in table.values():
        assert setting.parse(setting.text(setting.default)) == setting.default, setting.name
        assert setting.doc.endswith((".", ")")), setting.name


@pytest.mark.parametrize("table", [TOPIC_SETTINGS, GROUP_SETTINGS])
def test_every_default_of_a_topic_equals_the_brokers_it_follows(table):
    settings = Settings()
    for setting in table.values():
        for name, _ in setting.fallbacks:
            assert settings[name] == setting.default, setting.name


def test_every_fallback_is_a_setting_of_the_broker():
    for table in (BROKER_SETTINGS, TOPIC_SETTINGS, GROUP_SETTINGS):
        for setting in table.values():
            assert all(name in BROKER_SETTINGS for name, _ in setting.fallbacks), setting.name
