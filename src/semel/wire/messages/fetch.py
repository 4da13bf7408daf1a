"""Fetch (API 1): a consumer or follower reads record batches from partitions.

Versions. 4: isolation level, last stable offset and aborted transactions. 5: log start offsets.
6: KAFKA_STORAGE_ERROR is possible. 7: sessions, which only send what changed (KIP-227). 8: a
throttled answer comes at once. 9: the leader epoch that the reader knows. 10: zstd is allowed.
11: rack and preferred replica. 12: flexible; the epoch last read, so that divergence is noticed.
13: topics by id. 14: tiered storage's error. 15: the replica's state in place of its id. 16: the
answer names new leaders' addresses (KIP-951). 17: the follower's directory id (KIP-853). 18: the
follower's high watermark (KIP-1166).
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import (
    Message,
    Records,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    nested,
    records,
    string,
    uuid,
)


class FetchRequest(Message, api_key=1, versions="4-18", flexible="12+"):
    cluster_id: str | None = string(None, versions="12+", nullable="0+", tag=0, ignorable=True)
    replica_id: int = int32(-1, versions="0-14")
    replica_state: FetchRequest.ReplicaState = nested("ReplicaState", versions="15+", tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(0x7FFFFFFF)
    isolation_level: int = int8()
    session_id: int = int32(versions="7+", ignorable=True)
    session_epoch: int = int32(-1, versions="7+", ignorable=True)
    topics: list[FetchRequest.FetchTopic] = array("FetchTopic")
    forgotten_topics_data: list[FetchRequest.ForgottenTopic] = array(
        "ForgottenTopic", versions="7+"
    )
    rack_id: str = string(versions="11+", ignorable=True)

    class ReplicaState(Struct):
        replica_id: int = int32(-1)
        replica_epoch: int = int64(-1)

    class FetchTopic(Struct):
        topic: str = string(versions="0-12", ignorable=True)
        topic_id: UUID = uuid(versions="13+", ignorable=True)
        partitions: list[FetchRequest.FetchPartition] = array("FetchPartition")

    class ForgottenTopic(Struct):
        topic: str = string(versions="7-12", ignorable=True)
        topic_id: UUID = uuid(versions="13+", ignorable=True)
        partitions: list[int] = array(int32)

    class FetchPartition(Struct):
        partition: int = int32()
        current_leader_epoch: int = int32(-1, versions="9+", ignorable=True)
        fetch_offset: int = int64()
        last_fetched_epoch: int = int32(-1, versions="12+")
        log_start_offset: int = int64(-1, versions="5+", ignorable=True)
        partition_max_bytes: int = int32()
        replica_directory_id: UUID = uuid(versions="17+", tag=0, ignorable=True)
        high_watermark: int = int64(2**63 - 1, versions="18+", tag=1, ignorable=True)


class FetchResponse(Message, api_key=1, versions="4-18", flexible="12+"):
    throttle_time_ms: int = int32()
    error_code: int = int16(versions="7+", ignorable=True)
    session_id: int = int32(versions="7+")
    responses: list[FetchResponse.FetchableTopicResponse] = array("FetchableTopicResponse")
    node_endpoints: list[FetchResponse.NodeEndpoint] = array("NodeEndpoint", versions="16+", tag=0)

    class FetchableTopicResponse(Struct):
        topic: str = string(versions="0-12", ignorable=True)
        topic_id: UUID = uuid(versions="13+", ignorable=True)
        partitions: list[FetchResponse.PartitionData] = array("PartitionData")

    class NodeEndpoint(Struct):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(None, nullable="0+")

    class PartitionData(Struct):
        partition_index: int = int32()
        error_code: int = int16()
        high_watermark: int = int64()
        last_stable_offset: int = int64(-1)
        log_start_offset: int = int64(-1, versions="5+", ignorable=True)
        diverging_epoch: FetchResponse.EpochEndOffset = nested(
            "EpochEndOffset", versions="12+", tag=0
        )
        current_leader: FetchResponse.LeaderIdAndEpoch = nested(
            "LeaderIdAndEpoch", versions="12+", tag=1
        )
        snapshot_id: FetchResponse.SnapshotId = nested("SnapshotId", versions="12+", tag=2)
        aborted_transactions: list[FetchResponse.AbortedTransaction] | None = array(
            "AbortedTransaction", nullable="0+"
        )
        preferred_read_replica: int = int32(-1, versions="11+")
        records: Records = records(nullable="0+")

    class EpochEndOffset(Struct):
        epoch: int = int32(-1)
        end_offset: int = int64(-1)

    class LeaderIdAndEpoch(Struct):
        leader_id: int = int32(-1)
        leader_epoch: int = int32(-1)

    class SnapshotId(Struct):
        end_offset: int = int64(-1)
        epoch: int = int32(-1)

    class AbortedTransaction(Struct):
        producer_id: int = int64()
        first_offset: int = int64()
