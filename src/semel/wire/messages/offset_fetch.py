"""OffsetFetch (API 9): how far groups have read.

Versions. 1: the oldest left. 2: null topics mean all; an error for the whole group. 3: throttle
time. 4: a throttled answer comes at once. 5: leader epochs. 6: flexible. 7: `require_stable`,
which waits for open transactions. 8: many groups at once. 9: member and epoch of KIP-848 groups.
10: topics by id.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, boolean, int16, int32, int64, string, uuid


class OffsetFetchRequest(Message, api_key=9, versions="1-10", flexible="6+"):
    group_id: str = string(versions="0-7")
    topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None = array(
        "OffsetFetchRequestTopic", versions="0-7", nullable="2-7"
    )
    groups: list[OffsetFetchRequest.OffsetFetchRequestGroup] = array(
        "OffsetFetchRequestGroup", versions="8+"
    )
    require_stable: bool = boolean(versions="7+")

    class OffsetFetchRequestTopic(Struct):
        name: str = string()
        partition_indexes: list[int] = array(int32)

    class OffsetFetchRequestGroup(Struct):
        group_id: str = string()
        member_id: str | None = string(None, versions="9+", nullable="0+", ignorable=True)
        member_epoch: int = int32(-1, versions="9+", ignorable=True)
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = array(
            "OffsetFetchRequestTopics", nullable="0+"
        )

    class OffsetFetchRequestTopics(Struct):
        name: str = string(versions="8-9", ignorable=True)
        topic_id: UUID = uuid(versions="10+", ignorable=True)
        partition_indexes: list[int] = array(int32)


class OffsetFetchResponse(Message, api_key=9, versions="1-10", flexible="6+"):
    throttle_time_ms: int = int32(versions="3+", ignorable=True)
    topics: list[OffsetFetchResponse.OffsetFetchResponseTopic] = array(
        "OffsetFetchResponseTopic", versions="0-7"
    )
    error_code: int = int16(versions="2-7", ignorable=True)
    groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = array(
        "OffsetFetchResponseGroup", versions="8+"
    )

    class OffsetFetchResponseTopic(Struct):
        name: str = string()
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = array(
            "OffsetFetchResponsePartition"
        )

    class OffsetFetchResponseGroup(Struct):
        group_id: str = string()
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = array(
            "OffsetFetchResponseTopics"
        )
        error_code: int = int16()

    class OffsetFetchResponsePartition(Struct):
        partition_index: int = int32()
        committed_offset: int = int64()
        committed_leader_epoch: int = int32(-1, versions="5-7", ignorable=True)
        metadata: str | None = string(nullable="0+")
        error_code: int = int16()

    class OffsetFetchResponseTopics(Struct):
        name: str = string(versions="8-9", ignorable=True)
        topic_id: UUID = uuid(versions="10+", ignorable=True)
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = array(
            "OffsetFetchResponsePartitions"
        )

    class OffsetFetchResponsePartitions(Struct):
        partition_index: int = int32()
        committed_offset: int = int64()
        committed_leader_epoch: int = int32(-1)
        metadata: str | None = string(nullable="0+")
        error_code: int = int16()
