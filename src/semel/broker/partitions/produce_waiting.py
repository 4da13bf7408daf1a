"""The wait of a Produce for its batches to be durable: one future over several tickets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from semel.store.interface import Ticket
from semel.wire.errors import ErrorCode
from semel.wire.messages.produce import ProduceResponse

Answer = ProduceResponse.PartitionProduceResponse


def when_durable(
    loop: asyncio.AbstractEventLoop,
    response: ProduceResponse,
    tickets: Sequence[tuple[Answer, Ticket]],
    timeout_ms: int,
) -> asyncio.Future[ProduceResponse]:
    """The response once every ticket is settled; what takes too long is said to have timed out."""
    future: asyncio.Future[ProduceResponse] = loop.create_future()
    waiting = len(tickets)

    def settled(answer: Answer, ticket: Ticket) -> None:
        nonlocal waiting
        waiting -= 1
        if future.done():
            return
        if ticket.error is not None:
            _fail(answer, ErrorCode.KAFKA_STORAGE_ERROR, str(ticket.error))
        if not waiting:
            timer.cancel()
            future.set_result(response)

    def time_is_up() -> None:
        for answer, ticket in tickets:
            if not ticket.settled:
                _fail(answer, ErrorCode.REQUEST_TIMED_OUT, "Written, but not yet durable.")
        future.set_result(response)

    timer = loop.call_later(timeout_ms / 1000, time_is_up)
    for answer, ticket in tickets:
        ticket.add_callback(partial(settled, answer))
    return future


def _fail(answer: Answer, error: ErrorCode, message: str) -> None:
    answer.error_code = error
    answer.error_message = message
    answer.base_offset = -1
