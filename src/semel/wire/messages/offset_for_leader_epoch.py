"""OffsetForLeaderEpoch (API 23): where a leader epoch ended, to notice diverged logs.

Versions. 2: the leader epoch that the asker knows, throttle time. 3: replica id. 4: flexible.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int16, int32, int64, string


class OffsetForLeaderEpochRequest(Message, api_key=23, versions="2-4", flexible="4+"):
    replica_id: int = int32(-2, versions="3+", ignorable=True)
    topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = array("OffsetForLeaderTopic")

    class OffsetForLeaderTopic(Struct):
        topic: str = string()
        partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = array(
            "OffsetForLeaderPartition"
        )

    class OffsetForLeaderPartition(Struct):
        partition: int = int32()
        current_leader_epoch: int = int32(-1)
        leader_epoch: int = int32()


class OffsetForLeaderEpochResponse(Message, api_key=23, versions="2-4", flexible="4+"):
    throttle_time_ms: int = int32()
    topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = array(
        "OffsetForLeaderTopicResult"
    )

    class OffsetForLeaderTopicResult(Struct):
        topic: str = string()
        partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = array("EpochEndOffset")

    class EpochEndOffset(Struct):
        error_code: int = int16()
        partition: int = int32()
        leader_epoch: int = int32(-1)
        end_offset: int = int64(-1)
