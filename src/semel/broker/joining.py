"""Members that join a consumer group (KIP-848) in the same turn of the loop are assigned together.

One by one, each newcomer would have a target of its own computed, written and half carried out,
only to be overtaken by the next one's. Here each of them introduces itself first (which raises the
group epoch, as ever), and only then are they led to a target, which is computed once. Apache Kafka
comes to the same by group.consumer.assignment.interval.ms, but lets members wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from semel.core.groups.commands import ConsumerGroupHeartbeat


class Joining:
    """Who joins in this turn. `submit_all` is that of the groups."""

    def __init__(self, submit_all: Callable[[list[Any]], list[Any]]) -> None:
        self._submit_all = submit_all
        self._turn: dict[tuple[str, str], tuple[ConsumerGroupHeartbeat, asyncio.Future[Any]]] = {}

    def __contains__(self, key: tuple[str, str]) -> bool:
        """Whether this member of this group is among them."""
        return key in self._turn

    def __bool__(self) -> bool:
        return bool(self._turn)

    def add(
        self, command: ConsumerGroupHeartbeat, loop: asyncio.AbstractEventLoop
    ) -> asyncio.Future[Any]:
        """A future of the reply, given at the end of this turn of the loop."""
        if not self._turn:
            loop.call_soon(self.finish)
        future: asyncio.Future[Any] = loop.create_future()
        self._turn[command.group_id, command.member_id or command.fresh_member_id] = (
            command,
            future,
        )
        return future

    def finish(self) -> None:
        turn, self._turn = self._turn, {}
        by_group: dict[str, list[tuple[ConsumerGroupHeartbeat, asyncio.Future[Any]]]] = {}
        for (group_id, _), one in turn.items():
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
                _pass_on(reply, future)

    def _replies(self, commands: list[ConsumerGroupHeartbeat]) -> list[Any]:
        if len(commands) == 1:
            return self._submit_all(commands)
        introductions = [replace(command, only_introduces=True) for command in commands]
        return self._submit_all([*introductions, *commands])[len(commands) :]


def _pass_on(reply: Any, future: asyncio.Future[Any]) -> None:
    if future.cancelled():
        return
    if isinstance(reply, asyncio.Future):
        reply.add_done_callback(lambda done: _pass_on(done.result(), future))
    else:
        future.set_result(reply)
