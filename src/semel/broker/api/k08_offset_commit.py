"""OffsetCommit: a group's position in its partitions.

Who may: READ on the GROUP and on each TOPIC. Answers when the offsets are durable.
Versions 2-10: 2-4 a retention time, 6 leader epochs, 7 static members, 9 member epochs of consumer
groups (KIP-848) and GROUP_ID_NOT_FOUND, 10 topic ids.
Not here: which member may commit: `core/groups/offsets/requests`.
"""

from __future__ import annotations

from semel.broker.catalog.catalog import Topic
from semel.broker.context import Context
from semel.broker.replies import NowOrLater, when
from semel.core.groups.commands import OffsetCommit, OffsetToCommit
from semel.core.groups.replies import CommitReply
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

API_KEY = 8
VERSIONS = ADVERTISED[API_KEY]
TOPIC_IDS_SINCE = 10

AskedTopic = OffsetCommitRequest.OffsetCommitRequestTopic
AnsweredTopic = OffsetCommitResponse.OffsetCommitResponseTopic
Partition = OffsetCommitResponse.OffsetCommitResponsePartition


def handle(
    ctx: Context, request: OffsetCommitRequest, version: int
) -> NowOrLater[OffsetCommitResponse]:
    return handle_many(ctx, [request], version)[0]


def handle_many(
    ctx: Context, requests: list[OffsetCommitRequest], version: int
) -> list[NowOrLater[OffsetCommitResponse]]:
    """What a client sent without waiting goes to the log as one batch."""
    asked = [_understood(ctx, request, version) for request in requests]
    commands = [command for command, _, _ in asked if command is not None]
    replies = iter(ctx.groups.submit_all(commands))
    return [
        response if command is None else _answer(response, pending, next(replies))
        for command, response, pending in asked
    ]


def _understood(
    ctx: Context, request: OffsetCommitRequest, version: int
) -> tuple[OffsetCommit | None, OffsetCommitResponse, list[Partition]]:
    """The command, the response to it, and the partitions that wait for the command's errors."""
    denied = None
    if not ctx.may("READ", "GROUP", request.group_id):
        denied = ErrorCode.GROUP_AUTHORIZATION_FAILED
    topics: list[AnsweredTopic] = []
    offsets: list[OffsetToCommit] = []
    pending: list[Partition] = []
    for asked in request.topics:
        topic = denied or _topic(ctx, asked, version)
        partitions: list[Partition] = []
        topics.append(
            AnsweredTopic(name=asked.name, topic_id=asked.topic_id, partitions=partitions)
        )
        for partition in asked.partitions:
            index = partition.partition_index
            if isinstance(topic, ErrorCode):
                refusal = topic
            elif not 0 <= index < topic.partition_count:
                refusal = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                answer = Partition(partition_index=index)
                partitions.append(answer)
                pending.append(answer)
                offsets.append(
                    OffsetToCommit(
                        topic.name,
                        index,
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        partition.committed_metadata or "",
                        topic.id,
                    )
                )
                continue
            partitions.append(Partition(partition_index=index, error_code=refusal))
    response = OffsetCommitResponse(topics=topics)
    if not offsets:
        return None, response, pending
    command = OffsetCommit(
        request.group_id,
        tuple(offsets),
        request.member_id,
        request.generation_id_or_member_epoch,
        request.group_instance_id,
        request.retention_time_ms,
        version,
    )
    return command, response, pending


def _topic(ctx: Context, asked: AskedTopic, version: int) -> Topic | ErrorCode:
    catalog = ctx.catalog
    by_id = version >= TOPIC_IDS_SINCE
    topic = catalog.topics_by_id.get(asked.topic_id) if by_id else catalog.topics.get(asked.name)
    if topic is None and by_id:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not ctx.may("READ", "TOPIC", asked.name if topic is None else topic.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return topic


def _answer(
    response: OffsetCommitResponse, pending: list[Partition], reply: NowOrLater[CommitReply]
) -> NowOrLater[OffsetCommitResponse]:
    return when(reply, lambda reply: _filled(response, pending, reply))


def _filled(
    response: OffsetCommitResponse, pending: list[Partition], reply: CommitReply
) -> OffsetCommitResponse:
    for answer, error in zip(pending, reply.errors, strict=True):
        answer.error_code = error
    return response
