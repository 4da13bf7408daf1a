"""Where a client lives: on one event loop, in one process. `async with` opens and closes it there.

Its connections, timers and waiters belong to that loop. Used from another, it would wait for what
never comes; in a forked child it would talk on the parent's connections. Both are refused at once.
"""

import asyncio
import os
from threading import get_ident
from types import TracebackType
from typing import Self
from weakref import WeakSet

from semel.errors import UsageError

_NOWHERE = 0


class Lifetime:
    _home = _NOWHERE  # the thread whose loop the client was started on, while it is started
    _loop: asyncio.AbstractEventLoop
    _has_forked = False

    async def start(self) -> None:
        """Connects. A `with` block does it too."""

    async def close(self) -> None:
        """Disconnects."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _settle_here(self) -> None:
        """The client is started, on the loop that runs now."""
        self._loop = asyncio.get_running_loop()
        self._home = get_ident()
        self._has_forked = False
        _started.add(self)

    def _leave(self) -> None:
        self._home = _NOWHERE
        _started.discard(self)

    def _is_started(self) -> bool:
        """False also for what a parent process has started: there is nothing here to close."""
        if self._home == _NOWHERE:
            return False
        self._need_started()
        return True

    def _need_started(self) -> None:
        if self._home != get_ident() or not self._loop.is_running():
            raise UsageError(self._why_not_here())

    def _why_not_here(self) -> str:
        name = type(self).__name__.lower()
        if self._has_forked:
            return (
                f"this {name} was started before the process was forked, and its connections are "
                f"the parent's: make a new {name} in the child (multiprocessing: in the worker's "
                "function or initializer, gunicorn: in post_fork, Celery: in worker_process_init)"
            )
        if self._home == _NOWHERE:
            return f"the {name} is not started, or was closed: use `async with`, or await start()"
        return (
            f"this {name} was started on another event loop (another asyncio.run, or another "
            f"thread's), and works on that one only: start one {name} in each loop, or share a "
            f"blocking one (semel.client.blocking) among threads"
        )


_started: WeakSet[Lifetime] = WeakSet()


def _forget_the_parents() -> None:
    for client in list(_started):
        client._leave()
        client._has_forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_the_parents)
