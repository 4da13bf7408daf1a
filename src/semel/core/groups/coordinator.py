"""The group coordinator of one partition of __consumer_offsets. Pure: see core/machine.py.

This file only says which question goes where; the answers are in the modules named by noun. Time
comes as an argument: `next_deadline_ms` tells the runtime when to submit a `Tick`.
"""

from typing import Any

from semel.core.groups import admin
from semel.core.groups.classic import joining as classic
from semel.core.groups.classic import life as classic_life
from semel.core.groups.classic.group import ClassicGroup
from semel.core.groups.commands import (
    Command,
    ConsumerGroupDescribe,
    ConsumerGroupHeartbeat,
    DeleteGroup,
    DescribeGroup,
    Heartbeat,
    Introduction,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    Loaded,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    RegexesResolved,
    SettingsChanged,
    SyncGroup,
    Tick,
    TopicsChanged,
    TxnOffsetCommit,
)
from semel.core.groups.consumer import heartbeat as consumer
from semel.core.groups.consumer import leaving as consumer_leave
from semel.core.groups.consumer import regexes
from semel.core.groups.consumer.group import LEAVE_EPOCH, LEAVE_STATIC_EPOCH, ConsumerGroup
from semel.core.groups.draft import EXPIRE_OFFSETS_KEY, Draft
from semel.core.groups.migration import migration, mixed
from semel.core.groups.offsets import requests as offsets
from semel.core.groups.records import Record, SettingsSeen, TimerSet, TopicsSeen
from semel.core.groups.replies import (
    ErrorReply,
    JoinReply,
    Later,
    LeaveReply,
    RequestRefused,
    StartTimers,
    SyncReply,
)
from semel.core.groups.settings import GroupSettings
from semel.core.groups.state import GroupsState
from semel.core.machine import Decision
from semel.wire.errors import ErrorCode


class GroupCoordinator:
    def __init__(self, settings: GroupSettings | None = None) -> None:
        self.state = GroupsState(settings or GroupSettings())

    def decide(self, command: Command, now_ms: int) -> Decision:
        draft = Draft(self.state, now_ms)
        try:
            return draft.decision(_reply(draft, command))
        except RequestRefused as refusal:
            return Decision(command.refused(refusal.error, refusal.message))

    def apply(self, record: Record) -> None:
        self.state.apply(record)

    def resume(self) -> tuple[StartTimers, ...]:
        return (StartTimers(),)

    def next_deadline_ms(self) -> int | None:
        upcoming = self.state.timers.next()
        return None if upcoming is None else upcoming[1].at_ms


def _reply(draft: Draft, command: Command) -> Any:
    match command:
        case OffsetCommit():
            return offsets.commit(draft, command)
        case TxnOffsetCommit():
            return offsets.txn_commit(draft, command)
        case OffsetFetch():
            return offsets.fetch(draft, command)
        case Heartbeat():
            return _heartbeat(draft, command)
        case ConsumerGroupHeartbeat(member_epoch=epoch):
            if epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
                return consumer_leave.leave(draft, command)
            return consumer.heartbeat(draft, command)
        case Introduction(heartbeat=joining):
            return consumer.introduction(draft, joining)
        case JoinGroup():
            return _join(draft, command)
        case SyncGroup():
            return _sync(draft, command)
        case LeaveGroup():
            return _leave(draft, command)
    return _reply_to_others(draft, command)


def _reply_to_others(draft: Draft, command: Command) -> Any:
    match command:
        case OffsetDelete():
            return offsets.delete(draft, command)
        case RegexesResolved():
            return regexes.resolved(draft, command)
        case DeleteGroup():
            return admin.delete(draft, command)
        case DescribeGroup():
            return admin.describe(draft, command)
        case ConsumerGroupDescribe():
            return admin.describe_consumer_group(draft, command)
        case ListGroups():
            return admin.list_groups(draft, command)
        case TopicsChanged(topics, deleted):
            draft.keep(TopicsSeen(topics))
            for name, topic_id in deleted:
                offsets.delete_topic(draft, name, topic_id)
        case SettingsChanged(settings):
            draft.keep(SettingsSeen(settings))
        case Tick():
            _tick(draft)
        case Loaded():
            _loaded(draft)
    return ErrorReply()


def _join(draft: Draft, command: JoinGroup) -> JoinReply | Later:
    group = draft.state.groups.get(command.group_id)
    if isinstance(group, ConsumerGroup):
        if not group.is_empty:
            return mixed.join(draft, group, command)
        if command.member_id:
            raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID)
        # It has no members left: the group starts again as a classic one.
        migration.write_consumer_tombstones(draft, group)
        group = None
    return classic.join(draft, group, command)


def _sync(draft: Draft, command: SyncGroup) -> SyncReply | Later:
    group = draft.state.groups.get(command.group_id)
    if group is None or group.is_empty:
        raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    if isinstance(group, ConsumerGroup):
        return mixed.sync(draft, group, command)
    return classic_life.sync(draft, group, command)


def _heartbeat(draft: Draft, command: Heartbeat) -> ErrorReply:
    group = draft.state.groups.get(command.group_id)
    if group is None:
        raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    if isinstance(group, ConsumerGroup):
        return mixed.heartbeat(draft, group, command)
    return classic_life.heartbeat(draft, group, command)


def _leave(draft: Draft, command: LeaveGroup) -> LeaveReply:
    group = draft.state.groups.get(command.group_id)
    if group is None:
        return LeaveReply(
            ErrorCode.NONE,
            tuple((m, i, ErrorCode.UNKNOWN_MEMBER_ID) for m, i in command.members),
        )
    if isinstance(group, ConsumerGroup):
        return mixed.leave(draft, group, command)
    return classic_life.leave(draft, group, command)


def _tick(draft: Draft) -> None:
    upcoming = draft.state.timers.next()
    if upcoming is None or upcoming[1].at_ms > draft.now_ms:
        return
    key, deadline = upcoming
    draft.keep(TimerSet(key, None))
    if key == EXPIRE_OFFSETS_KEY:
        offsets.expire(draft)
        _schedule_expiry(draft)
        return
    kind, group_id, *member = key
    group = draft.state.groups.get(group_id)
    if isinstance(group, ConsumerGroup) and member:
        consumer_leave.deadline(draft, group, kind, member[0], deadline.note)
    elif isinstance(group, ClassicGroup):
        _classic_deadline(draft, group, kind, member)


def _classic_deadline(draft: Draft, group: ClassicGroup, kind: str, member: list[str]) -> None:
    match kind:
        case "session":
            classic_life.session_deadline(draft, group, member[0])
        case "join":
            changed = group.copy()
            classic.join_deadline(draft, changed)
            draft.keep_classic(changed)
        case "sync":
            classic_life.sync_deadline(draft, group)


def _loaded(draft: Draft) -> None:
    offsets.delete_of_strangers(draft)
    for group in draft.state.groups.values():
        if isinstance(group, ConsumerGroup):
            consumer_leave.loaded(draft, group)
        else:
            classic_life.loaded(draft, group)
    _schedule_expiry(draft)


def _schedule_expiry(draft: Draft) -> None:
    draft.set_timer(EXPIRE_OFFSETS_KEY, draft.settings.offsets_retention_check_interval_ms)
