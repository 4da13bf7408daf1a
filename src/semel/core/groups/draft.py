"""What a decision gathers while it is made: records, effects, deadlines. Nothing of it is applied.

A group changed in the draft is seen by the rest of the same decision (`Draft.classic`); the
coordinator's own state sees it only when the record is applied.
"""

from typing import TYPE_CHECKING, Any

from semel.core.groups.classic.group import ClassicGroup, ClassicGroupMetadata
from semel.core.groups.records import ClassicGroupChanged, Record, TimerSet
from semel.core.groups.replies import Answer, JoinReply, SyncReply
from semel.core.groups.settings import GroupSettings
from semel.core.groups.timers import Key, TimerDeadline
from semel.core.machine import Decision

if TYPE_CHECKING:
    from semel.core.groups.state import GroupsState


class Draft:
    def __init__(self, state: "GroupsState", now_ms: int) -> None:
        self.state = state
        self.now_ms = now_ms
        self.records: list[Record] = []
        self.effects: list[Any] = []

    @property
    def settings(self) -> GroupSettings:
        return self.state.settings

    def keep(self, *records: Record) -> None:
        self.records.extend(records)

    def keep_classic(
        self, group: ClassicGroup, written: ClassicGroupMetadata | None = None
    ) -> None:
        """The group's new value; with `written`, that much of it goes to the log."""
        self.records.append(ClassicGroupChanged(group, written))

    def order(self, effect: Any) -> None:
        self.effects.append(effect)

    def answer(self, request_id: int, reply: JoinReply | SyncReply) -> None:
        self.effects.append(Answer(request_id, reply))

    def set_timer(self, key: Key, delay_ms: int, note: int = -1) -> None:
        self.records.append(TimerSet(key, TimerDeadline(self.now_ms + delay_ms, note)))

    def cancel_timer(self, key: Key) -> None:
        if self.state.timers.get(key) is not None:
            self.records.append(TimerSet(key, None))

    def decision(self, reply: Any) -> Decision:
        return Decision(reply, tuple(self.records), tuple(self.effects))


# The names of deadlines. Members of a consumer group that speak the classic protocol have two of
# their own: to come back when a rebalance is on, and to ask for their assignment after it.


def session_key(group_id: str, member_id: str) -> Key:
    return ("session", group_id, member_id)


def join_key(group_id: str) -> Key:
    return ("join", group_id)


def sync_key(group_id: str) -> Key:
    return ("sync", group_id)


def rebalance_key(group_id: str, member_id: str) -> Key:
    return ("rebalance", group_id, member_id)


def member_join_key(group_id: str, member_id: str) -> Key:
    return ("member-join", group_id, member_id)


def member_sync_key(group_id: str, member_id: str) -> Key:
    return ("member-sync", group_id, member_id)


EXPIRE_OFFSETS_KEY: Key = ("expire-offsets",)
