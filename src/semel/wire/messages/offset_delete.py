"""OffsetDelete (API 47): deletes a group's committed offsets of topics that it does not read.

Versions. 0, and never flexible.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int16, int32, string


class OffsetDeleteRequest(Message, api_key=47, versions="0"):
    group_id: str = string()
    topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic] = array("OffsetDeleteRequestTopic")

    class OffsetDeleteRequestTopic(Struct):
        name: str = string()
        partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = array(
            "OffsetDeleteRequestPartition"
        )

    class OffsetDeleteRequestPartition(Struct):
        partition_index: int = int32()


class OffsetDeleteResponse(Message, api_key=47, versions="0"):
    error_code: int = int16()
    throttle_time_ms: int = int32()
    topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic] = array(
        "OffsetDeleteResponseTopic"
    )

    class OffsetDeleteResponseTopic(Struct):
        name: str = string()
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = array(
            "OffsetDeleteResponsePartition"
        )

    class OffsetDeleteResponsePartition(Struct):
        partition_index: int = int32()
        error_code: int = int16()
