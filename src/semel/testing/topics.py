"""Makes topics in a broker under test, by the rules of CreateTopics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from semel.broker.catalog.topics import check_configs, check_new_name
from semel.broker.failures import ApiError

if TYPE_CHECKING:
    from semel.broker.catalog.catalog import Topic
    from semel.broker.server import Broker


def make_topic(broker: Broker, name: str, partitions: int, configs: Mapping[str, object]) -> Topic:
    if partitions < 1:
        raise ValueError(f"a topic has at least one partition, not {partitions}")
    if name in broker.catalog.topics:
        raise ValueError(
            f"there is a topic {name!r} already: make it before anybody writes to it, or let "
            "kafka.topic() choose a name"
        )
    try:
        check_new_name(broker.catalog, name)
        given = {key: _text(value) for key, value in configs.items()}
        checked = check_configs(broker.settings, given)
    except ApiError as problem:
        raise ValueError(str(problem)) from None
    return broker.catalog.create_topic(name, partitions, checked)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
