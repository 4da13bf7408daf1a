"""Waiting for something to become true in a broker, without sleeping for a guessed time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from semel.testing.faults.watching import Activity

T = TypeVar("T")

#: What the broker does wakes whoever waits. What a test waits for beside the broker (a file, a list
#: that a client fills) is looked at this often.
LOOK_SECONDS = 0.02


class NotInTime(AssertionError):
    """What was waited for did not come."""


def wait_for(
    activity: Activity, look: Callable[[], T], timeout: float, complain: Callable[[float], str]
) -> T:
    """What `look` gives as soon as it is true; otherwise `NotInTime` with what `complain` says."""
    __tracebackhide__ = True
    _refuse_event_loop()
    ends = time.monotonic() + timeout
    while True:
        seen = activity.count
        found = look()
        if found:
            return found
        left = ends - time.monotonic()
        if left <= 0:
            raise NotInTime(complain(timeout))
        activity.wait(seen, min(left, LOOK_SECONDS))


async def wait_for_async(
    activity: Activity,
    look: Callable[[], T],
    timeout: float,  # noqa: ASYNC109
    complain: Callable[[float], str],
) -> T:
    """The same, while the event loop goes on."""
    __tracebackhide__ = True
    ends = time.monotonic() + timeout
    while True:
        seen = activity.count
        found = look()
        if found:
            return found
        left = ends - time.monotonic()
        if left <= 0:
            raise NotInTime(complain(timeout))
        await asyncio.to_thread(activity.wait, seen, min(left, LOOK_SECONDS))


def _refuse_event_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "this would hold up the event loop that the test's clients run in, perhaps for ever: "
        "use `await kafka.wait_until_async(…)`, or `await fault.wait_async()`"
    )
