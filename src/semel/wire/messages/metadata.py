"""Metadata (API 3): brokers, topics and partition leaders.

Versions. 0: no topics means all. 1: null means all and an empty list none; racks, controller,
internal topics. 2: cluster id. 3: throttle time. 4: whether topics may be created by asking. 5:
offline replicas. 6: a throttled answer comes at once. 7: leader epochs. 8: authorized operations
on demand. 9: flexible. 10: topic ids in the answer. 11: the cluster's authorized operations moved
to DescribeCluster. 12: topics can be asked for by id. 13: an error for the whole answer.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, boolean, int16, int32, string, uuid


class MetadataRequest(Message, api_key=3, versions="0-13", flexible="9+"):
    topics: list[MetadataRequest.MetadataRequestTopic] | None = array(
        "MetadataRequestTopic", nullable="1+"
    )
    allow_auto_topic_creation: bool = boolean(True, versions="4+")
    include_cluster_authorized_operations: bool = boolean(versions="8-10")
    include_topic_authorized_operations: bool = boolean(versions="8+")

    class MetadataRequestTopic(Struct):
        topic_id: UUID = uuid(versions="10+", ignorable=True)
        name: str | None = string(nullable="10+")


class MetadataResponse(Message, api_key=3, versions="0-13", flexible="9+"):
    throttle_time_ms: int = int32(versions="3+", ignorable=True)
    brokers: list[MetadataResponse.MetadataResponseBroker] = array("MetadataResponseBroker")
    cluster_id: str | None = string(None, versions="2+", nullable="0+", ignorable=True)
    controller_id: int = int32(-1, versions="1+", ignorable=True)
    topics: list[MetadataResponse.MetadataResponseTopic] = array("MetadataResponseTopic")
    cluster_authorized_operations: int = int32(-(2**31), versions="8-10")
    error_code: int = int16(versions="13+", ignorable=True)

    class MetadataResponseBroker(Struct):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(None, versions="1+", nullable="0+", ignorable=True)

    class MetadataResponseTopic(Struct):
        error_code: int = int16()
        name: str | None = string(nullable="12+")
        topic_id: UUID = uuid(versions="10+", ignorable=True)
        is_internal: bool = boolean(versions="1+", ignorable=True)
        partitions: list[MetadataResponse.MetadataResponsePartition] = array(
            "MetadataResponsePartition"
        )
        topic_authorized_operations: int = int32(-(2**31), versions="8+")

    class MetadataResponsePartition(Struct):
        error_code: int = int16()
        partition_index: int = int32()
        leader_id: int = int32()
        leader_epoch: int = int32(-1, versions="7+", ignorable=True)
        replica_nodes: list[int] = array(int32)
        isr_nodes: list[int] = array(int32)
        offline_replicas: list[int] = array(int32, versions="5+", ignorable=True)
