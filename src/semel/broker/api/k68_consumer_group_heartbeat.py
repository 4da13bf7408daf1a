"""ConsumerGroupHeartbeat: join, stay in and leave a consumer group (KIP-848).

Who may: READ on the GROUP, DESCRIBE on each TOPIC named. Answers at once.
Versions 0-1: 1 regular expressions, and member ids made by the client.
Not here: epochs, targets and reconciliation: `core/groups/consumer/heartbeat`.
"""

from __future__ import annotations

import base64
from uuid import uuid4

from semel.broker.context import Context
from semel.broker.replies import NowOrLater, when
from semel.core.groups.commands import ConsumerGroupHeartbeat
from semel.core.groups.consumer.group import LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from semel.core.groups.replies import HeartbeatReply
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

API_KEY = 68
VERSIONS = ADVERTISED[API_KEY]
OWN_MEMBER_ID_SINCE = 1
NO_ROOM = "The members of all groups say more than groups.max.bytes."


def handle(
    ctx: Context, request: ConsumerGroupHeartbeatRequest, version: int
) -> NowOrLater[ConsumerGroupHeartbeatResponse]:
    refusal = _denied(ctx, request) or _invalid(ctx, request, version)
    if refusal is not None:
        return _response(refusal)
    ctx.groups.heard(ctx, request.group_id, request.member_id, request.member_epoch < 0)
    if request.subscribed_topic_names and ctx.groups.room <= 0:
        return _response(HeartbeatReply(ErrorCode.GROUP_MAX_SIZE_REACHED, NO_ROOM))
    command = _command(ctx, request)
    if command.member_epoch == 0 and command.instance_id is None:
        return when(ctx.groups.join(command), _response)
    return when(ctx.groups.submit(request.group_id, command), _response)


def _denied(ctx: Context, request: ConsumerGroupHeartbeatRequest) -> HeartbeatReply | None:
    if "consumer" not in ctx.settings["group.coordinator.rebalance.protocols"]:
        return HeartbeatReply(ErrorCode.UNSUPPORTED_VERSION)
    if not ctx.may("READ", "GROUP", request.group_id):
        return HeartbeatReply(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    names = request.subscribed_topic_names or ()
    if not all(ctx.may("DESCRIBE", "TOPIC", name) for name in names):
        return HeartbeatReply(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return None


def _invalid(
    ctx: Context, request: ConsumerGroupHeartbeatRequest, version: int
) -> HeartbeatReply | None:
    epoch = request.member_epoch
    needs_id = version >= OWN_MEMBER_ID_SINCE or epoch > 0 or epoch == LEAVE_EPOCH
    if needs_id and not request.member_id.strip():
        return _bad("MemberId can't be empty.")
    if not request.group_id.strip():
        return _bad("GroupId can't be empty.")
    if request.instance_id is not None and not request.instance_id.strip():
        return _bad("InstanceId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        return _bad("RackId can't be empty.")
    if epoch == 0:
        problem = _bad_join(request)
        if problem is not None:
            return problem
    elif epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        return _bad("InstanceId can't be null.")
    elif epoch < LEAVE_STATIC_EPOCH:
        return _bad("MemberEpoch is invalid.")
    assignors = ctx.groups.settings.consumer_assignors
    if request.server_assignor is not None and request.server_assignor not in assignors:
        return HeartbeatReply(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )
    return None


def _bad_join(request: ConsumerGroupHeartbeatRequest) -> HeartbeatReply | None:
    speaks_as_member = request.rebalance_timeout_ms == -1 and request.topic_partitions is None
    if speaks_as_member and request.member_id:
        # It says no more than a member that stays: one that left, and forgot to join anew. Kafka's
        # INVALID_REQUEST would be the death of librdkafka's consumers; fenced ones join properly.
        return HeartbeatReply(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"{request.member_id} is not a member: to join, it must say all that a join says.",
        )
    if request.rebalance_timeout_ms == -1:
        return _bad("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        return _bad("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return _bad(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining."
        )
    return None


def _bad(message: str) -> HeartbeatReply:
    return HeartbeatReply(ErrorCode.INVALID_REQUEST, message)


def _command(ctx: Context, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeat:
    names, owned = request.subscribed_topic_names, request.topic_partitions
    own = ctx.catalog.configs.get(("group", request.group_id), {})
    session_ms = own.get("consumer.session.timeout.ms")
    interval_ms = own.get("consumer.heartbeat.interval.ms")
    assignment_ms = own.get("consumer.assignment.interval.ms")
    return ConsumerGroupHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscribed_topic_names=None if names is None else tuple(names),
        subscribed_topic_regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=None
        if owned is None
        else tuple((topic.topic_id, tuple(topic.partitions)) for topic in owned),
        client_id=ctx.client_id or "",
        client_host=f"/{ctx.connection.peer_host}",
        fresh_member_id="" if request.member_id else _new_member_id(),
        session_timeout_ms=None if session_ms is None else int(session_ms),
        heartbeat_interval_ms=None if interval_ms is None else int(interval_ms),
        assignment_interval_ms=None if assignment_ms is None else int(assignment_ms),
    )


def _new_member_id() -> str:
    return base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")


def _response(reply: HeartbeatReply) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if reply.assignment is not None:
        assignment = ConsumerGroupHeartbeatResponse.Assignment(
            topic_partitions=[
                ConsumerGroupHeartbeatResponse.TopicPartitions(
                    topic_id=topic_id, partitions=partitions
                )
                for topic_id, partitions in reply.assignment.items()
            ]
        )
    return ConsumerGroupHeartbeatResponse(
        error_code=reply.error,
        error_message=reply.message,
        member_id=reply.member_id,
        member_epoch=reply.member_epoch,
        heartbeat_interval_ms=reply.heartbeat_interval_ms,
        assignment=assignment,
    )
