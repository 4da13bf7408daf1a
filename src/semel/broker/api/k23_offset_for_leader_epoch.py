"""OffsetForLeaderEpoch: where a leader epoch ended, so that clients notice a forked log.

Who may: CLUSTER_ACTION on the CLUSTER, or DESCRIBE on each TOPIC. Answers with the largest epoch at
or below the one asked for, and the offset after its last record; -1 and -1 where nothing is known.
Versions 2-4 (KIP-320).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from semel.broker.context import CLUSTER_NAME
from semel.core.partition.epochs import epoch_end, epoch_refusal
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

if TYPE_CHECKING:
    from semel.broker.context import Context

API_KEY = 23
VERSIONS = ADVERTISED[API_KEY]

AskedTopic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
Asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition
Answer = OffsetForLeaderEpochResponse.EpochEndOffset


def handle(
    ctx: Context, request: OffsetForLeaderEpochRequest, version: int
) -> OffsetForLeaderEpochResponse:
    sees_all = ctx.may_quietly("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=_answers(ctx, topic, sees_all),
            )
            for topic in request.topics
        ]
    )


def _answers(ctx: Context, topic: AskedTopic, sees_all: bool) -> list[Answer]:
    if sees_all or ctx.may("DESCRIBE", "TOPIC", topic.topic):
        return [_answer(ctx, topic.topic, asked) for asked in topic.partitions]
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return [Answer(error_code=denied, partition=asked.partition) for asked in topic.partitions]


def _answer(ctx: Context, topic: str, asked: Asked) -> Answer:
    answer = Answer(partition=asked.partition)
    partition = ctx.partitions.find(topic, asked.partition)
    if partition is None:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif refused := epoch_refusal(asked.current_leader_epoch, partition.leader_epoch):
        answer.error_code = refused.error
    elif partition.log.offline is not None:
        answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    else:
        end = epoch_end(partition.epochs, asked.leader_epoch, partition.log.next_offset)
        answer.leader_epoch, answer.end_offset = end
    return answer
