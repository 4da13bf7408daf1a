"""StreamsGroupDescribe (API 89): the members of streams groups and their tasks.

Versions. 0, flexible.
"""

from __future__ import annotations

from semel.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int64,
    nested,
    string,
    uint16,
)


class StreamsGroupDescribeRequest(Message, api_key=89, versions="0", flexible="0+"):
    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


class StreamsGroupDescribeResponse(Message, api_key=89, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    groups: list[StreamsGroupDescribeResponse.DescribedGroup] = array("DescribedGroup")

    class DescribedGroup(Struct):
        error_code: int = int16()
        error_message: str | None = string(None, nullable="0+")
        group_id: str = string()
        group_state: str = string()
        group_epoch: int = int32()
        assignment_epoch: int = int32()
        topology: StreamsGroupDescribeResponse.Topology | None = nested(
            "Topology", None, nullable="0+"
        )
        members: list[StreamsGroupDescribeResponse.Member] = array("Member")
        authorized_operations: int = int32(-2147483648)

    class Topology(Struct):
        epoch: int = int32()
        subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None = array(
            "Subtopology", None, nullable="0+"
        )

    class Member(Struct):
        member_id: str = string()
        member_epoch: int = int32()
        instance_id: str | None = string(None, nullable="0+")
        rack_id: str | None = string(None, nullable="0+")
        client_id: str = string()
        client_host: str = string()
        topology_epoch: int = int32()
        process_id: str = string()
        user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = nested(
            "Endpoint", None, nullable="0+"
        )
        client_tags: list[StreamsGroupDescribeResponse.KeyValue] = array("KeyValue")
        task_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = array("TaskOffset")
        task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = array("TaskOffset")
        assignment: StreamsGroupDescribeResponse.Assignment = nested("Assignment")
        target_assignment: StreamsGroupDescribeResponse.Assignment = nested("Assignment")
        is_classic: bool = boolean()

    class Subtopology(Struct):
        subtopology_id: str = string()
        source_topics: list[str] = array(string)
        repartition_sink_topics: list[str] = array(string)
        state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo] = array("TopicInfo")
        repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo] = array("TopicInfo")

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

    class Assignment(Struct):
        active_tasks: list[StreamsGroupDescribeResponse.TaskIds] = array("TaskIds")
        standby_tasks: list[StreamsGroupDescribeResponse.TaskIds] = array("TaskIds")
        warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds] = array("TaskIds")

    class TopicInfo(Struct):
        name: str = string()
        partitions: int = int32()
        replication_factor: int = int16()
        topic_configs: list[StreamsGroupDescribeResponse.KeyValue] = array("KeyValue")

    class TaskIds(Struct):
        subtopology_id: str = string()
        partitions: list[int] = array(int32)
