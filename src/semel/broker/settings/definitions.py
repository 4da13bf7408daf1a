"""What a setting is: name, type, default, allowed values, meaning; how text becomes a value.

Settings carry Kafka's names. The tables are `of_brokers` and `of_topics`; loading them
from files, environment and flags is `settings`. Values travel as text (that is how Kafka's
DescribeConfigs and AlterConfigs carry them) and are read once into Python's types.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

Value = Any
"""A setting's value: bool, int, float, str or a tuple of str, as its definition says, or None."""


class SettingType(IntEnum):
    """The types of Kafka's ConfigDef, numbered as DescribeConfigs numbers them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9


class ConfigSource(IntEnum):
    """Where a value comes from, numbered as in DescribeConfigsResponse.ConfigSource."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class BadSetting(ValueError):
    """A setting that there is not, or a value it does not take; says which and what is allowed."""


class Secret(str):
    """A password, or a key: shown to nobody who prints what it is part of."""

    def __repr__(self) -> str:
        return "[hidden]"


@dataclass(frozen=True, slots=True)
class Allowed:
    """Which values a setting takes, as a test and in words."""

    test: Callable[[Value], bool]
    words: str


def at_least(low: float) -> Allowed:
    return Allowed(lambda value: value >= low, f"Value must be at least {low}")


def between(low: float, high: float) -> Allowed:
    return Allowed(lambda value: low <= value <= high, f"Value must be between {low} and {high}")


def one_of(*choices: str) -> Allowed:
    return Allowed(lambda value: value in choices, f"Value must be one of {', '.join(choices)}")


def any_of(*choices: str) -> Allowed:
    """A list whose entries all come from `choices`."""
    return Allowed(
        lambda values: all(value in choices for value in values),
        f"Entries must be among {', '.join(choices)}",
    )


LISTENER_PREFIX = "listener.name."
READ_ONLY, PER_BROKER, CLUSTER_WIDE = "read-only", "per-broker", "cluster-wide"


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    kind: SettingType
    default: Value
    doc: str
    allowed: Allowed | None = None
    #: Whether a running broker takes a new value, and from whom (Kafka's "update mode").
    update: str = READ_ONLY
    #: Settings that speak where this one is unset, each with the factor to this one's unit.
    fallbacks: tuple[tuple[str, int], ...] = ()
    #: Whether listeners may have values of their own.
    per_listener: bool = False

    @property
    def is_sensitive(self) -> bool:
        return self.kind is SettingType.PASSWORD

    def parse(self, given: object) -> Value:
        """The value of `given` (text, or a value already typed, as TOML has them)."""
        value = self._read(given)
        if self.allowed is not None and value is not None and not self.allowed.test(value):
            raise self._bad(given, self.allowed.words)
        return value

    def text(self, value: Value) -> str | None:
        """The value as Kafka writes it."""
        if value is None:
            return None
        if self.kind is SettingType.BOOLEAN:
            return "true" if value else "false"
        if self.kind is SettingType.LIST:
            return ",".join(value)
        return str(value)

    def _read(self, given: object) -> Value:
        if given is None:
            return None
        if self.kind in _RANGES:
            return self._read_integer(given)
        if self.kind is SettingType.DOUBLE:
            return self._read_double(given)
        if self.kind is SettingType.BOOLEAN:
            return self._read_boolean(given)
        if self.kind is SettingType.LIST:
            return _read_list(given)
        text = str(given).strip()
        return Secret(text) if self.is_sensitive else text

    def _read_integer(self, given: object) -> int:
        low, high = _RANGES[self.kind]
        try:
            value = int(str(given).strip())
        except ValueError:
            value = high + 1
        if isinstance(given, bool) or not low <= value <= high:
            raise self._bad(given, f"Not a number of type {self.kind.name}")
        return value

    def _read_double(self, given: object) -> float:
        try:
            return float(str(given).strip())
        except ValueError:
            raise self._bad(given, f"Not a number of type {self.kind.name}") from None

    def _read_boolean(self, given: object) -> bool:
        word = str(given).strip().lower()
        if word not in ("true", "false"):
            raise self._bad(given, "Expected value to be either true or false")
        return word == "true"

    def _bad(self, given: object, why: str) -> BadSetting:
        shown = "[hidden]" if self.is_sensitive else given
        return BadSetting(f"Invalid value {shown} for configuration {self.name}: {why}")


_RANGES = {
    SettingType.SHORT: (-(2**15), 2**15 - 1),
    SettingType.INT: (-(2**31), 2**31 - 1),
    SettingType.LONG: (-(2**63), 2**63 - 1),
}


def _read_list(given: object) -> tuple[str, ...]:
    entries = given if isinstance(given, list | tuple) else str(given).split(",")
    return tuple(entry for entry in (str(entry).strip() for entry in entries) if entry)


class Table(dict[str, Setting]):
    """Settings by name. `listener.name.internal.ssl.client.auth` is that of one listener, where the
    setting has `per_listener`: it is found, though not listed."""

    def __init__(self, settings: Iterable[Setting]) -> None:
        super().__init__((setting.name, setting) for setting in settings)

    def __missing__(self, name: str) -> Setting:
        if name.startswith(LISTENER_PREFIX):
            # A listener's name, perhaps a SASL mechanism's, then the setting's, all with dots.
            words = name.removeprefix(LISTENER_PREFIX).split(".")
            for start in range(1, len(words)):
                setting: Setting | None = super().get(".".join(words[start:]))
                if setting is not None and setting.per_listener:
                    return replace(setting, name=name, default=None)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return self.get(str(name)) is not None

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def named(self, name: str, what: str) -> Setting:
        """The setting of that name; an unknown name is told with the nearest one there is."""
        setting: Setting | None = self.get(name)
        if setting is None:
            raise BadSetting(f"Unknown {what} name: {name}{self.hint(name)}")
        return setting

    def hint(self, name: str) -> str:
        near = difflib.get_close_matches(name, self, n=1)
        return f" (did you mean {near[0]}?)" if near else ""
