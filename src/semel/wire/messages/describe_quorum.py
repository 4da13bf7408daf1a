"""DescribeQuorum (API 55): the metadata quorum's leader, voters, observers and their lag.

Versions. 0, flexible. 1: when a replica last fetched and was last caught up. 2: messages, voters'
addresses and directory ids.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, int16, int32, int64, string, uint16, uuid


class DescribeQuorumRequest(Message, api_key=55, versions="0-2", flexible="0+"):
    topics: list[DescribeQuorumRequest.TopicData] = array("TopicData")

    class TopicData(Struct):
        topic_name: str = string()
        partitions: list[DescribeQuorumRequest.PartitionData] = array("PartitionData")

    class PartitionData(Struct):
        partition_index: int = int32()


class DescribeQuorumResponse(Message, api_key=55, versions="0-2", flexible="0+"):
    error_code: int = int16()
    error_message: str | None = string(versions="2+", nullable="0+", ignorable=True)
    topics: list[DescribeQuorumResponse.TopicData] = array("TopicData")
    nodes: list[DescribeQuorumResponse.Node] = array("Node", versions="2+")

    class TopicData(Struct):
        topic_name: str = string()
        partitions: list[DescribeQuorumResponse.PartitionData] = array("PartitionData")

    class Node(Struct):
        node_id: int = int32()
        listeners: list[DescribeQuorumResponse.Listener] = array("Listener")

    class PartitionData(Struct):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(versions="2+", nullable="0+", ignorable=True)
        leader_id: int = int32()
        leader_epoch: int = int32()
        high_watermark: int = int64()
        current_voters: list[DescribeQuorumResponse.ReplicaState] = array("ReplicaState")
        observers: list[DescribeQuorumResponse.ReplicaState] = array("ReplicaState")

    class Listener(Struct):
        name: str = string()
        host: str = string()
        port: int = uint16()

    class ReplicaState(Struct):
        replica_id: int = int32()
        replica_directory_id: UUID = uuid(versions="2+")
        log_end_offset: int = int64()
        last_fetch_timestamp: int = int64(-1, versions="1+", ignorable=True)
        last_caught_up_timestamp: int = int64(-1, versions="1+", ignorable=True)
