"""Metadata (API key 3, versions 0-13): brokers, and topics with their partitions and leaders.

Who may:   DESCRIBE on each Topic (others are left out, or refused if asked for by name); CREATE
           on the Cluster or the Topic to have a topic made by asking for it.
Answers:   at once; where topics are made by asking for them, when these are durable, all by one
           write.
Versions:  0 an empty list means all topics, 1 null does, 4 the client may forbid creation, 8
           authorized operations, 10 topic ids, 12 asking by id, 13 an error for the whole.
Not here:  the rules for making topics (broker/catalog/topics).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from semel.broker.catalog.catalog import Topic
from semel.broker.catalog.draft import CatalogDraft
from semel.broker.catalog.internal_topics import INTERNAL_TOPICS, internal_topic
from semel.broker.catalog.topics import check_name, check_new_name
from semel.broker.context import CLUSTER_NAME, Context
from semel.broker.failures import ApiError
from semel.broker.operations import allowed, allowed_on_cluster
from semel.broker.replies import InTurn
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.metadata import MetadataRequest, MetadataResponse
from semel.wire.primitives import NO_UUID

API_KEY = 3
VERSIONS = ADVERTISED[API_KEY]

IDS_SINCE = 12

Answer = MetadataResponse.MetadataResponseTopic
Refused = dict[str, ErrorCode]
"""By name, of topics that could not be made."""


#: Operations are told of every topic but one that the client may not see, or make.
DENIED = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED})


def handle(
    ctx: Context, request: MetadataRequest, version: int
) -> MetadataResponse | InTurn[MetadataResponse]:
    if version < IDS_SINCE:
        _check_names(request, version)
    unknown = _unknown(ctx, request)
    if not unknown:
        return _respond(ctx, request, version, {})
    return _create_first(ctx, request, version, unknown)


def _check_names(request: MetadataRequest, version: int) -> None:
    """As KafkaApis.handleTopicMetadataRequest; a null name could not be answered either."""
    for topic in request.topics or ():
        if topic.name is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Topic name can not be null for version {version}"
            )
        if topic.topic_id != NO_UUID:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Topic IDs are not supported in requests for version {version}",
            )


async def _create_first(
    ctx: Context, request: MetadataRequest, version: int, names: list[str]
) -> MetadataResponse:
    refused = await ctx.catalog.change(partial(_create, ctx, names))
    return _respond(ctx, request, version, refused)


def _respond(
    ctx: Context, request: MetadataRequest, version: int, refused: Refused
) -> MetadataResponse:
    catalog = ctx.catalog
    host, port = ctx.broker.advertised(ctx.connection)
    rack = ctx.settings["broker.rack"]
    broker = MetadataResponse.MetadataResponseBroker(
        node_id=catalog.node_id, host=host, port=port, rack=rack
    )
    response = MetadataResponse(
        brokers=[broker],
        cluster_id=catalog.cluster_id,
        controller_id=catalog.node_id,
        topics=_topics(ctx, request, version, refused),
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = allowed_on_cluster(ctx)
    return response


def _topics(ctx: Context, request: MetadataRequest, version: int, refused: Refused) -> list[Answer]:
    if request.topics is None or (version == 0 and not request.topics):
        found = [
            _answer(ctx, topic)
            for topic in ctx.catalog.topics.values()
            if ctx.may_quietly("DESCRIBE", "TOPIC", topic.name)
        ]
    else:
        found = [_asked_for(ctx, topic, refused) for topic in request.topics]
    if request.include_topic_authorized_operations:
        for answer in found:
            if answer.name is not None and answer.error_code not in DENIED:
                answer.topic_authorized_operations = allowed(ctx, "TOPIC", answer.name)
    return found


def _asked_for(
    ctx: Context, asked: MetadataRequest.MetadataRequestTopic, refused: Refused
) -> Answer:
    if asked.name is None:
        return _asked_by_id(ctx, asked)
    if not ctx.may("DESCRIBE", "TOPIC", asked.name):
        return _refused(asked.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    topic = ctx.catalog.topics.get(asked.name)
    if topic is not None:
        return _answer(ctx, topic)
    if asked.name in refused:
        return _refused(asked.name, refused[asked.name])
    try:
        check_name(asked.name)
    except ApiError as problem:
        return _refused(asked.name, problem.code)
    return _refused(asked.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _asked_by_id(ctx: Context, asked: MetadataRequest.MetadataRequestTopic) -> Answer:
    topic = ctx.catalog.topics_by_id.get(asked.topic_id)
    if topic is None:
        return Answer(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id)
    if not ctx.may("DESCRIBE", "TOPIC", topic.name):  # the name of a hidden topic stays hidden
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return Answer(error_code=code, name=None, topic_id=asked.topic_id)
    return _answer(ctx, topic)


def _unknown(ctx: Context, request: MetadataRequest) -> list[str]:
    """Names of topics that are not there, and may be made by asking for them."""
    topics = ctx.catalog.topics
    names = [
        asked.name
        for asked in request.topics or ()
        if asked.name is not None and asked.name not in topics
    ]
    if not names or not request.allow_auto_topic_creation:
        return []
    if not ctx.settings["auto.create.topics.enable"]:
        return []
    return [name for name in dict.fromkeys(names) if ctx.may("DESCRIBE", "TOPIC", name)]


def _create(ctx: Context, names: list[str], draft: CatalogDraft) -> Refused:
    """CatalogDraft those that may be made; why the others may not."""
    refused: Refused = {}
    wanted: list[tuple[str, int, Mapping[str, str]]] = []
    for name in names:
        try:
            if name not in ctx.catalog.topics:  # somebody else may have been first
                wanted.append(_new_topic(ctx, name))
        except ApiError as problem:
            refused[name] = problem.code
    draft.create_topics(wanted)
    return refused


def _new_topic(ctx: Context, name: str) -> tuple[str, int, Mapping[str, str]]:
    check_name(name)
    if not ctx.may_quietly("CREATE", "CLUSTER", CLUSTER_NAME) and not ctx.may(
        "CREATE", "TOPIC", name
    ):
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    check_new_name(ctx.catalog, name)
    if name in INTERNAL_TOPICS:
        return name, *internal_topic(ctx.settings, name)
    return name, ctx.settings["num.partitions"], {}


def _refused(name: str, code: ErrorCode) -> Answer:
    return Answer(error_code=code, name=name, topic_id=NO_UUID, is_internal=name in INTERNAL_TOPICS)


def _answer(ctx: Context, topic: Topic) -> Answer:
    node = ctx.catalog.node_id
    nodes = [node]
    return Answer(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[
            MetadataResponse.MetadataResponsePartition(
                partition_index=index,
                leader_id=node,
                leader_epoch=epoch,
                replica_nodes=nodes,
                isr_nodes=nodes,
            )
            for index, epoch in enumerate(topic.leader_epochs)
        ],
    )
