"""Members of consumer groups that go: leave, fall silent, or fail to give partitions up in time."""

from semel.core.groups.commands import ConsumerGroupHeartbeat
from semel.core.groups.consumer.group import LEAVE_STATIC_EPOCH, ConsumerGroup, ConsumerMember
from semel.core.groups.consumer.heartbeat import check_instance, remove_member
from semel.core.groups.draft import (
    Draft,
    member_join_key,
    member_sync_key,
    rebalance_key,
    session_key,
)
from semel.core.groups.migration import migration
from semel.core.groups.records import CurrentAssignment, GroupEpoch, RegexResolved
from semel.core.groups.replies import HeartbeatReply, RequestRefused
from semel.core.groups.states import MemberState
from semel.wire.errors import ErrorCode


def leave(draft: Draft, command: ConsumerGroupHeartbeat) -> HeartbeatReply:
    group = draft.state.groups.get(command.group_id)
    if not isinstance(group, ConsumerGroup):
        raise RequestRefused(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {command.group_id} not found."
        )
    member = find(group, command.member_id, command.instance_id)
    if command.instance_id is not None and command.member_epoch == LEAVE_STATIC_EPOCH:
        _leave_for_a_while(draft, group, member)
    else:
        fence(draft, group, [member])
    return HeartbeatReply(ErrorCode.NONE, None, command.member_id, command.member_epoch)


def find(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            raise RequestRefused(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {group.group_id}.",
            )
        return member
    member = group.static_member(instance_id)
    if member is None:
        raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    check_instance(member, member_id)
    return member


def _leave_for_a_while(draft: Draft, group: ConsumerGroup, member: ConsumerMember) -> None:
    """Its partitions are kept until the session ends; commits under its old id are fenced."""
    away = member._replace(
        epoch=LEAVE_STATIC_EPOCH,
        revoking={},
        assigned={t: dict.fromkeys(p, 0) for t, p in member.assigned.items()},
    )
    draft.keep(CurrentAssignment(group.group_id, away))


def fence(draft: Draft, group: ConsumerGroup, members: list[ConsumerMember]) -> None:
    """Remove members; what they had is free at once, and a new target follows."""
    if not members:
        return
    if migration.should_downgrade(draft, group, leaving=members):
        migration.downgrade(draft, group, leaving=members)
        return
    gone = {member.member_id for member in members}
    for member in members:
        remove_member(draft, group.group_id, member.member_id)
        cancel_timers(draft, group.group_id, member.member_id)
    rest = [member for member in group.members.values() if member.member_id not in gone]
    for regex in group.subscribed_regexes() - {member.topic_regex for member in rest}:
        draft.keep(RegexResolved(group.group_id, regex, None))
    names: set[str] = set()
    for member in rest:
        names |= group.topics_of(member)
    metadata_hash = draft.state.topics.fingerprint(names)
    draft.keep(GroupEpoch(group.group_id, group.epoch + 1, metadata_hash))


def cancel_timers(draft: Draft, group_id: str, member_id: str) -> None:
    for key in (session_key, rebalance_key, member_join_key, member_sync_key):
        draft.cancel_timer(key(group_id, member_id))


def deadline(draft: Draft, group: ConsumerGroup, kind: str, member_id: str, note: int) -> None:
    """A member's time is up: its session, its revocation, or its classic join or sync."""
    member = group.members.get(member_id)
    if member is None:
        return
    if kind == "rebalance" and member.epoch != note:
        return  # it gave up its partitions in time and moved on
    fence(draft, group, [member])


def loaded(draft: Draft, group: ConsumerGroup) -> None:
    for member in group.members.values():
        timeout_ms = draft.settings.consumer_session_timeout_ms
        if member.classic is not None:
            timeout_ms = member.classic.session_timeout_ms
        draft.set_timer(session_key(group.group_id, member.member_id), timeout_ms)
        if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
            draft.set_timer(
                rebalance_key(group.group_id, member.member_id),
                member.rebalance_timeout_ms,
                note=member.epoch,
            )
