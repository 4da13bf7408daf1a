"""ShareFetch (API 78): records for a member of a share group, and acknowledgements on the way.

Versions. 1: flexible; how many records. 2: how they are acquired, acknowledgements that renew.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import (
    Message,
    Records,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    nested,
    records,
    string,
    uuid,
)


class ShareFetchRequest(Message, api_key=78, versions="1-2", flexible="0+"):
    group_id: str | None = string(None, nullable="0+")
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(2147483647)
    max_records: int = int32(versions="1+")
    batch_size: int = int32(versions="1+")
    share_acquire_mode: int = int8(versions="2+", ignorable=True)
    is_renew_ack: bool = boolean(False, versions="2+")
    topics: list[ShareFetchRequest.FetchTopic] = array("FetchTopic")
    forgotten_topics_data: list[ShareFetchRequest.ForgottenTopic] = array("ForgottenTopic")

    class FetchTopic(Struct):
        topic_id: UUID = uuid()
        partitions: list[ShareFetchRequest.FetchPartition] = array("FetchPartition")

    class ForgottenTopic(Struct):
        topic_id: UUID = uuid()
        partitions: list[int] = array(int32)

    class FetchPartition(Struct):
        partition_index: int = int32()
        partition_max_bytes: int = int32(versions="0")
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = array(
            "AcknowledgementBatch"
        )

    class AcknowledgementBatch(Struct):
        first_offset: int = int64()
        last_offset: int = int64()
        acknowledge_types: list[int] = array(int8)


class ShareFetchResponse(Message, api_key=78, versions="1-2", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(None, nullable="0+")
    acquisition_lock_timeout_ms: int = int32(versions="1+")
    responses: list[ShareFetchResponse.ShareFetchableTopicResponse] = array(
        "ShareFetchableTopicResponse"
    )
    node_endpoints: list[ShareFetchResponse.NodeEndpoint] = array("NodeEndpoint")

    class ShareFetchableTopicResponse(Struct):
        topic_id: UUID = uuid()
        partitions: list[ShareFetchResponse.PartitionData] = array("PartitionData")

    class NodeEndpoint(Struct):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(None, nullable="0+")

    class PartitionData(Struct):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(None, nullable="0+")
        acknowledge_error_code: int = int16()
        acknowledge_error_message: str | None = string(None, nullable="0+")
        current_leader: ShareFetchResponse.LeaderIdAndEpoch = nested("LeaderIdAndEpoch")
        records: Records = records(b"")
        acquired_records: list[ShareFetchResponse.AcquiredRecords] = array("AcquiredRecords")

    class LeaderIdAndEpoch(Struct):
        leader_id: int = int32()
        leader_epoch: int = int32()

    class AcquiredRecords(Struct):
        first_offset: int = int64()
        last_offset: int = int64()
        delivery_count: int = int16()
