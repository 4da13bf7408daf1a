"""OffsetFetch: where groups stand.

Who may: DESCRIBE on the GROUP and on each TOPIC (unknown to the others). Answers at once; with
`require_stable`, partitions that an open transaction is about to commit say UNSTABLE_OFFSET_COMMIT.
Versions 1-10: 2 all partitions of a group, 7 require_stable, 8 several groups, 9 member epochs, 10
topic ids. Not here: the offsets: `core/groups/offsets/requests`.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.replies import NowOrLater, when, when_all
from semel.core.groups.commands import OffsetFetch
from semel.core.groups.replies import FetchOffsetsReply
from semel.core.groups.topics import NO_TOPIC_ID
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

API_KEY = 9
VERSIONS = ADVERTISED[API_KEY]
ALL_AND_GROUP_ERRORS_SINCE, SEVERAL_GROUPS_SINCE, TOPIC_IDS_SINCE = 2, 8, 10

AskedGroup = OffsetFetchRequest.OffsetFetchRequestGroup
AskedTopic = OffsetFetchRequest.OffsetFetchRequestTopics
Group = OffsetFetchResponse.OffsetFetchResponseGroup
Topics = OffsetFetchResponse.OffsetFetchResponseTopics
Partitions = OffsetFetchResponse.OffsetFetchResponsePartitions


def handle(
    ctx: Context, request: OffsetFetchRequest, version: int
) -> NowOrLater[OffsetFetchResponse]:
    if version >= SEVERAL_GROUPS_SINCE:
        groups = [_group(ctx, asked, request.require_stable, version) for asked in request.groups]
        return when_all(groups, lambda groups: OffsetFetchResponse(groups=groups))
    group = _group(ctx, _as_of_version_8(request), request.require_stable, version)
    return when(group, lambda group: _as_before_version_8(group, request, version))


def _as_of_version_8(request: OffsetFetchRequest) -> AskedGroup:
    topics = None
    if request.topics is not None:
        topics = [
            AskedTopic(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return AskedGroup(group_id=request.group_id, topics=topics)


def _group(
    ctx: Context, asked: AskedGroup, require_stable: bool, version: int
) -> NowOrLater[Group]:
    if not ctx.may("DESCRIBE", "GROUP", asked.group_id):
        return Group(group_id=asked.group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    refused: list[Topics] = []
    wanted = None
    if asked.topics is not None:
        wanted = []
        for topic in asked.topics:
            name = _name(ctx, topic, version)
            if name is None:
                refused.append(_failed(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            elif not ctx.may("DESCRIBE", "TOPIC", name):
                refused.append(_failed(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            else:
                wanted.append((name, topic.topic_id, tuple(topic.partition_indexes)))
    command = OffsetFetch(
        asked.group_id,
        None if wanted is None else tuple(wanted),
        asked.member_id,
        asked.member_epoch,
        require_stable,
    )
    reply = ctx.groups.submit(asked.group_id, command)
    return when(reply, lambda reply: _answer(ctx, asked, reply, refused, version))


def _name(ctx: Context, topic: AskedTopic, version: int) -> str | None:
    if version < TOPIC_IDS_SINCE:
        return topic.name
    known = ctx.catalog.topics_by_id.get(topic.topic_id)
    return None if known is None else known.name


def _failed(topic: AskedTopic, error: ErrorCode) -> Topics:
    return Topics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            Partitions(partition_index=index, committed_offset=-1, error_code=error)
            for index in topic.partition_indexes
        ],
    )


def _answer(
    ctx: Context, asked: AskedGroup, reply: FetchOffsetsReply, refused: list[Topics], version: int
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
            _failed(topic, ErrorCode.of(group.error_code))
            for topic in _as_of_version_8(request).topics or []
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
