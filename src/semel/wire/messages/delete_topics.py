"""DeleteTopics (API 20): deletes topics.

Versions. 1: the oldest left. 2: a throttled answer comes at once. 3: TOPIC_DELETION_DISABLED is
possible. 4: flexible. 5: error messages. 6: topics by name or id.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, int16, int32, string, uuid


class DeleteTopicsRequest(Message, api_key=20, versions="1-6", flexible="4+"):
    topics: list[DeleteTopicsRequest.DeleteTopicState] = array("DeleteTopicState", versions="6+")
    topic_names: list[str] = array(string, versions="0-5", ignorable=True)
    timeout_ms: int = int32()

    class DeleteTopicState(Struct):
        name: str | None = string(None, nullable="0+")
        topic_id: UUID = uuid()


class DeleteTopicsResponse(Message, api_key=20, versions="1-6", flexible="4+"):
    throttle_time_ms: int = int32()
    responses: list[DeleteTopicsResponse.DeletableTopicResult] = array("DeletableTopicResult")

    class DeletableTopicResult(Struct):
        name: str | None = string(nullable="6+")
        topic_id: UUID = uuid(versions="6+", ignorable=True)
        error_code: int = int16()
        error_message: str | None = string(None, versions="5+", nullable="0+", ignorable=True)
