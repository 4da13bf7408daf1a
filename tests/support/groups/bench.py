"""A group coordinator on the bench: its log in memory, its clock in your hand.

`GroupBench` does what the runtime does (decide, append, apply, carry out) without a broker: for
decision tests and simulations. Restarting it replays the bytes of its log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid5

from tests.support.groups.subscriptions import write_subscription

from semel.core.groups.classic.group import ClassicGroup
from semel.core.groups.commands import (
    Command,
    ConsumerGroupHeartbeat,
    Heartbeat,
    Introduction,
    JoinGroup,
    Loaded,
    OffsetCommit,
    OffsetFetch,
    OffsetToCommit,
    RegexesResolved,
    SyncGroup,
    Tick,
    TopicsChanged,
    TxnOffsetCommit,
)
from semel.core.groups.consumer.group import ConsumerGroup
from semel.core.groups.consumer.regexes import compile_regex
from semel.core.groups.coordinator import GroupCoordinator
from semel.core.groups.encoding import GroupCodec
from semel.core.groups.records import ClassicGroupChanged, TransactionMarker
from semel.core.groups.replies import (
    LATER,
    Answer,
    HeartbeatReply,
    JoinReply,
    ResolveRegexes,
    StartTimers,
    SyncReply,
)
from semel.core.groups.settings import GroupSettings
from semel.core.groups.topics import TopicInfo, Topics
from semel.core.machine import Decision, LogEntry
from semel.wire.errors import ErrorCode

_NAMES = UUID(int=848)


def topic_id(name: str) -> UUID:
    """The same id for a name in every run."""
    return uuid5(_NAMES, name)


class GroupBench:
    def __init__(self, settings: GroupSettings | None = None, **topics: int) -> None:
        self.settings = settings or GroupSettings(initial_rebalance_delay_ms=0)
        self.now_ms = 1_000_000
        self.log: list[LogEntry | TransactionMarker] = []
        self.answers: dict[int, JoinReply | SyncReply] = {}
        self.last: Decision = Decision()
        self.topics = Topics()
        self._request_id = 0
        self._member_number = 0
        self.coordinator = GroupCoordinator(self.settings)
        self.set_topics(**topics)
        self.do(Loaded())

    # What the runtime does

    def do(self, command: Command) -> Any:
        self.last = decision = self.coordinator.decide(command, self.now_ms)
        for record in decision.records:
            if (entry := GroupCodec.encode(record)) is not None:
                self.log.append(entry)
            self.coordinator.apply(record)
            if isinstance(record, ClassicGroupChanged):
                _check_counts(record.group)
        for effect in decision.effects:
            self._run(effect)
        self.last = decision
        return decision.reply

    def _run(self, effect: Any) -> None:
        match effect:
            case Answer(request_id, reply):
                assert request_id not in self.answers, "answered twice"
                self.answers[request_id] = reply
            case ResolveRegexes(group_id, _, regexes):
                matched = tuple(
                    (regex, frozenset(filter(compile_regex(regex).fullmatch, self.topics.by_name)))
                    for regex in sorted(regexes)
                )
                self.do(RegexesResolved(group_id, matched, self.topics.version))
            case StartTimers():
                self.do(Loaded())

    def advance(self, milliseconds: int) -> None:
        """Let time pass, stopping at every deadline on the way."""
        end_ms = self.now_ms + milliseconds
        while (at_ms := self.coordinator.next_deadline_ms()) is not None and at_ms <= end_ms:
            self.now_ms = max(at_ms, self.now_ms)
            self.do(Tick())
        self.now_ms = end_ms

    def replayed(self, length: int | None = None) -> GroupCoordinator:
        """A coordinator that has read the log, or the beginning of it."""
        coordinator = GroupCoordinator(self.settings)
        for entry in self.log[:length]:
            record = GroupCodec.decode(entry) if isinstance(entry, LogEntry) else entry
            if record is not None:
                coordinator.apply(record)
        return coordinator

    def restart(self) -> None:
        """Everything in memory is gone; whoever waited hears nothing."""
        self.coordinator = self.replayed()
        self.do(TopicsChanged(self.topics))
        for effect in self.coordinator.resume():
            self._run(effect)

    def set_topics(self, **partitions: int) -> None:
        """The topics there are now; those no longer named are deleted."""
        known = [TopicInfo(topic_id(name), name, count) for name, count in partitions.items()]
        gone = self.topics.by_name.keys() - partitions.keys()
        deleted = tuple((name, topic_id(name)) for name in sorted(gone))
        is_new = any(topic.id not in self.topics.by_id for topic in known)
        version = self.topics.version + 1
        created = version if is_new else self.topics.created_version
        self.topics = Topics.of(known, version, created)
        self.do(TopicsChanged(self.topics, deleted))

    # Looking

    def group(self, group_id: str = "g") -> Any:
        return self.coordinator.state.groups.get(group_id)

    def classic(self, group_id: str = "g") -> ClassicGroup:
        group = self.group(group_id)
        assert isinstance(group, ClassicGroup)
        return group

    def consumer(self, group_id: str = "g") -> ConsumerGroup:
        group = self.group(group_id)
        assert isinstance(group, ConsumerGroup)
        return group

    # The classic protocol

    def join(self, member_id: str = "", group_id: str = "g", **fields: Any) -> Any:
        """A JoinGroup: its reply, or the number of the request if the answer comes later."""
        self._request_id += 1
        self._member_number += 1
        fields.setdefault("protocols", (("range", write_subscription(["t"])),))
        fields.setdefault("fresh_member_id", f"m{self._member_number}")
        reply = self.do(JoinGroup(group_id, member_id, request_id=self._request_id, **fields))
        return self._request_id if reply is LATER else reply

    def join_at_once(self, group_id: str = "g", **fields: Any) -> int:
        """A newcomer of an old client: no member id asked for, so one request does it."""
        request_id = self.join(group_id=group_id, version=3, **fields)
        assert isinstance(request_id, int), request_id
        return request_id

    def sync(self, joined: JoinReply, group_id: str = "g", **fields: Any) -> Any:
        """A SyncGroup after a successful join; the leader gives everybody its own name's bytes."""
        self._request_id += 1
        assignments = tuple((m.member_id, f"for {m.member_id}".encode()) for m in joined.members)
        fields.setdefault("assignments", assignments)
        fields.setdefault("generation", joined.generation)
        reply = self.do(
            SyncGroup(group_id, member_id=joined.member_id, request_id=self._request_id, **fields)
        )
        return self._request_id if reply is LATER else reply

    def heartbeat(self, member_id: str, generation: int, group_id: str = "g") -> Any:
        return self.do(Heartbeat(group_id, generation, member_id))

    def joined(self, request_id: int) -> JoinReply:
        reply = self.answers[request_id]
        assert isinstance(reply, JoinReply)
        return reply

    def synced(self, request_id: int) -> SyncReply:
        reply = self.answers[request_id]
        assert isinstance(reply, SyncReply)
        return reply

    def settle(self, members: int = 2, group_id: str = "g", **fields: Any) -> list[JoinReply]:
        """A stable group of that many members, the leader first."""
        requests = [self.join_at_once(group_id, **fields) for _ in range(members)]
        self.advance(0)
        replies = sorted((self.joined(r) for r in requests), key=lambda r: not r.members)
        for reply in reversed(replies):
            self.sync(reply, group_id)
        return replies

    # The consumer protocol

    def beat(
        self,
        member_id: str = "a",
        epoch: int = 0,
        topics: Sequence[str] | None = None,
        owned: dict[str, list[int]] | None = None,
        group_id: str = "g",
        **fields: Any,
    ) -> HeartbeatReply:
        """A ConsumerGroupHeartbeat; epoch 0 joins with all that joining needs. With
        `only_introduces`, no more than the introduction of one who comes with others."""
        if epoch == 0:
            fields.setdefault("rebalance_timeout_ms", 60_000)
            owned = owned or {}
            topics = (
                ["t"] if topics is None and not fields.get("subscribed_topic_regex") else topics
            )
        only_introduces = fields.pop("only_introduces", False)
        heartbeat = ConsumerGroupHeartbeat(
            group_id,
            member_id,
            epoch,
            subscribed_topic_names=None if topics is None else tuple(topics),
            owned=None
            if owned is None
            else tuple((topic_id(name), tuple(p)) for name, p in owned.items()),
            **fields,
        )
        reply = self.do(Introduction(group_id, heartbeat) if only_introduces else heartbeat)
        assert isinstance(reply, HeartbeatReply)
        return reply

    def names(self, assignment: dict[UUID, Any] | None) -> dict[str, list[int]] | None:
        if assignment is None:
            return None
        return {str(self.topics.name_of(t)): sorted(p) for t, p in assignment.items()}

    # Offsets

    def commit(self, offset: int, topic: str = "t", partition: int = 0, **fields: Any) -> Any:
        wanted = OffsetToCommit(topic, partition, offset, metadata=fields.pop("metadata", ""))
        group_id = fields.pop("group_id", "g")
        return self.do(OffsetCommit(group_id, (wanted,), **fields)).errors[0]

    def txn_commit(
        self, producer_id: int, offset: int, topic: str = "t", partition: int = 0, **fields: Any
    ) -> Any:
        wanted = OffsetToCommit(topic, partition, offset)
        group_id = fields.pop("group_id", "g")
        command = TxnOffsetCommit(group_id, producer_id, 0, (wanted,), **fields)
        return self.do(command).errors[0]

    def end(self, producer_id: int, commit: bool) -> None:
        """A marker is appended to the log, and the machine is told, as the runtime does it."""
        marker = GroupCodec.decode_marker(producer_id, 0, commit)
        self.log.append(marker)
        self.coordinator.apply(marker)

    def offset(self, topic: str = "t", partition: int = 0, group_id: str = "g") -> int:
        """The committed offset; -1 if there is none."""
        committed: int = self._fetched(topic, partition, group_id, False).offset
        return committed

    def is_stable(self, topic: str = "t", partition: int = 0, group_id: str = "g") -> bool:
        """Whether no transaction that is still open would change the offset."""
        error = self._fetched(topic, partition, group_id, True).error
        return error is not ErrorCode.UNSTABLE_OFFSET_COMMIT

    def _fetched(self, topic: str, partition: int, group_id: str, require_stable: bool) -> Any:
        asked = ((topic, topic_id(topic), (partition,)),)
        command = OffsetFetch(group_id, asked, require_stable=require_stable)
        return self.coordinator.decide(command, self.now_ms).reply.topics[0][2][0]


def _check_counts(group: ClassicGroup) -> None:
    """What a group counts as its members come and go is what they would be found to be."""
    members = group.members.values()
    names = Counter(name for member in members for name in {name for name, _ in member.protocols})
    assert +Counter(group.protocol_counts) == names
    assert group.awaiting_join_count == sum(m.awaiting_join is not None for m in members)
