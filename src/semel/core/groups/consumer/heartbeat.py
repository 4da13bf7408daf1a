"""ConsumerGroupHeartbeat: join, stay, change one's subscription, be led to the target (KIP-848).

Each heartbeat does at most three things, as in Kafka's GroupMetadataManager.consumerGroupHeartbeat:
note what the member says and raise the group epoch if that changes who should have what; compute a
target for the new epoch; bring this one member a step closer to it. Leaving is in `leaving`.

With an assignment interval, targets are computed no more often than that (KIP-1263), and a member
that changed its subscription keeps what it has for as long. Who waits for the end of an interval is
asked to come back then.
"""

from uuid import UUID

from semel.core.groups.classic.group import ClassicGroup
from semel.core.groups.commands import ConsumerGroupHeartbeat
from semel.core.groups.consumer.assign import ASSIGNORS, Subscriber
from semel.core.groups.consumer.group import (
    LEAVE_STATIC_EPOCH,
    Assignment,
    ConsumerGroup,
    ConsumerMember,
)
from semel.core.groups.consumer.reconcile import Reported, reconcile
from semel.core.groups.consumer.regexes import update_regexes
from semel.core.groups.draft import Draft, rebalance_key, session_key
from semel.core.groups.migration import migration
from semel.core.groups.records import (
    ClassicGroupDeleted,
    CurrentAssignment,
    CurrentAssignmentDeleted,
    GroupEpoch,
    MemberDeleted,
    MemberSubscription,
    MetadataChecked,
    TargetAssignment,
    TargetEpoch,
)
from semel.core.groups.replies import HeartbeatReply, RequestRefused
from semel.core.groups.states import MemberState
from semel.wire.errors import ErrorCode


def heartbeat(draft: Draft, command: ConsumerGroupHeartbeat) -> HeartbeatReply:
    is_joining = command.member_epoch == 0
    reported = _reported(command)
    group, known = _find_or_create(draft, command, reported)
    interval_ms = command.assignment_interval_ms
    if interval_ms is None:
        interval_ms = draft.settings.consumer_assignment_interval_ms
    said = _as_said(known, command)
    member, wait_ms = settle(draft, group, known, said, is_joining, reported, interval_ms)
    timeout_ms = command.session_timeout_ms or draft.settings.consumer_session_timeout_ms
    draft.set_timer(session_key(group.group_id, member.member_id), timeout_ms)
    is_full = (
        command.rebalance_timeout_ms != -1
        and (
            command.subscribed_topic_names is not None or command.subscribed_topic_regex is not None
        )
        and command.owned is not None
    )
    must_tell = is_joining or is_full or known.assigned != member.assigned
    return HeartbeatReply(
        ErrorCode.NONE,
        None,
        member.member_id,
        member.epoch,
        _heartbeat_interval_ms(draft, group, member, command, wait_ms),
        {t: sorted(p) for t, p in member.assigned.items()} if must_tell else None,
    )


def introduction(draft: Draft, command: ConsumerGroupHeartbeat) -> HeartbeatReply:
    """The first of the three things only; a heartbeat of the same member follows at once."""
    group, known = _find_or_create(draft, command, _reported(command))
    introduce(draft, group, known, _as_said(known, command))
    return HeartbeatReply(ErrorCode.NONE)


def _find_or_create(
    draft: Draft, command: ConsumerGroupHeartbeat, reported: Reported
) -> tuple[ConsumerGroup, ConsumerMember]:
    """The group, and the member as it was so far."""
    is_joining = command.member_epoch == 0
    group = _group(draft, command.group_id, is_joining)
    check_size(draft, group, command.member_id)
    member_id = command.member_id or command.fresh_member_id
    if command.instance_id is None:
        return group, _dynamic_member(group, member_id, command, reported)
    return group, static_member(
        draft, group, member_id, command.instance_id, is_joining, command, reported
    )


def _heartbeat_interval_ms(
    draft: Draft,
    group: ConsumerGroup,
    member: ConsumerMember,
    command: ConsumerGroupHeartbeat,
    wait_ms: int | None,
) -> int:
    settings = draft.settings
    interval_ms = command.heartbeat_interval_ms or settings.consumer_heartbeat_interval_ms
    has_unresolved_regex = bool(member.topic_regex) and member.topic_regex not in group.regexes
    if member.state is MemberState.UNRELEASED_PARTITIONS or has_unresolved_regex:
        interval_ms = min(interval_ms, settings.consumer_waiting_heartbeat_interval_ms)
    return interval_ms if wait_ms is None else min(interval_ms, wait_ms)


def settle(
    draft: Draft,
    group: ConsumerGroup,
    known: ConsumerMember,
    member: ConsumerMember,
    is_joining: bool,
    reported: Reported,
    interval_ms: int,
) -> tuple[ConsumerMember, int | None]:
    """The three steps. `known` is the member as it was, `member` as it describes itself now. What
    becomes of it, and after how long it should ask for more, where there is more to come.

    An application may change its subscription several times in a row, or end it. librdkafka's
    members do not survive an end while they give up partitions: they never speak again, or rejoin
    without saying what a join must say. So the answer to a new subscription takes nothing away.
    """
    epoch, has_new_subscription = introduce(draft, group, known, member)
    target_epoch, target = update_target(draft, group, epoch, member, interval_ms)
    if has_new_subscription and interval_ms and known.assigned and not is_joining:
        return member, interval_ms
    moved = step(draft, group, member, target_epoch, target, has_new_subscription, reported)
    if target_epoch == epoch:
        return moved, None
    return moved, max(1, group.assignment_ms + interval_ms - draft.now_ms)


def introduce(
    draft: Draft, group: ConsumerGroup, known: ConsumerMember, member: ConsumerMember
) -> tuple[int, bool]:
    """The first step: the group's epoch, and whether the member's subscription is a new one."""
    has_new_names = known.topic_names != member.topic_names
    if member != known:
        check_bytes(draft, group, known.kept_bytes, member.kept_bytes)
        draft.keep(MemberSubscription(group.group_id, member))
    regex = update_regexes(draft, group, known, member)
    epoch = group.epoch
    must_bump = has_new_names or (regex.is_changed and regex.is_resolved)
    if must_bump or group.checked_topics_version != draft.state.topics.version:
        epoch = check_metadata(draft, group, member, must_bump)
    return epoch, has_new_names or regex.is_changed


def check_bytes(draft: Draft, group: ConsumerGroup, known: int, said: int) -> None:
    """A group's members may not say more than this together."""
    limit = draft.settings.max_bytes
    if said > known and group.kept_bytes - known + said > limit:
        raise RequestRefused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The members of the group say more than {limit} bytes.",
        )


def check_size(draft: Draft, group: ConsumerGroup, member_id: str) -> None:
    limit = draft.settings.consumer_max_size
    if len(group.members) >= limit and member_id not in group.members:
        raise RequestRefused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {limit} members.",
        )


def _group(draft: Draft, group_id: str, is_joining: bool) -> ConsumerGroup:
    group = draft.state.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if not is_joining:
        raise RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
    if isinstance(group, ClassicGroup):
        if not group.is_empty:
            return migration.upgrade(draft, group)
        migration.forget_classic(draft, group)
        draft.keep(ClassicGroupDeleted(group_id))
    return ConsumerGroup(group_id)


def _reported(command: ConsumerGroupHeartbeat) -> Reported:
    if command.owned is None:
        return None
    return {topic_id: set(partitions) for topic_id, partitions in command.owned}


def _dynamic_member(
    group: ConsumerGroup, member_id: str, command: ConsumerGroupHeartbeat, reported: Reported
) -> ConsumerMember:
    member = group.members.get(member_id)
    if member is None:
        if command.member_epoch != 0:
            raise RequestRefused(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {group.group_id}.",
            )
        return ConsumerMember(member_id)
    _check_epoch(member, command.member_epoch, reported)
    return member


def static_member(
    draft: Draft,
    group: ConsumerGroup,
    member_id: str,
    instance_id: str,
    is_joining: bool,
    command: ConsumerGroupHeartbeat | None,
    reported: Reported,
) -> ConsumerMember:
    """`command` None: the member speaks the classic protocol, and epochs are not checked here."""
    known = group.static_member(instance_id)
    if not is_joining:
        if known is None:
            raise RequestRefused(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown."
            )
        check_instance(known, member_id)
        if command is not None:
            _check_epoch(known, command.member_epoch, reported)
        return known
    if known is None:
        return group.members.get(member_id, ConsumerMember(member_id))
    if command is not None and known.classic is None and known.epoch != LEAVE_STATIC_EPOCH:
        raise RequestRefused(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {known.member_id} member.",
        )
    return _replace_static(draft, group, known, member_id)


def check_instance(known: ConsumerMember, member_id: str) -> None:
    if known.member_id != member_id:
        raise RequestRefused(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {known.instance_id} was fenced by "
            f"member {known.member_id}.",
        )


def _replace_static(
    draft: Draft, group: ConsumerGroup, old: ConsumerMember, member_id: str
) -> ConsumerMember:
    new = old._replace(member_id=member_id, epoch=0, previous_epoch=0)
    remove_member(draft, group.group_id, old.member_id)
    draft.keep(
        MemberSubscription(group.group_id, new),
        TargetAssignment(group.group_id, member_id, group.target_of(old.member_id)),
        CurrentAssignment(group.group_id, new),
    )
    return new


def remove_member(draft: Draft, group_id: str, member_id: str) -> None:
    draft.keep(
        CurrentAssignmentDeleted(group_id, member_id),
        TargetAssignment(group_id, member_id, None),
        MemberDeleted(group_id, member_id),
    )


def _check_epoch(member: ConsumerMember, epoch: int, reported: Reported) -> None:
    """The previous epoch is taken too: the answer that raised it may have been lost."""
    if epoch in (0, member.epoch):
        return
    is_retry = epoch == member.previous_epoch and _is_subset(reported, member)
    if epoch > member.epoch or not is_retry:
        raise RequestRefused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The member is in epoch {member.epoch}, not {epoch}. It must abandon all its "
            "partitions and rejoin.",
        )


def _is_subset(reported: Reported, member: ConsumerMember) -> bool:
    return reported is not None and all(
        partitions <= member.assigned.get(topic_id, {}).keys()
        for topic_id, partitions in reported.items()
    )


def _as_said(member: ConsumerMember, command: ConsumerGroupHeartbeat) -> ConsumerMember:
    names, regex = command.subscribed_topic_names, command.subscribed_topic_regex
    timeout_ms = command.rebalance_timeout_ms
    return member._replace(
        instance_id=member.instance_id if command.instance_id is None else command.instance_id,
        rack_id=member.rack_id if command.rack_id is None else command.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=command.server_assignor or member.server_assignor,
        topic_names=member.topic_names if names is None else frozenset(names),
        topic_regex=member.topic_regex if regex is None else regex,
        client_id=command.client_id,
        client_host=command.client_host,
        classic=None,
    )


def members_with(group: ConsumerGroup, member: ConsumerMember) -> dict[str, ConsumerMember]:
    """The group as it will be: with this member, without the static one whose place it takes."""
    replaced = group.static_members.get(member.instance_id) if member.instance_id else None
    members = {m: known for m, known in group.members.items() if m != replaced}
    members[member.member_id] = member
    return members


def check_metadata(
    draft: Draft, group: ConsumerGroup, member: ConsumerMember, must_bump: bool
) -> int:
    """The group epoch, raised if subscriptions or the subscribed topics have changed."""
    topics = draft.state.topics
    wanted = {group.topics_of(other) for other in members_with(group, member).values()}
    metadata_hash = topics.fingerprint(frozenset().union(*wanted))
    draft.keep(MetadataChecked(group.group_id, topics.version))
    if not must_bump and metadata_hash == group.metadata_hash:
        return group.epoch
    draft.keep(GroupEpoch(group.group_id, group.epoch + 1, metadata_hash))
    return group.epoch + 1


def update_target(
    draft: Draft, group: ConsumerGroup, epoch: int, member: ConsumerMember, interval_ms: int
) -> tuple[int, Assignment]:
    current = group.assignment_epoch, group.target_of(member.member_id, member.instance_id)
    if group.assignment_epoch >= epoch:
        return current
    if group.assignment_ms and interval_ms and draft.now_ms < group.assignment_ms + interval_ms:
        return current
    members = members_with(group, member)
    name = group.preferred_assignor(members.values()) or draft.settings.consumer_assignors[0]
    topics = draft.state.topics
    wanted = {m: group.topics_of(other) for m, other in members.items()}
    ids = {names: frozenset(topics.ids_of(names)) for names in set(wanted.values())}
    subscribers = [
        Subscriber(
            other.member_id,
            other.instance_id,
            ids[wanted[member_id]],
            group.target_of(member_id, other.instance_id if other is member else None),
        )
        for member_id, other in members.items()
    ]
    counts = {t: topics.by_id[t].partitions for t in frozenset().union(*ids.values())}
    target = ASSIGNORS[name](subscribers, counts)
    for member_id, assignment in target.items():
        if assignment != group.target.get(member_id):
            draft.keep(TargetAssignment(group.group_id, member_id, assignment))
    draft.keep(TargetEpoch(group.group_id, epoch, draft.now_ms))
    return epoch, target[member.member_id]


def step(
    draft: Draft,
    group: ConsumerGroup,
    member: ConsumerMember,
    target_epoch: int,
    target: Assignment,
    has_new_subscription: bool,
    reported: Reported,
) -> ConsumerMember:
    subscribed: set[UUID] = draft.state.topics.ids_of(group.topics_of(member))
    moved = reconcile(
        group, member, subscribed, target_epoch, target, has_new_subscription, reported
    )
    if moved == member:
        return member
    draft.keep(CurrentAssignment(group.group_id, moved))
    if moved.classic is None:
        # Members of the classic kind have timers of their own (see `mixed`).
        key = rebalance_key(group.group_id, moved.member_id)
        if moved.state is MemberState.UNREVOKED_PARTITIONS:
            draft.set_timer(key, moved.rebalance_timeout_ms, note=moved.epoch)
        else:
            draft.cancel_timer(key)
    return moved
