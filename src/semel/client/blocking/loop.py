"""The event loop behind all blocking clients, in a thread of its own, and how calls reach it."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar, cast

from semel.errors import UsageError
from semel.net import serving

T = TypeVar("T")
_END = object()


class _LoopThread:
    """The event loop behind all blocking clients of the process; started when first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._left: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if (refusal := self._refusal()) is not None:
            coroutine.close()
            raise UsageError(refusal)
        future: Future[T] = asyncio.run_coroutine_threadsafe(coroutine, self._running())
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _refusal(self) -> str | None:
        """Why this thread may not wait here: it would wait for itself."""
        if threading.current_thread() is self._thread:
            return (
                "a listener runs on the clients' own thread and cannot wait for it: "
                "use the asyncio client where a listener has to commit"
            )
        if _is_on_a_brokers_loop():
            return (
                "a blocking client was called on the event loop that runs a broker, which cannot "
                "answer while it is blocked: use the asyncio client there (await), or run the "
                "broker in a thread of its own (`with Broker() as broker:`)"
            )
        return None

    def leave_to_the_parent(self) -> None:
        """In a forked child there is no such thread: the next call starts another.

        The loop is kept, unused: collecting it would close what it shares with the parent's.
        """
        self._left = self._loop
        self._lock, self._loop, self._thread = threading.Lock(), None, None

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="semel-client", daemon=True
                )
                self._thread.start()
            return self._loop


def _is_on_a_brokers_loop() -> bool:
    try:
        return serving.has_broker(asyncio.get_running_loop())
    except RuntimeError:  # on none
        return False


_thread = _LoopThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_thread.leave_to_the_parent)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine of the asyncio client gives or raises."""
    return _thread.run(coroutine)


def call(method: Callable[[], T]) -> T:
    """The same of a plain method: it runs on the loop too, to which the clients' state belongs."""

    async def on_loop() -> T:
        return method()

    return _thread.run(on_loop())


def following(iterator: AsyncIterator[T]) -> T:
    """The next of an asynchronous iterator, for `__next__`."""
    found = run(_next(iterator))
    if found is _END:
        raise StopIteration
    return cast(T, found)


async def _next(iterator: AsyncIterator[T]) -> T | object:
    return await anext(iterator, _END)


@contextmanager
def inside(around: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """An asynchronous context manager, entered and left on the loop."""
    value = run(_entered(around))
    try:
        yield value
    except BaseException as error:
        if run(_left(around, error)):
            return
        raise
    run(_left(around, None))


async def _entered(around: AbstractAsyncContextManager[T]) -> T:
    return await around.__aenter__()


async def _left(around: AbstractAsyncContextManager[T], error: BaseException | None) -> bool:
    kind, trace = (None, None) if error is None else (type(error), error.__traceback__)
    return bool(await around.__aexit__(kind, error, trace))
