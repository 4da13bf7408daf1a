"""A classic group after the join: SyncGroup, Heartbeat, LeaveGroup, and members gone silent."""

from semel.core.groups.classic.group import ClassicGroup, ClassicMember
from semel.core.groups.classic.joining import (
    complete_join,
    complete_join_if_ready,
    prepare_rebalance,
    rebalance_or_complete,
    send_back,
)
from semel.core.groups.commands import Heartbeat, LeaveGroup, SyncGroup
from semel.core.groups.draft import Draft, session_key, sync_key
from semel.core.groups.replies import (
    LATER,
    ErrorReply,
    JoinReply,
    Later,
    LeaveReply,
    RequestRefused,
    SyncReply,
)
from semel.core.groups.states import ClassicState
from semel.wire.errors import ErrorCode


def sync(draft: Draft, group: ClassicGroup, command: SyncGroup) -> SyncReply | Later:
    member = group.validate(command.member_id, command.instance_id)
    if command.generation != group.generation:
        raise RequestRefused(ErrorCode.ILLEGAL_GENERATION)
    if _differs(command.protocol_type, group.protocol_type) or _differs(
        command.protocol_name, group.protocol_name
    ):
        raise RequestRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    match group.state:
        case ClassicState.PREPARING_REBALANCE:
            raise RequestRefused(ErrorCode.REBALANCE_IN_PROGRESS)
        case ClassicState.COMPLETING_REBALANCE:
            return _await_assignment(draft, group.copy(), member, command)
        case ClassicState.STABLE:
            if member.member_id in group.pending_sync:
                group = group.copy()
                _has_synced(draft, group, member.member_id)
                draft.keep_classic(group)
            return _assigned(group, member)
    raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID)


def _await_assignment(
    draft: Draft, group: ClassicGroup, member: ClassicMember, command: SyncGroup
) -> Later:
    if member.awaiting_sync is not None:
        draft.answer(member.awaiting_sync, SyncReply(ErrorCode.REBALANCE_IN_PROGRESS))
    group.put(member._replace(awaiting_sync=command.request_id))
    _has_synced(draft, group, member.member_id)
    if group.leader == member.member_id:
        _assign(draft, group, dict(command.assignments))
    else:
        draft.keep_classic(group)
    return LATER


def _assign(draft: Draft, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
    """The leader has sent the assignment: it is written, and all who wait get their part."""
    if _bytes_to_write(group, assignments) > draft.settings.max_record_bytes:
        # As Kafka does when its log refuses the record: nobody gets anything, and all join again.
        send_back(draft, group, ErrorCode.UNKNOWN_SERVER_ERROR)
        prepare_rebalance(draft, group)
        draft.keep_classic(group)
        return
    group.move_to(ClassicState.STABLE, draft.now_ms)
    waiting = []
    for member in list(group.members.values()):
        if member.awaiting_sync is not None:
            waiting.append((member.awaiting_sync, member.member_id))
        assignment = assignments.get(member.member_id, b"")
        group.put(member._replace(assignment=assignment, awaiting_sync=None))
    draft.keep_classic(group, group.image())
    for request_id, member_id in waiting:
        member = group.members[member_id]
        draft.answer(request_id, _assigned(group, member))
        draft.set_timer(session_key(group.group_id, member_id), member.session_timeout_ms)


def _bytes_to_write(group: ClassicGroup, assignments: dict[str, bytes]) -> int:
    """What clients made up; the rest of a group's record is small."""
    return sum(
        len(member.metadata(group.protocol_name)) + len(assignments.get(member_id, b""))
        for member_id, member in group.members.items()
    )


def _has_synced(draft: Draft, group: ClassicGroup, member_id: str) -> None:
    group.pending_sync.discard(member_id)
    if not group.pending_sync:
        draft.cancel_timer(sync_key(group.group_id))


def _assigned(group: ClassicGroup, member: ClassicMember) -> SyncReply:
    return SyncReply(ErrorCode.NONE, group.protocol_type, group.protocol_name, member.assignment)


def _differs(asked: str | None, actual: str | None) -> bool:
    return asked is not None and actual is not None and asked != actual


def heartbeat(draft: Draft, group: ClassicGroup, command: Heartbeat) -> ErrorReply:
    member = group.validate(command.member_id, command.instance_id)
    if command.generation != group.generation:
        raise RequestRefused(ErrorCode.ILLEGAL_GENERATION)
    if group.is_empty:
        raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    draft.set_timer(session_key(group.group_id, member.member_id), member.session_timeout_ms)
    if group.state is ClassicState.PREPARING_REBALANCE:
        return ErrorReply(ErrorCode.REBALANCE_IN_PROGRESS)
    return ErrorReply()


def leave(draft: Draft, group: ClassicGroup, command: LeaveGroup) -> LeaveReply:
    group = group.copy()
    replies = tuple(
        (member_id, instance_id, _leave_one(draft, group, member_id, instance_id))
        for member_id, instance_id in command.members
    )
    if any(error is ErrorCode.NONE for _, _, error in replies):
        if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
            rebalance_or_complete(draft, group)
        else:
            complete_join_if_ready(draft, group)
        draft.keep_classic(group)
    return LeaveReply(ErrorCode.NONE, replies)


def _leave_one(
    draft: Draft, group: ClassicGroup, member_id: str, instance_id: str | None
) -> ErrorCode:
    """An administrator removes a static member by its instance id alone."""
    if not member_id and instance_id is not None:
        member_id = group.static_members.get(instance_id, "")
    elif member_id in group.pending_members:
        draft.cancel_timer(session_key(group.group_id, member_id))
        group.remove(member_id)
        return ErrorCode.NONE
    try:
        member = group.validate(member_id, instance_id)
    except RequestRefused as refusal:
        return refusal.error
    draft.cancel_timer(session_key(group.group_id, member_id))
    _answer_removed(draft, group, member)
    return ErrorCode.NONE


def _answer_removed(draft: Draft, group: ClassicGroup, member: ClassicMember) -> None:
    """A member that still waits is told that it is unknown: if it lives, it joins anew."""
    if member.awaiting_join is not None:
        draft.answer(member.awaiting_join, JoinReply(ErrorCode.UNKNOWN_MEMBER_ID))
    if member.awaiting_sync is not None:
        draft.answer(member.awaiting_sync, SyncReply(ErrorCode.UNKNOWN_MEMBER_ID))
    group.remove(member.member_id)


def session_deadline(draft: Draft, group: ClassicGroup, member_id: str) -> None:
    group = group.copy()
    if member_id in group.pending_members:
        group.remove(member_id)
        if group.state is ClassicState.PREPARING_REBALANCE and group.all_members_joined:
            complete_join(draft, group)
        draft.keep_classic(group)
        return
    member = group.members.get(member_id)
    if member is None or member.has_satisfied_heartbeat:
        return
    _answer_removed(draft, group, member)
    if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
        rebalance_or_complete(draft, group)
    elif group.state is ClassicState.PREPARING_REBALANCE and group.all_members_joined:
        complete_join(draft, group)
    draft.keep_classic(group)


def sync_deadline(draft: Draft, group: ClassicGroup) -> None:
    """Members that never asked for their assignment are gone."""
    if group.state not in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE):
        return
    if not group.pending_sync:
        return
    group = group.copy()
    for member_id in sorted(group.pending_sync):
        group.remove(member_id)
        draft.cancel_timer(session_key(group.group_id, member_id))
    prepare_rebalance(draft, group)
    draft.keep_classic(group)


def loaded(draft: Draft, group: ClassicGroup) -> None:
    """After a reload everyone gets a whole session; a group grown too large is gathered again."""
    for member in group.members.values():
        draft.set_timer(session_key(group.group_id, member.member_id), member.session_timeout_ms)
    if len(group.members) > draft.settings.max_size:
        group = group.copy()
        prepare_rebalance(draft, group)
        draft.keep_classic(group)


def commit_error(
    group: ClassicGroup,
    member_id: str,
    instance_id: str | None,
    generation: int,
    is_transactional: bool,
) -> ErrorCode:
    """ClassicGroup.validateOffsetCommit: who may commit offsets now."""
    if generation < 0 and group.is_empty:
        return ErrorCode.NONE  # an administrator, or a consumer that assigns itself
    if generation >= 0 or member_id or instance_id is not None:
        try:
            group.validate(member_id, instance_id)
        except RequestRefused as refusal:
            return refusal.error
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
    elif not is_transactional:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not is_transactional and group.state is ClassicState.COMPLETING_REBALANCE:
        # It knows the new generation but not yet its partitions: let it finish first.
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE
