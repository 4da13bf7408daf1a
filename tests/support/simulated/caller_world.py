"""Real producers, a real broker, and callers that make mistakes, by seed, on a clock that jumps.

However callers err and connections break: what was not accepted leaves no trace, what was accepted
is written once, a commit that was confirmed is there whole and in order, and nobody's mistake ends
in a stack trace of ours.
"""

import asyncio
import logging
import random
import tempfile
from pathlib import Path
from typing import Any, Literal

from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.callers import (
    EVERYWHERE,
    LATE,
    PARTITIONS,
    TIMEOUT_MS,
    TOPIC,
    UNTOUCHED,
    Attempt,
    Caller,
    Notes,
)
from tests.support.simulated.unreliable import Disk, UnreliableStore
from tests.support.simulated.wired import Wire, WiredLoop

from semel.client import Consumer, TopicPartition

STORM_SECONDS = 30
CALM_SECONDS = 60
Isolation = Literal["read_committed", "read_uncommitted"]
LATER = str((1 << 63) - 1)
"""Records carry the real clock's time, which is far ahead of the simulated broker's."""


class CallerWorld:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = random.Random(seed)
        self.loss = self.dice.choice([0.0, 0.01, 0.05])
        self.store = UnreliableStore(
            Disk(random.Random(f"{seed}/disk"), is_instant=self.dice.random() < 0.5, failures=0.0)
        )
        self.is_calm = False
        self.notes = Notes()
        self.problems: list[Any] = []
        self._values = iter(range(10**9))

    def fresh(self) -> int:
        return next(self._values)

    def play(self) -> None:
        before = random.getstate()
        random.seed(self.seed)  # the client's own dice: waits, partitions
        watch = Watch(self.problems)
        loggers = [logging.getLogger(name) for name in ("asyncio", "semel.client")]
        try:
            for logger in loggers:
                logger.addHandler(watch)
            with (
                tempfile.TemporaryDirectory(prefix="semel-world-") as data,
                asyncio.Runner(loop_factory=WiredLoop) as runner,
            ):
                runner.run(self._play(Path(data)))
        finally:
            for logger in loggers:
                logger.removeHandler(watch)
            random.setstate(before)

    async def _play(self, data: Path) -> None:
        loop: Any = asyncio.get_running_loop()
        loop.dial = self._dial
        loop.set_exception_handler(self._unforeseen)
        await self._start_broker(data)
        for topic, partitions in ((TOPIC, PARTITIONS + 1), *((late.topic, 1) for late in LATE)):
            self.broker.catalog.create_topic(
                topic, partitions, {"message.timestamp.after.max.ms": LATER}
            )
        callers = [Caller(self, f"tx-{n}", True) for n in range(2)]
        callers.append(Caller(self, "plain", False))
        tasks = [loop.create_task(caller.run()) for caller in callers]
        storm = loop.create_task(self._storm(data))
        await asyncio.wait((*tasks, storm), timeout=60, return_when=asyncio.FIRST_EXCEPTION)
        self.is_calm = True
        self.loss = 0.0
        done, waiting = await asyncio.wait((*tasks, storm), timeout=CALM_SECONDS)
        for task in done:
            task.result()
        assert not waiting, f"waits for ever: {waiting}"
        await asyncio.sleep(TIMEOUT_MS / 1000 + 5)  # what nobody ended is aborted by then
        await self._check()
        self.broker.crash()

    async def _storm(self, data: Path) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < STORM_SECONDS:
            await asyncio.sleep(self.dice.expovariate(1 / 10))
            if self.dice.random() < 0.3:
                self.store = self.broker.crash()
                await self._start_broker(data)
        self.is_calm = True

    async def _start_broker(self, data: Path) -> None:
        self.broker = SimulatedBroker(data, self.store, self.dice)
        await self.broker.start()

    def _dial(self, protocol: Any) -> Wire:
        return Wire(protocol, self.broker, self.dice, self.loss)

    def _unforeseen(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An exception that nobody caught, unless it is a crashed broker's: its timers go on."""
        if "semel/broker/" not in str(context.get("handle")):
            self.problems.append((context["message"], context.get("exception")))

    # What must hold in the end

    async def _check(self) -> None:
        written = {where: await self._read(where, "read_uncommitted") for where in EVERYWHERE}
        committed = {where: await self._read(where, "read_committed") for where in EVERYWHERE}
        untouched = self.broker.partitions.find(TOPIC, UNTOUCHED)
        assert untouched is not None
        assert untouched.log.next_offset == 0, "a trace"
        for where, values in committed.items():
            assert len(set(values)) == len(values), f"{where} has a record twice"
        everywhere = {value for values in written.values() for value in values}
        assert not everywhere & self.notes.rejected, "what was not accepted is there"
        seen = {value for values in committed.values() for value in values}
        assert self.notes.delivered <= seen, "what was delivered is not there"
        for attempt in self.notes.attempts:
            self._check_attempt(attempt, committed)
        assert not self.problems, self.problems

    @staticmethod
    def _check_attempt(attempt: Attempt, committed: dict[TopicPartition, list[int]]) -> None:
        found = {
            where: [value for value in committed[where] if value in set(values)]
            for where, values in attempt.accepted.items()
        }
        nothing: dict[TopicPartition, list[int]] = {where: [] for where in found}
        if attempt.outcome == "committed":
            assert found == attempt.accepted, "a confirmed commit is not there, whole, in order"
        elif attempt.outcome == "aborted":
            assert found == nothing, "records of a transaction that was aborted"
        else:
            assert found in (attempt.accepted, nothing), "half of a transaction"

    async def _read(self, partition: TopicPartition, isolation: Isolation) -> list[int]:
        values: list[int] = []
        async with Consumer(
            "simulated:1", isolation_level=isolation, auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign([partition])
            end = (await consumer.end_offsets([partition]))[partition]
            while await consumer.position(partition) < end:
                values += [int((r.value or b"").split()[0]) for r in await consumer.poll(100)]
        return values


class Watch(logging.Handler):
    """Errors that were logged: what nobody foresaw, in a client or the event loop."""

    def __init__(self, problems: list[Any]) -> None:
        super().__init__(logging.ERROR)
        self._problems = problems

    def emit(self, record: logging.LogRecord) -> None:
        self._problems.append((record.getMessage(), record.exc_info and record.exc_info[1]))
