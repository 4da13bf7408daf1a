"""Tells connections that their sockets are ready: straight from epoll where the loop is ours.

asyncio makes a handle of every event, queues it and runs it in a context, and a transport adds its
own layers: together half of what a small request costs. `ServerLoop` is asyncio's loop over a
selector that calls watched connections itself, from within `select`, again and again until there is
something for asyncio to do (callbacks, timers, other descriptors: also signals and calls from other
threads, which come through a pipe). Answers to what is found ready in one look are sent after all
of it was served: each one wakes a client, which may take our core and leave cold caches. In a
loop of somebody else's (`async with Broker()` within an application), or without epoll, connections
are told through `add_reader`.
"""

from __future__ import annotations

import asyncio
import select
import selectors
from collections.abc import Mapping
from time import monotonic
from typing import Any, Protocol

EPOLLIN = getattr(select, "EPOLLIN", 1)  # not everywhere, but then not used either
EPOLLOUT = getattr(select, "EPOLLOUT", 4)
#: How many are served in one look: the first of them waits for the last.
MOST_AT_ONCE = 32


class Watched(Protocol):
    def readable(self) -> Any:
        """Take what came. What is returned, unless None, is given to `send` soon after."""

    def send(self, answer: Any) -> None: ...
    def writable(self) -> None: ...


class Watcher(Protocol):
    def watch(self, fd: int, watched: Watched) -> None:
        """Tell when there is something to read."""

    def want(self, fd: int, reading: bool, writing: bool) -> None:
        """Change what is told."""

    def forget(self, fd: int) -> None: ...


def watcher_of(loop: asyncio.AbstractEventLoop) -> Watcher:
    return loop.direct if isinstance(loop, ServerLoop) else LoopWatcher(loop)


def new_loop() -> asyncio.AbstractEventLoop:
    """The loop for a broker that has a thread to itself."""
    return ServerLoop() if hasattr(select, "epoll") else asyncio.new_event_loop()


class LoopWatcher:
    """Any asyncio loop that can watch sockets."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watched: dict[int, Watched] = {}

    def watch(self, fd: int, watched: Watched) -> None:
        self._watched[fd] = watched
        self._loop.add_reader(fd, serve, watched)

    def want(self, fd: int, reading: bool, writing: bool) -> None:
        if reading:
            self._loop.add_reader(fd, serve, self._watched[fd])
        else:
            self._loop.remove_reader(fd)
        if writing:
            self._loop.add_writer(fd, self._watched[fd].writable)
        else:
            self._loop.remove_writer(fd)

    def forget(self, fd: int) -> None:
        if self._watched.pop(fd, None) is not None:
            self._loop.remove_reader(fd)
            self._loop.remove_writer(fd)


def serve(watched: Watched) -> None:
    """One alone, without waiting for others."""
    answer = watched.readable()
    if answer is not None:
        watched.send(answer)


class ServerLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.direct = DirectSelector(self)
        super().__init__(self.direct)


class DirectSelector(selectors.BaseSelector):
    """An epoll of the watched, whom it calls itself, and of asyncio's own selector as one more."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._usual = selectors.EpollSelector()
        self._usual_fd = self._usual.fileno()
        self._epoll = select.epoll()
        self._epoll.register(self._usual_fd, EPOLLIN)
        self._watched: dict[int, Watched] = {}

    # For connections

    def watch(self, fd: int, watched: Watched) -> None:
        self._watched[fd] = watched
        self._epoll.register(fd, EPOLLIN)

    def want(self, fd: int, reading: bool, writing: bool) -> None:
        self._epoll.modify(fd, reading * EPOLLIN | writing * EPOLLOUT)

    def forget(self, fd: int) -> None:
        if self._watched.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    # For asyncio

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Serve the watched until asyncio has something to do: `timeout` ends with its first timer.

        What it has to do is seen where its `_run_once` looks, which would take as long to find
        nothing as we take to serve a small request.
        """
        loop = self._loop
        usual: list[tuple[selectors.SelectorKey, int]] = []
        while events := self._epoll.poll(timeout, MOST_AT_ONCE):
            answers = []
            for fd, event in events:
                watched = self._watched.get(fd)
                if watched is not None:
                    try:
                        answer = (
                            watched.readable() if event == EPOLLIN else self._tell(watched, event)
                        )
                    except Exception as problem:
                        self._report(watched, problem)
                    else:
                        if answer is not None:
                            answers.append((watched, answer))
                elif fd == self._usual_fd:
                    usual = self._usual.select(0)
            for watched, answer in answers:
                try:
                    watched.send(answer)
                except Exception as problem:
                    self._report(watched, problem)
            if usual or loop._ready or timeout == 0:
                break
            if timers := loop._scheduled:
                timeout = timers[0]._when - monotonic()
                if timeout <= 0:
                    break
        return usual

    def _tell(self, watched: Watched, event: int) -> Any:
        if event & EPOLLOUT:
            watched.writable()
        return watched.readable() if event & ~EPOLLOUT else None

    def _report(self, watched: Watched, problem: Exception) -> None:
        self._loop.call_exception_handler({"message": f"{watched!r} failed", "exception": problem})

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._usual.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._usual.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._usual.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._usual.get_map()

    def close(self) -> None:
        self._usual.close()
        self._epoll.close()
