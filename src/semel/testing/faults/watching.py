"""Between the dispatcher and its handlers: remembers the last requests, and lets faults strike.

Routes are wrapped as they are made; a broker outside tests has nothing of this.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from semel.broker.api import Answer, Handler
from semel.broker.dispatch import Dispatcher, Route
from semel.broker.failures import ApiError
from semel.testing.faults.mentions import Mentions, errors_of, mentions
from semel.testing.faults.moving import MovedCoordinators
from semel.wire.errors import ErrorCode
from semel.wire.messages import APIS
from semel.wire.schema import Message

if TYPE_CHECKING:
    from semel.broker.context import Context
    from semel.testing.faults.faults import Faults

#: What the handler gives for a request, whoever asks it and when.
Apply = Callable[[], Answer]
REMEMBERED = 30
#: Nobody gives themselves this name.
OWN_CLIENT = "semel.testing"


@dataclass(slots=True, eq=False)
class RequestSeen:
    """One request, for people."""

    at: float
    api: str
    version: int
    client_id: str | None
    about: Mentions
    ended_at: float | None = None
    answer: str = ""
    fault: str = ""


class Activity:
    """Wakes those who wait for something to happen in the broker."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    @property
    def count(self) -> int:
        return self._count

    def happened(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait(self, seen: int, seconds: float) -> None:
        """Until more has happened than was `seen`, but no longer than so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._count != seen, seconds)


class RequestWatch:
    def __init__(self, faults: Faults, activity: Activity) -> None:
        self._faults = faults
        self._activity = activity
        self._began = time.monotonic()
        self.last: deque[RequestSeen] = deque(maxlen=REMEMBERED)
        self.counts: Counter[str] = Counter()
        self.moved = MovedCoordinators()

    def put_between(self, dispatcher: Dispatcher) -> None:
        dispatcher.routes.wrap(self._watch)

    def _watch(self, route: Route) -> None:
        route.handle = self.handler(APIS[route.api_key][0], route.handle)
        route.handle_many = None  # one at a time, so that a fault meets the one it is for

    def forget(self) -> None:
        """A new test begins."""
        self.last.clear()
        self.counts.clear()
        self.moved.clear()
        self._began = time.monotonic()

    def handler(self, api: str, handle: Handler) -> Handler:
        def watched(ctx: Context, request: Any, version: int) -> Answer:
            if ctx.client_id == OWN_CLIENT:
                return handle(ctx, request, version)
            seen = self._begin(api, version, ctx.client_id, request)
            apply: Apply = lambda: handle(ctx, request, version)  # noqa: E731
            if self.moved and self.moved.meets(api, seen.about):
                apply = _not_coordinator
            fault = self._faults._due(api, ctx, seen.about)
            if fault is not None:
                seen.fault = str(fault)
                apply = fault._around(apply, ctx)
            try:
                return self._follow(seen, apply())
            except Exception as problem:
                self._end(seen, _problem(problem))
                raise

        return watched

    def _begin(self, api: str, version: int, client_id: str | None, request: Any) -> RequestSeen:
        at = time.monotonic() - self._began
        seen = RequestSeen(at, api, version, client_id, mentions(request))
        self.last.append(seen)
        self.counts[api] += 1
        return seen

    def _follow(self, seen: RequestSeen, answer: Answer) -> Answer:
        """The answer as it is, or when it comes."""
        if isinstance(answer, CoroutineType):
            return self._follow_turn(seen, answer)
        if isinstance(answer, asyncio.Future):
            answer.add_done_callback(lambda done: self._end_later(seen, done))
            return answer
        self._end(seen, "no answer" if answer is None else _told(answer))
        return answer

    async def _follow_turn(self, seen: RequestSeen, answer: Any) -> Any:
        return self._follow(seen, await answer)

    def _end_later(self, seen: RequestSeen, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            self._end(seen, "given up")
        elif (problem := done.exception()) is not None:
            self._end(seen, _problem(problem))
        else:
            self._follow(seen, done.result())

    def _end(self, seen: RequestSeen, answer: str) -> None:
        seen.ended_at = time.monotonic() - self._began
        seen.answer = answer
        self._activity.happened()


def _not_coordinator() -> Answer:
    raise ApiError(ErrorCode.NOT_COORDINATOR, "The coordinator has moved (kafka.move_coordinator).")


def _problem(problem: BaseException) -> str:
    if isinstance(problem, ApiError):
        return problem.code.name
    return f"{type(problem).__name__}: {problem}"


def _told(answer: Any) -> str:
    if not isinstance(answer, Message):
        return "answered"
    return ", ".join(error.name for error in errors_of(answer)) or "ok"
