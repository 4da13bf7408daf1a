"""DeleteTopics (API key 20, versions 1-6): delete topics by name or, from version 6, by id.

Who may:   DELETE on the Cluster, or DELETE and, by name, DESCRIBE on the Topic; without DESCRIBE, a
           topic asked for by id is not named in the answer, and of one asked for by name it is not
           told whether it is there.
Answers:   when the deletion is durable; files are removed in the background.
Versions:  4 flexible, 5 error messages, 6 ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import partial

from semel.broker.catalog.catalog import Topic
from semel.broker.catalog.draft import CatalogDraft
from semel.broker.catalog.topics import take_mutations
from semel.broker.context import CLUSTER_NAME, Context
from semel.broker.failures import ApiError
from semel.core.access.quotas import Mutations
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from semel.wire.primitives import NO_UUID

API_KEY = 20
VERSIONS = ADVERTISED[API_KEY]
STRICT_SINCE = 5  # older clients do not know THROTTLING_QUOTA_EXCEEDED (KIP-599)

Asked = DeleteTopicsRequest.DeleteTopicState
Result = DeleteTopicsResponse.DeletableTopicResult


async def handle(ctx: Context, request: DeleteTopicsRequest, version: int) -> DeleteTopicsResponse:
    if not ctx.settings["delete.topic.enable"]:
        # The code for it came with version 3.
        disabled = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
        raise ApiError(disabled, "Topic deletion is disabled.")
    asked = request.topics if version >= 6 else [Asked(name=name) for name in request.topic_names]
    mutations = ctx.mutations(version >= STRICT_SINCE)
    response = await ctx.catalog.change(partial(_decide, ctx, asked, mutations))
    if mutations is not None:
        response.throttle_time_ms = mutations.throttle_ms
    return response


def _decide(
    ctx: Context, asked: list[Asked], mutations: Mutations | None, draft: CatalogDraft
) -> DeleteTopicsResponse:
    times = Counter(_key(topic) for topic in asked)
    first = {_key(topic): topic for topic in asked}
    deleted: set[Topic] = set()
    return DeleteTopicsResponse(
        responses=[
            _delete(ctx, one, times[key], draft, deleted, mutations) for key, one in first.items()
        ]
    )


def _key(asked: Asked) -> Hashable:
    return asked.name, asked.topic_id


def _delete(
    ctx: Context,
    asked: Asked,
    times: int,
    draft: CatalogDraft,
    deleted: set[Topic],
    mutations: Mutations | None,
) -> Result:
    result = Result(name=asked.name, topic_id=asked.topic_id)
    try:
        _check(asked, times)
        topic = _find(ctx, asked)
        if topic in deleted:  # by its name, and now by its id
            topic = None
        if not ctx.may_quietly("DELETE", "CLUSTER", CLUSTER_NAME):
            _authorize(ctx, asked, topic, result)
        if topic is None:
            raise ApiError(_unknown(asked))
        result.name, result.topic_id = topic.name, topic.id
        take_mutations(mutations, topic.name, topic.partition_count)
        draft.delete_topic(topic)
        deleted.add(topic)
    except ApiError as problem:
        result.error_code, result.error_message = problem.code, problem.message
    return result


def _check(asked: Asked, times: int) -> None:
    by_id = asked.topic_id != NO_UUID
    problem = None
    if asked.name is None and not by_id:
        problem = "Neither topic name nor id were specified."
    elif asked.name is not None and by_id:
        problem = "You may not specify both topic name and topic id."
    elif times > 1:
        problem = f"Duplicate topic {'id' if by_id else 'name'}."
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)


def _find(ctx: Context, asked: Asked) -> Topic | None:
    if asked.name is not None:
        return ctx.catalog.topics.get(asked.name)
    return ctx.catalog.topics_by_id.get(asked.topic_id)


def _authorize(ctx: Context, asked: Asked, topic: Topic | None, result: Result) -> None:
    name = topic.name if topic is not None else asked.name
    if name is None:
        return  # of an unknown id: there is nobody to ask about
    is_by_id = asked.name is None
    may_see = ctx.may("DESCRIBE", "TOPIC", name)
    if may_see and topic is None:
        return  # that it is not there may be told
    if ctx.may("DELETE", "TOPIC", name) and (is_by_id or may_see):
        return
    if is_by_id and may_see:
        result.name = name
    raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")


def _unknown(asked: Asked) -> ErrorCode:
    if asked.name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
