"""Members that join a consumer group (KIP-848) one right after the other are assigned together.

One by one, each newcomer would have a target of its own computed, written and half carried out,
only to be overtaken by the next one's. Here a join waits until no other came for a millisecond.
Then each of them introduces itself (which raises the group epoch, as ever), and only after that are
they led to a target, which is computed once. Apache Kafka comes to the same by its
group.consumer.assignment.interval.ms, but lets members wait for their next heartbeat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from semel.broker.replies import NowOrLater, pass_on
from semel.core.groups.commands import ConsumerGroupHeartbeat, GroupCommand, Introduction
from semel.core.groups.replies import HeartbeatReply

QUIET_S = 0.001
LONGEST_S = 0.01

SubmitAll = Callable[[Sequence[GroupCommand[HeartbeatReply]]], list[NowOrLater[HeartbeatReply]]]
One = tuple[ConsumerGroupHeartbeat, asyncio.Future[HeartbeatReply]]


class Joining:
    """Who joins just now. `submit_all` is that of the groups."""

    def __init__(self, submit_all: SubmitAll) -> None:
        self._submit_all = submit_all
        self._now: dict[tuple[str, str], One] = {}
        self._first_at = self._last_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def has(self, group_id: str, member_id: str | None) -> bool:
        return (group_id, member_id) in self._now

    def __bool__(self) -> bool:
        return bool(self._now)

    def add(
        self, command: ConsumerGroupHeartbeat, loop: asyncio.AbstractEventLoop
    ) -> asyncio.Future[HeartbeatReply]:
        """A future of the reply."""
        key = (command.group_id, command.member_id or command.fresh_member_id)
        if key in self._now:
            self.finish()
        self._last_at = loop.time()
        if not self._now:
            self._first_at = self._last_at
        if self._timer is None:
            self._timer = loop.call_later(QUIET_S, self._look, loop)
        future: asyncio.Future[HeartbeatReply] = loop.create_future()
        self._now[key] = (command, future)
        return future

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        due_at = min(self._last_at + QUIET_S, self._first_at + LONGEST_S)
        if self._now and loop.time() < due_at:
            self._timer = loop.call_at(due_at, self._look, loop)
        else:
            self.finish()

    def finish(self) -> None:
        now, self._now = self._now, {}
        by_group: dict[str, list[One]] = {}
        for (group_id, _), one in now.items():
            by_group.setdefault(group_id, []).append(one)
        for joining in by_group.values():
            commands = [command for command, _ in joining]
            futures = [future for _, future in joining]
            try:
                replies = self._replies(commands)
            except Exception as problem:
                for future in futures:
                    if not future.done():
                        future.set_exception(problem)
                continue
            for future, reply in zip(futures, replies, strict=True):
                pass_on(reply, future)

    def _replies(self, commands: list[ConsumerGroupHeartbeat]) -> list[NowOrLater[HeartbeatReply]]:
        if len(commands) == 1:
            return self._submit_all(commands)
        introductions = [Introduction(command.group_id, command) for command in commands]
        return self._submit_all([*introductions, *commands])[len(commands) :]
