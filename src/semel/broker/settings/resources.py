"""What has configs (topics, brokers, groups): which there are, what is set, how it changes.

Shared by DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any

from semel.broker.catalog import catalog as catalogs
from semel.broker.catalog.catalog import CLUSTER_LEVEL
from semel.broker.catalog.draft import CatalogDraft
from semel.broker.catalog.topics import check_configs, check_name
from semel.broker.context import CLUSTER_NAME, Context
from semel.broker.failures import ApiError
from semel.broker.settings.definitions import (
    PER_BROKER,
    READ_ONLY,
    BadSetting,
    ConfigSource,
    Setting,
    Table,
    Value,
)
from semel.broker.settings.ignored import FIXED, IGNORED
from semel.broker.settings.of_brokers import BROKER_SETTINGS
from semel.broker.settings.of_topics import GROUP_SETTINGS, TOPIC_SETTINGS
from semel.broker.settings.settings import KEPT_SETTINGS, Settings, TopicConfig
from semel.wire.errors import ErrorCode

log = logging.getLogger("semel.settings")


class ResourceType(IntEnum):
    """Kafka's ConfigResource.Type."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


#: Those that this broker does not have: refused once access was asked.
ABSENT = (ResourceType.BROKER_LOGGER, ResourceType.CLIENT_METRICS)


#: Who is asked for access: brokers' configs are the cluster's.
_ACL_TYPES = {
    ResourceType.TOPIC: "TOPIC",
    ResourceType.BROKER: "CLUSTER",
    ResourceType.BROKER_LOGGER: "CLUSTER",
    ResourceType.CLIENT_METRICS: "CLUSTER",
    ResourceType.GROUP: "GROUP",
}
_DENIED = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.BROKER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.BROKER_LOGGER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.CLIENT_METRICS: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
}
#: What a value that a setting does not take is called.
_BAD_VALUE = {
    ResourceType.BROKER: ErrorCode.INVALID_REQUEST,
    ResourceType.GROUP: ErrorCode.INVALID_CONFIG,
}

#: Settings of consumer groups whose least and largest values are settings of the broker.
_BOUNDS = {
    "consumer.assignment.interval.ms": (
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
    ),
    "consumer.heartbeat.interval.ms": (
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    "consumer.session.timeout.ms": (
        "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
    ),
}


class Resource:
    """One thing that has configs."""

    def __init__(self, ctx: Context, kind: int, name: str) -> None:
        try:
            self.type = ResourceType(kind)
        except ValueError:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}"
            ) from None
        self.ctx = ctx
        self.name = name

    def authorize(self, operation: str) -> None:
        kind = _ACL_TYPES[self.type]
        name = CLUSTER_NAME if kind == "CLUSTER" else self.name
        if not self.ctx.may(operation, kind, name):
            raise ApiError(_DENIED[self.type])
        if self.type in ABSENT:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {self.type.value}"
            )

    def check_exists(self) -> None:
        if self.type is ResourceType.TOPIC:
            check_name(self.name)
            if self.name not in self.ctx.catalog.topics:
                raise ApiError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"The topic '{self.name}' does not exist.",
                )
        elif self.type is ResourceType.BROKER:
            self._check_broker()
        elif not self.name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Group name must not be empty.")

    def _check_broker(self) -> None:
        node_id = self.ctx.catalog.node_id
        if self.name not in ("", str(node_id)):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {node_id} or empty string, "
                f"but received {self.name}",
            )

    @property
    def table(self) -> Table:
        return {
            ResourceType.TOPIC: TOPIC_SETTINGS,
            ResourceType.BROKER: KEPT_SETTINGS,
            ResourceType.GROUP: GROUP_SETTINGS,
        }[self.type]

    @property
    def own(self) -> Mapping[str, str]:
        """What is set on this very resource."""
        catalog = self.ctx.catalog
        if self.type is ResourceType.TOPIC:
            return catalog.topics[self.name].config.own
        return catalog.configs.get((self._catalog_type, self.name), {})

    @property
    def _catalog_type(self) -> str:
        return catalogs.BROKER if self.type is ResourceType.BROKER else catalogs.GROUP

    def replace(self, configs: Mapping[str, str | None], draft: CatalogDraft | None) -> None:
        """Put `configs` in place of what is set; without a draft only check that it could be
        done."""
        checked = self._checked(configs)
        if draft is None or checked == self.own:
            return
        if self.type is ResourceType.TOPIC:
            draft.configure_topic(self.ctx.catalog.topics[self.name], checked)
        else:
            self._tell_ignored(checked)
            draft.configure(self._catalog_type, self.name, checked)

    def _tell_ignored(self, configs: Mapping[str, str]) -> None:
        new = [name for name in configs if name in IGNORED and name not in self.own]
        if new:
            log.warning("settings are kept that change nothing here", extra={"settings": new})

    def _checked(self, configs: Mapping[str, str | None]) -> dict[str, str]:
        if self.type is ResourceType.TOPIC:
            return check_configs(self.ctx.settings, configs)
        self._check_dynamic(configs)
        try:
            settings = [self.table.named(name, f"{self._catalog_type} config") for name in configs]
        except BadSetting as problem:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(problem)) from None
        checked = {}
        try:
            for setting in settings:
                text = configs[setting.name]
                if text is None:
                    raise BadSetting(f"Null value not supported for : {setting.name}")
                self._check_bounds(setting.name, setting.parse(text))
                checked[setting.name] = text
            if self.type is ResourceType.BROKER:
                self._check_listeners(checked)
        except BadSetting as problem:
            raise ApiError(_BAD_VALUE[self.type], str(problem)) from None
        return checked

    def _check_listeners(self, checked: Mapping[str, str]) -> None:
        """Whether the listeners could go on with it: a certificate that cannot be read is refused
        now, by name, instead of being missed later."""
        ctx = self.ctx
        layers = {
            name: ctx.catalog.configs.get((catalogs.BROKER, name), {})
            for name in ("", str(ctx.catalog.node_id))
        }
        layers[self.name] = dict(checked)
        ctx.broker.listeners.check(ctx.settings.with_changes(*layers.values()))

    def _check_bounds(self, name: str, value: Value) -> None:
        """Within what the broker allows groups to set (GroupConfig.validate)."""
        bounds = _BOUNDS.get(name.removeprefix("group."))
        if bounds is None:
            return
        low, high = bounds
        if value < self.ctx.settings[low]:
            raise BadSetting(f"{name} must be greater than or equal to {low}")
        if value > self.ctx.settings[high]:
            raise BadSetting(f"{name} must be less than or equal to {high}")

    def _check_dynamic(self, configs: Iterable[str]) -> None:
        if self.type is not ResourceType.BROKER:
            return
        updates = {
            name: READ_ONLY if name in FIXED else self.table[name].update
            for name in configs
            if name in FIXED or name in self.table
        }
        _refuse_any(
            [name for name, update in updates.items() if update == READ_ONLY],
            "Cannot update these configs dynamically",
        )
        if self.name == "":
            _refuse_any(
                [name for name, update in updates.items() if update == PER_BROKER],
                "Cannot update these configs at default cluster level, broker id must be specified",
            )
            self._check_cluster_keeps(configs)

    def check_alterable(self, names: Iterable[str]) -> None:
        """Whether these may be named in a change at all (ConfigurationControlManager)."""
        if self.type is not ResourceType.BROKER or not self.ctx.catalog.has_cluster_level:
            return
        if self.name != "" and CLUSTER_LEVEL in names:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Broker-level {CLUSTER_LEVEL} cannot be altered while ELR is enabled.",
            )

    def _check_cluster_keeps(self, configs: Iterable[str]) -> None:
        if self.ctx.catalog.has_cluster_level and CLUSTER_LEVEL not in configs:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Cluster-level {CLUSTER_LEVEL} cannot be removed while ELR is enabled.",
            )

    def _is_read_only(self, setting: Setting) -> bool:
        return self.type is ResourceType.BROKER and setting.update == READ_ONLY

    # Describing

    def describe(self, wanted: list[str] | None) -> Iterator[ConfigEntry]:
        """Every setting asked for (all, if None), with its value and all that gives it one."""
        if self.type is ResourceType.TOPIC:
            return topic_entries(self.ctx.catalog.topics[self.name].config, wanted)
        if self.type is ResourceType.BROKER:
            return self._broker_entries(wanted)
        return self._group_entries(wanted)

    def _broker_entries(self, wanted: list[str] | None) -> Iterator[ConfigEntry]:
        for setting in self._broker_settings(wanted):
            sources = self._sources(setting)
            if self.name == "":  # the default of all brokers has only what is set on it
                sources = [one for one in sources if one[2] is ConfigSource.DYNAMIC_DEFAULT_BROKER]
            is_listed = setting.name in BROKER_SETTINGS.keys()  # noqa: SIM118  (as it stands there)
            if not is_listed or self.name == "":
                if not sources:
                    continue
                value = setting.parse(sources[0][1])
            elif setting.name == "advertised.listeners":
                value = sources[0][1]
            else:
                value = self.ctx.settings[setting.name]
            yield ConfigEntry(setting, value, sources, self._is_read_only(setting))

    def _broker_settings(self, wanted: list[str] | None) -> Iterator[Setting]:
        """Those of the table, and those that were given to single listeners."""
        yield from _selected(KEPT_SETTINGS, wanted)
        if wanted is None:
            yield from (KEPT_SETTINGS[name] for name in self.ctx.settings.names_given())

    def _sources(self, setting: Setting) -> list[ConfigSynonym]:
        sources = list(_broker_sources(self.ctx.settings, setting.name))
        if setting.name == "advertised.listeners" and not sources:
            # Nobody set it: clients are told the address listened on, which was given at start.
            text = self.ctx.broker.listeners.advertised_text(self.ctx.connection)
            sources = [(setting.name, text, ConfigSource.STATIC_BROKER)]
        return sources

    def _group_entries(self, wanted: list[str] | None) -> Iterator[ConfigEntry]:
        for setting in _selected(GROUP_SETTINGS, wanted):
            sources = list(_sources_above(self.ctx.settings, setting))
            if setting.name in self.own:
                text = self.own[setting.name]
                sources.insert(0, (setting.name, text, ConfigSource.GROUP))
                value = setting.parse(text)
            else:
                value = self.ctx.settings[setting.fallbacks[0][0]]
            yield ConfigEntry(setting, value, sources, read_only=False)


ConfigSynonym = tuple[str, str | None, ConfigSource]


class ConfigEntry:
    """A setting of a resource as DescribeConfigs tells it."""

    __slots__ = ("read_only", "setting", "sources", "value")

    def __init__(
        self, setting: Setting, value: Value, sources: list[ConfigSynonym], read_only: bool
    ) -> None:
        self.setting = setting
        self.value = None if setting.is_sensitive else setting.text(value)
        self.sources = sources
        self.read_only = read_only

    @property
    def source(self) -> ConfigSource:
        return self.sources[0][2] if self.sources else ConfigSource.DEFAULT


def topic_entries(config: TopicConfig, wanted: list[str] | None = None) -> Iterator[ConfigEntry]:
    for setting in _selected(TOPIC_SETTINGS, wanted):
        sources = list(_sources_above(config.settings, setting))
        if setting.name in config.own:
            sources.insert(0, (setting.name, config.own[setting.name], ConfigSource.TOPIC))
        yield ConfigEntry(setting, config[setting.name], sources, read_only=False)


def _refuse_any(names: list[str], why: str) -> None:
    if names:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{why}: [{', '.join(names)}]")


def _selected(table: Table, wanted: list[str] | None) -> Iterator[Setting]:
    names = table if wanted is None else [name for name in wanted if name in table]
    return (table[name] for name in names)


def _sources_above(settings: Settings, setting: Setting) -> Iterator[ConfigSynonym]:
    """What the broker says about a setting of a topic or group."""
    for name, _ in setting.fallbacks:
        yield from _broker_sources(settings, name)


def _broker_sources(settings: Settings, name: str) -> Iterator[ConfigSynonym]:
    for synonym, value, source in settings.sources(name):
        setting = KEPT_SETTINGS[synonym]
        yield synonym, None if setting.is_sensitive else setting.text(value), source


def alter_each(
    resources: Sequence[Any], result: Callable[..., Any], alter: Callable[[Any], None]
) -> list[Any]:
    """The results of a request to alter configs: each resource on its own, none named twice."""
    times = Counter((asked.resource_type, asked.resource_name) for asked in resources)
    results = {}
    for asked in resources:
        key = asked.resource_type, asked.resource_name
        answer = results[key] = result(
            resource_type=asked.resource_type, resource_name=asked.resource_name, error_message=None
        )
        try:
            if times[key] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            alter(asked)
        except ApiError as problem:
            answer.error_code, answer.error_message = problem.code, problem.message
    return list(results.values())
