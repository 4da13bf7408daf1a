"""OffsetCommit (API 8): a group stores how far it has read.

Versions. 2: the oldest left, with a retention time. 3: throttle time. 4: a throttled answer comes
at once. 5: no retention time any more. 6: leader epochs. 7: static members. 8: flexible. 9:
usable by KIP-848 groups, whose member epoch goes where the generation was. 10: topics by id.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, int16, int32, int64, string, uuid


class OffsetCommitRequest(Message, api_key=8, versions="2-10", flexible="8+"):
    group_id: str = string()
    generation_id_or_member_epoch: int = int32(-1)
    member_id: str = string()
    group_instance_id: str | None = string(None, versions="7+", nullable="0+")
    retention_time_ms: int = int64(-1, versions="2-4", ignorable=True)
    topics: list[OffsetCommitRequest.OffsetCommitRequestTopic] = array("OffsetCommitRequestTopic")

    class OffsetCommitRequestTopic(Struct):
        name: str = string(versions="0-9", ignorable=True)
        topic_id: UUID = uuid(versions="10+", ignorable=True)
        partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = array(
            "OffsetCommitRequestPartition"
        )

    class OffsetCommitRequestPartition(Struct):
        partition_index: int = int32()
        committed_offset: int = int64()
        committed_leader_epoch: int = int32(-1, versions="6+", ignorable=True)
        committed_metadata: str | None = string(nullable="0+")


class OffsetCommitResponse(Message, api_key=8, versions="2-10", flexible="8+"):
    throttle_time_ms: int = int32(versions="3+", ignorable=True)
    topics: list[OffsetCommitResponse.OffsetCommitResponseTopic] = array(
        "OffsetCommitResponseTopic"
    )

    class OffsetCommitResponseTopic(Struct):
        name: str = string(versions="0-9", ignorable=True)
        topic_id: UUID = uuid(versions="10+", ignorable=True)
        partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = array(
            "OffsetCommitResponsePartition"
        )

    class OffsetCommitResponsePartition(Struct):
        partition_index: int = int32()
        error_code: int = int16()
