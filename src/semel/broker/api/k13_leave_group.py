"""LeaveGroup: members of a classic group go, or an administrator removes some.

Who may: READ on the GROUP. Answers at once; the rebalance follows.
Versions 0-5: 3 several members and static ones by their instance id, 5 a reason.
Not here: what the rest of the group does: `core/groups/classic/life`.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.replies import NowOrLater, when
from semel.core.groups.commands import LeaveGroup
from semel.core.groups.replies import LeaveReply
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

API_KEY = 13
VERSIONS = ADVERTISED[API_KEY]
SEVERAL_SINCE = 3


def handle(
    ctx: Context, request: LeaveGroupRequest, version: int
) -> NowOrLater[LeaveGroupResponse]:
    if not ctx.may("READ", "GROUP", request.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    members = tuple((m.member_id, m.group_instance_id) for m in request.members)
    if version < SEVERAL_SINCE:
        members = ((request.member_id, None),)
    reply = ctx.groups.submit(request.group_id, LeaveGroup(request.group_id, members))
    return when(reply, lambda reply: _response(reply, version))


def _response(reply: LeaveReply, version: int) -> LeaveGroupResponse:
    if version < SEVERAL_SINCE:
        error = reply.error
        if error is ErrorCode.NONE and reply.members:
            error = reply.members[0][2]
        return LeaveGroupResponse(error_code=error)
    return LeaveGroupResponse(
        error_code=reply.error,
        members=[
            LeaveGroupResponse.MemberResponse(
                member_id=member_id, group_instance_id=instance_id, error_code=error
            )
            for member_id, instance_id, error in reply.members
        ],
    )
