"""Who may commit and fetch offsets in a consumer group: members of the right epoch.

A commit under an older epoch is taken for partitions that already
were the member's then (KIP-1251): it is late, not wrong.
"""

from uuid import UUID

from semel.core.groups.commands import OffsetCommit, TxnOffsetCommit
from semel.core.groups.consumer.group import ConsumerGroup, ConsumerMember
from semel.core.groups.replies import RequestRefused
from semel.core.groups.topics import Topics
from semel.wire.errors import ErrorCode

MEMBER_EPOCH_SINCE = 9  # OffsetCommit: older versions cannot carry a member epoch


def check(group: ConsumerGroup, command: OffsetCommit) -> None:
    if command.generation < 0 and group.is_empty:
        return
    member = _member(group, command.member_id)
    if member.classic is None and command.version < MEMBER_EPOCH_SINCE:
        raise RequestRefused(ErrorCode.UNSUPPORTED_VERSION)
    if _is_current(member, command.generation):
        return
    for offset in command.offsets:
        _check_partition(member, command.generation, offset.topic_id, offset.partition)


def check_transactional(group: ConsumerGroup, topics: Topics, command: TxnOffsetCommit) -> None:
    """TxnOffsetCommit carries names, no topic ids, and knows no STALE_MEMBER_EPOCH."""
    if command.generation < 0 and group.is_empty:
        return
    if command.generation == -1 and not command.member_id and command.instance_id is None:
        return
    member = _member(group, command.member_id)
    try:
        if _is_current(member, command.generation):
            return
        for offset in command.offsets:
            topic = topics.by_name.get(offset.topic)
            if topic is None:
                raise RequestRefused(ErrorCode.ILLEGAL_GENERATION)
            _check_partition(member, command.generation, topic.id, offset.partition)
    except RequestRefused as refusal:
        raise RequestRefused(ErrorCode.ILLEGAL_GENERATION) from refusal


def check_fetch(group: ConsumerGroup, member_id: str | None, member_epoch: int) -> None:
    if member_id is None and member_epoch < 0:
        return
    member = _member(group, member_id or "")
    if member_epoch != member.epoch:
        raise RequestRefused(_stale(member))


def _member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    member = group.members.get(member_id)
    if member is None:
        raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def _is_current(member: ConsumerMember, epoch: int) -> bool:
    if epoch > member.epoch:
        raise RequestRefused(_stale(member))
    return epoch == member.epoch


def _check_partition(member: ConsumerMember, epoch: int, topic_id: UUID, partition: int) -> None:
    given_in = member.given_in(topic_id, partition)
    if given_in is None or epoch < given_in:
        raise RequestRefused(_stale(member))


def _stale(member: ConsumerMember) -> ErrorCode:
    if member.classic is not None:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.STALE_MEMBER_EPOCH
