"""ElectLeaders (API 43): the preferred, or any living, replica becomes a partition's leader.

Versions. 1: unclean elections, one error for the whole. 2: flexible. Null partitions means all.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int8, int16, int32, string


class ElectLeadersRequest(Message, api_key=43, versions="0-2", flexible="2+"):
    election_type: int = int8(versions="1+")
    topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None = array(
        "TopicPartitions", nullable="0+"
    )
    timeout_ms: int = int32(60_000)

    class TopicPartitions(Struct):
        topic: str = string()
        partitions: list[int] = array(int32)


class ElectLeadersResponse(Message, api_key=43, versions="0-2", flexible="2+"):
    throttle_time_ms: int = int32()
    error_code: int = int16(versions="1+")
    replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult] = array(
        "ReplicaElectionResult"
    )

    class ReplicaElectionResult(Struct):
        topic: str = string()
        partition_result: list[ElectLeadersResponse.PartitionResult] = array("PartitionResult")

    class PartitionResult(Struct):
        partition_id: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
