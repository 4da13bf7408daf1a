"""A reply that is there now, or a future of it: how one is turned into a response.

Nearly every reply is there at once, and is answered in the same turn of the loop without a task or
a future. It comes later where something it rests on is not durable yet, or where it waits for
others. Handlers and coordinators work with both through what is here:

    return when(ctx.transactions.submit(command), respond)      # a response, or a future of it
    return when_all([ask(name) for name in names], respond)     # the same of several replies
    reply = await settled(ctx.groups.submit(name, command))     # in a coroutine
    pass_on(reply, waiting)                                     # to a future made before
    return when_durable(loop, tickets, respond)                 # when the log has kept its promises
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future, gather
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar, Union, overload

from semel.store.interface import Ticket

T = TypeVar("T")
R = TypeVar("R")

NowOrLater = Union[T, Future[T]]  # noqa: UP007  (mypy takes `T | …` for a value here)
InTurn = Coroutine[Any, Any, T]
"""A coroutine: what the same connection sends next is not started before it is done. It may end
with a future: what has to keep its order is done then, and the answer comes later."""


@overload
def when(reply: Future[T], respond: Callable[[T], NowOrLater[R]]) -> Future[R]: ...
@overload
def when(reply: T, respond: Callable[[T], NowOrLater[R]]) -> NowOrLater[R]: ...
def when(reply: NowOrLater[T], respond: Callable[[T], NowOrLater[R]]) -> NowOrLater[R]:
    """`respond(reply)`, now or when the reply is there. No task is made."""
    if isinstance(reply, Future):
        return _later(reply, respond)
    return respond(reply)


def when_all(
    replies: Sequence[NowOrLater[T]], respond: Callable[[list[T]], NowOrLater[R]]
) -> NowOrLater[R]:
    """`respond(replies)`, now or when the last of them is there."""
    later = [reply for reply in replies if isinstance(reply, Future)]

    def respond_now(_: object = None) -> NowOrLater[R]:
        return respond([_now(reply) for reply in replies])

    return when(gather(*later), respond_now) if later else respond_now()


async def settled(reply: NowOrLater[T]) -> T:
    """The reply itself, for a coroutine."""
    return await reply if isinstance(reply, Future) else reply


def pass_on(reply: NowOrLater[T], waiting: Future[T]) -> None:
    """Give a reply to somebody who waits for it already."""
    if isinstance(reply, Future):
        reply.add_done_callback(lambda done: _hand_over(done, waiting))
    elif not waiting.done():
        waiting.set_result(reply)


def when_durable(
    loop: AbstractEventLoop,
    tickets: Sequence[Ticket],
    respond: Callable[[], R],
    timeout_ms: float | None = None,
) -> Future[R]:
    """`respond()`, which looks at the tickets, once all of them are settled or the time is up."""
    response: Future[R] = loop.create_future()
    waiting = len(tickets)

    def finish() -> None:
        if not response.done():
            response.set_result(respond())

    def one_settled(_: Ticket) -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting:
            if timer is not None:
                timer.cancel()
            finish()

    timer = None if timeout_ms is None else loop.call_later(timeout_ms / 1000, finish)
    for ticket in tickets:
        ticket.add_callback(one_settled)
    return response


def _later(reply: Future[T], respond: Callable[[T], NowOrLater[R]]) -> Future[R]:
    response: Future[R] = reply.get_loop().create_future()

    def done(reply: Future[T]) -> None:
        if response.done():
            return
        if reply.cancelled():
            response.cancel()
            return
        try:
            pass_on(respond(reply.result()), response)
        except Exception as problem:
            response.set_exception(problem)

    reply.add_done_callback(done)
    return response


def _now(reply: NowOrLater[T]) -> T:
    return reply.result() if isinstance(reply, Future) else reply


def _hand_over(reply: Future[T], waiting: Future[T]) -> None:
    if waiting.done():
        return
    if reply.cancelled():
        waiting.cancel()
    elif (problem := reply.exception()) is not None:
        waiting.set_exception(problem)
    else:
        waiting.set_result(reply.result())
