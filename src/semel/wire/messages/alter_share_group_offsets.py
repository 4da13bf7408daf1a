"""AlterShareGroupOffsets (API 91): where a share group shall begin to read.

Versions. 0, flexible.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, int16, int32, int64, string, uuid


class AlterShareGroupOffsetsRequest(Message, api_key=91, versions="0", flexible="0+"):
    group_id: str = string()
    topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic] = array(
        "AlterShareGroupOffsetsRequestTopic"
    )

    class AlterShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = string()
        partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = (
            array("AlterShareGroupOffsetsRequestPartition")
        )

    class AlterShareGroupOffsetsRequestPartition(Struct):
        partition_index: int = int32()
        start_offset: int = int64()


class AlterShareGroupOffsetsResponse(Message, api_key=91, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(None, nullable="0+")
    responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic] = array(
        "AlterShareGroupOffsetsResponseTopic"
    )

    class AlterShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = string()
        topic_id: UUID = uuid()
        partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition] = (
            array("AlterShareGroupOffsetsResponsePartition")
        )

    class AlterShareGroupOffsetsResponsePartition(Struct):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(None, nullable="0+")
