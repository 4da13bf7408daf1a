"""OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete, and the expiry of forgotten offsets."""

from collections.abc import Iterator
from uuid import UUID

from semel.core.groups.classic import life as classic_life
from semel.core.groups.classic.group import ClassicGroup
from semel.core.groups.commands import (
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetToCommit,
    TxnOffsetCommit,
)
from semel.core.groups.consumer import committing as consumer_commit
from semel.core.groups.consumer.group import ConsumerGroup
from semel.core.groups.draft import Draft, session_key
from semel.core.groups.migration import migration
from semel.core.groups.offsets.store import CommittedOffset
from semel.core.groups.records import OffsetCommitted, OffsetDeleted
from semel.core.groups.replies import (
    CommitReply,
    DeleteOffsetsReply,
    FetchedOffset,
    FetchOffsetsReply,
    RequestRefused,
)
from semel.core.groups.states import ClassicState
from semel.core.groups.topics import NO_TOPIC_ID
from semel.wire.errors import ErrorCode

GROUP_ID_NOT_FOUND_SINCE = 9  # OffsetCommit: older clients know only ILLEGAL_GENERATION


def commit(draft: Draft, command: OffsetCommit) -> CommitReply:
    group = draft.state.groups.get(command.group_id)
    if group is None and command.generation >= 0:
        is_modern = command.version >= GROUP_ID_NOT_FOUND_SINCE
        raise RequestRefused(
            ErrorCode.GROUP_ID_NOT_FOUND if is_modern else ErrorCode.ILLEGAL_GENERATION
        )
    if isinstance(group, ConsumerGroup):
        consumer_commit.check(group, command)
    elif group is not None:
        error = classic_life.commit_error(
            group, command.member_id, command.instance_id, command.generation, False
        )
        if error is not ErrorCode.NONE:
            raise RequestRefused(error)
        _extend_session(draft, group, command.member_id)
    expire_ms = -1 if command.retention_ms == -1 else draft.now_ms + command.retention_ms
    return _keep(draft, command.group_id, command.offsets, expire_ms)


def _extend_session(draft: Draft, group: ClassicGroup, member_id: str) -> None:
    """In the classic protocol a commit proves that the member lives."""
    if group.state in (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE):
        member = group.members.get(member_id)
        if member is not None:
            draft.set_timer(session_key(group.group_id, member_id), member.session_timeout_ms)


def txn_commit(draft: Draft, command: TxnOffsetCommit) -> CommitReply:
    """KIP-447: the offsets of a transaction are fenced by the group's generation as well."""
    group = draft.state.groups.get(command.group_id)
    if group is None and command.generation >= 0:
        raise RequestRefused(ErrorCode.ILLEGAL_GENERATION)
    if isinstance(group, ConsumerGroup):
        consumer_commit.check_transactional(group, draft.state.topics, command)
    elif group is not None:
        error = classic_life.commit_error(
            group, command.member_id, command.instance_id, command.generation, True
        )
        if error is not ErrorCode.NONE:
            raise RequestRefused(error)
    return _keep(
        draft, command.group_id, command.offsets, -1, command.producer_id, command.producer_epoch
    )


def _keep(
    draft: Draft,
    group_id: str,
    offsets: tuple[OffsetToCommit, ...],
    expire_ms: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> CommitReply:
    limit = draft.settings.offset_metadata_max_bytes
    errors = []
    for offset in offsets:
        if _java_length(offset.metadata) > limit:
            errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            continue
        errors.append(ErrorCode.NONE)
        draft.records.append(
            OffsetCommitted(
                group_id,
                offset.topic,
                offset.partition,
                offset.offset,
                offset.leader_epoch,
                offset.metadata,
                draft.now_ms,
                expire_ms,
                # Kafka keeps it of plain commits only, and so may hand a transaction's offset on to
                # a later topic of the same name.
                offset.topic_id,
                producer_id,
                producer_epoch,
            )
        )
    return CommitReply(tuple(errors))


def _java_length(text: str) -> int:
    """Kafka's limit, named after bytes, counts what Java counts: units of UTF-16."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def fetch(draft: Draft, command: OffsetFetch) -> FetchOffsetsReply:
    group = draft.state.groups.get(command.group_id)
    if isinstance(group, ConsumerGroup):
        consumer_commit.check_fetch(group, command.member_id, command.member_epoch)
    if command.topics is None:
        return FetchOffsetsReply(ErrorCode.NONE, tuple(_everything(draft, command)))
    topics = tuple(
        (
            name,
            topic_id,
            tuple(_fetched(draft, command, name, partition, topic_id) for partition in partitions),
        )
        for name, topic_id, partitions in command.topics
    )
    return FetchOffsetsReply(ErrorCode.NONE, topics)


def _everything(
    draft: Draft, command: OffsetFetch
) -> Iterator[tuple[str, UUID, tuple[FetchedOffset, ...]]]:
    for name, partitions in draft.state.offsets.of_group(command.group_id).items():
        yield (
            name,
            NO_TOPIC_ID,
            tuple(_fetched(draft, command, name, partition) for partition in partitions),
        )


def _fetched(
    draft: Draft, command: OffsetFetch, topic: str, partition: int, topic_id: UUID = NO_TOPIC_ID
) -> FetchedOffset:
    offsets = draft.state.offsets
    if command.require_stable and offsets.is_pending(command.group_id, topic, partition):
        return FetchedOffset(partition, error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    known = offsets.get(command.group_id, topic, partition)
    if known is None or _is_of_another_topic(known, topic_id):
        return FetchedOffset(partition)
    return FetchedOffset(partition, known.offset, known.leader_epoch, known.metadata)


def _is_of_another_topic(known: CommittedOffset, topic_id: UUID) -> bool:
    """The topic was deleted and made again under its name: its old offsets mean nothing."""
    return NO_TOPIC_ID not in (known.topic_id, topic_id) and known.topic_id != topic_id


def delete(draft: Draft, command: OffsetDelete) -> DeleteOffsetsReply:
    group = draft.state.groups.get(command.group_id)
    if group is None:
        raise RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND)
    if isinstance(group, ClassicGroup) and not group.is_empty and not group.uses_consumer_protocol:
        raise RequestRefused(ErrorCode.NON_EMPTY_GROUP)
    errors = []
    for topic, partition in command.partitions:
        if group.is_subscribed_to(topic):
            errors.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
            continue
        errors.append(ErrorCode.NONE)
        offsets = draft.state.offsets
        if offsets.get(command.group_id, topic, partition) is not None or offsets.is_pending(
            command.group_id, topic, partition
        ):
            draft.keep(OffsetDeleted(command.group_id, topic, partition))
    return DeleteOffsetsReply(ErrorCode.NONE, tuple(errors))


def delete_all(draft: Draft, group_id: str) -> None:
    offsets = draft.state.offsets
    partitions = {
        (topic, partition): None
        for topic, by_partition in offsets.of_group(group_id).items()
        for partition in by_partition
    }
    partitions.update(dict.fromkeys(offsets.pending_partitions(group_id)))
    draft.keep(*(OffsetDeleted(group_id, topic, partition) for topic, partition in partitions))


def delete_topic(draft: Draft, topic: str, topic_id: UUID) -> None:
    """The topic is gone. Offsets that carry another id belong to its successor."""
    to_delete = {
        (group_id, partition): None
        for group_id, partition, offset in draft.state.offsets.partitions_of_topic(topic)
        if offset.topic_id in (NO_TOPIC_ID, topic_id)
    }
    draft.keep(*(OffsetDeleted(group_id, topic, partition) for group_id, partition in to_delete))


def delete_of_strangers(draft: Draft) -> None:
    """After a load: offsets of topics that went while this coordinator could not be told."""
    by_name = draft.state.topics.by_name
    doomed: dict[tuple[str, str, int], None] = {}
    for group_id, topic, partition, offset in draft.state.offsets.everything():
        known = by_name.get(topic)
        if known is None or _is_of_another_topic(offset, known.id):
            doomed[group_id, topic, partition] = None
    draft.keep(*(OffsetDeleted(*place) for place in doomed))


def expire(draft: Draft) -> None:
    """OffsetMetadataManager.cleanupExpiredOffsets: a group whose last offset goes, goes too."""
    for group_id, group in draft.state.groups.items():
        if _expire_group(draft, group_id, group) and group.is_empty:
            migration.write_tombstones(draft, group)


def _expire_group(draft: Draft, group_id: str, group: ClassicGroup | ConsumerGroup) -> bool:
    """Whether nothing is left that keeps the group alive."""
    offsets = draft.state.offsets
    has_open_transaction = offsets.has_open_transaction(group_id)
    by_topic = offsets.of_group(group_id)
    if not by_topic:
        return not has_open_transaction
    if not _may_expire(group):
        return False
    all_expired = True
    for topic, partitions in by_topic.items():
        is_wanted = group.is_subscribed_to(topic)
        for partition, offset in partitions.items():
            if (
                is_wanted
                or offsets.is_pending(group_id, topic, partition)
                or not _has_expired(draft, group, offset)
            ):
                all_expired = False
            else:
                draft.keep(OffsetDeleted(group_id, topic, partition))
    return all_expired and not has_open_transaction


def _may_expire(group: ClassicGroup | ConsumerGroup) -> bool:
    """Offsets of a busy group stay, unless we know that it no longer wants the topic."""
    if isinstance(group, ConsumerGroup) or group.protocol_type is None or group.is_empty:
        return True
    return (
        group.uses_consumer_protocol
        and group.subscribed_topics is not None
        and group.state is ClassicState.STABLE
    )


def _has_expired(
    draft: Draft, group: ClassicGroup | ConsumerGroup, offset: CommittedOffset
) -> bool:
    if offset.expire_ms != -1:
        return draft.now_ms >= offset.expire_ms  # asked for by an old client (OffsetCommit v2-4)
    since_ms = offset.commit_ms
    if isinstance(group, ClassicGroup) and group.protocol_type is not None and group.is_empty:
        # A group that once had members keeps its offsets for the whole time since they left.
        since_ms = offset.commit_ms if group.state_since_ms is None else group.state_since_ms
    return draft.now_ms - since_ms >= draft.settings.offsets_retention_ms
