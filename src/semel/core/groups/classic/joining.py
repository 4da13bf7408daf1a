"""JoinGroup for classic groups: who is in, when a rebalance begins, when everybody has joined.

The rules are those of Kafka's GroupMetadataManager (classicGroupJoin...) with KIP-345 (static
members), KIP-394 (a member id first) and the initial rebalance delay. SyncGroup and the rest are in
`core/groups/classic/life`.
"""

from dataclasses import replace

from semel.core.groups.classic.group import MEMBER_BYTES, ClassicGroup, ClassicMember
from semel.core.groups.commands import JoinGroup
from semel.core.groups.draft import Draft, join_key, session_key, sync_key
from semel.core.groups.replies import LATER, JoinReply, Later, RequestRefused, SyncReply
from semel.core.groups.states import CAN_REBALANCE, ClassicState
from semel.wire.errors import ErrorCode

KNOWN_MEMBER_ID_SINCE = 4  # KIP-394: from this version on a newcomer is given an id first
SKIP_ASSIGNMENT_SINCE = 9  # KIP-814: a returning static leader is told not to assign
#: So long a new group's first generation waits for members that were given an id and have yet to
#: come back with it (KIP-394): without, the first of many would be alone, and all begin again.
NEWCOMER_PATIENCE_MS = 20


def join(draft: Draft, group: ClassicGroup | None, command: JoinGroup) -> JoinReply | Later:
    """`group` None: there is none of that name (or one that this join replaces)."""
    if group is None and command.member_id:
        raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    is_new_group = group is None
    changed = (
        ClassicGroup(command.group_id, state_since_ms=draft.now_ms)
        if group is None
        else group.copy()
    )
    reply = _admit(draft, changed, command)
    if is_new_group:
        # Kafka writes the empty group, so that it is there after a restart as well.
        draft.keep_classic(
            changed, ClassicGroup(command.group_id, state_since_ms=draft.now_ms).image()
        )
    else:
        draft.keep_classic(changed)
    return reply


def _admit(draft: Draft, group: ClassicGroup, command: JoinGroup) -> JoinReply | Later:
    if not _has_bytes(draft, group, command):
        return JoinReply(ErrorCode.GROUP_MAX_SIZE_REACHED)
    if not _has_room(draft, group, command.member_id):
        group.remove(command.member_id)
        return JoinReply(ErrorCode.GROUP_MAX_SIZE_REACHED)
    if not group.supports(command.protocol_type, command.protocols):
        return JoinReply(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, command.member_id)
    if command.member_id:
        return _join_known(draft, group, command)
    return _join_unknown(draft, group, command)


def _has_bytes(draft: Draft, group: ClassicGroup, command: JoinGroup) -> bool:
    """Whether what it says may be kept. A member that says no more than before is never refused."""
    said = MEMBER_BYTES + len(command.client_id)
    said += len(command.member_id or command.fresh_member_id)
    said += sum(len(name) + len(data) for name, data in command.protocols)
    known = group.members.get(command.member_id)
    growth = said - (0 if known is None else known.kept_bytes)
    return growth <= 0 or growth <= min(command.room, draft.settings.max_bytes - group.kept_bytes)


def _has_room(draft: Draft, group: ClassicGroup, member_id: str) -> bool:
    """While a rebalance gathers, those who wait are counted: the last to come are turned away."""
    member = group.members.get(member_id)
    match group.state:
        case ClassicState.PREPARING_REBALANCE:
            is_waiting = member is not None and member.awaiting_join is not None
            return is_waiting or group.awaiting_join_count < draft.settings.max_size
        case ClassicState.COMPLETING_REBALANCE | ClassicState.STABLE:
            return member is not None or len(group.members) < draft.settings.max_size
    return True


def _join_unknown(draft: Draft, group: ClassicGroup, command: JoinGroup) -> JoinReply | Later:
    if command.instance_id is not None:
        if command.instance_id in group.static_members:
            return _replace_static(draft, group, command)
        return _add(draft, group, command, command.fresh_member_id)
    if command.version < KNOWN_MEMBER_ID_SINCE:
        return _add(draft, group, command, command.fresh_member_id)
    group.expect(command.fresh_member_id)
    draft.set_timer(
        session_key(group.group_id, command.fresh_member_id), command.session_timeout_ms
    )
    return JoinReply(ErrorCode.MEMBER_ID_REQUIRED, command.fresh_member_id)


def _join_known(draft: Draft, group: ClassicGroup, command: JoinGroup) -> JoinReply | Later:
    if command.member_id in group.pending_members and command.instance_id is None:
        return _add(draft, group, command, command.member_id)
    member = group.validate(command.member_id, command.instance_id)
    is_leader = group.leader == member.member_id
    same = member.protocols == command.protocols
    match group.state:
        case ClassicState.PREPARING_REBALANCE:
            return _rejoin(draft, group, member, command)
        case ClassicState.COMPLETING_REBALANCE if same:
            # It probably never heard the answer to its first JoinGroup.
            return _joined(group, member.member_id)
        case ClassicState.STABLE if same and not is_leader:
            return _joined(group, member.member_id)
        case ClassicState.COMPLETING_REBALANCE | ClassicState.STABLE:
            # New metadata; or the leader, which rejoins when it sees new partitions.
            return _rejoin(draft, group, member, command)
    raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID)


def _add(
    draft: Draft, group: ClassicGroup, command: JoinGroup, member_id: str
) -> JoinReply | Later:
    if group.state is ClassicState.PREPARING_REBALANCE and group.initial_delay is not None:
        group.new_member_added = True
    if not group.members:
        group.protocol_type = command.protocol_type
    group.put(
        ClassicMember(
            member_id,
            command.instance_id,
            command.client_id,
            command.client_host,
            command.rebalance_timeout_ms,
            command.session_timeout_ms,
            command.protocols,
            awaiting_join=command.request_id,
            is_new=True,
        )
    )
    # A newcomer cannot send heartbeats while its JoinGroup is parked, nor do we see it disconnect.
    # This timeout keeps clients that retry from leaving dead members behind.
    draft.set_timer(
        session_key(group.group_id, member_id), draft.settings.new_member_join_timeout_ms
    )
    rebalance_or_complete(draft, group)
    return LATER


def _rejoin(
    draft: Draft, group: ClassicGroup, member: ClassicMember, command: JoinGroup
) -> JoinReply | Later:
    _update(draft, group, member, command)
    rebalance_or_complete(draft, group)
    return LATER


def _update(draft: Draft, group: ClassicGroup, member: ClassicMember, command: JoinGroup) -> None:
    if member.awaiting_join is not None:
        # Its previous JoinGroup came over a connection that is gone, or will be. Kafka forgets it.
        draft.answer(
            member.awaiting_join, JoinReply(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
        )
    group.put(
        member._replace(
            protocols=command.protocols,
            rebalance_timeout_ms=command.rebalance_timeout_ms,
            session_timeout_ms=command.session_timeout_ms,
            awaiting_join=command.request_id,
        )
    )


def _replace_static(draft: Draft, group: ClassicGroup, command: JoinGroup) -> JoinReply | Later:
    """A static member is back under its instance id; the one that held it is fenced at once."""
    assert command.instance_id is not None
    old_id = group.static_members[command.instance_id]
    old = group.members[old_id]
    old_leader = group.leader
    if old.awaiting_join is not None:
        draft.answer(old.awaiting_join, JoinReply(ErrorCode.FENCED_INSTANCE_ID, old_id))
    if old.awaiting_sync is not None:
        draft.answer(old.awaiting_sync, SyncReply(ErrorCode.FENCED_INSTANCE_ID))
    draft.cancel_timer(session_key(group.group_id, old_id))
    new = group.replace_static(command.instance_id, command.fresh_member_id)
    draft.set_timer(session_key(group.group_id, new.member_id), new.session_timeout_ms)
    _update(draft, group, new, command)

    if group.state is ClassicState.STABLE and group.select_protocol() == group.protocol_name:
        return _resume_static(draft, group, command, old_leader)
    if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
        # While completing: the leader may already be assigning to the old id, and the new one
        # would get nothing.
        prepare_rebalance(draft, group)
    else:
        complete_join_if_ready(draft, group)
    return LATER


def _resume_static(
    draft: Draft, group: ClassicGroup, command: JoinGroup, old_leader: str | None
) -> JoinReply:
    """No rebalance: the member takes over the assignment of its old member id (KIP-345)."""
    member = group.members[command.fresh_member_id]._replace(awaiting_join=None)
    group.put(member)
    draft.keep_classic(group, group.image())
    if command.version >= SKIP_ASSIGNMENT_SINCE:
        reply = _joined(group, member.member_id)
        return replace(reply, skip_assignment=group.leader == member.member_id)
    # Older clients would assign anew if they were told that they lead: name the former leader.
    return replace(_joined(group, member.member_id), leader=old_leader or "", members=())


def rebalance_or_complete(draft: Draft, group: ClassicGroup) -> None:
    if group.state in CAN_REBALANCE:
        prepare_rebalance(draft, group)
    else:
        complete_join_if_ready(draft, group)


def prepare_rebalance(draft: Draft, group: ClassicGroup) -> None:
    if group.state is ClassicState.COMPLETING_REBALANCE:
        send_back(draft, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_sync.clear()
    draft.cancel_timer(sync_key(group.group_id))

    was_empty = group.state is ClassicState.EMPTY
    group.move_to(ClassicState.PREPARING_REBALANCE, draft.now_ms)
    if was_empty:
        delay_ms = draft.settings.initial_rebalance_delay_ms
        group.initial_delay = (delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        group.new_member_added = False
        draft.set_timer(join_key(group.group_id), delay_ms)
    elif group.all_members_joined:
        complete_join(draft, group)
    else:
        draft.set_timer(join_key(group.group_id), group.rebalance_timeout_ms)


def complete_join_if_ready(draft: Draft, group: ClassicGroup) -> None:
    """The initial delay is waited out even when all known members are there."""
    if (
        group.state is ClassicState.PREPARING_REBALANCE
        and group.initial_delay is None
        and group.all_members_joined
    ):
        complete_join(draft, group)


def join_deadline(draft: Draft, group: ClassicGroup) -> None:
    """The join timer: extend the initial delay while newcomers arrive, else go on without them."""
    if group.state is not ClassicState.PREPARING_REBALANCE:
        return
    if group.initial_delay is not None:
        delay_ms, remaining_ms = group.initial_delay
        if group.new_member_added and remaining_ms > 0:
            group.new_member_added = False
            next_ms = min(draft.settings.initial_rebalance_delay_ms, remaining_ms)
            group.initial_delay = (next_ms, max(remaining_ms - delay_ms, 0))
            draft.set_timer(join_key(group.group_id), next_ms)
            return
        group.initial_delay = None
        patience_ms = (group.state_since_ms or 0) + NEWCOMER_PATIENCE_MS - draft.now_ms
        if group.pending_members and patience_ms > 0:
            draft.set_timer(join_key(group.group_id), patience_ms)
            return
    complete_join(draft, group)


def complete_join(draft: Draft, group: ClassicGroup) -> None:
    draft.cancel_timer(join_key(group.group_id))
    group.initial_delay, group.new_member_added = None, False
    for member in list(group.members.values()):
        if member.awaiting_join is None and not member.is_static:
            group.remove(member.member_id)
            draft.cancel_timer(session_key(group.group_id, member.member_id))

    if group.members and not group.elect_joined_leader():
        # Only static members, and none of them came: wait until their sessions end.
        draft.set_timer(join_key(group.group_id), group.rebalance_timeout_ms)
        return
    group.begin_generation(draft.now_ms)
    if group.is_empty:
        draft.keep_classic(group, group.image())
        return
    for member in list(group.members.values()):
        if member.awaiting_join is not None:
            draft.answer(member.awaiting_join, _joined(group, member.member_id))
        group.put(member._replace(awaiting_join=None, is_new=False))
        draft.set_timer(session_key(group.group_id, member.member_id), member.session_timeout_ms)
        group.pending_sync.add(member.member_id)
    draft.set_timer(sync_key(group.group_id), group.rebalance_timeout_ms)


def send_back(draft: Draft, group: ClassicGroup, error: ErrorCode) -> None:
    """Members that wait for an assignment will not get this one: they must join again."""
    for member in list(group.members.values()):
        if member.awaiting_sync is not None:
            draft.answer(member.awaiting_sync, SyncReply(error))
            draft.set_timer(
                session_key(group.group_id, member.member_id), member.session_timeout_ms
            )
        group.put(member._replace(assignment=b"", awaiting_sync=None))


def _joined(group: ClassicGroup, member_id: str) -> JoinReply:
    is_leader = group.leader == member_id
    may_assign = is_leader and group.state is not ClassicState.PREPARING_REBALANCE
    return JoinReply(
        ErrorCode.NONE,
        member_id,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader or "",
        members=group.joined_members() if may_assign else (),
    )
