"""Callers of a real producer in a simulated world, who make every mistake that callers make.

Wrong types, records too large, serializers that raise, partitions that are not there, and tasks
that are cancelled while they wait, wherever that is. What `send` has returned from is *accepted*;
what raised or was cancelled is *rejected*. A caller knows no more, and it must be enough.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from semel.client import Delivery, FatalError, Producer, RetriableError, SemelError, TopicPartition
from semel.client.machines.transactions import State

TOPIC = "t"
PARTITIONS = 3
LATE = [TopicPartition(f"late-{number}", 0) for number in range(6)]
"""Topics that a producer does not know yet: what is sent there has to wait."""
UNTOUCHED = 3
"""The partition that only mistakes are sent to."""
LARGEST = 2_000
TIMEOUT_MS = 8_000
"""Of transactions: some callers dawdle longer."""


class Boom(Exception):
    """What a user's own function raises."""


@dataclass(eq=False)
class Attempt:
    """A transaction, or all that a producer without transactions has sent, as its caller knows."""

    accepted: dict[TopicPartition, list[int]] = field(default_factory=dict)
    deliveries: list[tuple[int, Delivery]] = field(default_factory=list)
    outcome: str = "unknown"


@dataclass
class Notes:
    """What all callers of a world remember."""

    attempts: list[Attempt] = field(default_factory=list)
    delivered: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)
    mistakes: dict[str, int] = field(default_factory=dict)

    def count(self, what: str) -> None:
        self.mistakes[what] = self.mistakes.get(what, 0) + 1


class Caller:
    """One producer after another: a producer that failed for good is closed and replaced."""

    def __init__(self, world: Any, name: str, transactional: bool) -> None:
        self.world = world
        self.dice = random.Random(f"{world.seed}/{name}")
        self.notes: Notes = world.notes
        self.transactional_id = name if transactional else None
        self.serializes = self.dice.random() < 0.5
        self._forgotten: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        while not self.world.is_calm:
            producer = self._producer()
            try:
                await producer.start()
                if self.transactional_id is None:
                    await self._send_for_a_while(producer)
                else:
                    await self._transactions(producer)
            except SemelError:
                self.notes.count("producer given up")
            finally:
                await producer.close(5_000)
                await asyncio.gather(*self._forgotten, return_exceptions=True)
                self._forgotten.clear()

    def _producer(self) -> Producer:
        dice = self.dice
        return Producer(
            "simulated:1",
            transactional_id=self.transactional_id,
            transaction_timeout_ms=TIMEOUT_MS,
            max_transaction_version=dice.choice([1, 2]),
            value_serializer=self._serialize if self.serializes else None,
            batch_size=dice.choice([150, 400, 100_000]),
            linger_ms=dice.choice([0, 5, 3_000]),
            buffer_memory=dice.choice([500, 3_000, 100_000]),
            max_request_size=LARGEST,
            max_block_ms=dice.choice([300, 20_000]),
            delivery_timeout_ms=30_000,
            request_timeout_ms=3_000,
        )

    def _serialize(self, value: Any) -> Any:
        if isinstance(value, Boom):
            raise value
        return value

    # With and without transactions

    async def _transactions(self, producer: Producer) -> None:
        await self._until_known(producer.init_transactions)
        while not self.world.is_calm:
            attempt = Attempt()
            await producer.begin_transaction()
            self.notes.attempts.append(attempt)
            try:
                for _ in range(self.dice.randint(0, 8)):
                    await self._step(producer, attempt)
                commits = self.dice.random() < 0.7
            except SemelError:
                commits = False
            await self._end(producer, attempt, commits)
            if producer.state is State.FATAL_ERROR:
                return
            if all(task.done() for task in self._forgotten):
                _look_for_traces(producer)

    async def _end(self, producer: Producer, attempt: Attempt, commits: bool) -> None:
        """A commit that fails for good leaves the caller not knowing; any abort is an abort."""
        try:
            if commits:
                await self._until_known(producer.commit_transaction)
                attempt.outcome = "committed"
                return
        except FatalError:
            raise
        except SemelError:
            pass
        attempt.outcome = "aborted"
        if producer.state is not State.FATAL_ERROR:
            await self._until_known(producer.abort_transaction)

    async def _until_known(self, call: Callable[[], Awaitable[None]]) -> None:
        """Some give up waiting, by timeout or by being cancelled, and ask again."""
        while True:
            try:
                if await self._perhaps_cancelled(call()):
                    return
            except RetriableError:
                continue

    async def _send_for_a_while(self, producer: Producer) -> None:
        attempt = Attempt()
        for _ in range(self.dice.randint(1, 40)):
            try:
                await self._step(producer, attempt)
            except RetriableError:
                continue  # no room in the buffer
        for value, delivery in attempt.deliveries:
            try:
                await delivery
                self.notes.delivered.add(value)
            except SemelError:
                self.notes.failed.add(value)
        _look_for_traces(producer)

    # What a caller does next

    async def _step(self, producer: Producer, attempt: Attempt) -> None:
        choice = self.dice.random()
        if choice < 0.45:
            await self._send(producer, attempt, self.world.fresh())
        elif choice < 0.6:
            await self._mistake(producer)
        elif choice < 0.75:
            value = self.world.fresh()
            if not await self._perhaps_cancelled(self._send(producer, attempt, value)):
                self.notes.count("cancelled send")
        elif choice < 0.8 and self.transactional_id is not None:
            self._send_and_forget(producer, attempt)
        elif choice < 0.85:
            await self._send_many(producer, attempt)
        elif choice < 0.93:
            await self._perhaps_cancelled(producer.flush())
        else:
            await asyncio.sleep(self.dice.choice([0.0, 0.01, 1, 1, TIMEOUT_MS / 900]))

    async def _send(
        self,
        producer: Producer,
        attempt: Attempt,
        value: int,
        where: TopicPartition | None = None,
    ) -> None:
        size = self.dice.choice([0, 20, 150])
        where = where or TopicPartition(TOPIC, self.dice.randrange(PARTITIONS))
        self.notes.rejected.add(value)  # until it is known to be accepted
        delivery = await producer.send(
            where.topic, b"%d " % value + bytes(size), partition=where.partition, headers={"a": b""}
        )
        self.notes.rejected.discard(value)
        attempt.accepted.setdefault(where, []).append(value)
        attempt.deliveries.append((value, delivery))

    def _send_and_forget(self, producer: Producer, attempt: Attempt) -> None:
        """Nobody waits for it: the transaction may end before it is accepted."""
        sending = self._send(producer, attempt, self.world.fresh(), self.dice.choice(LATE))
        self._forgotten.append(asyncio.create_task(sending))
        self.notes.count("forgotten send")

    async def _send_many(self, producer: Producer, attempt: Attempt) -> None:
        """At once, and some of the tasks are cancelled; no error of one is another's."""
        tasks = [
            asyncio.create_task(self._send(producer, attempt, self.world.fresh()))
            for _ in range(self.dice.randint(2, 8))
        ]
        await self._wait_a_little()
        for task in tasks:
            if self.dice.random() < 0.3:
                task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for error in results:
            if isinstance(error, Exception):
                raise error

    async def _mistake(self, producer: Producer) -> None:
        """Whatever it raises, it must be one of the things that it may raise."""
        value = self.world.fresh()
        self.notes.rejected.add(value)
        good = b"%d " % value
        mistakes: list[tuple[str, type[Exception], dict[str, Any]]] = [
            ("text", TypeError, {"value": str(value)}),
            ("number", TypeError, {"value": value}),
            ("nothing", TypeError, {"value": self.dice.choice(["", [], 0, False])}),
            ("key", TypeError, {"value": good, "key": "text"}),
            ("header", TypeError, {"value": good, "headers": {"a": "1"}}),
            ("header's name", UnicodeError, {"value": good, "headers": [("\ud800", b"")]}),
            ("timestamp", TypeError, {"value": good, "timestamp_ms": 1.5}),
            ("timestamp", ValueError, {"value": good, "timestamp_ms": 1 << 70}),
            ("partition", SemelError, {"value": good, "partition": 99}),
            ("partition", ValueError, {"value": good, "partition": -1}),
            ("topic", TypeError, {"topic": b"t", "value": good}),
            ("too large", FatalError, {"value": good + bytes(LARGEST)}),
            *([("serializer", Boom, {"value": Boom()})] if self.serializes else []),
        ]
        kind, allowed, given = self.dice.choice(mistakes)
        self.notes.count(kind)
        try:
            where = self.dice.choice([UNTOUCHED, self.dice.randrange(PARTITIONS)])
            record: dict[str, Any] = {"topic": TOPIC, "partition": where} | given
            await producer.send(**record)
        except allowed:
            return
        except SemelError as error:
            if kind == "partition" or _is_over(producer):
                raise
            raise AssertionError(f"not what is wrong with {given}") from error
        raise AssertionError(f"accepted: {given}")

    async def _perhaps_cancelled(self, call: Awaitable[None]) -> bool:
        """Whether the call came to its end; it may be cancelled at any of its awaits."""
        task = asyncio.ensure_future(call)
        if self.dice.random() < 0.4:
            await self._wait_a_little()
            task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():  # type: ignore[union-attr]
                raise  # it was not the call that was meant
            return False
        return True

    async def _wait_a_little(self) -> None:
        if self.dice.random() < 0.7:
            for _ in range(self.dice.randint(0, 4)):
                await asyncio.sleep(0)
        else:
            await asyncio.sleep(self.dice.choice([0.001, 0.004, 0.2]))


def _is_over(producer: Producer) -> bool:
    return producer.state in (State.ABORTABLE_ERROR, State.FATAL_ERROR)


def _look_for_traces(producer: Producer) -> None:
    """After the end of a transaction nothing is left of what was sent in it, or was not."""
    accumulator = producer._accumulator
    assert not accumulator.unsettled(), "batches are left"
    assert accumulator.buffered == 0, "memory is not given back"
    assert accumulator.flushing == 0, "somebody flushes for ever"
    assert not any(queue.in_line for queue in accumulator.queues.values()), "somebody waits in line"
    assert not producer._manager.partitions, "partitions are left in the transaction"


EVERYWHERE = [*(TopicPartition(TOPIC, index) for index in range(PARTITIONS + 1)), *LATE]
