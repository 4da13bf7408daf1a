"""StreamsGroupHeartbeat (API 88): join, stay in and leave a streams group (KIP-1071).

Versions. 0, flexible.
"""

from __future__ import annotations

from semel.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    nested,
    string,
    uint16,
)


class StreamsGroupHeartbeatRequest(Message, api_key=88, versions="0", flexible="0+"):
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    endpoint_information_epoch: int = int32()
    instance_id: str | None = string(None, nullable="0+")
    rack_id: str | None = string(None, nullable="0+")
    rebalance_timeout_ms: int = int32(-1)
    topology: StreamsGroupHeartbeatRequest.Topology | None = nested("Topology", None, nullable="0+")
    active_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = array(
        "TaskIds", None, nullable="0+"
    )
    standby_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = array(
        "TaskIds", None, nullable="0+"
    )
    warmup_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = array(
        "TaskIds", None, nullable="0+"
    )
    process_id: str | None = string(None, nullable="0+")
    user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None = nested(
        "Endpoint", None, nullable="0+"
    )
    client_tags: list[StreamsGroupHeartbeatRequest.KeyValue] | None = array(
        "KeyValue", None, nullable="0+"
    )
    task_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = array(
        "TaskOffset", None, nullable="0+"
    )
    task_end_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = array(
        "TaskOffset", None, nullable="0+"
    )
    shutdown_application: bool = boolean(False)

    class Topology(Struct):
        epoch: int = int32()
        subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology] = array("Subtopology")

    class TaskIds(Struct):
        subtopology_id: str = string()
        partitions: list[int] = array(int32)

    class Endpoint(Struct):
        host: str = string()
        port: int = uint16()

    class KeyValue(Struct):
        key: str = string()
        value: str = string()

    class TaskOffset(Struct):
        subtopology_id: str = string()
        partition: int = int32()
        offset: int = int64()

    class Subtopology(Struct):
        subtopology_id: str = string()
        source_topics: list[str] = array(string)
        source_topic_regex: list[str] = array(string)
        state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = array("TopicInfo")
        repartition_sink_topics: list[str] = array(string)
        repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = array("TopicInfo")
        copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup] = array(
            "CopartitionGroup"
        )

    class TopicInfo(Struct):
        name: str = string()
        partitions: int = int32()
        replication_factor: int = int16()
        topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue] = array("KeyValue")

    class CopartitionGroup(Struct):
        source_topics: list[int] = array(int16)
        source_topic_regex: list[int] = array(int16)
        repartition_source_topics: list[int] = array(int16)


class StreamsGroupHeartbeatResponse(Message, api_key=88, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(None, nullable="0+")
    member_id: str = string()
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    acceptable_recovery_lag: int = int32()
    task_offset_interval_ms: int = int32()
    status: list[StreamsGroupHeartbeatResponse.Status] | None = array("Status", nullable="0+")
    active_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = array(
        "TaskIds", None, nullable="0+"
    )
    standby_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = array(
        "TaskIds", None, nullable="0+"
    )
    warmup_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = array(
        "TaskIds", None, nullable="0+"
    )
    endpoint_information_epoch: int = int32()
    partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.EndpointToPartitions] | None = (
        array("EndpointToPartitions", None, nullable="0+")
    )

    class Status(Struct):
        status_code: int = int8()
        status_detail: str = string()

    class TaskIds(Struct):
        subtopology_id: str = string()
        partitions: list[int] = array(int32)

    class EndpointToPartitions(Struct):
        user_endpoint: StreamsGroupHeartbeatResponse.Endpoint = nested("Endpoint")
        active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = array(
            "TopicPartition"
        )
        standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = array(
            "TopicPartition"
        )

    class Endpoint(Struct):
        host: str = string()
        port: int = uint16()

    class TopicPartition(Struct):
        topic: str = string()
        partitions: list[int] = array(int32)
