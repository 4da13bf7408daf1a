"""CreatePartitions (API key 37, versions 0-3): give topics more partitions. There is no way back.

Who may:   ALTER on the Topic.
Answers:   when durable, each topic on its own.
Versions:  2 flexible, 3 may be throttled.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from semel.broker.catalog.catalog import Topic
from semel.broker.catalog.draft import CatalogDraft
from semel.broker.catalog.topics import MOST_PARTITIONS, check_replicas, take_mutations
from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.core.access.quotas import Mutations
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)

API_KEY = 37
VERSIONS = ADVERTISED[API_KEY]
STRICT_SINCE = 3  # older clients do not know THROTTLING_QUOTA_EXCEEDED (KIP-599)

Asked = CreatePartitionsRequest.CreatePartitionsTopic
Result = CreatePartitionsResponse.CreatePartitionsTopicResult


async def handle(
    ctx: Context, request: CreatePartitionsRequest, version: int
) -> CreatePartitionsResponse:
    mutations = ctx.mutations(version >= STRICT_SINCE)
    response = await ctx.catalog.change(partial(_decide, ctx, request, mutations))
    if mutations is not None:
        response.throttle_time_ms = mutations.throttle_ms
    return response


def _decide(
    ctx: Context, request: CreatePartitionsRequest, mutations: Mutations | None, draft: CatalogDraft
) -> CreatePartitionsResponse:
    times = Counter(topic.name for topic in request.topics)
    results = {}
    for asked in request.topics:
        result = results[asked.name] = Result(name=asked.name)
        try:
            topic = _checked(ctx, asked, times[asked.name])
            if not request.validate_only:
                take_mutations(mutations, topic.name, asked.count - topic.partition_count)
                draft.add_partitions(topic, asked.count)
        except ApiError as problem:
            result.error_code, result.error_message = problem.code, problem.message
    return CreatePartitionsResponse(results=list(results.values()))


def _checked(ctx: Context, asked: Asked, times: int) -> Topic:
    if times > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if not ctx.may("ALTER", "TOPIC", asked.name):
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    topic = ctx.catalog.topics.get(asked.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    _check_count(topic, asked.count)
    if asked.assignments is not None:
        _check_assignments(ctx, asked.count - topic.partition_count, asked.assignments)
    return topic


def _check_count(topic: Topic, count: int) -> None:
    present = topic.partition_count
    problem = None
    if count == present:
        problem = f"Topic already has {present} partition(s)."
    elif count < present:
        problem = (
            f"The topic {topic.name} currently has {present} partition(s); "
            f"{count} would not be an increase."
        )
    elif count - present > MOST_PARTITIONS:
        problem = "Excessively large number of partitions per request."
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, problem)


def _check_assignments(
    ctx: Context, added: int, assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment]
) -> None:
    if len(assignments) != added:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {added} additional partition(s), "
            f"but only {len(assignments)} assignment(s) were specified.",
        )
    for assignment in assignments:
        check_replicas(ctx.catalog.node_id, assignment.broker_ids)
