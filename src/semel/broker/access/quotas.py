"""Quotas of users, client ids and addresses: what may be asked about them, and what may be set.

The rules of Kafka's ClientQuotasImage (filters) and ClientQuotaControlManager (changes).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NoReturn

from semel.broker.failures import ApiError
from semel.wire.errors import ErrorCode
from semel.wire.messages.describe_client_quotas import DescribeClientQuotasRequest

USER, CLIENT_ID, IP = ENTITY_TYPES = "user", "client-id", "ip"

#: Quotas by what they are set on, and whether they are whole numbers.
_OF_CLIENTS = {
    "producer_byte_rate": True,
    "consumer_byte_rate": True,
    "request_percentage": False,
    "controller_mutation_rate": False,
}
_OF_ADDRESSES = {"connection_creation_rate": True}
_LARGEST = {"connection_creation_rate": (2**31 - 1, "an INT")}
_LARGEST_LONG = (2**63 - 1, "a LONG")
_FRACTION = 1e-6

Component = DescribeClientQuotasRequest.ComponentData
#: Entity type → name; None is the default of all that have no quota of their own.
Entity = Mapping[str, str | None]


class Match(IntEnum):
    """DescribeClientQuotasRequest's match types."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


def check_filter(components: Iterable[Component]) -> None:
    seen: set[str] = set()
    for component in components:
        kind = component.entity_type
        if not kind:
            _refuse("Invalid empty entity type.")
        if kind in seen:
            _refuse(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in ENTITY_TYPES:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        _check_match(component)
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        _refuse(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )


def _check_match(component: Component) -> None:
    try:
        match = Match(component.match_type)
    except ValueError:
        _refuse(f"Unknown match type {component.match_type}")
    if match is Match.EXACT:
        if component.match is None:
            _refuse("Request specified MATCH_TYPE_EXACT, but set match string to null.")
    elif component.match is not None:
        _refuse(f"Request specified MATCH_TYPE_{match.name}, but also specified a match string.")


def matches(entity: Entity, components: Iterable[Component], is_strict: bool) -> bool:
    """Whether an entity is what a filter asks for; a strict one asks for no other types."""
    wanted = list(components)
    if is_strict and len(entity) != len(wanted):
        return False
    return all(
        component.entity_type in entity
        and (
            component.match_type == Match.SPECIFIED
            or entity[component.entity_type] == component.match
        )
        for component in wanted
    )


def check_change(entity: Entity, quotas: Mapping[str, float | None]) -> None:
    """`quotas` by name; None removes one."""
    known = _quotas_of(entity)
    for key, value in quotas.items():
        if value is not None:
            _check_value(known, key, value)


def _quotas_of(entity: Entity) -> Mapping[str, bool]:
    if not entity:
        _refuse("Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in ENTITY_TYPES:
            _refuse(f"Unhandled client quota entity type: {kind}")
        if name == "":
            _refuse(f"Empty {kind} not supported")
    if IP not in entity:
        return _OF_CLIENTS
    if len(entity) > 1:
        _refuse(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId"
        )
    _check_address(entity[IP])
    return _OF_ADDRESSES


def _check_address(name: str | None) -> None:
    """An address only: a name would have to be looked up, while others wait."""
    try:
        if name is not None:
            ipaddress.ip_address(name)
    except ValueError:
        _refuse(f"{name} is not a valid IP or resolvable host.")


def _check_value(known: Mapping[str, bool], key: str, value: float) -> None:
    if key not in known:
        _refuse(f"Invalid configuration key {key}")
    if not value > 0:
        _refuse(f"Quota {key} must be greater than 0")
    if known[key]:
        largest, kind = _LARGEST.get(key, _LARGEST_LONG)
        if value > largest:
            _refuse(f"Proposed value for {key} is too large for {kind}.")
        if value % 1 > _FRACTION:
            _refuse(f"{key} cannot be a fractional value.")


def _refuse(why: str) -> NoReturn:
    raise ApiError(ErrorCode.INVALID_REQUEST, why)
