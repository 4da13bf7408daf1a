"""The rules for making topics: names, partition counts, assignments, configs; as in Kafka.

Mirrors Topic.validate and ReplicationControlManager.createTopic; on one node a partition has one
replica.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from semel.broker.catalog.catalog import Catalog
from semel.broker.failures import ApiError
from semel.broker.settings.definitions import BadSetting
from semel.broker.settings.of_topics import TOPIC_SETTINGS
from semel.broker.settings.settings import Settings, TopicConfig
from semel.core.access.quotas import Mutations
from semel.wire.errors import ErrorCode

if TYPE_CHECKING:
    from semel.wire.messages.create_topics import CreateTopicsRequest

    Assignment = CreateTopicsRequest.CreatableReplicaAssignment

LONGEST_NAME = 249
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
#: ReplicationControlManager.MAX_PARTITIONS_PER_BATCH.
MOST_PARTITIONS = 10_000
METADATA_TOPIC = "__cluster_metadata"


def check_name(name: str) -> None:
    problem = _name_problem(name)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def _name_problem(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return "'.' or '..' is not allowed"
    if len(name) > LONGEST_NAME:
        return f"the length of '{name}' is longer than the max allowed length {LONGEST_NAME}"
    if not LEGAL_NAME.fullmatch(name):
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None


def check_new_name(catalog: Catalog, name: str) -> None:
    check_name(name)
    if name == METADATA_TOPIC:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        )
    if name in catalog.topics:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if "." in name or "_" in name:
        _check_no_collision(catalog, name)


def _check_no_collision(catalog: Catalog, name: str) -> None:
    """Metric names turn dots into underscores, so two names that differ only there collide."""
    other = catalog.like(name)
    if other is not None:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {other}",
        )


def take_mutations(mutations: Mutations | None, topic: str, partitions: int) -> None:
    """Refuse what a client's quota of mutations does not allow now (KIP-599)."""
    if mutations is not None and not mutations.take(topic, partitions):
        raise ApiError(
            ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded."
        )


def partition_count(
    settings: Settings,
    node_id: int,
    partitions: int,
    replicas: int,
    assignments: Sequence[Assignment],
) -> int:
    """How many partitions a CreateTopics entry asks for."""
    if assignments:
        return _assigned_count(node_id, partitions, replicas, assignments)
    if replicas == -1:
        replicas = settings["default.replication.factor"]
    if replicas == 0 or replicas < -1:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if partitions == 0 or partitions < -1:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    if replicas > 1:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replicas} time(s): The target replication factor "
            f"of {replicas} cannot be reached because only 1 broker(s) are registered.",
        )
    count: int = settings["num.partitions"] if partitions == -1 else partitions
    if count > MOST_PARTITIONS:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, "Excessively large number of partitions per request."
        )
    return count


def _assigned_count(
    node_id: int, partitions: int, replicas: int, assignments: Sequence[Assignment]
) -> int:
    for value, name in ((replicas, "replication factor"), (partitions, "numPartitions")):
        if value != -1:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {name} was not set to -1.",
            )
    indexes = sorted(assignment.partition_index for assignment in assignments)
    if indexes != list(range(len(indexes))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    for assignment in assignments:
        check_replicas(node_id, assignment.broker_ids)
    return len(indexes)


def check_replicas(node_id: int, broker_ids: Sequence[int]) -> None:
    """A manual assignment can only name this one broker, once."""
    problem = None
    unknown = [broker_id for broker_id in broker_ids if broker_id != node_id]
    if not broker_ids:
        problem = "an empty replica list."
    elif len(set(broker_ids)) < len(broker_ids):
        problem = f"the broker {broker_ids[0]} more than once."
    elif unknown:
        problem = f"broker {unknown[0]}, but no such broker is registered."
    if problem is not None:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The manual partition assignment includes {problem}",
        )


def check_configs(settings: Settings, configs: Mapping[str, str | None]) -> dict[str, str]:
    """A topic's own settings, checked one by one and against each other."""
    checked = {}
    try:
        for name, text in configs.items():
            setting = TOPIC_SETTINGS.named(name, "topic config")
            if text is None:
                raise BadSetting(f"Null value not supported for topic configs: {name}")
            setting.parse(text)
            checked[name] = text
        _check_together(TopicConfig(settings, checked))
    except BadSetting as problem:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(problem)) from None
    return checked


def _check_together(config: TopicConfig) -> None:
    least, most = config["min.compaction.lag.ms"], config["max.compaction.lag.ms"]
    if least > most:
        raise BadSetting(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > "
            f"max.compaction.lag.ms ({most})"
        )
