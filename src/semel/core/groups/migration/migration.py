"""A group changes its kind while it runs: classic to consumer and back (KIP-848's migration).

The first member that speaks the consumer protocol turns a classic group into a consumer group, and
those already there go on speaking theirs (see `mixed`). When the last of the new kind is gone, the
group turns back. Each way, the old kind's records are deleted and the new one's written at once.
"""

from uuid import UUID

from semel.core.groups.classic import embedded
from semel.core.groups.classic.group import CONSUMER_PROTOCOL, ClassicGroup, ClassicMember
from semel.core.groups.classic.joining import prepare_rebalance
from semel.core.groups.consumer.group import (
    Assignment,
    ClassicMetadata,
    ConsumerGroup,
    ConsumerMember,
)
from semel.core.groups.draft import (
    Draft,
    join_key,
    member_join_key,
    member_sync_key,
    rebalance_key,
    session_key,
    sync_key,
)
from semel.core.groups.records import (
    ClassicGroupDeleted,
    ConsumerGroupDeleted,
    CurrentAssignment,
    CurrentAssignmentDeleted,
    GroupEpoch,
    MemberDeleted,
    MemberSubscription,
    RegexResolved,
    TargetAssignment,
    TargetEpoch,
)
from semel.core.groups.replies import JoinReply, RequestRefused, SyncReply
from semel.core.groups.states import ClassicState, MemberState
from semel.core.groups.topics import Topics
from semel.wire.errors import ErrorCode


def upgrade(draft: Draft, classic: ClassicGroup) -> ConsumerGroup:
    """The group as it will be once the records are applied, for the rest of the decision."""
    _check_upgrade(draft, classic)
    group = _converted(classic, draft.state.topics)
    for member in classic.members.values():
        if member.awaiting_join is not None:
            reply = JoinReply(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
            draft.answer(member.awaiting_join, reply)
        if member.awaiting_sync is not None:
            draft.answer(member.awaiting_sync, SyncReply(ErrorCode.REBALANCE_IN_PROGRESS))
        draft.set_timer(session_key(classic.group_id, member.member_id), member.session_timeout_ms)
    forget_classic(draft, classic)
    draft.keep(ClassicGroupDeleted(classic.group_id))
    _write(draft, group)
    return group


def forget_classic(draft: Draft, classic: ClassicGroup) -> None:
    for member_id in classic.pending_members:
        draft.cancel_timer(session_key(classic.group_id, member_id))
    draft.cancel_timer(join_key(classic.group_id))
    draft.cancel_timer(sync_key(classic.group_id))


def _check_upgrade(draft: Draft, group: ClassicGroup) -> None:
    reason = None
    if not draft.settings.may_upgrade:
        reason = "online upgrade is disabled"
    elif not group.uses_consumer_protocol:
        reason = "the group does not use the consumer embedded protocol"
    elif len(group.members) > draft.settings.consumer_max_size:
        reason = "the group size exceeds the consumer group maximum size"
    if reason is not None:
        raise _cannot_upgrade(group, reason)


def _cannot_upgrade(group: ClassicGroup, reason: str) -> RequestRefused:
    return RequestRefused(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}.",
    )


def _converted(classic: ClassicGroup, topics: Topics) -> ConsumerGroup:
    group = ConsumerGroup(
        classic.group_id, epoch=classic.generation, assignment_epoch=classic.generation
    )
    names: set[str] = set()
    for old in classic.members.values():
        try:
            metadata = old.metadata(classic.protocol_name or old.protocols[0][0])
            subscription = embedded.read_subscription(metadata)
            assigned = _assignment_of(classic, old, topics)
        except embedded.Malformed as error:
            raise _cannot_upgrade(classic, "the embedded consumer protocol is malformed") from error
        names.update(subscription.topics)
        group.target[old.member_id] = assigned
        group.put(
            ConsumerMember(
                old.member_id,
                classic.generation,
                classic.generation,
                MemberState.STABLE,
                old.instance_id,
                subscription.rack_id or None,
                old.rebalance_timeout_ms,
                old.client_id,
                old.client_host,
                frozenset(subscription.topics),
                classic=ClassicMetadata(old.session_timeout_ms, old.protocols),
                assigned={t: dict.fromkeys(p, classic.generation) for t, p in assigned.items()},
            )
        )
    if classic.state is ClassicState.STABLE:
        group.metadata_hash = topics.fingerprint(names)
    # Else its assignments are half-way: a hash that cannot be right makes the broker assign anew,
    # also when the newcomer is a static member that changes nothing else (Kafka would stay stuck).
    return group


def _assignment_of(group: ClassicGroup, member: ClassicMember, topics: Topics) -> Assignment:
    if not member.assignment:
        return {}  # it has joined but never synced
    assignment = embedded.read_assignment(member.assignment)
    if assignment.user_data:
        raise _cannot_upgrade(group, "an unsupported custom assignor is in use")
    partitions = {t.topic: t.partitions for t in assignment.assigned_partitions}
    return to_ids(partitions, topics)


def to_ids(partitions: embedded.Partitions, topics: Topics) -> Assignment:
    found: dict[UUID, frozenset[int]] = {}
    for name, numbers in partitions.items():
        topic = topics.by_name.get(name)
        if topic is not None and numbers:
            found[topic.id] = frozenset(numbers)
    return found


def to_names(assignment: Assignment, topics: Topics) -> embedded.Partitions:
    return {
        name: sorted(numbers)
        for topic_id, numbers in assignment.items()
        if (name := topics.name_of(topic_id)) is not None
    }


def _write(draft: Draft, group: ConsumerGroup) -> None:
    group_id = group.group_id
    members = list(group.members.values())
    draft.keep(*(MemberSubscription(group_id, member) for member in members))
    draft.keep(GroupEpoch(group_id, group.epoch, group.metadata_hash))
    draft.keep(
        *(TargetAssignment(group_id, m.member_id, group.target[m.member_id]) for m in members)
    )
    draft.keep(TargetEpoch(group_id, group.assignment_epoch))
    draft.keep(*(CurrentAssignment(group_id, member) for member in members))


def write_tombstones(draft: Draft, group: ClassicGroup | ConsumerGroup) -> None:
    if isinstance(group, ConsumerGroup):
        write_consumer_tombstones(draft, group)
    else:
        forget_classic(draft, group)
        draft.keep(ClassicGroupDeleted(group.group_id))


def write_consumer_tombstones(
    draft: Draft, group: ConsumerGroup, renamed: dict[str, str] | None = None
) -> None:
    """Tombstones for all of it. `renamed`: a member replaced earlier in the same decision."""
    group_id = group.group_id
    member_ids = [(renamed or {}).get(m, m) for m in group.members]
    draft.keep(*(CurrentAssignmentDeleted(group_id, member_id) for member_id in member_ids))
    draft.keep(*(TargetAssignment(group_id, member_id, None) for member_id in member_ids))
    draft.keep(TargetEpoch(group_id, None))
    draft.keep(*(MemberDeleted(group_id, member_id) for member_id in member_ids))
    draft.keep(*(RegexResolved(group_id, regex, None) for regex in group.regexes))
    draft.keep(ConsumerGroupDeleted(group_id))


def should_downgrade(draft: Draft, group: ConsumerGroup, leaving: list[ConsumerMember]) -> bool:
    """Whether only members of the classic kind are left once these have gone."""
    staying = len(group.members) - len(leaving)
    classic_leaving = sum(member.classic is not None for member in leaving)
    return (
        len(group.classic_members()) - classic_leaving == staying
        and 0 < staying <= draft.settings.max_size
        and draft.settings.may_downgrade
    )


def should_downgrade_for(
    draft: Draft, group: ConsumerGroup, replaced: ConsumerMember | None
) -> bool:
    """Whether a classic static member takes the place of the last one of the consumer kind."""
    return (
        replaced is not None
        and replaced.classic is None
        and len(group.classic_members()) == len(group.members) - 1
        and len(group.members) <= draft.settings.max_size
        and draft.settings.may_downgrade
    )


def downgrade(
    draft: Draft,
    group: ConsumerGroup,
    leaving: list[ConsumerMember] | None = None,
    joining: ConsumerMember | None = None,
    must_rebalance: bool = True,
) -> None:
    """`joining` takes over from the static member of the same instance id."""
    replaced = group.static_member(joining.instance_id) if joining is not None else None
    renamed = (
        {replaced.member_id: joining.member_id}
        if replaced is not None and joining is not None
        else {}
    )
    write_consumer_tombstones(draft, group, renamed)
    gone = {member.member_id for member in leaving or []} | set(renamed)
    staying = [member for member in group.members.values() if member.member_id not in gone]
    if joining is not None:
        staying.append(joining)
    for member_id in group.members:
        for key in (session_key, rebalance_key, member_join_key, member_sync_key):
            draft.cancel_timer(key(group.group_id, member_id))
    former = {new: old for old, new in renamed.items()}
    try:
        classic = _classic_group(draft, group, staying, former)
    except embedded.Malformed as error:
        raise RequestRefused(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot downgrade group {group.group_id}: {error}."
        ) from error
    written = classic.image()
    for member in classic.members.values():
        draft.set_timer(session_key(group.group_id, member.member_id), member.session_timeout_ms)
    if must_rebalance:
        prepare_rebalance(draft, classic)
    draft.keep_classic(classic, written)


def _classic_group(
    draft: Draft, group: ConsumerGroup, members: list[ConsumerMember], former: dict[str, str]
) -> ClassicGroup:
    classic = ClassicGroup(
        group.group_id,
        ClassicState.STABLE,
        state_since_ms=draft.now_ms,
        protocol_type=CONSUMER_PROTOCOL,
        generation=group.epoch,
    )
    for member in members:
        assert member.classic is not None
        version = embedded.read_version(member.classic.protocols[0][1])
        target = group.target_of(former.get(member.member_id, member.member_id))
        classic.put(
            ClassicMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.classic.session_timeout_ms,
                member.classic.protocols,
                embedded.write_assignment(to_names(target, draft.state.topics), version),
            )
        )
    classic.protocol_name = classic.select_protocol()
    classic.subscribed_topics = classic.compute_subscribed_topics()
    return classic
