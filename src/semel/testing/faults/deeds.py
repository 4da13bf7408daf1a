"""What a fault does with a request that meets it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any, NamedTuple

from semel.broker.failures import ApiError

if TYPE_CHECKING:
    from semel.broker.api import Answer
    from semel.broker.context import Context
    from semel.testing.faults.watching import Apply
    from semel.wire.errors import ErrorCode


class Surroundings(NamedTuple):
    """Of a request that meets a fault."""

    ctx: Context
    fault: str

    def close(self) -> None:
        self.ctx.connection.close(self.fault)


class Deed(ABC):
    @abstractmethod
    def do(self, apply: Apply, surroundings: Surroundings) -> Answer:
        """The answer, or what it comes from later. A coroutine holds back what follows on the same
        connection, as a broker that is slow with a request does."""

    def release(self) -> None:  # noqa: B027  (most hold nothing)
        """Let go of what is held."""


@dataclass
class FailWith(Deed):
    error: ErrorCode
    message: str | None

    def do(self, apply: Apply, surroundings: Surroundings) -> Answer:
        raise ApiError(self.error, self.message or f"a fault of the test: {surroundings.fault}")

    def __str__(self) -> str:
        return f"fail({self.error.name!r})"


class _Silence(Deed):
    """Something is never answered. When the fault is lifted, the connection is closed: nobody can
    make use of it any more."""

    def __init__(self) -> None:
        self._lost: list[tuple[asyncio.Future[None], Surroundings]] = []
        self._is_lifted = False

    def _lose(self, surroundings: Surroundings) -> asyncio.Future[None]:
        lost = asyncio.get_running_loop().create_future()
        self._lost.append((lost, surroundings))
        if self._is_lifted:  # meanwhile, by another thread
            self.release()
        return lost

    def release(self) -> None:
        self._is_lifted = True
        for lost, surroundings in self._lost:
            _soon(lost, surroundings.close)
            _soon(lost, partial(_let_go, lost))


class DropRequest(_Silence):
    def do(self, apply: Apply, surroundings: Surroundings) -> Answer:
        return self._never(surroundings)

    async def _never(self, surroundings: Surroundings) -> None:
        await self._lose(surroundings)

    def __str__(self) -> str:
        return "drop_request()"


class DropReply(_Silence):
    def do(self, apply: Apply, surroundings: Surroundings) -> Answer:
        return self._apply(apply, surroundings)

    async def _apply(self, apply: Apply, surroundings: Surroundings) -> Any:
        await _settled(apply())
        return self._lose(surroundings)  # what follows on the connection is applied meanwhile

    def __str__(self) -> str:
        return "drop_reply()"


@dataclass
class CloseConnection(Deed):
    after: bool

    def do(self, apply: Apply, surroundings: Surroundings) -> Answer:
        if self.after:
            return self._apply_and_close(apply, surroundings)
        surroundings.close()
        return None

    async def _apply_and_close(self, apply: Apply, surroundings: Surroundings) -> None:
        await _settled(apply())
        surroundings.close()

    def __str__(self) -> str:
        return "close_after()" if self.after else "close_before()"


@dataclass
class Delay(Deed):
    seconds: float
    after: bool

    def do(self, apply: Apply, surroundings: Surroundings) -> Answer:
        return self._slowly(apply)

    async def _slowly(self, apply: Apply) -> Any:
        if not self.after:
            await asyncio.sleep(self.seconds)
            return await _settled(apply())
        answer = await _settled(apply())
        await asyncio.sleep(self.seconds)
        return answer

    def __str__(self) -> str:
        return f"{'delay_reply' if self.after else 'delay'}({self.seconds:g})"


class Hold(Deed):
    def __init__(self, after: bool) -> None:
        self.after = after
        self._released = False
        self._held: list[asyncio.Future[None]] = []

    def do(self, apply: Apply, surroundings: Surroundings) -> Answer:
        return self._hold(apply)

    async def _hold(self, apply: Apply) -> Any:
        if not self.after:
            await self._wait()
            return await _settled(apply())
        answer = await _settled(apply())
        await self._wait()
        return answer

    async def _wait(self) -> None:
        if self._released:
            return
        held = asyncio.get_running_loop().create_future()
        self._held.append(held)
        if not self._released:  # meanwhile, by another thread
            await held

    def release(self) -> None:
        self._released = True
        for held in self._held:
            _soon(held, partial(_let_go, held))

    def __str__(self) -> str:
        return "hold_reply()" if self.after else "hold()"


def _soon(waiting: asyncio.Future[None], call: Callable[[], None]) -> None:
    """In the loop that the request waits in; if that is closed, broker and request are gone."""
    loop = waiting.get_loop()
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)


def _let_go(held: asyncio.Future[None]) -> None:
    if not held.done():
        held.set_result(None)


async def _settled(answer: Any) -> Any:
    """The answer itself, however it comes."""
    while isinstance(answer, asyncio.Future | CoroutineType):
        answer = await answer
    return answer
