"""Where the broker listens (`listeners`) and what it tells clients (`advertised.listeners`)."""

from __future__ import annotations

from typing import NamedTuple

from semel.broker.settings.definitions import BadSetting


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_wildcard(self) -> bool:
        return self.host in ("", "0.0.0.0", "::")


def parse_listener(name: str, text: str) -> Address:
    """`PLAINTEXT://host:port` as an address; an empty host means every interface."""
    protocol, separator, rest = text.strip().partition("://")
    host, colon, port = rest.rpartition(":")
    if not separator or not colon or not port.isdigit() or int(port) > 65535:
        raise BadSetting(
            f"Invalid value {text} for configuration {name}: expected PLAINTEXT://host:port"
        )
    if protocol != "PLAINTEXT":
        raise BadSetting(
            f"Invalid value {text} for configuration {name}: only PLAINTEXT is allowed"
        )
    return Address(host.strip("[]"), int(port))
