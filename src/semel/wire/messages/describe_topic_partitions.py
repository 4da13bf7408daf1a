"""DescribeTopicPartitions (API 75): topics with their partitions, in pages.

Versions. 0, flexible. A cursor says where the next page begins.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, boolean, int16, int32, nested, string, uuid


class DescribeTopicPartitionsRequest(Message, api_key=75, versions="0", flexible="0+"):
    topics: list[DescribeTopicPartitionsRequest.TopicRequest] = array("TopicRequest")
    response_partition_limit: int = int32(2000)
    cursor: DescribeTopicPartitionsRequest.Cursor | None = nested("Cursor", None, nullable="0+")

    class TopicRequest(Struct):
        name: str = string()

    class Cursor(Struct):
        topic_name: str = string()
        partition_index: int = int32()


class DescribeTopicPartitionsResponse(Message, api_key=75, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = array(
        "DescribeTopicPartitionsResponseTopic"
    )
    next_cursor: DescribeTopicPartitionsResponse.Cursor | None = nested(
        "Cursor", None, nullable="0+"
    )

    class DescribeTopicPartitionsResponseTopic(Struct):
        error_code: int = int16()
        name: str | None = string(nullable="0+")
        topic_id: UUID = uuid()
        is_internal: bool = boolean()
        partitions: list[
            DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
        ] = array("DescribeTopicPartitionsResponsePartition")
        topic_authorized_operations: int = int32(-(2**31))

    class Cursor(Struct):
        topic_name: str = string()
        partition_index: int = int32()

    class DescribeTopicPartitionsResponsePartition(Struct):
        error_code: int = int16()
        partition_index: int = int32()
        leader_id: int = int32()
        leader_epoch: int = int32(-1)
        replica_nodes: list[int] = array(int32)
        isr_nodes: list[int] = array(int32)
        eligible_leader_replicas: list[int] | None = array(int32, None, nullable="0+")
        last_known_elr: list[int] | None = array(int32, None, nullable="0+")
        offline_replicas: list[int] = array(int32)
