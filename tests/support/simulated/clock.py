"""An event loop whose clock jumps: whoever sleeps wakes at once, in the right order.

No thread, socket or real time has a part in it, so a run depends on its seed alone.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _NothingToWaitFor(selectors.DefaultSelector):
    """Instead of waiting for a socket, moves the clock to the next timer."""

    loop: "JumpingLoop"

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("Everybody waits for somebody else: nothing will ever happen again.")
        self.loop.now += max(timeout, 0)
        return []


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        selector = _NothingToWaitFor()
        selector.loop = self
        self.now = 0.0
        super().__init__(selector)

    def time(self) -> float:
        return self.now


def run_jumping(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, on a clock that jumps."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(main)
