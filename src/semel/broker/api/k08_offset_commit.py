"""OffsetCommit: a group's position in its partitions.

Who may: READ on the GROUP and on each TOPIC. Answers when the offsets are durable.
Versions 2-10: 2-4 a retention time, 6 leader epochs, 7 static members, 9 member epochs of consumer
groups (KIP-848) and GROUP_ID_NOT_FOUND, 10 topic ids.
Not here: which member may commit: `core/groups/offsets`.
"""

from __future__ import annotations

from typing import Any

from semel.broker.context import Context
from semel.broker.replies import when
from semel.core.groups.commands import OffsetCommit, OffsetToCommit
from semel.core.groups.replies import CommitReply
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

API_KEY = 8
VERSIONS = ADVERTISED[API_KEY]
TOPIC_IDS_SINCE = 10

Partition = OffsetCommitResponse.OffsetCommitResponsePartition


def handle(ctx: Context, request: OffsetCommitRequest, version: int) -> Any:
    may_read = ctx.may("READ", "GROUP", request.group_id)
    response = OffsetCommitResponse()
    offsets: list[OffsetToCommit] = []
    pending: list[Partition] = []
    for asked in request.topics:
        answered = OffsetCommitResponse.OffsetCommitResponseTopic(
            name=asked.name, topic_id=asked.topic_id
        )
        response.topics.append(answered)
        topic, error = _topic(ctx, asked, version)
        for partition in asked.partitions:
            answer = Partition(partition_index=partition.partition_index)
            answered.partitions.append(answer)
            if not may_read:
                answer.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
            elif error is not None:
                answer.error_code = error
            elif not 0 <= partition.partition_index < topic.partition_count:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                pending.append(answer)
                offsets.append(
                    OffsetToCommit(
                        topic.name,
                        partition.partition_index,
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        partition.committed_metadata or "",
                        topic.id,
                    )
                )
    if not offsets:
        return response
    command = OffsetCommit(
        request.group_id,
        tuple(offsets),
        request.member_id,
        request.generation_id_or_member_epoch,
        request.group_instance_id,
        request.retention_time_ms,
        version,
    )
    reply = ctx.groups.submit(request.group_id, command)
    return when(reply, lambda settled: _filled(response, pending, settled))


def _topic(ctx: Context, asked: Any, version: int) -> tuple[Any, ErrorCode | None]:
    catalog = ctx.catalog
    by_id = version >= TOPIC_IDS_SINCE
    topic = catalog.topics_by_id.get(asked.topic_id) if by_id else catalog.topics.get(asked.name)
    if topic is None and by_id:
        return None, ErrorCode.UNKNOWN_TOPIC_ID
    if not ctx.may("READ", "TOPIC", asked.name if topic is None else topic.name):
        return None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if topic is None:
        return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return topic, None


def _filled(
    response: OffsetCommitResponse, pending: list[Partition], reply: CommitReply
) -> OffsetCommitResponse:
    for answer, error in zip(pending, reply.errors, strict=True):
        answer.error_code = error
    return response
