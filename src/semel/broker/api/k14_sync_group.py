"""SyncGroup: the leader brings the assignment of a classic group, the others come for their share.

Who may: READ on the GROUP. Answers when the leader has sent the assignment and it is durable.
Versions 0-5: 3 static members, 5 protocol type and name, which then are mandatory (KIP-559).
Not here: the states: `core/groups/classic/life`.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.replies import NowOrLater
from semel.core.groups.commands import SyncGroup
from semel.core.groups.replies import SyncReply
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

API_KEY = 14
VERSIONS = ADVERTISED[API_KEY]
PROTOCOL_SINCE = 5


def handle(ctx: Context, request: SyncGroupRequest, version: int) -> NowOrLater[SyncGroupResponse]:
    error = _refusal(ctx, request, version)
    if error is not None:
        return _response(SyncReply(error))
    return ctx.groups.submit_patiently(
        request.group_id,
        lambda request_id: SyncGroup(
            group_id=request.group_id,
            generation=request.generation_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignments=tuple([(a.member_id, a.assignment) for a in request.assignments]),
            request_id=request_id,
        ),
        _response,
    )


def _refusal(ctx: Context, request: SyncGroupRequest, version: int) -> ErrorCode | None:
    if version >= PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if not ctx.may("READ", "GROUP", request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    return None


def _response(reply: SyncReply) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=reply.error,
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol_name,
        assignment=reply.assignment,
    )
