"""DescribeTopicPartitions (API key 75, version 0): topics with their partitions, page by page.

Who may:   DESCRIBE on each Topic (others are left out, or refused if asked for by name).
Answers:   topics in the order of their names, at most as many partitions as asked for and as
           max.request.partition.size.limit allows, and a cursor to where the next page begins.
"""

from __future__ import annotations

from semel.broker.catalog.catalog import Topic
from semel.broker.catalog.internal_topics import INTERNAL_TOPICS
from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import allowed
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)

API_KEY = 75
VERSIONS = ADVERTISED[API_KEY]

Answer = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Partition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
Cursor = DescribeTopicPartitionsResponse.Cursor


def handle(
    ctx: Context, request: DescribeTopicPartitionsRequest, version: int
) -> DescribeTopicPartitionsResponse:
    start = request.cursor
    if start is not None and start.partition_index < 0:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "The cursor's partition must not be less than zero."
        )
    room = min(request.response_partition_limit, ctx.settings["max.request.partition.size.limit"])
    response = DescribeTopicPartitionsResponse()
    denied = []  # whether they are there is not looked at
    for name in _names(ctx, request):
        topic = ctx.catalog.topics.get(name)
        if not ctx.may("DESCRIBE", "TOPIC", name):
            denied.append(Answer(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name))
            continue
        if topic is None:
            response.topics.append(_absent(ctx, name))
            continue
        first = start.partition_index if start is not None and start.topic_name == name else 0
        if room <= 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=first)
            break
        response.topics.append(_answer(ctx, topic, first, room))
        room -= len(response.topics[-1].partitions)
        last = first + len(response.topics[-1].partitions)
        if last < topic.partition_count:
            response.next_cursor = Cursor(topic_name=name, partition_index=last)
            break
    response.topics += denied
    return response


def _names(ctx: Context, request: DescribeTopicPartitionsRequest) -> list[str]:
    """The topics asked for from the cursor on; without any, all that the client may see."""
    names = {topic.name for topic in request.topics}
    if not names:
        names = {name for name in ctx.catalog.topics if ctx.may_quietly("DESCRIBE", "TOPIC", name)}
    start = request.cursor
    return sorted(name for name in names if start is None or name >= start.topic_name)


def _absent(ctx: Context, name: str) -> Answer:
    return Answer(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=allowed(ctx, "TOPIC", name),
    )


def _answer(ctx: Context, topic: Topic, first: int, room: int) -> Answer:
    node = ctx.catalog.node_id
    last = min(topic.partition_count, first + room)
    return Answer(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        topic_authorized_operations=allowed(ctx, "TOPIC", topic.name),
        partitions=[
            Partition(
                partition_index=index,
                leader_id=node,
                leader_epoch=topic.leader_epochs[index],
                replica_nodes=[node],
                isr_nodes=[node],
                eligible_leader_replicas=[],
                last_known_elr=[],
            )
            for index in range(first, last)
        ],
    )
