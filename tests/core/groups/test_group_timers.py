"""Deadlines by name."""

import random

from semel.core.groups.timers import TimerDeadline, Timers


def test_the_earliest_deadline_comes_first():
    timers = Timers()
    timers.set(("a",), TimerDeadline(30))
    timers.set(("b",), TimerDeadline(10))
    timers.set(("c",), TimerDeadline(20))
    assert timers.next() == (("b",), TimerDeadline(10))


def test_a_deadline_can_be_moved_both_ways():
    timers = Timers()
    timers.set(("a",), TimerDeadline(10))
    timers.set(("b",), TimerDeadline(15))
    timers.set(("a",), TimerDeadline(20))
    assert timers.next() == (("b",), TimerDeadline(15))
    timers.set(("a",), TimerDeadline(5))
    assert timers.next() == (("a",), TimerDeadline(5))


def test_a_cancelled_deadline_never_comes():
    timers = Timers()
    timers.set(("a",), TimerDeadline(10))
    timers.cancel(("a",))
    timers.cancel(("never set",))
    assert timers.next() is None
    assert len(timers) == 0


def test_heartbeats_do_not_make_the_heap_grow():
    timers = Timers()
    for now in range(10_000):
        timers.set(("session", "g", "m"), TimerDeadline(now + 45_000))
    assert len(timers._heap) == 1


def test_it_agrees_with_a_plain_table_whatever_happens():
    dice = random.Random(7)
    timers, table = Timers(), {}
    for _ in range(5_000):
        key = (str(dice.randrange(12)),)
        if dice.random() < 0.3:
            timers.cancel(key)
            table.pop(key, None)
        else:
            table[key] = TimerDeadline(dice.randrange(1_000))
            timers.set(key, table[key])
        earliest = min((deadline.at_ms for deadline in table.values()), default=None)
        upcoming = timers.next()
        assert (upcoming and upcoming[1].at_ms) == earliest
