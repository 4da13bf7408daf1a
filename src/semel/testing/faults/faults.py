"""Faults on demand: what shall go wrong, with which request, and how often.

    kafka.faults.on("EndTxn").drop_reply().once()

A fault that no request met in the end fails the test, and names itself.
"""

from __future__ import annotations

import sys
import threading
from difflib import get_close_matches
from typing import TYPE_CHECKING

from semel.testing.faults.deeds import (
    CloseConnection,
    Deed,
    Delay,
    DropReply,
    DropRequest,
    FailWith,
    Hold,
    Surroundings,
)
from semel.testing.waiting import wait_for, wait_for_async
from semel.wire.errors import ErrorCode
from semel.wire.messages import APIS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import Self

    from semel.broker.context import Context
    from semel.testing.faults.mentions import Mentions
    from semel.testing.faults.watching import Activity, Apply, RequestWatch

_NAMES = sorted(name for name, _ in APIS.values())
_PATIENCE_SECONDS = 10.0


class UnusedFault(AssertionError):
    """A fault was armed, and nothing met it: the test did not test what it says."""


class Faults:
    """All faults of one broker: `kafka.faults`."""

    def __init__(self, activity: Activity) -> None:
        self._activity = activity
        self._lock = threading.Lock()
        self._faults: list[Fault] = []

    def on(
        self,
        api: str,
        *,
        client_id: str | None = None,
        transactional_id: str | None = None,
        group_id: str | None = None,
        topic: str | None = None,
    ) -> FaultPoint:
        """Requests of this API, named as Kafka names it ("Produce", "EndTxn"); with more said, only
        those of one client, or those about one transactional id, group or topic."""
        if api not in _NAMES:
            near = get_close_matches(api, _NAMES, n=1, cutoff=0.5)
            raise ValueError(
                f"there is no Kafka API {api!r}"
                + (f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(_NAMES)}")
            )
        wanted = {
            "client_id": client_id,
            "transactional_id": transactional_id,
            "group_id": group_id,
            "topic": topic,
        }
        return FaultPoint(self, api, {name: text for name, text in wanted.items() if text})

    def clear(self) -> None:
        """Lift all of them; requests that are held go on. Nobody asks whether they were met."""
        with self._lock:
            faults, self._faults = self._faults, []
        for fault in faults:
            fault.lift()

    @property
    def unused(self) -> list[Fault]:
        """Those that no request met so far."""
        return [fault for fault in self._faults if not fault.struck]

    def _verify(self, watch: RequestWatch) -> None:
        """Raises `UnusedFault` if a fault was never met, with what came instead."""
        unused = self.unused
        if unused:
            raise UnusedFault("\n".join(fault._complaint(watch) for fault in unused))

    # For the broker

    def _due(self, api: str, ctx: Context, about: Mentions) -> Fault | None:
        """The first fault that this request meets."""
        with self._lock:
            for fault in self._faults:
                if fault._takes(api, ctx, about):
                    return fault
        return None

    def _add(self, fault: Fault) -> None:
        with self._lock:
            self._faults.append(fault)

    def _remove(self, fault: Fault) -> None:
        with self._lock:
            if fault in self._faults:
                self._faults.remove(fault)


class FaultPoint:
    """Where a fault strikes; its methods say what it does there."""

    def __init__(self, faults: Faults, api: str, only: dict[str, str]) -> None:
        self._faults = faults
        self._api = api
        self._only = only

    def fail(self, error: str | ErrorCode, message: str | None = None) -> Fault:
        """Answer with this Kafka error (`"NOT_COORDINATOR"`). The request is not applied."""
        return self._fault(FailWith(_error(error), message))

    def drop_request(self) -> Fault:
        """It never arrives: not applied, not answered, nor is what comes behind it on its
        connection. The client waits until its own timeout."""
        return self._fault(DropRequest())

    def drop_reply(self) -> Fault:
        """It is applied, but its answer, and all behind it on its connection, never arrives. The
        client waits until its own timeout; `close_after` tells it at once."""
        return self._fault(DropReply())

    def close_before(self) -> Fault:
        """Close the connection; the request is not applied."""
        return self._fault(CloseConnection(after=False))

    def close_after(self) -> Fault:
        """Apply the request, and close the connection instead of answering."""
        return self._fault(CloseConnection(after=True))

    def delay(self, seconds: float) -> Fault:
        """Apply it so much later. `kafka.clock.advance` shortens the wait."""
        return self._fault(Delay(seconds, after=False))

    def delay_reply(self, seconds: float) -> Fault:
        """Apply it now, answer so much later. `kafka.clock.advance` shortens the wait."""
        return self._fault(Delay(seconds, after=True))

    def hold(self) -> Fault:
        """Wait with applying it until `release()`. `wait()` returns when the request is there."""
        return self._fault(Hold(after=False))

    def hold_reply(self) -> Fault:
        """Apply it now, wait with the answer until `release()`."""
        return self._fault(Hold(after=True))

    def _fault(self, deed: Deed) -> Fault:
        return Fault(self._faults, self._api, self._only, deed)


class Fault:
    """What goes wrong, and where. Armed by saying how often: `once()`, `times(3)`, `on_call(2)`,
    `always()`. In a `with` block it is lifted at the end."""

    def __init__(self, faults: Faults, api: str, only: dict[str, str], deed: Deed) -> None:
        self._faults = faults
        self._api = api
        self._only = only
        self._deed = deed
        self._first, self._most = 1, 0
        self._often = ""
        self._calls = 0
        self._at = ""
        self.struck = 0
        """How many requests met it."""
        faults._add(self)  # so that one that is never armed is named, too

    def once(self) -> Self:
        """The next request that fits."""
        return self._arm(1, 1, "once()")

    def times(self, count: int) -> Self:
        """The next so many."""
        if count < 1:
            raise ValueError(f"a fault strikes at least once, not {count} times")
        return self._arm(1, count, f"times({count})")

    def on_call(self, number: int) -> Self:
        """The so-manieth from now: `on_call(1)` is the next."""
        if number < 1:
            raise ValueError(f"calls are counted from 1, there is no call {number}")
        return self._arm(number, 1, f"on_call({number})")

    def always(self) -> Self:
        """Every one, until `lift()`."""
        return self._arm(1, sys.maxsize, "always()")

    def lift(self) -> None:
        """It strikes no more, and what it holds goes on."""
        self._most = 0
        self._deed.release()

    def release(self) -> None:
        """Let what `hold()` or `hold_reply()` holds go on."""
        if not isinstance(self._deed, Hold):
            raise TypeError(f"{self} holds nothing: only hold() and hold_reply() are released")
        self._deed.release()

    def wait(self, timeout: float = _PATIENCE_SECONDS) -> None:
        """Until a request has met it."""
        wait_for(self._faults._activity, self._has_struck, timeout, self._not_met)

    async def wait_async(self, timeout: float = _PATIENCE_SECONDS) -> None:  # noqa: ASYNC109
        """The same in asyncio, where waiting must not hold up the loop."""
        await wait_for_async(self._faults._activity, self._has_struck, timeout, self._not_met)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.lift()

    def __str__(self) -> str:
        where = "".join(f", {name}={text!r}" for name, text in self._only.items())
        often = f".{self._often}" if self._often else ""
        return f"on({self._api!r}{where}).{self._deed}{often}"

    __repr__ = __str__

    def _complaint(self, watch: RequestWatch) -> str:
        """What to say of it when nothing has met it."""
        if not self._often:
            return f"{self}, made at {self._at}, was never armed: end it with .once()"
        came = watch.counts[self._api]
        if not came:
            all_that_came = ", ".join(f"{api} ({count})" for api, count in watch.counts.items())
            instead = f"no {self._api} came; what came: {all_that_came or 'nothing'}"
        elif self._calls:
            instead = f"only {self._calls} such request(s) came"
        else:
            instead = f"{came} {self._api} came, but none that fits"
        return f"{self}, armed at {self._at}, was never met: {instead}."

    # For the broker

    def _takes(self, api: str, ctx: Context, about: Mentions) -> bool:
        """Whether this request meets it; counts."""
        if api != self._api or not self._often or not self._fits(ctx, about):
            return False
        self._calls += 1
        if self._calls < self._first or self.struck >= self._most:
            return False
        self.struck += 1
        return True

    def _around(self, apply: Apply, ctx: Context) -> Apply:
        """What is done in place of merely applying the request."""
        self._faults._activity.happened()
        surroundings = Surroundings(ctx, str(self))
        return lambda: self._deed.do(apply, surroundings)

    def _fits(self, ctx: Context, about: Mentions) -> bool:
        said: dict[str, Callable[[], Sequence[str | None]]] = {
            "client_id": lambda: [ctx.client_id],
            "transactional_id": lambda: about.transactional_ids,
            "group_id": lambda: about.group_ids,
            "topic": lambda: about.topics + _names(ctx, about),
        }
        return all(text in said[name]() for name, text in self._only.items())

    def _arm(self, first: int, most: int, often: str) -> Self:
        if self._often:
            raise ValueError(f"{self} is armed already: say once how often it strikes")
        self._first, self._most = first, most
        self._at = _caller()
        self._often = often
        return self

    def _has_struck(self) -> bool:
        return self.struck > 0

    def _not_met(self, timeout: float) -> str:
        return f"{self} was not met within {timeout:g} s"


def _names(ctx: Context, about: Mentions) -> list[str]:
    """Of the topics that the request names by id."""
    known = ctx.catalog.topics_by_id
    return [known[id].name for id in about.topic_ids if id in known]


def _error(error: str | ErrorCode) -> ErrorCode:
    if isinstance(error, ErrorCode):
        return error
    try:
        return ErrorCode[error]
    except KeyError:
        near = get_close_matches(error.upper(), ErrorCode.__members__, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"there is no Kafka error {error!r}{hint}") from None


def _caller() -> str:
    """Where in the test a fault was armed."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("semel.testing"):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "?"
