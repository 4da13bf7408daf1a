"""Settings with their types, defaults and meanings, from the tables that the programs obey."""

from collections.abc import Iterable

from generate.markdown import code, entry, facts
from semel.broker.settings.definitions import CLUSTER_WIDE, Setting, SettingType
from semel.broker.settings.of_brokers import BROKER_SETTINGS
from semel.broker.settings.of_topics import GROUP_SETTINGS, TOPIC_SETTINGS

_BROKERS = """\
# Settings of the broker

They have Kafka's names. Give them by `semel serve --set NAME=VALUE`, in a TOML file (`--config`),
in the environment (`SEMEL_BROKER_LOG_RETENTION_MS` is `log.retention.ms`), or in Python as
`semel.Broker(settings={…})`. A flag goes before the environment, the environment before the file.
`semel.Broker` reads neither file nor environment. An unknown name or a value out of range is an
error when the broker starts.

Those marked *changes at run time* can be changed while the broker runs, by IncrementalAlterConfigs
(Kafka's `kafka-configs --alter` does that).

"""
_TOPICS = """\
# Settings of topics and groups

A topic follows the broker's setting named beside each, unless it has a value of its own. Set one
with `semel topics create --config NAME=VALUE`, change it with `semel topics alter`.

## Topics

"""
_GROUPS = """
## Groups

Kafka's settings of a consumer group (KIP-848), set by IncrementalAlterConfigs on the group. A group
without its own follows the broker's.

"""
_LARGEST = {2**63 - 1, 2**31 - 1}


def of_brokers() -> str:
    return _BROKERS + _entries(BROKER_SETTINGS.values())


def of_topics() -> str:
    topics = _entries(TOPIC_SETTINGS.values())
    return _TOPICS + topics + _GROUPS + _entries(GROUP_SETTINGS.values(), "group-")


def _entries(settings: Iterable[Setting], prefix: str = "") -> str:
    return "\n".join(_entry(setting, prefix) for setting in settings)


def _entry(setting: Setting, prefix: str) -> str:
    follows = setting.fallbacks[0][0] if setting.fallbacks else ""
    return entry(
        setting.name,
        setting.doc,
        facts(
            _default(setting),
            f"follows {code(follows)} if not set" if follows else "",
            setting.kind.name.lower(),
            setting.allowed.words.replace("Value must be", "must be") if setting.allowed else "",
            "changes at run time" if setting.update == CLUSTER_WIDE else "",
        ),
    )


def _default(setting: Setting) -> str:
    if setting.default is None:
        return "" if setting.fallbacks else "not set by default"
    if setting.default in _LARGEST and setting.kind in (SettingType.INT, SettingType.LONG):
        return "default: no limit"
    text = setting.text(setting.default)
    return f"default {code(text)}" if text else "empty by default"
