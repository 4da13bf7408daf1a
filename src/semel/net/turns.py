"""Whose turn it is: connections that sent more than was started at once, one after the other.

A turn of the loop serves one or two of them, however many there are, so that a hundred busy clients
hold up another one no longer than one does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

#: No further connection is served in a turn of the loop after this time.
TURN_SECONDS = 0.002


class Busy(Protocol):
    def next_turn(self) -> None: ...


class Turns:
    def __init__(self) -> None:
        self._line: deque[Busy] = deque()

    def __bool__(self) -> bool:
        """Whether somebody waits."""
        return bool(self._line)

    def plan(self, busy: Busy, loop: asyncio.AbstractEventLoop, must_wait: bool) -> None:
        """Its turn comes soon: when it is first in line, or at once if it only has to answer."""
        if not must_wait:
            loop.call_soon(busy.next_turn)
            return
        if not self._line:
            loop.call_soon(self._serve, loop)
        self._line.append(busy)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        ends = loop.time() + TURN_SECONDS
        waiting = len(self._line)
        while waiting:
            waiting -= 1
            self._line[0].next_turn()  # who has still more stands in line again, behind the others
            self._line.popleft()
            if loop.time() > ends:
                break
        if self._line:
            loop.call_soon(self._serve, loop)
