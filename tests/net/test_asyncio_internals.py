"""What `net/watching` reads of asyncio's own, on this version of Python.

`DirectSelector.select` ends when asyncio has something to do. It sees that in three places that are
not public: `loop._ready` (callbacks to run now), `loop._scheduled` (a heap of timers) and a timer's
`_when`. If one of these tests fails on a new Python, the broker's own loop must learn where asyncio
keeps these now; until then callbacks or timers would wait for the next request.
"""

import asyncio
import time

import pytest


@pytest.fixture
def loop():
    loop = asyncio.SelectorEventLoop()
    yield loop
    loop.close()


def test_callbacks_to_run_now_lie_in_ready(loop):
    assert not loop._ready
    handle = loop.call_soon(print)
    assert list(loop._ready) == [handle]


def test_timers_lie_in_scheduled_and_the_first_is_the_next_due(loop):
    assert not loop._scheduled
    loop.call_later(50, print)
    soon = loop.call_later(5, print)
    loop.call_later(500, print)
    assert loop._scheduled[0] is soon


def test_a_timer_is_due_at_its_when_by_the_monotonic_clock(loop):
    before = time.monotonic()
    timer = loop.call_later(5, print)
    assert before + 5 <= timer._when <= time.monotonic() + 5
    assert timer._when == timer.when()


def test_the_loop_asks_its_selector_with_the_time_until_the_next_timer(loop):
    asked = []
    select = loop._selector.select
    loop._selector.select = lambda timeout=None: asked.append(timeout) or select(0)
    loop.call_later(3600, print)
    loop.call_soon(loop.call_soon, loop.call_later, 0, loop.stop)
    loop.run_forever()
    assert 0 in asked
