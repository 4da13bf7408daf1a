"""DescribeGroups: state and members of classic groups.

Who may: DESCRIBE on each GROUP. Answers at once. Versions 0-6: 3 authorized operations, 4 static
members, 6 GROUP_ID_NOT_FOUND where older versions show a dead group.
Not here: what is told of a group: `core/groups/admin`.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.operations import allowed
from semel.broker.replies import settled
from semel.core.groups.commands import DescribeGroup
from semel.core.groups.replies import DescribedGroup, ErrorReply
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

API_KEY = 15
VERSIONS = ADVERTISED[API_KEY]
NOT_FOUND_SINCE = 6


async def handle(
    ctx: Context, request: DescribeGroupsRequest, version: int
) -> DescribeGroupsResponse:
    groups = [await _describe(ctx, group_id, version) for group_id in request.groups]
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                operations = allowed(ctx, "GROUP", group.group_id)
                group.authorized_operations = operations
    return DescribeGroupsResponse(groups=groups)


async def _describe(
    ctx: Context, group_id: str, version: int
) -> DescribeGroupsResponse.DescribedGroup:
    if not ctx.may("DESCRIBE", "GROUP", group_id):
        return _failed(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    reply: DescribedGroup | ErrorReply = await settled(
        ctx.groups.submit(group_id, DescribeGroup(group_id))
    )
    if isinstance(reply, ErrorReply):
        return _failed(group_id, reply.error)
    return _described(reply, version)


def _failed(group_id: str, error: ErrorCode) -> DescribeGroupsResponse.DescribedGroup:
    return DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=error)


def _described(group: DescribedGroup, version: int) -> DescribeGroupsResponse.DescribedGroup:
    described = DescribeGroupsResponse.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_name,
        members=[
            DescribeGroupsResponse.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ],
    )
    if version >= NOT_FOUND_SINCE:
        described.error_code, described.error_message = group.error, group.message
    return described
