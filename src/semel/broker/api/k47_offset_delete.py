"""OffsetDelete: forget a group's position in partitions it no longer reads.

Who may: DELETE on the GROUP, READ on each TOPIC. Answers when it is durable. Version 0.
Not here: whether the group still reads the topic: `core/groups/offsets/requests`.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.replies import NowOrLater, when
from semel.core.groups.commands import OffsetDelete
from semel.core.groups.replies import DeleteOffsetsReply
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

API_KEY = 47
VERSIONS = ADVERTISED[API_KEY]

Partition = OffsetDeleteResponse.OffsetDeleteResponsePartition


def handle(
    ctx: Context, request: OffsetDeleteRequest, version: int
) -> NowOrLater[OffsetDeleteResponse]:
    if not ctx.may("DELETE", "GROUP", request.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    response = OffsetDeleteResponse()
    wanted: list[tuple[str, int]] = []
    pending: list[Partition] = []
    for asked in request.topics:
        answered = OffsetDeleteResponse.OffsetDeleteResponseTopic(name=asked.name)
        response.topics.append(answered)
        topic = ctx.catalog.topics.get(asked.name)
        for partition in asked.partitions:
            answer = Partition(partition_index=partition.partition_index)
            answered.partitions.append(answer)
            if not ctx.may("READ", "TOPIC", asked.name):
                answer.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif topic is None or not 0 <= partition.partition_index < topic.partition_count:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                wanted.append((asked.name, partition.partition_index))
                pending.append(answer)
    reply = ctx.groups.submit(request.group_id, OffsetDelete(request.group_id, tuple(wanted)))
    return when(reply, lambda reply: _filled(response, pending, reply))


def _filled(
    response: OffsetDeleteResponse, pending: list[Partition], reply: DeleteOffsetsReply
) -> OffsetDeleteResponse:
    if reply.error is not ErrorCode.NONE:
        return OffsetDeleteResponse(error_code=reply.error)
    for answer, error in zip(pending, reply.errors, strict=True):
        answer.error_code = error
    return response
