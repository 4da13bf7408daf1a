"""CreateTopics (API key 19, versions 2-7): make topics; one refused hinders no other.

Who may:   CREATE on the Cluster, or on the Topic; DESCRIBE_CONFIGS on the Topic to see its
           configs.
Answers:   when all are durable (one write to the device for the whole request).
Versions:  5 flexible, tells partitions and configs; 7 tells the topic id.
Not here:  the rules (broker/catalog/topics).
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from uuid import UUID, uuid4

from semel.broker.catalog.draft import CatalogDraft
from semel.broker.catalog.topics import (
    check_configs,
    check_new_name,
    partition_count,
    take_mutations,
)
from semel.broker.context import CLUSTER_NAME, Context
from semel.broker.failures import ApiError
from semel.broker.settings.resources import ConfigEntry, topic_entries
from semel.broker.settings.settings import TopicConfig
from semel.core.access.quotas import Mutations
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

API_KEY = 19
VERSIONS = ADVERTISED[API_KEY]
STRICT_SINCE = 6  # older clients do not know THROTTLING_QUOTA_EXCEEDED (KIP-599)

Result = CreateTopicsResponse.CreatableTopicResult
Plan = tuple[str, int, dict[str, str]]


async def handle(ctx: Context, request: CreateTopicsRequest, version: int) -> CreateTopicsResponse:
    mutations = ctx.mutations(version >= STRICT_SINCE)
    response = await ctx.catalog.change(partial(_decide, ctx, request, mutations))
    if mutations is not None:
        response.throttle_time_ms = mutations.throttle_ms
    return response


def _decide(
    ctx: Context, request: CreateTopicsRequest, mutations: Mutations | None, draft: CatalogDraft
) -> CreateTopicsResponse:
    times = Counter(topic.name for topic in request.topics)
    results: dict[str, Result] = {}
    plans: list[Plan] = []
    for topic in request.topics:
        try:
            plan = _plan(ctx, topic, times[topic.name])
            if not request.validate_only:
                take_mutations(mutations, topic.name, plan[1])
        except ApiError as problem:
            results[topic.name] = Result(
                name=topic.name, error_code=problem.code, error_message=problem.message
            )
        else:
            plans.append(plan)
            results[topic.name] = _result(ctx, plan)
    if request.validate_only:
        for name, *_ in plans:
            results[name].topic_id = uuid4()  # as Kafka: one that the topic will not have
    else:
        for name, id in draft.create_topics(plans).items():
            results[name].topic_id = UUID(id)
    return CreateTopicsResponse(topics=list(results.values()))


def _plan(ctx: Context, topic: CreateTopicsRequest.CreatableTopic, times: int) -> Plan:
    if times > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if not _may_create(ctx, topic.name):
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    check_new_name(ctx.catalog, topic.name)
    count = partition_count(
        ctx.settings,
        ctx.catalog.node_id,
        topic.num_partitions,
        topic.replication_factor,
        topic.assignments,
    )
    given = {config.name: config.value for config in topic.configs}
    return topic.name, count, check_configs(ctx.settings, given)


def _may_create(ctx: Context, name: str) -> bool:
    return ctx.may_quietly("CREATE", "CLUSTER", CLUSTER_NAME) or ctx.may("CREATE", "TOPIC", name)


def _result(ctx: Context, plan: Plan) -> Result:
    """What the topic is, or would be."""
    name, count, configs = plan
    if not ctx.may_quietly("DESCRIBE_CONFIGS", "TOPIC", name):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return Result(name=name, error_message=None, topic_config_error_code=code, configs=None)
    entries = topic_entries(TopicConfig(ctx.settings, configs))
    return Result(
        name=name,
        error_message=None,
        num_partitions=count,
        replication_factor=1,
        configs=[_config(entry) for entry in entries],
    )


def _config(entry: ConfigEntry) -> CreateTopicsResponse.CreatableTopicConfigs:
    return CreateTopicsResponse.CreatableTopicConfigs(
        name=entry.setting.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.setting.is_sensitive,
    )
