"""What was sent and is on its way: what a user waits by, and how waiting is done."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, NamedTuple

from semel.client.errors import error_of
from semel.client.machines.accumulator import ProducerBatch
from semel.client.machines.patience import Deadline
from semel.client.machines.types import Pending
from semel.errors import UsageError


class RecordMetadata(NamedTuple):
    """Where a record was written."""

    topic: str
    partition: int
    offset: int
    """-1 where nobody was asked (`acks=0`)."""
    timestamp: int
    """Milliseconds since 1970: as sent, or, where the topic says so, when it was written."""


class Delivery:
    """A record on its way. Awaiting it gives its `RecordMetadata`, or raises why it failed.

    It need not be awaited: `flush` and `commit_transaction` wait for all of them, and a failure
    in a transaction makes the commit impossible.
    """

    __slots__ = ("_batch", "_index", "_timestamp")

    def __init__(self, batch: ProducerBatch, index: int, timestamp: int) -> None:
        self._batch = batch
        self._index = index
        self._timestamp = timestamp

    def done(self) -> bool:
        """Whether it is written, or has failed."""
        return self._final()[0].settled

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        while not (final := self._final())[0].settled:
            yield from settling(final[0], _here(final[0]))
        batch, index = final
        if batch.failure is not None:
            raise error_of(batch.failure)
        topic, partition = batch.partition
        offset = batch.base_offset + index if batch.base_offset >= 0 else -1
        timestamp = self._timestamp if batch.timestamp < 0 else batch.timestamp
        return RecordMetadata(topic, partition, offset, timestamp)

    def _final(self) -> tuple[ProducerBatch, int]:
        """The batch that holds the record now: a batch found too large was cut in two."""
        batch, index = self._batch, self._index
        while batch.successors:
            first, second = batch.successors
            batch, index = (first, index) if index < first.count else (second, index - first.count)
        return batch, index


async def delivered(batch: ProducerBatch) -> None:
    """Waits for a batch, or for those it was cut into; raises why one failed."""
    if not batch.settled:
        await settling(batch, _here(batch))
    for successor in batch.successors:
        await delivered(successor)
    if batch.failure is not None:
        raise error_of(batch.failure)


def _here(batch: ProducerBatch) -> asyncio.AbstractEventLoop:
    """The event loop we are on, which must be the producer's: on no other would we be woken."""
    here = asyncio.get_running_loop()
    if batch.owner is not here:
        raise UsageError(
            "a delivery is awaited on another event loop than its producer's, or in a process that "
            "was forked since: await it where it was sent"
        )
    return here


def settling(
    what: ProducerBatch | Pending, loop: asyncio.AbstractEventLoop
) -> asyncio.Future[bool]:
    """A future for something that settles: True when it has."""
    waiter: asyncio.Future[bool] = loop.create_future()

    def done(_: Any) -> None:
        if not waiter.done():
            waiter.set_result(True)

    what.when_settled(done)
    return waiter


async def settled(
    what: ProducerBatch | Pending, deadline: Deadline, loop: asyncio.AbstractEventLoop
) -> bool:
    """Whether it settles before the deadline. Cheaper than `asyncio.timeout`, for every commit."""
    waiter = settling(what, loop)

    def time_is_over() -> None:
        if not waiter.done():
            waiter.set_result(False)

    timer = loop.call_at(deadline.at_ms / 1000, time_is_over)
    try:
        return await waiter
    finally:
        timer.cancel()
