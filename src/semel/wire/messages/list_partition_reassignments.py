"""ListPartitionReassignments (API 46): which partitions are on their way to other brokers.

Versions. 0, flexible. Null topics means all.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int16, int32, string


class ListPartitionReassignmentsRequest(Message, api_key=46, versions="0", flexible="0+"):
    timeout_ms: int = int32(60_000)
    topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None = array(
        "ListPartitionReassignmentsTopics", None, nullable="0+"
    )

    class ListPartitionReassignmentsTopics(Struct):
        name: str = string()
        partition_indexes: list[int] = array(int32)


class ListPartitionReassignmentsResponse(Message, api_key=46, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = array(
        "OngoingTopicReassignment"
    )

    class OngoingTopicReassignment(Struct):
        name: str = string()
        partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = array(
            "OngoingPartitionReassignment"
        )

    class OngoingPartitionReassignment(Struct):
        partition_index: int = int32()
        replicas: list[int] = array(int32)
        adding_replicas: list[int] = array(int32)
        removing_replicas: list[int] = array(int32)
