"""A reply that is there now, or a future of it."""

import asyncio

import pytest

from semel.broker.replies import pass_on, settled, when, when_all, when_durable
from semel.store.interface import DURABLE, StorageError, Ticket


def later() -> "asyncio.Future[int]":
    return asyncio.get_running_loop().create_future()


def doubled(number: int) -> int:
    return number * 2


def test_a_reply_that_is_there_is_answered_at_once():
    assert when(2, doubled) == 4
    assert when_all([1, 2, 3], sum) == 6


async def test_a_reply_that_comes_later_is_answered_when_it_is_there():
    reply = later()
    response = when(reply, doubled)
    assert isinstance(response, asyncio.Future)
    assert not response.done()
    reply.set_result(2)
    assert await response == 4


async def test_a_response_may_itself_wait_for_another_reply():
    first, second = later(), later()
    response = when(first, lambda number: when(second, lambda other: number + other))
    first.set_result(1)
    await asyncio.sleep(0)
    second.set_result(2)
    assert await settled(response) == 3


async def test_of_several_replies_the_last_one_decides_when_and_the_order_stays():
    first, last = later(), later()
    response = when_all([first, 2, last], lambda replies: replies)
    last.set_result(3)
    await asyncio.sleep(0)
    assert isinstance(response, asyncio.Future)
    assert not response.done()
    first.set_result(1)
    assert await response == [1, 2, 3]


@pytest.mark.parametrize("several", [False, True])
async def test_what_a_reply_fails_with_its_response_fails_with(several):
    reply = later()
    response = when_all([1, reply], sum) if several else when(reply, doubled)
    reply.set_exception(OSError("no disk"))
    with pytest.raises(OSError, match="no disk"):
        await settled(response)


async def test_a_response_that_cannot_be_made_fails():
    reply = later()
    response = when(reply, lambda number: number // 0)
    reply.set_result(1)
    with pytest.raises(ZeroDivisionError):
        await settled(response)


async def test_a_cancelled_reply_cancels_its_response():
    reply = later()
    response = when(reply, doubled)
    reply.cancel()
    with pytest.raises(asyncio.CancelledError):
        await settled(response)


async def test_a_reply_to_a_cancelled_response_harms_nobody():
    reply, told = later(), []
    response = when(reply, told.append)
    assert isinstance(response, asyncio.Future)
    response.cancel()
    reply.set_result(1)
    await asyncio.sleep(0)
    assert not told


async def test_a_reply_is_passed_on_to_who_waits_already():
    for reply in (1, later()):
        waiting = later()
        pass_on(reply, waiting)
        if isinstance(reply, asyncio.Future):
            reply.set_result(1)
        assert await waiting == 1


@pytest.mark.parametrize("fail", ["cancel", "raise", "nobody waits"])
async def test_what_cannot_be_passed_on_is_told_to_who_waits(fail):
    reply, waiting = later(), later()
    pass_on(reply, waiting)
    if fail == "cancel":
        reply.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    elif fail == "raise":
        reply.set_exception(OSError("no disk"))
        with pytest.raises(OSError, match="no disk"):
            await waiting
    else:
        waiting.cancel()
        reply.set_result(1)
        await asyncio.sleep(0)
        assert waiting.cancelled()


class Tickets:
    """Two appends that are not durable yet, and who waits for both."""

    def __init__(self, timeout_ms: float | None = None) -> None:
        self.first, self.second = Ticket(), Ticket()
        self.response = when_durable(
            asyncio.get_running_loop(), [self.first, DURABLE, self.second], self.respond, timeout_ms
        )

    def respond(self) -> list[bool]:
        return [ticket.durable for ticket in (self.first, self.second)]


async def test_a_response_waits_until_every_append_is_durable():
    tickets = Tickets()
    tickets.second.settle()
    assert not tickets.response.done()
    tickets.first.settle()
    assert await tickets.response == [True, True]


async def test_a_response_tells_of_an_append_that_failed():
    tickets = Tickets(timeout_ms=60_000)
    tickets.first.settle(StorageError("no disk"))
    tickets.second.settle()
    assert await tickets.response == [False, True]


async def test_a_response_does_not_wait_longer_than_asked():
    tickets = Tickets(timeout_ms=0)
    tickets.second.settle()
    assert await tickets.response == [False, True]
    tickets.first.settle()  # too late, and nobody minds
