"""Heartbeat: a member of a classic group lives, and hears whether a rebalance is on.

Who may: READ on the GROUP. Answers at once. Versions 0-4: 3 static members.
Not here: sessions and generations: `core/groups/classic/life`.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.replies import NowOrLater, when
from semel.core.groups.commands import Heartbeat
from semel.core.groups.replies import ErrorReply
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

API_KEY = 12
VERSIONS = ADVERTISED[API_KEY]


def handle(ctx: Context, request: HeartbeatRequest, version: int) -> NowOrLater[HeartbeatResponse]:
    if not ctx.may("READ", "GROUP", request.group_id):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    command = Heartbeat(
        request.group_id, request.generation_id, request.member_id, request.group_instance_id
    )
    return when(ctx.groups.submit(request.group_id, command), _response)


def _response(reply: ErrorReply) -> HeartbeatResponse:
    """While the group is being loaded nothing is known against the member (as in Kafka)."""
    is_loading = reply.error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else reply.error)
