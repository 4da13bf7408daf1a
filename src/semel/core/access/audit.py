"""How many lines denials may write: whoever is denied a million times does not fill the disk.

In each window the same denial is told once, and a client and all clients together have so many
lines. What was held back is counted, and the first line of a later window says how many.
"""

from __future__ import annotations

from collections import Counter

WINDOW_MS = 10_000
MOST_PER_CLIENT = 20
MOST_LINES = 200

#: Principal, host, operation, resource type, name.
Denial = tuple[str, str, str, str, str]


class AuditLimit:
    def __init__(self) -> None:
        self._window = -1
        self._told: set[Denial] = set()
        self._by_client: Counter[tuple[str, str]] = Counter()
        self._held_back = 0

    def admit(self, denial: Denial, now_ms: int) -> int | None:
        """None if this one gets no line; otherwise how many had none since the last line."""
        window = now_ms // WINDOW_MS
        if window != self._window:
            self._window = window
            self._told.clear()
            self._by_client.clear()
        client = denial[:2]
        if (
            denial in self._told
            or self._by_client[client] >= MOST_PER_CLIENT
            or len(self._told) >= MOST_LINES
        ):
            self._held_back += 1
            return None
        self._told.add(denial)
        self._by_client[client] += 1
        held_back, self._held_back = self._held_back, 0
        return held_back
