"""CreateTopics (API 19): creates topics, or only checks whether it could.

Versions. 2: the oldest left. 3: a throttled answer comes at once. 4: partitions and replication
factor may be left to the broker (-1). 5: flexible; the answer tells partitions, replication
factor and configs. 6: THROTTLING_QUOTA_EXCEEDED is possible. 7: topic ids in the answer.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, boolean, int8, int16, int32, string, uuid


class CreateTopicsRequest(Message, api_key=19, versions="2-7", flexible="5+"):
    topics: list[CreateTopicsRequest.CreatableTopic] = array("CreatableTopic")
    timeout_ms: int = int32(60000)
    validate_only: bool = boolean()

    class CreatableTopic(Struct):
        name: str = string()
        num_partitions: int = int32()
        replication_factor: int = int16()
        assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = array(
            "CreatableReplicaAssignment"
        )
        configs: list[CreateTopicsRequest.CreatableTopicConfig] = array("CreatableTopicConfig")

    class CreatableReplicaAssignment(Struct):
        partition_index: int = int32()
        broker_ids: list[int] = array(int32)

    class CreatableTopicConfig(Struct):
        name: str = string()
        value: str | None = string(nullable="0+")


class CreateTopicsResponse(Message, api_key=19, versions="2-7", flexible="5+"):
    throttle_time_ms: int = int32()
    topics: list[CreateTopicsResponse.CreatableTopicResult] = array("CreatableTopicResult")

    class CreatableTopicResult(Struct):
        name: str = string()
        topic_id: UUID = uuid(versions="7+", ignorable=True)
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
        topic_config_error_code: int = int16(versions="5+", tag=0, ignorable=True)
        num_partitions: int = int32(-1, versions="5+", ignorable=True)
        replication_factor: int = int16(-1, versions="5+", ignorable=True)
        configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = array(
            "CreatableTopicConfigs", versions="5+", nullable="0+", ignorable=True
        )

    class CreatableTopicConfigs(Struct):
        name: str = string()
        value: str | None = string(nullable="0+")
        read_only: bool = boolean()
        config_source: int = int8(-1)
        is_sensitive: bool = boolean()
