"""DeleteShareGroupOffsets (API 92): a share group forgets topics.

Versions. 0, flexible.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, int16, int32, string, uuid


class DeleteShareGroupOffsetsRequest(Message, api_key=92, versions="0", flexible="0+"):
    group_id: str = string()
    topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic] = array(
        "DeleteShareGroupOffsetsRequestTopic"
    )

    class DeleteShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = string()


class DeleteShareGroupOffsetsResponse(Message, api_key=92, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(None, nullable="0+")
    responses: list[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic] = array(
        "DeleteShareGroupOffsetsResponseTopic"
    )

    class DeleteShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = string()
        topic_id: UUID = uuid()
        error_code: int = int16()
        error_message: str | None = string(None, nullable="0+")
