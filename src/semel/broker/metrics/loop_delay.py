"""How late the event loop comes to what is due: what everybody waits for when one holds it."""

from __future__ import annotations

import asyncio
from bisect import bisect_left

BUCKETS_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_EVERY_S = 0.1


class LoopDelay:
    """Ten times a second it looks at how late it is."""

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS_S) + 1)
        self.sum_s = 0.0
        self.longest_s = 0.0

    async def watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _EVERY_S
            await asyncio.sleep(_EVERY_S)
            self.note(max(0.0, loop.time() - due))

    def note(self, late_s: float) -> None:
        self.buckets[bisect_left(BUCKETS_S, late_s)] += 1
        self.sum_s += late_s
        self.longest_s = max(self.longest_s, late_s)
