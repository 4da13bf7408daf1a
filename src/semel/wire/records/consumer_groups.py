"""The records of `__consumer_offsets` for KIP-848 groups.

A group is many records: its epoch, its members, the epoch and members of the assignment that it
aims at, what each member holds now, and what regular expressions resolved to. The key's bytes
begin with its type (API_KEY, two bytes), the value's with its version (two bytes); neither is
part of these messages. `ConsumerGroupPartitionMetadata` is in logs of Kafka 4.0 only: 4.1 put a
hash in its place, and the coordinator leaves it alone.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import (
    Message,
    Struct,
    array,
    binary,
    int8,
    int32,
    int64,
    nested,
    string,
    uuid,
)


class ConsumerGroupMetadataKey(Message, api_key=3, versions="0"):
    group_id: str = string()


class ConsumerGroupMetadataValue(Message, api_key=3, versions="0", flexible="0+"):
    epoch: int = int32()
    metadata_hash: int = int64(tag=0)


class ConsumerGroupPartitionMetadataKey(Message, api_key=4, versions="0"):
    group_id: str = string()


class ConsumerGroupPartitionMetadataValue(Message, api_key=4, versions="0", flexible="0+"):
    topics: list[ConsumerGroupPartitionMetadataValue.TopicMetadata] = array("TopicMetadata")

    class TopicMetadata(Struct):
        topic_id: UUID = uuid()
        topic_name: str = string()
        num_partitions: int = int32()
        partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata] = array(
            "PartitionMetadata"
        )

    class PartitionMetadata(Struct):
        partition: int = int32()
        racks: list[str] = array(string)


class ConsumerGroupMemberMetadataKey(Message, api_key=5, versions="0"):
    group_id: str = string()
    member_id: str = string()


class ConsumerGroupMemberMetadataValue(Message, api_key=5, versions="0", flexible="0+"):
    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable="0+")
    rebalance_timeout_ms: int = int32(-1)
    server_assignor: str | None = string(nullable="0+")
    classic_member_metadata: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None = nested(
        "ClassicMemberMetadata", nullable="0+", tag=0
    )

    class ClassicMemberMetadata(Struct):
        session_timeout_ms: int = int32()
        supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol] = array(
            "ClassicProtocol"
        )

    class ClassicProtocol(Struct):
        name: str = string()
        metadata: bytes = binary()


class ConsumerGroupTargetAssignmentMetadataKey(Message, api_key=6, versions="0"):
    group_id: str = string()


class ConsumerGroupTargetAssignmentMetadataValue(Message, api_key=6, versions="0", flexible="0+"):
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)


class ConsumerGroupTargetAssignmentMemberKey(Message, api_key=7, versions="0"):
    group_id: str = string()
    member_id: str = string()


class ConsumerGroupTargetAssignmentMemberValue(Message, api_key=7, versions="0", flexible="0+"):
    topic_partitions: list[ConsumerGroupTargetAssignmentMemberValue.TopicPartition] = array(
        "TopicPartition"
    )

    class TopicPartition(Struct):
        topic_id: UUID = uuid()
        partitions: list[int] = array(int32)


class ConsumerGroupCurrentMemberAssignmentKey(Message, api_key=8, versions="0"):
    group_id: str = string()
    member_id: str = string()


class ConsumerGroupCurrentMemberAssignmentValue(Message, api_key=8, versions="0", flexible="0+"):
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = array(
        "TopicPartitions"
    )
    partitions_pending_revocation: list[
        ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
    ] = array("TopicPartitions")

    class TopicPartitions(Struct):
        topic_id: UUID = uuid()
        partitions: list[int] = array(int32)
        assignment_epochs: list[int] | None = array(int32, nullable="0+", tag=0)


class ConsumerGroupRegularExpressionKey(Message, api_key=16, versions="0"):
    group_id: str = string()
    regular_expression: str = string()


class ConsumerGroupRegularExpressionValue(Message, api_key=16, versions="0", flexible="0+"):
    topics: list[str] = array(string)
    version: int = int64()
    timestamp: int = int64()
