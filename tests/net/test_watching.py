"""The broker's own loop: connections are served first, and the rest is not forgotten."""

import asyncio
import os
import signal
import socket
import threading

import pytest

from semel.net.watching import ServerLoop, new_loop


class Restless:
    """A connection with always more to read: it is told again and again until it may `rest`."""

    def __init__(self, ours):
        self.rest = lambda: ours.recv(1)
        self.told = 0
        self.at_turn = {}

    def readable(self):
        self.told += 1
        self.at_turn.get(self.told, lambda: None)()

    def writable(self):
        raise AssertionError("nobody wanted to write")


@pytest.fixture
def loop():
    loop = new_loop()
    if not isinstance(loop, ServerLoop):
        loop.close()
        pytest.skip("no epoll here")
    yield loop
    loop.close()


@pytest.fixture
def restless(loop):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"x")  # never taken
        restless = Restless(ours)
        loop.direct.watch(ours.fileno(), restless)
        yield restless
        loop.direct.forget(ours.fileno())


def test_connections_are_served_without_a_turn_of_asyncio_each(loop, restless):
    turns = []
    for_a_while = loop.create_future()
    restless.at_turn[100] = lambda: for_a_while.set_result(len(turns))
    select = loop.direct.select
    loop.direct.select = lambda timeout: turns.append(timeout) or select(timeout)
    assert loop.run_until_complete(for_a_while) < 5


class Asking:
    """A connection with something to read, once, that is answered."""

    def __init__(self, ours, story, answer):
        self.ours, self.story, self.answer = ours, story, answer

    def readable(self):
        self.story.append(f"read {self.ours.recv(1).decode()}")
        return self.answer

    def send(self, answer):
        self.story.append(f"send {answer}")
        if isinstance(answer, Exception):
            raise answer


@pytest.fixture
def ask(loop):
    """Ask with one letter on a connection of its own, to be answered so."""
    pairs = []

    def ask(letter, story, answer):
        ours, theirs = socket.socketpair()
        pairs.append((ours, theirs))
        theirs.send(letter)
        loop.direct.watch(ours.fileno(), Asking(ours, story, answer))

    yield ask
    for ours, theirs in pairs:
        loop.direct.forget(ours.fileno())
        ours.close()
        theirs.close()


async def all_told(story, steps):
    while len(story) < steps:  # noqa: ASYNC110 - the story is told by the loop's own selector
        await asyncio.sleep(0)


def test_what_is_ready_together_is_answered_when_all_of_it_was_read(loop, ask):
    story = []
    ask(b"a", story, "A")
    ask(b"b", story, None)
    ask(b"c", story, "C")
    loop.run_until_complete(all_told(story, 5))
    assert story == ["read a", "read b", "read c", "send A", "send C"]


def test_one_that_cannot_be_answered_does_not_keep_the_others_from_it(loop, ask):
    story, told = [], []
    loop.set_exception_handler(lambda loop, context: told.append(context["exception"]))
    broken = RuntimeError("broken")
    ask(b"a", story, broken)
    ask(b"b", story, "B")
    loop.run_until_complete(all_told(story, 4))
    assert story[-1] == "send B"
    assert told == [broken]


def test_a_timer_is_due_while_connections_are_busy(loop, restless):
    due = loop.create_future()
    loop.call_later(0.01, due.set_result, "in time")
    assert loop.run_until_complete(due) == "in time"
    assert restless.told


def test_a_timer_set_by_a_connection_is_not_slept_over(loop, restless):
    due = loop.create_future()
    loop.call_later(3600, due.cancel)
    restless.at_turn[7] = lambda: loop.call_later(0.01, due.set_result, "in time")
    assert loop.run_until_complete(due) == "in time"


def test_a_timer_that_is_due_already_is_not_slept_over(loop, restless):
    due = loop.create_future()

    def set_timer():
        restless.rest()
        loop.call_later(-0.5, due.set_result, "in time")

    restless.at_turn[7] = set_timer
    assert loop.run_until_complete(due) == "in time"


def test_a_loop_that_was_stopped_looks_once(loop, restless):
    loop.stop()
    loop.run_forever()
    assert restless.told == 1


def test_what_a_connection_calls_soon_comes_before_it_is_told_again(loop, restless):
    told = loop.create_future()
    restless.at_turn[7] = lambda: loop.call_soon(lambda: told.set_result(restless.told))
    assert loop.run_until_complete(told) == 7


def test_another_thread_is_heard_while_connections_are_busy(loop, restless):
    heard = loop.create_future()
    restless.at_turn[7] = threading.Thread(
        target=loop.call_soon_threadsafe, args=(heard.set_result, True)
    ).start
    assert loop.run_until_complete(heard)


def test_a_signal_is_heard_while_connections_are_busy(loop, restless):
    heard = loop.create_future()
    loop.add_signal_handler(signal.SIGUSR1, heard.set_result, True)
    restless.at_turn[7] = lambda: os.kill(os.getpid(), signal.SIGUSR1)
    try:
        assert loop.run_until_complete(heard)
    finally:
        loop.remove_signal_handler(signal.SIGUSR1)


def test_a_connection_that_fails_is_reported_and_the_others_live(loop, restless):
    reported = []
    loop.set_exception_handler(lambda loop, context: reported.append(context["exception"]))
    done = loop.create_future()

    def fail():
        raise ValueError("broken")

    restless.at_turn = {3: fail, 5: lambda: done.set_result(True)}
    assert loop.run_until_complete(done)
    assert [str(problem) for problem in reported] == ["broken"]
