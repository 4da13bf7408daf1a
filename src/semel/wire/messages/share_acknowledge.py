"""ShareAcknowledge (API 79): what became of records that a member of a share group was given.

Versions. 1: flexible. 2: acknowledgements that renew.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    nested,
    string,
    uuid,
)


class ShareAcknowledgeRequest(Message, api_key=79, versions="1-2", flexible="0+"):
    group_id: str | None = string(None, nullable="0+")
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    is_renew_ack: bool = boolean(False, versions="2+")
    topics: list[ShareAcknowledgeRequest.AcknowledgeTopic] = array("AcknowledgeTopic")

    class AcknowledgeTopic(Struct):
        topic_id: UUID = uuid()
        partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = array(
            "AcknowledgePartition"
        )

    class AcknowledgePartition(Struct):
        partition_index: int = int32()
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = array(
            "AcknowledgementBatch"
        )

    class AcknowledgementBatch(Struct):
        first_offset: int = int64()
        last_offset: int = int64()
        acknowledge_types: list[int] = array(int8)


class ShareAcknowledgeResponse(Message, api_key=79, versions="1-2", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(None, nullable="0+")
    acquisition_lock_timeout_ms: int = int32(versions="2+", ignorable=True)
    responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = array(
        "ShareAcknowledgeTopicResponse"
    )
    node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint] = array("NodeEndpoint")

    class ShareAcknowledgeTopicResponse(Struct):
        topic_id: UUID = uuid()
        partitions: list[ShareAcknowledgeResponse.PartitionData] = array("PartitionData")

    class NodeEndpoint(Struct):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(None, nullable="0+")

    class PartitionData(Struct):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(None, nullable="0+")
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = nested("LeaderIdAndEpoch")

    class LeaderIdAndEpoch(Struct):
        leader_id: int = int32()
        leader_epoch: int = int32()
