"""An event loop whose clock jumps: whoever sleeps wakes at once, in the right order.

No thread, socket or real time has a part in it, so a run depends on its seed alone. A turn of the
loop may take a little time, so that those who sleep wake between any two steps of those who only
yield; and somebody may act between any two turns.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _NothingToWaitFor(selectors.DefaultSelector):
    """Instead of waiting for a socket, moves the clock to the next timer."""

    loop: "JumpingLoop"

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("Everybody waits for somebody else: nothing will ever happen again.")
        self.loop.now += timeout if timeout > 0 else self.loop.turn_seconds
        if self.loop.between_turns is not None:
            self.loop.between_turns()
        return []


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        selector = _NothingToWaitFor()
        selector.loop = self
        self.now = 0.0
        self.turn_seconds = 0.0
        self.between_turns: Callable[[], None] | None = None
        self.thread_seconds: Callable[[], float] = lambda: 0.0
        self.threads_at_work = 0
        super().__init__(selector)

    def time(self) -> float:
        return self.now

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        """What a thread would do is done at once, some time later."""
        future: asyncio.Future[T] = self.create_future()

        def work() -> None:
            self.threads_at_work -= 1
            if future.cancelled():
                return  # of a broker that has crashed
            try:
                future.set_result(func(*args))
            except Exception as problem:
                future.set_exception(problem)

        self.threads_at_work += 1
        self.call_later(self.thread_seconds(), work)
        return future


def run_jumping(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, on a clock that jumps."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(main)
