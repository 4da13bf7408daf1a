"""CreatePartitions (API 37): adds partitions to topics.

Versions. 1: a throttled answer comes at once. 2: flexible. 3: THROTTLING_QUOTA_EXCEEDED is
possible.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, boolean, int16, int32, string


class CreatePartitionsRequest(Message, api_key=37, versions="0-3", flexible="2+"):
    topics: list[CreatePartitionsRequest.CreatePartitionsTopic] = array("CreatePartitionsTopic")
    timeout_ms: int = int32()
    validate_only: bool = boolean()

    class CreatePartitionsTopic(Struct):
        name: str = string()
        count: int = int32()
        assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = array(
            "CreatePartitionsAssignment", nullable="0+"
        )

    class CreatePartitionsAssignment(Struct):
        broker_ids: list[int] = array(int32)


class CreatePartitionsResponse(Message, api_key=37, versions="0-3", flexible="2+"):
    throttle_time_ms: int = int32()
    results: list[CreatePartitionsResponse.CreatePartitionsTopicResult] = array(
        "CreatePartitionsTopicResult"
    )

    class CreatePartitionsTopicResult(Struct):
        name: str = string()
        error_code: int = int16()
        error_message: str | None = string(None, nullable="0+")
