"""Groups at work: one coordinator per partition of __consumer_offsets, their timers, who waits.

A handler submits a command under its group's name and gets the reply, or a future of it. JoinGroup
and SyncGroup may be told to wait for other members (`LATER`): their future is kept here until the
machine orders the answer. The offsets topic is made when the first group is asked for.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from semel.broker.catalog.internal_topics import CONSUMER_OFFSETS
from semel.broker.coordinators.joining import Joining
from semel.broker.coordinators.runtime import Shard
from semel.broker.coordinators.shards import ShardLoader
from semel.broker.replies import NowOrLater, when
from semel.core.groups.commands import (
    ConsumerGroupHeartbeat,
    GroupCommand,
    ListGroups,
    Loaded,
    RegexesResolved,
    SettingsChanged,
    Tick,
    TopicsChanged,
)
from semel.core.groups.consumer.regexes import compile_regex
from semel.core.groups.coordinator import GroupCoordinator
from semel.core.groups.encoding import GroupCodec
from semel.core.groups.replies import (
    LATER,
    Answer,
    Effect,
    HeartbeatReply,
    ListedGroup,
    RequestRefused,
    ResolveRegexes,
    StartTimers,
)
from semel.core.groups.settings import GroupSettings
from semel.core.groups.topics import TopicInfo, Topics
from semel.core.machine import Command
from semel.core.partition.admission import Refusal
from semel.core.partition.verification import Guard
from semel.core.placing import partition_of
from semel.store.interface import Ticket
from semel.wire.errors import ErrorCode

if TYPE_CHECKING:
    from semel.broker.catalog.catalog import Topic
    from semel.broker.context import Context
    from semel.broker.server import Broker

R = TypeVar("R")
Answered = TypeVar("Answered")
GroupShard = Shard[GroupCoordinator]


class WaitingMember(NamedTuple):
    """A request that waits for other members, and how its response is made of the reply."""

    shard: GroupShard
    command: Command[Any]
    future: asyncio.Future[Any]
    respond: Callable[[Any], Any]


class Groups:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.shards: list[GroupShard] = []
        self._loader: ShardLoader[GroupCoordinator] = ShardLoader(broker)
        self.settings = group_settings(broker)
        self._topics = Topics()
        self._topics_are_stale = False
        self._deleted_topics: list[Topic] = []
        self._waiting: dict[int, WaitingMember] = {}
        self._request_ids = itertools.count(1)
        self._regex_contexts: dict[tuple[str, str], Context] = {}
        self._joining = Joining(self.submit_all)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms: int | None = None

    # Life

    def start(self) -> None:
        self._refresh_topics()
        self.broker.catalog.listeners.append(self)
        self.broker.settings.observers.append(self._settings_changed)
        topic = self.broker.catalog.topics.get(CONSUMER_OFFSETS)
        if topic is not None:
            self._make_shards(topic)
            self.broker.spawn(self._loader.load_all(self.shards))

    async def stop(self) -> None:
        self._loader.stop()
        if self._timer is not None:
            self._timer.cancel()
        for shard in self.shards:
            shard.unload()
            self._forget_waiting(shard, ErrorCode.NOT_COORDINATOR)

    def _make_shards(self, topic: Topic) -> None:
        self.shards = [
            Shard(
                partition,
                self._new_machine,
                GroupCodec(),
                now_ms=self.broker.now_ms,
                run=self._run,
                failed=self._shard_failed,
            )
            for partition in self.broker.partitions.of(topic.name)
        ]

    def _new_machine(self) -> GroupCoordinator:
        return GroupCoordinator(self.settings)

    def _shard_failed(self, shard: GroupShard) -> None:
        self._forget_waiting(shard, ErrorCode.NOT_COORDINATOR)
        self._loader.bring_back(shard)

    # Asking

    def shard_of(self, group_id: str) -> GroupShard:
        """The coordinator of a group; makes the offsets topic if there is none yet."""
        if self._topics_are_stale:
            self._tell_topics()  # what is asked now must not precede what was deleted before
        if not self.shards:
            self.ensure_topic()
        shard = self.shards[partition_of(group_id, len(self.shards))]
        return shard if shard.machine is not None else self._loader.loaded(shard)

    def ensure_topic(self) -> Topic:
        return self.broker.catalog.ensure_internal_topic(CONSUMER_OFFSETS)

    def submit(
        self, group_id: str, command: Command[R], guard: Guard | None = None
    ) -> NowOrLater[R]:
        """The reply, or a future of it."""
        shard = self.shard_of(group_id)
        if self._joining and self._joining.has(group_id, getattr(command, "member_id", "")):
            self._joining.finish()  # it sends more before it was answered: decide the join first
        reply = shard.submit(command, guard)
        self._arm(shard)
        return reply

    def submit_all(self, commands: Sequence[GroupCommand[R]]) -> list[NowOrLater[R]]:
        """The replies to several commands: of one group, in one batch of its log."""
        if len(commands) < 2:
            return [self.submit(command.group_id, command) for command in commands]
        group_id = commands[0].group_id
        if self._joining or any(command.group_id != group_id for command in commands):
            return [self.submit(command.group_id, command) for command in commands]
        shard = self.shard_of(group_id)
        replies = shard.submit_all(commands)
        self._arm(shard)
        return replies

    @property
    def room(self) -> int:
        """How many more bytes the members of all groups together may say."""
        machines = (shard.machine for shard in self.shards)
        kept = sum(machine.state.kept_bytes for machine in machines if machine is not None)
        most: int = self.broker.settings["groups.max.bytes"]
        return most - kept

    def join(self, command: ConsumerGroupHeartbeat) -> asyncio.Future[HeartbeatReply]:
        """A new member of a consumer group, together with all others that come just now."""
        return self._joining.add(command, self.broker.loop)

    def submit_patiently(
        self, group_id: str, command: Callable[[int], Command[R]], respond: Callable[[R], Answered]
    ) -> NowOrLater[Answered]:
        """For what may have to wait for others: `command` is given the id to answer to, and
        `respond` the reply. The response, or a future of it."""
        shard = self.shard_of(group_id)
        request_id = next(self._request_ids)
        asked = command(request_id)
        future: asyncio.Future[Answered] = self.broker.loop.create_future()
        self._waiting[request_id] = WaitingMember(shard, asked, future, respond)
        reply = shard.submit(asked)
        self._arm(shard)
        if reply is LATER:
            return future
        if isinstance(reply, asyncio.Future):
            when(reply, lambda reply: self._answer_unless_later(request_id, reply))
            return future
        self._waiting.pop(request_id, None)  # a failed append has answered all that wait
        return respond(reply)

    def heard(self, ctx: Context, group_id: str, member_id: str, is_leaving: bool) -> None:
        """Remember with whose rights a member's regular expression is matched."""
        if is_leaving:
            self._regex_contexts.pop((group_id, member_id), None)
        elif self.broker.access is not None:
            self._regex_contexts[group_id, member_id] = ctx

    def list(self, states: list[str], types: list[str]) -> tuple[ErrorCode, list[ListedGroup]]:
        """All groups of this broker, and an error if some may be missing."""
        command = ListGroups(frozenset(states), frozenset(types))
        error, listed = ErrorCode.NONE, []
        for shard in self.shards:
            machine = self._loader.loaded(shard).machine
            if machine is None:
                error = shard.error
            else:
                listed += machine.decide(command, self.broker.now_ms()).reply
        return error, listed

    # Transactions

    def append_marker(
        self,
        partition: int,
        producer_id: int,
        epoch: int,
        commit: bool,
        coordinator_epoch: int,
        version: int,
    ) -> Ticket | Refusal:
        """The end of a transaction in a partition of the offsets topic: write it, and let the
        offsets that waited for it count, or go."""
        if not 0 <= partition < len(self.shards):
            return Refusal(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no {CONSUMER_OFFSETS}-{partition}."
            )
        return self._loader.loaded(self.shards[partition]).append_marker(
            producer_id, epoch, commit, coordinator_epoch, version
        )

    # Effects

    def _run(self, shard: GroupShard, effect: Effect) -> None:
        match effect:
            case Answer(request_id, reply):
                self._answer(request_id, reply)
            case ResolveRegexes():
                self._resolve(shard, effect)
            case StartTimers():
                if self._topics_are_stale:
                    self._tell_topics()
                # What changed while it was loaded, it could not be told.
                shard.submit(SettingsChanged(self.settings))
                shard.submit(TopicsChanged(self._topics))
                shard.submit(Loaded())
                self._arm(shard)

    def _answer(self, request_id: int, reply: object) -> None:
        waiting = self._waiting.pop(request_id, None)
        if waiting is not None and not waiting.future.done():
            waiting.future.set_result(waiting.respond(reply))

    def _answer_unless_later(self, request_id: int, reply: object) -> None:
        if reply is not LATER:
            self._answer(request_id, reply)

    def _forget_waiting(self, shard: GroupShard, error: ErrorCode) -> None:
        for request_id, waiting in list(self._waiting.items()):
            if waiting.shard is shard:
                self._answer(request_id, waiting.command.refused(error))

    def _resolve(self, shard: GroupShard, order: ResolveRegexes) -> None:
        """Internal topics are never meant; a consumer that wants one names it."""
        ctx = self._regex_contexts.get((order.group_id, order.member_id))
        visible = [
            topic.name
            for topic in self.broker.catalog.topics.values()
            if not topic.is_internal
            and (ctx is None or ctx.may_quietly("DESCRIBE", "TOPIC", topic.name))
        ]
        resolved = []
        for regex in sorted(order.regexes):
            try:
                matches = compile_regex(regex).fullmatch
            except RequestRefused:
                continue  # from a log whose writer allowed it
            resolved.append((regex, frozenset(name for name in visible if matches(name))))
        shard.submit(RegexesResolved(order.group_id, tuple(resolved), self._topics.version))

    # Time

    def _arm(self, shard: GroupShard) -> None:
        """Be woken at the earliest deadline of all shards."""
        if shard.machine is None:
            return
        at_ms = shard.machine.next_deadline_ms()
        if at_ms is None or (self._timer_at_ms is not None and self._timer_at_ms <= at_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        delay_ms = max(at_ms - self.broker.now_ms(), 0)
        self._timer_at_ms = at_ms
        self._timer = self.broker.loop.call_later(delay_ms / 1000, self._tick)

    def _tick(self) -> None:
        self._timer, self._timer_at_ms = None, None
        for shard in self.shards:
            while self._is_due(shard):
                shard.submit(Tick())
            self._arm(shard)

    def _is_due(self, shard: GroupShard) -> bool:
        if shard.machine is None:
            return False
        at_ms = shard.machine.next_deadline_ms()
        return at_ms is not None and at_ms <= self.broker.now_ms()

    # What the catalog and the settings tell

    def topic_created(self, topic: Topic) -> None:
        self._topics_changed()
        if topic.name == CONSUMER_OFFSETS:
            self._make_shards(topic)  # brand-new and empty: loaded when first asked

    def partitions_added(self, topic: Topic, first: int) -> None:
        self._topics_changed()

    def topic_deleted(self, topic: Topic) -> None:
        if topic.name == CONSUMER_OFFSETS:
            for shard in self.shards:
                shard.unload()
                self._forget_waiting(shard, ErrorCode.NOT_COORDINATOR)
            self.shards = []
        self._deleted_topics.append(topic)
        self._topics_changed()

    def topic_configured(self, topic: Topic) -> None:
        pass

    def _topics_changed(self) -> None:
        """Tell the machines once per turn, however many topics changed in it."""
        if not self._topics_are_stale:
            self._topics_are_stale = True
            self.broker.loop.call_soon(self._tell_topics)

    def _tell_topics(self) -> None:
        if not self._topics_are_stale:
            return  # somebody could not wait for it
        self._refresh_topics()
        deleted = tuple((topic.name, topic.id) for topic in self._deleted_topics)
        self._deleted_topics = []
        for shard in self.shards:
            shard.submit(TopicsChanged(self._topics, deleted))

    def _refresh_topics(self) -> None:
        self._topics_are_stale = False
        known = [
            TopicInfo(topic.id, topic.name, topic.partition_count)
            for topic in self.broker.catalog.topics.values()
        ]
        version = self.broker.catalog.offset
        has_new = any(topic.id not in self._topics.by_id for topic in known)
        created = version if has_new else self._topics.created_version
        self._topics = Topics.of(known, version, created)

    def _settings_changed(self) -> None:
        self.settings = group_settings(self.broker)
        for shard in self.shards:
            shard.submit(SettingsChanged(self.settings))


def group_settings(broker: Broker) -> GroupSettings:
    values = broker.settings
    return GroupSettings(
        initial_rebalance_delay_ms=values["group.initial.rebalance.delay.ms"],
        min_session_timeout_ms=values["group.min.session.timeout.ms"],
        max_session_timeout_ms=values["group.max.session.timeout.ms"],
        max_size=values["group.max.size"],
        max_bytes=values["group.max.bytes"],
        max_record_bytes=values["message.max.bytes"],
        consumer_session_timeout_ms=values["group.consumer.session.timeout.ms"],
        consumer_heartbeat_interval_ms=values["group.consumer.heartbeat.interval.ms"],
        consumer_max_size=values["group.consumer.max.size"],
        consumer_assignors=tuple(values["group.consumer.assignors"]),
        consumer_migration_policy=values["group.consumer.migration.policy"],
        consumer_assignment_interval_ms=values["group.consumer.assignment.interval.ms"],
        offset_metadata_max_bytes=values["offset.metadata.max.bytes"],
        offsets_retention_ms=values["offsets.retention.minutes"] * 60_000,
        offsets_retention_check_interval_ms=values["offsets.retention.check.interval.ms"],
    )
