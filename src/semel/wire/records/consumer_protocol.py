"""What members of a classic group put into JoinGroup and SyncGroup."""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, binary, int32, string


class ConsumerProtocolSubscription(Message, versions="0-3"):
    topics: list[str] = array(string)
    user_data: bytes | None = binary(None, nullable="0+")
    owned_partitions: list[ConsumerProtocolSubscription.TopicPartition] = array(
        "TopicPartition", versions="1+", ignorable=True
    )
    generation_id: int = int32(-1, versions="2+", ignorable=True)
    rack_id: str | None = string(None, versions="3+", nullable="0+", ignorable=True)

    class TopicPartition(Struct):
        topic: str = string()
        partitions: list[int] = array(int32)


class ConsumerProtocolAssignment(Message, versions="0-3"):
    assigned_partitions: list[ConsumerProtocolAssignment.TopicPartition] = array("TopicPartition")
    user_data: bytes | None = binary(None, nullable="0+")

    class TopicPartition(Struct):
        topic: str = string()
        partitions: list[int] = array(int32)
