"""ConsumerGroupDescribe: epochs, members, what they have and what they are to have (KIP-848).

Who may: DESCRIBE on each GROUP and on every TOPIC its members have. Answers at once.
Versions 0-1: 1 tells which members speak the classic protocol.
Not here: what is told of a group: `core/groups/admin`.
"""

from __future__ import annotations

from uuid import UUID

from semel.broker.context import Context
from semel.broker.operations import allowed
from semel.broker.replies import settled
from semel.core.groups.commands import ConsumerGroupDescribe
from semel.core.groups.replies import DescribedConsumer, DescribedConsumerGroup, ErrorReply
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

API_KEY = 69
VERSIONS = ADVERTISED[API_KEY]
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1

Group = ConsumerGroupDescribeResponse.DescribedGroup
Member = ConsumerGroupDescribeResponse.Member


async def handle(
    ctx: Context, request: ConsumerGroupDescribeRequest, version: int
) -> ConsumerGroupDescribeResponse:
    groups = [await _describe(ctx, group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                operations = allowed(ctx, "GROUP", group.group_id)
                group.authorized_operations = operations
    return ConsumerGroupDescribeResponse(groups=groups)


async def _describe(ctx: Context, group_id: str) -> Group:
    if "consumer" not in ctx.settings["group.coordinator.rebalance.protocols"]:
        return Group(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not ctx.may("DESCRIBE", "GROUP", group_id):
        return Group(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not group_id:
        return Group(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    reply: DescribedConsumerGroup | ErrorReply = await settled(
        ctx.groups.submit(group_id, ConsumerGroupDescribe(group_id))
    )
    if isinstance(reply, ErrorReply):
        return Group(group_id=group_id, error_code=reply.error)
    return _described(ctx, reply)


def _described(ctx: Context, group: DescribedConsumerGroup) -> Group:
    members = [_member(ctx, member) for member in group.members]
    if not all(_may_see(ctx, member) for member in members):
        return Group(
            group_id=group.group_id,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="The group has described topic(s) that the client is not authorized "
            "to describe.",
        )
    return Group(
        group_id=group.group_id,
        error_code=group.error,
        error_message=group.message,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=members,
    )


def _may_see(ctx: Context, member: Member) -> bool:
    return all(
        ctx.may("DESCRIBE", "TOPIC", topic.topic_name)
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    )


def _member(ctx: Context, member: DescribedConsumer) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(ctx, member.assignment),
        target_assignment=_assignment(ctx, member.target_assignment),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(
    ctx: Context, partitions: dict[UUID, list[int]]
) -> ConsumerGroupDescribeResponse.Assignment:
    """A topic that was deleted has no name any more and is left out."""
    topics = ctx.catalog.topics_by_id
    return ConsumerGroupDescribeResponse.Assignment(
        topic_partitions=[
            ConsumerGroupDescribeResponse.TopicPartitions(
                topic_id=topic_id, topic_name=topics[topic_id].name, partitions=numbers
            )
            for topic_id, numbers in partitions.items()
            if topic_id in topics
        ]
    )
