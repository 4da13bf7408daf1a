"""The bytes that classic consumers hide in JoinGroup and SyncGroup: subscriptions and assignments.

Kafka calls it the embedded consumer protocol. The broker only carries it, except that it wants to
know the topics, and translates when a group has members of both kinds. Every version begins with
the fields of the versions before it, so a version from the future is read as the last one known.
"""

from semel.wire.errors import ProtocolError
from semel.wire.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

Partitions = dict[str, list[int]]


class Malformed(ValueError):
    """Not a subscription or assignment of the consumer protocol."""


def read_topics(data: bytes) -> list[str] | None:
    """The subscribed topics, or None if the bytes are something else."""
    try:
        read_version(data)
        return ConsumerProtocolSubscription.decode(data, 2, 0)[0].topics
    except (Malformed, ProtocolError):
        return None


def read_version(data: bytes) -> int:
    if len(data) < 2:
        raise Malformed("not even a version")
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < 0:
        raise Malformed(f"version {version}")
    return version


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    version = min(read_version(data), ConsumerProtocolSubscription.VERSIONS[-1])
    try:
        return ConsumerProtocolSubscription.decode(data, 2, version)[0]
    except ProtocolError as error:
        raise Malformed(str(error)) from error


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    version = min(read_version(data), ConsumerProtocolAssignment.VERSIONS[-1])
    try:
        return ConsumerProtocolAssignment.decode(data, 2, version)[0]
    except ProtocolError as error:
        raise Malformed(str(error)) from error


def write_assignment(partitions: Partitions, version: int) -> bytes:
    version = min(version, ConsumerProtocolAssignment.VERSIONS[-1])
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in partitions.items()
        ]
    )
    out = bytearray(version.to_bytes(2, "big"))
    assignment.encode(out, version)
    return bytes(out)
