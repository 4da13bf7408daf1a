"""Where the broker listens (`listeners`) and what it tells clients (`advertised.listeners`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from semel.broker.settings.definitions import BadSetting
from semel.broker.settings.of_security import PROTOCOLS

LAST_PORT = 65535
PROTOCOL_MAP = "listener.security.protocol.map"


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


class NamedAddress(NamedTuple):
    """One of `listeners`, or of `advertised.listeners`."""

    name: str
    protocol: str
    address: Address

    @property
    def has_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def has_sasl(self) -> bool:
        return self.protocol.startswith("SASL")


def parse_protocols(entries: Iterable[str]) -> dict[str, str]:
    """`listener.security.protocol.map`: the protocol of each listener's name."""
    protocols = {}
    for entry in entries:
        name, colon, protocol = (part.strip().upper() for part in entry.partition(":"))
        if not name or not colon or protocol not in PROTOCOLS:
            raise _bad(PROTOCOL_MAP, entry, f"expected NAME:PROTOCOL, of {', '.join(PROTOCOLS)}")
        protocols[name] = protocol
    return protocols


def parse_listeners(name: str, text: str, protocols: Mapping[str, str]) -> list[NamedAddress]:
    """`NAME://host:port,…` as addresses; an empty host means every interface."""
    found = [_parse(name, one.strip(), protocols) for one in text.split(",") if one.strip()]
    if not found:
        raise _bad(name, text, "expected NAME://host:port")
    if len({one.name for one in found}) < len(found):
        raise _bad(name, text, "Each listener must have a different name")
    return found


def check_ports(name: str, text: str, found: list[NamedAddress]) -> None:
    """Listeners of one broker do not share a port, unless one is IPv4 and the other IPv6."""
    ports = [(one.address.port, one.address.is_ipv6) for one in found if one.address.port]
    if len(set(ports)) < len(ports):
        raise _bad(name, text, "Each listener must have a different port")


def parse_advertised(name: str, text: str, listeners: list[NamedAddress]) -> dict[str, Address]:
    """What clients are told, by listener; it must lead somewhere."""
    known = {one.name: one.protocol for one in listeners}
    found = parse_listeners(name, text, known | {one: one for one in PROTOCOLS})
    for one in found:
        if one.name not in known:
            raise _bad(name, text, f"there is no listener {one.name} in listeners")
        if one.address.is_wildcard or not one.address.port:
            raise _bad(name, text, "clients need a name or address, and a port, to connect to")
    return {one.name: one.address for one in found}


def _parse(name: str, text: str, protocols: Mapping[str, str]) -> NamedAddress:
    listener, separator, rest = text.partition("://")
    host, colon, port = rest.rpartition(":")
    if not separator or not colon or not port.isascii() or not port.isdigit():
        raise _bad(name, text, "expected NAME://host:port, as PLAINTEXT://127.0.0.1:9092")
    if int(port) > LAST_PORT:
        raise _bad(name, text, f"a port is a number from 0 to {LAST_PORT}")
    listener = listener.upper()
    protocol = protocols.get(listener)
    if protocol is None:
        raise _bad(
            name,
            text,
            f"{listener} is none of {', '.join(PROTOCOLS)}; say in {PROTOCOL_MAP} which of them "
            "it speaks",
        )
    return NamedAddress(listener, protocol, Address(host.strip("[]"), int(port)))


def _bad(name: str, text: str, why: str) -> BadSetting:
    return BadSetting(f"Invalid value {text} for configuration {name}: {why}")
