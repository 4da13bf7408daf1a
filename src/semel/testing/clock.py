"""Time under control: the broker's clock can be put forward, and its timers follow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semel.testing.running import BrokerUnderTest

#: A jump may set off something that sets off something; a broker that never comes to rest is
#: waited for no longer than this.
MOST_TURNS = 10_000


class Clock:
    """The broker's time: the machine's, plus what it was put forward by. Clients have their own."""

    def __init__(self, broker: Callable[[], BrokerUnderTest]) -> None:
        self._broker = broker
        self._ahead_ms = 0

    def now_ms(self) -> int:
        """Milliseconds since 1970, as the broker sees it."""
        return time.time_ns() // 1_000_000 + self._ahead_ms

    def advance(
        self,
        *,
        milliseconds: float = 0,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
    ) -> None:
        """Put the broker's clock forward. When this returns, everything that became due has
        happened: transactions that timed out are aborted, members that were silent are gone."""
        whole_seconds = seconds + 60 * minutes + 3600 * hours + 86_400 * days
        by_ms = round(milliseconds + 1000 * whole_seconds)
        if by_ms <= 0:
            raise ValueError(
                f"the clock can only be put forward, not by {by_ms} ms: "
                "kafka.clock.advance(seconds=60)"
            )
        self._broker().wait(self._advance(by_ms))

    async def _advance(self, by_ms: int) -> None:
        self._ahead_ms += by_ms
        loop: Any = asyncio.get_running_loop()
        # All timers alike, so the heap that they are in keeps its order. The loop's own time does
        # not jump: connections did not fall silent for the length of the jump.
        for timer in loop._scheduled:
            timer._when -= by_ms / 1000
        for _ in range(MOST_TURNS):
            await asyncio.sleep(0)
            if not loop._ready and not _is_due(loop):
                return


def _is_due(loop: Any) -> bool:
    return any(timer._when <= loop.time() for timer in loop._scheduled if not timer.cancelled())
