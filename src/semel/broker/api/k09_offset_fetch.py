"""OffsetFetch: where groups stand.

Who may: DESCRIBE on the GROUP and on each TOPIC (unknown to the others). Answers at once; with
`require_stable`, partitions that an open transaction is about to commit say UNSTABLE_OFFSET_COMMIT.
Versions 1-10: 2 all partitions of a group, 7 require_stable, 8 several groups, 9 member epochs, 10
topic ids. Not here: the offsets: `core/groups/offsets/requests`.
"""

from __future__ import annotations

from typing import Any

from semel.broker.context import Context
from semel.broker.coordinators.groups import settled
from semel.broker.replies import when
from semel.core.groups.commands import OffsetFetch
from semel.core.groups.replies import FetchOffsetsReply
from semel.core.groups.topics import NO_TOPIC_ID
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

API_KEY = 9
VERSIONS = ADVERTISED[API_KEY]
ALL_AND_GROUP_ERRORS_SINCE, SEVERAL_GROUPS_SINCE, TOPIC_IDS_SINCE = 2, 8, 10

Group = OffsetFetchResponse.OffsetFetchResponseGroup
Topics = OffsetFetchResponse.OffsetFetchResponseTopics
Partitions = OffsetFetchResponse.OffsetFetchResponsePartitions


def handle(ctx: Context, request: OffsetFetchRequest, version: int) -> Any:
    if version >= SEVERAL_GROUPS_SINCE:
        if len(request.groups) == 1:  # the usual case needs no task
            group = _group(ctx, request.groups[0], request.require_stable, version)
            return when(group, lambda settled: OffsetFetchResponse(groups=[settled]))
        return _several(ctx, request, version)
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=request.group_id)
    asked.topics = request.topics  # type: ignore[assignment]  # the same fields, but for the id
    group = _group(ctx, asked, request.require_stable, version)
    return when(group, lambda settled: _as_before_version_8(settled, request, version))


async def _several(ctx: Context, request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
    groups = [_group(ctx, asked, request.require_stable, version) for asked in request.groups]
    return OffsetFetchResponse(groups=[await settled(group) for group in groups])


def _group(ctx: Context, asked: Any, require_stable: bool, version: int) -> Any:
    if not ctx.may("DESCRIBE", "GROUP", asked.group_id):
        return Group(group_id=asked.group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    refused: list[Topics] = []
    wanted = None
    if asked.topics is not None:
        wanted = []
        for topic in asked.topics:
            topic_id = getattr(topic, "topic_id", NO_TOPIC_ID)
            name = _name(ctx, topic, topic_id, version)
            if name is None:
                refused.append(_failed(topic, topic_id, ErrorCode.UNKNOWN_TOPIC_ID))
            elif not ctx.may("DESCRIBE", "TOPIC", name):
                refused.append(_failed(topic, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            else:
                wanted.append((name, topic_id, tuple(topic.partition_indexes)))
    command = OffsetFetch(
        asked.group_id,
        None if wanted is None else tuple(wanted),
        asked.member_id,
        asked.member_epoch,
        require_stable,
    )
    reply = ctx.groups.submit(asked.group_id, command)
    return when(reply, lambda settled: _answer(ctx, asked, settled, refused, version))


def _name(ctx: Context, topic: Any, topic_id: Any, version: int) -> str | None:
    if version < TOPIC_IDS_SINCE:
        return str(topic.name)
    known = ctx.catalog.topics_by_id.get(topic_id)
    return None if known is None else known.name


def _failed(topic: Any, topic_id: Any, error: ErrorCode) -> Topics:
    return Topics(
        name=topic.name,
        topic_id=topic_id,
        partitions=[
            Partitions(partition_index=index, committed_offset=-1, error_code=error)
            for index in topic.partition_indexes
        ],
    )


def _answer(
    ctx: Context, asked: Any, reply: FetchOffsetsReply, refused: list[Topics], version: int
) -> Group:
    group = Group(group_id=asked.group_id, error_code=reply.error)
    if reply.error is not ErrorCode.NONE:
        return group
    for name, topic_id, partitions in reply.topics:
        if asked.topics is None:
            if not ctx.may("DESCRIBE", "TOPIC", name):
                continue
            known = ctx.catalog.topics.get(name)
            topic_id = NO_TOPIC_ID if known is None else known.id
            if version >= TOPIC_IDS_SINCE and known is None:
                continue  # deleted: there is no id to name it by
        group.topics.append(
            Topics(
                name=name,
                topic_id=topic_id,
                partitions=[
                    Partitions(
                        partition_index=fetched.partition,
                        committed_offset=fetched.offset,
                        committed_leader_epoch=fetched.leader_epoch,
                        metadata=fetched.metadata,
                        error_code=fetched.error,
                    )
                    for fetched in partitions
                ],
            )
        )
    group.topics += refused
    return group


def _as_before_version_8(
    group: Group, request: OffsetFetchRequest, version: int
) -> OffsetFetchResponse:
    """One group, named nowhere; version 1 has no room for the group's error but the partitions."""
    if group.error_code and version < ALL_AND_GROUP_ERRORS_SINCE:
        group.topics = [
            _failed(topic, NO_TOPIC_ID, ErrorCode.of(group.error_code))
            for topic in request.topics or []
        ]
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponse.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponse.OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )
