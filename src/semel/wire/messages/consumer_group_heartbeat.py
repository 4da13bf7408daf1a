"""ConsumerGroupHeartbeat (API 68): a member of a KIP-848 group joins, lives and leaves.

Versions. 0, flexible. 1: subscriptions by regular expression, and members choose their own ids
(KIP-1082).
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, int16, int32, nested, string, uuid


class ConsumerGroupHeartbeatRequest(Message, api_key=68, versions="0-1", flexible="0+"):
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(None, nullable="0+")
    rack_id: str | None = string(None, nullable="0+")
    rebalance_timeout_ms: int = int32(-1)
    subscribed_topic_names: list[str] | None = array(string, None, nullable="0+")
    subscribed_topic_regex: str | None = string(None, versions="1+", nullable="0+")
    server_assignor: str | None = string(None, nullable="0+")
    topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None = array(
        "TopicPartitions", None, nullable="0+"
    )

    class TopicPartitions(Struct):
        topic_id: UUID = uuid()
        partitions: list[int] = array(int32)


class ConsumerGroupHeartbeatResponse(Message, api_key=68, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(None, nullable="0+")
    member_id: str | None = string(None, nullable="0+")
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: ConsumerGroupHeartbeatResponse.Assignment | None = nested(
        "Assignment", None, nullable="0+"
    )

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = array(
            "TopicPartitions"
        )

    class TopicPartitions(Struct):
        topic_id: UUID = uuid()
        partitions: list[int] = array(int32)
