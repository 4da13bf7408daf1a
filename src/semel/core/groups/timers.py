"""Deadlines by name: set, move and cancel in constant time, find the next one cheaply.

A heartbeat moves its member's deadline back every few seconds. The heap therefore keeps one entry
per name, and an entry that surfaces too early is put back at its real time.
"""

import heapq
from typing import NamedTuple

Key = tuple[str, ...]


class TimerDeadline(NamedTuple):
    at_ms: int
    note: int = -1  # what was true when it was set: a timer for epoch 3 is void in epoch 4


class Timers:
    def __init__(self) -> None:
        self._deadlines: dict[Key, TimerDeadline] = {}
        self._heap: list[tuple[int, Key]] = []
        self._queued_at_ms: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self._deadlines)

    def get(self, key: Key) -> TimerDeadline | None:
        return self._deadlines.get(key)

    def set(self, key: Key, deadline: TimerDeadline) -> None:
        self._deadlines[key] = deadline
        queued = self._queued_at_ms.get(key)
        if queued is None or deadline.at_ms < queued:
            self._queue(key, deadline.at_ms)

    def cancel(self, key: Key) -> None:
        self._deadlines.pop(key, None)

    def next(self) -> tuple[Key, TimerDeadline] | None:
        """The earliest deadline. Tidies the heap on the way, which changes no answer."""
        while self._heap:
            at_ms, key = self._heap[0]
            deadline = self._deadlines.get(key)
            if deadline is not None and deadline.at_ms == at_ms:
                return key, deadline
            heapq.heappop(self._heap)
            if self._queued_at_ms.get(key) == at_ms:
                del self._queued_at_ms[key]
                if deadline is not None:
                    self._queue(key, deadline.at_ms)
        return None

    def _queue(self, key: Key, at_ms: int) -> None:
        self._queued_at_ms[key] = at_ms
        heapq.heappush(self._heap, (at_ms, key))
