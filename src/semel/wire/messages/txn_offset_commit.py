"""TxnOffsetCommit (API 28): a group's offsets that become valid with a transaction.

Versions. 1: a throttled answer comes at once. 2: leader epochs. 3: flexible; generation, member
and instance id, so that members that were left behind are refused (KIP-447). 4:
TRANSACTION_ABORTABLE is possible. 5: adds the offsets to the transaction by itself (KIP-890).
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int16, int32, int64, string


class TxnOffsetCommitRequest(Message, api_key=28, versions="0-5", flexible="3+"):
    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32(-1, versions="3+")
    member_id: str = string(versions="3+")
    group_instance_id: str | None = string(None, versions="3+", nullable="0+")
    topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = array(
        "TxnOffsetCommitRequestTopic"
    )

    class TxnOffsetCommitRequestTopic(Struct):
        name: str = string()
        partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = array(
            "TxnOffsetCommitRequestPartition"
        )

    class TxnOffsetCommitRequestPartition(Struct):
        partition_index: int = int32()
        committed_offset: int = int64()
        committed_leader_epoch: int = int32(-1, versions="2+", ignorable=True)
        committed_metadata: str | None = string(nullable="0+")


class TxnOffsetCommitResponse(Message, api_key=28, versions="0-5", flexible="3+"):
    throttle_time_ms: int = int32()
    topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic] = array(
        "TxnOffsetCommitResponseTopic"
    )

    class TxnOffsetCommitResponseTopic(Struct):
        name: str = string()
        partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = array(
            "TxnOffsetCommitResponsePartition"
        )

    class TxnOffsetCommitResponsePartition(Struct):
        partition_index: int = int32()
        error_code: int = int16()
