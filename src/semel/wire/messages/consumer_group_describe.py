"""ConsumerGroupDescribe (API 69): state, members and assignments of KIP-848 groups.

Versions. 0, flexible. 1: what kind each member is (classic or consumer).
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    nested,
    string,
    uuid,
)


class ConsumerGroupDescribeRequest(Message, api_key=69, versions="0-1", flexible="0+"):
    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


class ConsumerGroupDescribeResponse(Message, api_key=69, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32()
    groups: list[ConsumerGroupDescribeResponse.DescribedGroup] = array("DescribedGroup")

    class DescribedGroup(Struct):
        error_code: int = int16()
        error_message: str | None = string(None, nullable="0+")
        group_id: str = string()
        group_state: str = string()
        group_epoch: int = int32()
        assignment_epoch: int = int32()
        assignor_name: str = string()
        members: list[ConsumerGroupDescribeResponse.Member] = array("Member")
        authorized_operations: int = int32(-(2**31))

    class Member(Struct):
        member_id: str = string()
        instance_id: str | None = string(None, nullable="0+")
        rack_id: str | None = string(None, nullable="0+")
        member_epoch: int = int32()
        client_id: str = string()
        client_host: str = string()
        subscribed_topic_names: list[str] = array(string)
        subscribed_topic_regex: str | None = string(None, nullable="0+")
        assignment: ConsumerGroupDescribeResponse.Assignment = nested("Assignment")
        target_assignment: ConsumerGroupDescribeResponse.Assignment = nested("Assignment")
        member_type: int = int8(-1, versions="1+", ignorable=True)

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions] = array(
            "TopicPartitions"
        )

    class TopicPartitions(Struct):
        topic_id: UUID = uuid()
        topic_name: str = string()
        partitions: list[int] = array(int32)
