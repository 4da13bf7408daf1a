"""Members that speak the classic protocol inside a consumer group.

For them the broker plays the leader's part: JoinGroup is answered at once with the member's epoch
as the generation, SyncGroup with what the broker has assigned, and Heartbeat sends them back to
JoinGroup whenever there is something to give up or to receive.
"""

from semel.core.groups.classic import embedded
from semel.core.groups.classic.group import CONSUMER_PROTOCOL
from semel.core.groups.classic.joining import KNOWN_MEMBER_ID_SINCE
from semel.core.groups.commands import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from semel.core.groups.consumer import leaving as consumer_leave
from semel.core.groups.consumer.group import ClassicMetadata, ConsumerGroup, ConsumerMember
from semel.core.groups.consumer.heartbeat import (
    check_metadata,
    check_size,
    static_member,
    step,
    update_target,
)
from semel.core.groups.consumer.reconcile import Reported
from semel.core.groups.consumer.regexes import update_regexes
from semel.core.groups.draft import Draft, member_join_key, member_sync_key, session_key
from semel.core.groups.migration import migration
from semel.core.groups.records import MemberSubscription
from semel.core.groups.replies import ErrorReply, JoinReply, LeaveReply, RequestRefused, SyncReply
from semel.core.groups.states import MemberState
from semel.wire.errors import ErrorCode
from semel.wire.records.consumer_protocol import ConsumerProtocolSubscription


def join(draft: Draft, group: ConsumerGroup, command: JoinGroup) -> JoinReply:
    if not (draft.settings.may_upgrade or draft.settings.may_downgrade):
        raise RequestRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    member_id = command.member_id or command.fresh_member_id
    check_size(draft, group, member_id)
    if not group.supports_classic(command.protocol_type, {name for name, _ in command.protocols}):
        raise RequestRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    needs_id = not command.member_id and command.instance_id is None
    if needs_id and command.version >= KNOWN_MEMBER_ID_SINCE:
        return JoinReply(ErrorCode.MEMBER_ID_REQUIRED, member_id)
    try:
        subscription = embedded.read_subscription(command.protocols[0][1])
    except embedded.Malformed as error:
        raise RequestRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) from error

    if command.instance_id is None:
        known = group.members.get(member_id, ConsumerMember(member_id))
    else:
        known = static_member(
            draft, group, member_id, command.instance_id, not command.member_id, None, None
        )
    member = _as_said(known, command, subscription)
    member, has_downgraded = _settle(draft, group, known, member, subscription)
    draft.cancel_timer(member_join_key(group.group_id, member.member_id))
    if not has_downgraded:
        draft.set_timer(session_key(group.group_id, member.member_id), command.session_timeout_ms)
        draft.set_timer(
            member_sync_key(group.group_id, member.member_id), command.rebalance_timeout_ms
        )
    return JoinReply(
        ErrorCode.NONE, member.member_id, member.epoch, CONSUMER_PROTOCOL, command.protocols[0][0]
    )


def _as_said(
    known: ConsumerMember, command: JoinGroup, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    return known._replace(
        instance_id=known.instance_id if command.instance_id is None else command.instance_id,
        rack_id=subscription.rack_id or known.rack_id,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        client_id=command.client_id,
        client_host=command.client_host,
        classic=ClassicMetadata(command.session_timeout_ms, command.protocols),
    )


def _settle(
    draft: Draft,
    group: ConsumerGroup,
    known: ConsumerMember,
    member: ConsumerMember,
    subscription: ConsumerProtocolSubscription,
) -> tuple[ConsumerMember, bool]:
    """As `consumer.settle`, unless this join ends the group's life as a consumer group."""
    replaced = group.static_member(member.instance_id)
    has_downgraded = migration.should_downgrade_for(draft, group, replaced)
    if member != known:
        draft.keep(MemberSubscription(group.group_id, member))
    regex = update_regexes(draft, group, known, member)
    is_changed = known.topic_names != member.topic_names or regex.is_changed
    epoch = group.epoch
    if is_changed or group.checked_topics_version != draft.state.topics.version:
        epoch = check_metadata(draft, group, member, is_changed)
    if has_downgraded and group.assignment_epoch < epoch:
        migration.downgrade(draft, group, joining=member, must_rebalance=True)
        return member, True
    if has_downgraded:
        target = group.target_of(member.member_id, member.instance_id)
        target_epoch = group.assignment_epoch
    else:
        # At once: nobody would tell this member later when to ask again.
        target_epoch, target = update_target(draft, group, epoch, member, interval_ms=0)
    owned = {t.topic: t.partitions for t in subscription.owned_partitions}
    reported: Reported = {
        topic_id: set(partitions)
        for topic_id, partitions in migration.to_ids(owned, draft.state.topics).items()
    }
    member = step(draft, group, member, target_epoch, target, is_changed, reported)
    if has_downgraded:
        migration.downgrade(draft, group, joining=member, must_rebalance=False)
    return member, has_downgraded


def _member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember, ClassicMetadata]:
    member = consumer_leave.find(group, member_id, instance_id)
    if member.classic is None:
        raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.epoch != generation:
        raise RequestRefused(ErrorCode.ILLEGAL_GENERATION)
    return member, member.classic


def sync(draft: Draft, group: ConsumerGroup, command: SyncGroup) -> SyncReply:
    member, classic = _member(group, command.member_id, command.instance_id, command.generation)
    name, metadata = classic.protocols[0]
    if command.protocol_type not in (None, CONSUMER_PROTOCOL) or command.protocol_name not in (
        None,
        name,
    ):
        raise RequestRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    is_revoking = member.state is MemberState.UNREVOKED_PARTITIONS
    if group.epoch > member.epoch and not is_revoking:
        _call_back(draft, group, member)
        return SyncReply(ErrorCode.REBALANCE_IN_PROGRESS)
    draft.cancel_timer(member_sync_key(group.group_id, member.member_id))
    draft.set_timer(session_key(group.group_id, member.member_id), classic.session_timeout_ms)
    assigned = {topic_id: frozenset(p) for topic_id, p in member.assigned.items()}
    partitions = migration.to_names(assigned, draft.state.topics)
    return SyncReply(
        ErrorCode.NONE,
        command.protocol_type,
        command.protocol_name,
        embedded.write_assignment(partitions, embedded.read_version(metadata)),
    )


def heartbeat(draft: Draft, group: ConsumerGroup, command: Heartbeat) -> ErrorReply:
    member, classic = _member(group, command.member_id, command.instance_id, command.generation)
    draft.set_timer(session_key(group.group_id, member.member_id), classic.session_timeout_ms)
    has_news = (
        member.epoch < group.assignment_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (
            member.state is MemberState.UNRELEASED_PARTITIONS
            and not group.waits_for_partitions(member)
        )
    )
    if not has_news:
        return ErrorReply()
    _call_back(draft, group, member)
    return ErrorReply(ErrorCode.REBALANCE_IN_PROGRESS)


def _call_back(draft: Draft, group: ConsumerGroup, member: ConsumerMember) -> None:
    """It must join again within its rebalance timeout, counted from the first call."""
    key = member_join_key(group.group_id, member.member_id)
    if draft.state.timers.get(key) is None:
        draft.set_timer(key, member.rebalance_timeout_ms)


def leave(draft: Draft, group: ConsumerGroup, command: LeaveGroup) -> LeaveReply:
    replies = []
    leaving: dict[str, ConsumerMember] = {}
    for member_id, instance_id in command.members:
        try:
            if not member_id and instance_id is not None:  # an administrator names the instance
                known = group.static_member(instance_id)
                member = consumer_leave.find(group, known.member_id if known else "", instance_id)
            else:
                member = consumer_leave.find(group, member_id, instance_id)
        except RequestRefused as refusal:
            replies.append((member_id, instance_id, refusal.error))
            continue
        leaving[member.member_id] = member
        replies.append((member_id, instance_id, ErrorCode.NONE))
    consumer_leave.fence(draft, group, list(leaving.values()))
    return LeaveReply(ErrorCode.NONE, tuple(replies))
