"""JoinGroup: become a member of a classic group, or come back for the next rebalance.

Who may: READ on the GROUP. Answers when everybody has joined (or the rebalance timeout has passed).
Versions 0-9: 1 rebalance timeout, 4 a member id first (KIP-394), 5 static members, 9 no assignment.
Not here: who leads, when a rebalance begins and ends: `core/groups/classic/joining`.
"""

from __future__ import annotations

from uuid import uuid4

from semel.broker.context import Context
from semel.broker.replies import NowOrLater
from semel.core.groups.commands import JoinGroup
from semel.core.groups.replies import JoinReply
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

API_KEY = 11
VERSIONS = ADVERTISED[API_KEY]
NULL_PROTOCOL_SINCE = 7


def handle(ctx: Context, request: JoinGroupRequest, version: int) -> NowOrLater[JoinGroupResponse]:
    if not ctx.may("READ", "GROUP", request.group_id):
        return _response(JoinReply(ErrorCode.GROUP_AUTHORIZATION_FAILED, ""), version)
    error = _refusal(ctx, request)
    if error is not None:
        return _response(JoinReply(error, request.member_id), version)
    return ctx.groups.submit_patiently(
        request.group_id,
        lambda request_id: _command(ctx, request, version, request_id),
        lambda reply: _response(reply, version),
    )


def _refusal(ctx: Context, request: JoinGroupRequest) -> ErrorCode | None:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    limits = ctx.groups.settings
    if not (
        limits.min_session_timeout_ms <= request.session_timeout_ms <= limits.max_session_timeout_ms
    ):
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return None


def _command(ctx: Context, request: JoinGroupRequest, version: int, request_id: int) -> JoinGroup:
    client_id = ctx.client_id or ""
    has_rebalance_timeout = request.rebalance_timeout_ms >= 0
    return JoinGroup(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=client_id,
        client_host=f"/{ctx.connection.peer_host}",
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=(
            request.rebalance_timeout_ms if has_rebalance_timeout else request.session_timeout_ms
        ),
        protocol_type=request.protocol_type,
        protocols=tuple([(p.name, p.metadata) for p in request.protocols]),
        version=version,
        fresh_member_id=(
            "" if request.member_id else f"{request.group_instance_id or client_id}-{uuid4()}"
        ),
        request_id=request_id,
        room=ctx.groups.room,
    )


def _response(reply: JoinReply, version: int) -> JoinGroupResponse:
    protocol_name = reply.protocol_name
    if protocol_name is None and version < NULL_PROTOCOL_SINCE:
        protocol_name = ""
    return JoinGroupResponse(
        error_code=reply.error,
        generation_id=reply.generation,
        protocol_type=reply.protocol_type,
        protocol_name=protocol_name,
        leader=reply.leader,
        skip_assignment=reply.skip_assignment,
        member_id=reply.member_id,
        members=[
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata,
            )
            for member in reply.members
        ],
    )
