"""The broker's settings in force: from file, environment and flags, and changed while it runs.

`settings["log.retention.ms"]` is the typed value. What is given at start is checked at once: an
unknown name or a value out of range raises `BadSetting` with a sentence that says which and what
is allowed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from semel.broker.settings.definitions import (
    LISTENER_PREFIX,
    BadSetting,
    ConfigSource,
    Setting,
    Table,
    Value,
)
from semel.broker.settings.ignored import FIXED, IGNORED
from semel.broker.settings.of_brokers import BROKER_SETTINGS
from semel.broker.settings.of_topics import TOPIC_SETTINGS

#: Of the environment's names with this prefix every one is a setting of the broker, and must be one
#: that there is. Other names of ours (SEMEL_BOOTSTRAP_SERVERS, SEMEL_CACHE) are none.
ENVIRONMENT_PREFIX = "SEMEL_BROKER_"

#: All that a running broker keeps, also what changes nothing.
KEPT_SETTINGS = Table((*BROKER_SETTINGS.values(), *IGNORED.values()))


class Settings(dict[str, Value]):
    """Typed values by name, resolved on first use; dynamic ones go before those given at start."""

    def __init__(self, given: Mapping[str, object] | None = None) -> None:
        super().__init__()
        self._given = {
            name: _given_setting(name).parse(value) for name, value in (given or {}).items()
        }
        self._dynamic_default: dict[str, Value] = {}
        self._dynamic_broker: dict[str, Value] = {}
        #: Called after every change, by those who keep copies of a value.
        self.observers: list[Callable[[], None]] = []

    def __missing__(self, name: str) -> Value:
        setting = BROKER_SETTINGS[name]
        value = next((value for value, _ in self._own_values(setting)), setting.default)
        if value is None:
            value = self._fallback(setting)
        self[name] = value
        return value

    def given(self, name: str) -> Value:
        """What somebody has set it to, or None: no default."""
        setting = KEPT_SETTINGS.get(name)
        return setting and next((value for value, _ in self._own_values(setting)), None)

    def of_listener(self, name: str) -> ListenerSettings:
        return ListenerSettings(self, name)

    def names_given(self) -> Iterator[str]:
        """Of the settings of single listeners, which no table lists."""
        layers = (self._given, self._dynamic_default, self._dynamic_broker)
        names = {name for layer in layers for name in layer}
        return (name for name in sorted(names) if name.startswith(LISTENER_PREFIX))

    def with_changes(self, default: Mapping[str, str], broker: Mapping[str, str]) -> Settings:
        """As these would be with other dynamic values; nobody is told."""
        other = Settings()
        other._given = self._given
        other._dynamic_default, other._dynamic_broker = _parsed(default), _parsed(broker)
        return other

    def change(self, default: Mapping[str, str], broker: Mapping[str, str]) -> None:
        """Take over the dynamic values of the whole cluster and of this broker."""
        self._dynamic_default = _parsed(default)
        self._dynamic_broker = _parsed(broker)
        self.clear()
        for observer in self.observers:
            observer()

    def sources(self, name: str) -> Iterator[tuple[str, Value, ConfigSource]]:
        """Every place that gives it a value, the one in force first (Kafka's synonyms)."""
        setting = KEPT_SETTINGS[name]
        for synonym in (setting, *(BROKER_SETTINGS[other] for other, _ in setting.fallbacks)):
            for value, source in self._own_values(synonym):
                yield synonym.name, value, source
        for synonym in (setting, *(BROKER_SETTINGS[other] for other, _ in setting.fallbacks)):
            if synonym.default is not None:
                yield synonym.name, synonym.default, ConfigSource.DEFAULT

    def _own_values(self, setting: Setting) -> Iterator[tuple[Value, ConfigSource]]:
        for layer, source in (
            (self._dynamic_broker, ConfigSource.DYNAMIC_BROKER),
            (self._dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (self._given, ConfigSource.STATIC_BROKER),
        ):
            if setting.name in layer:
                yield layer[setting.name], source

    def _fallback(self, setting: Setting) -> Value:
        for name, factor in setting.fallbacks:
            value = self[name]
            if value is not None:
                return value * factor if value != -1 else value  # -1 is "no limit" in every unit
        return None


class ListenerSettings:
    """The settings as one listener sees them: its own where it has some (`listener.name.NAME.…`),
    and of those the ones of a SASL mechanism first."""

    def __init__(self, settings: Settings, name: str, mechanism: str = "") -> None:
        self._settings = settings
        self._name = name
        self._prefixes = [f"{LISTENER_PREFIX}{name.lower()}."]
        if mechanism:
            self._prefixes.insert(0, f"{self._prefixes[0]}{mechanism.lower()}.")

    def __getitem__(self, name: str) -> Value:
        own = self.own(name)
        return self._settings[name] if own is None else own

    def own(self, name: str) -> Value:
        """What is set for this listener alone."""
        for prefix in self._prefixes:
            value = self._settings.given(prefix + name)
            if value is not None:
                return value
        return None

    def of_mechanism(self, mechanism: str) -> ListenerSettings:
        return ListenerSettings(self._settings, self._name, mechanism)


class TopicConfig(dict[str, Value]):
    """A topic's typed settings: its own where it sets them, the broker's elsewhere."""

    __slots__ = ("own", "settings")

    def __init__(self, settings: Settings, own: Mapping[str, str]) -> None:
        super().__init__()
        self.settings = settings
        self.own = dict(own)

    def __missing__(self, name: str) -> Value:
        setting = TOPIC_SETTINGS[name]
        if name in self.own:
            value = setting.parse(self.own[name])
        elif setting.fallbacks:
            value = self.settings[setting.fallbacks[0][0]]
        else:
            value = setting.default
        self[name] = value
        return value

    def change(self, own: Mapping[str, str]) -> None:
        self.own = dict(own)
        self.clear()


def gather(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Iterable[str] = (),
) -> dict[str, Value]:
    """What a TOML file gives, overridden by the environment, overridden by `name=value` flags."""
    given: dict[str, Value] = {}
    if file is not None:
        given |= from_toml(file)
    given |= from_environment(os.environ if environment is None else environment)
    return given | from_flags(flags)


def from_toml(file: Path) -> dict[str, object]:
    """Names may be dotted (`log.retention.ms = 1000`), quoted, or grouped in tables."""
    import tomllib

    try:
        given = dict(_flat("", tomllib.loads(file.read_text(encoding="utf-8"))))
    except OSError as problem:
        raise BadSetting(f"Cannot read {file}: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise BadSetting(f"{file} is not TOML: {problem}") from None
    for name, value in given.items():
        _check(str(file), name, value)
    return given


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """`SEMEL_BROKER_LOG_RETENTION_MS=1000` is `log.retention.ms`."""
    given = {}
    for variable, value in environment.items():
        if variable.startswith(ENVIRONMENT_PREFIX):
            name = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", ".")
            _check(f"{variable} in the environment", name, value)
            given[name] = value
    return given


def from_flags(flags: Iterable[str]) -> dict[str, str]:
    given = {}
    for flag in flags:
        name, equals, value = flag.partition("=")
        if not equals:
            raise BadSetting(f"A setting is given as name=value, not as {flag!r}")
        given[name.strip()] = value
    return given


def _check(where: str, name: str, value: object) -> None:
    """A setting that was not typed in just now is told together with where it stands."""
    try:
        BROKER_SETTINGS.named(name, "setting").parse(value)
    except BadSetting as problem:
        raise BadSetting(f"{where}: {problem}") from None


def _flat(prefix: str, table: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{key}.", value)
        else:
            yield prefix + key, value


def _parsed(texts: Mapping[str, str]) -> dict[str, Value]:
    return {name: KEPT_SETTINGS[name].parse(text) for name, text in texts.items()}


def _given_setting(name: str) -> Setting:
    if name in IGNORED or name in FIXED:
        raise BadSetting(f"{name} is a setting of Apache Kafka's, not of this broker: leave it out")
    return BROKER_SETTINGS.named(name, "setting")
