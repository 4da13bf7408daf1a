"""Where the broker listens (`listeners`) and what it tells clients (`advertised.listeners`)."""

from __future__ import annotations

from typing import NamedTuple

from semel.broker.settings.definitions import BadSetting

LAST_PORT = 65535


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if self.is_ipv6 else f"{self.host}:{self.port}"

    @property
    def is_ipv6(self) -> bool:
        return ":" in self.host

    @property
    def is_loopback(self) -> bool:
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    @property
    def is_wildcard(self) -> bool:
        return self.host in ("", "0.0.0.0", "::")


def parse_listener(name: str, text: str) -> Address:
    """`PLAINTEXT://host:port` as an address; an empty host means every interface."""
    protocol, separator, rest = text.strip().partition("://")
    if "," in rest:
        raise _bad(name, text, "one listener is supported, not several")
    host, colon, port = rest.rpartition(":")
    if not separator or not colon or not port.isascii() or not port.isdigit():
        raise _bad(name, text, "expected PLAINTEXT://host:port")
    if protocol != "PLAINTEXT":
        raise _bad(name, text, "only PLAINTEXT is supported, neither TLS nor SASL")
    if int(port) > LAST_PORT:
        raise _bad(name, text, f"a port is a number from 0 to {LAST_PORT}")
    return Address(host.strip("[]"), int(port))


def parse_advertised(name: str, text: str) -> Address:
    """What clients are told must lead somewhere."""
    address = parse_listener(name, text)
    if address.is_wildcard or not address.port:
        raise _bad(name, text, "clients need a name or address, and a port, to connect to")
    return address


def _bad(name: str, text: str, why: str) -> BadSetting:
    return BadSetting(f"Invalid value {text} for configuration {name}: {why}")
