"""ShareGroupDescribe (API 77): the members of share groups and what they read.

Versions. 1, flexible.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, boolean, int16, int32, nested, string, uuid


class ShareGroupDescribeRequest(Message, api_key=77, versions="1", flexible="0+"):
    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


class ShareGroupDescribeResponse(Message, api_key=77, versions="1", flexible="0+"):
    throttle_time_ms: int = int32()
    groups: list[ShareGroupDescribeResponse.DescribedGroup] = array("DescribedGroup")

    class DescribedGroup(Struct):
        error_code: int = int16()
        error_message: str | None = string(None, nullable="0+")
        group_id: str = string()
        group_state: str = string()
        group_epoch: int = int32()
        assignment_epoch: int = int32()
        assignor_name: str = string()
        members: list[ShareGroupDescribeResponse.Member] = array("Member")
        authorized_operations: int = int32(-2147483648)

    class Member(Struct):
        member_id: str = string()
        rack_id: str | None = string(None, nullable="0+")
        member_epoch: int = int32()
        client_id: str = string()
        client_host: str = string()
        subscribed_topic_names: list[str] = array(string)
        assignment: ShareGroupDescribeResponse.Assignment = nested("Assignment")

    class Assignment(Struct):
        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = array(
            "TopicPartitions"
        )

    class TopicPartitions(Struct):
        topic_id: UUID = uuid()
        topic_name: str = string()
        partitions: list[int] = array(int32)
