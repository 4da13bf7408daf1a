"""AlterPartitionReassignments (API 45): move partitions to other brokers, or stop moving them.

Versions. 0: flexible. 1: the number of replicas may be kept from changing. Null replicas cancel.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, boolean, int16, int32, string


class AlterPartitionReassignmentsRequest(Message, api_key=45, versions="0-1", flexible="0+"):
    timeout_ms: int = int32(60_000)
    allow_replication_factor_change: bool = boolean(True, versions="1+")
    topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic] = array("ReassignableTopic")

    class ReassignableTopic(Struct):
        name: str = string()
        partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = array(
            "ReassignablePartition"
        )

    class ReassignablePartition(Struct):
        partition_index: int = int32()
        replicas: list[int] | None = array(int32, None, nullable="0+")


class AlterPartitionReassignmentsResponse(Message, api_key=45, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean(True, versions="1+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = array(
        "ReassignableTopicResponse"
    )

    class ReassignableTopicResponse(Struct):
        name: str = string()
        partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = array(
            "ReassignablePartitionResponse"
        )

    class ReassignablePartitionResponse(Struct):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
