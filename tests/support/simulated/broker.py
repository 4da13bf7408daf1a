"""The real broker without sockets, on a simulated clock and disk; it can be crashed at any time.

Handlers, coordinators, shards, marker delivery and partitions are the product's own. A request goes
straight to its handler, and its answer comes back as the object that would have been sent. What is
done at once for the sake of speed is done step by step here: a topic of a few partitions is made
gently, and a short log is loaded in the background.
"""

import asyncio
import random
from collections.abc import Callable
from inspect import isawaitable
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.support.simulated.clock import JumpingLoop
from tests.support.simulated.files import AnyStore

from semel.broker import api
from semel.broker.context import Context
from semel.broker.descriptors import Shares
from semel.broker.failures import ApiError, failure
from semel.broker.partitions.partitions import Partitions
from semel.broker.server import COORDINATORS, Broker
from semel.core.access.principals import ANONYMOUS
from semel.wire.schema import Message

SETTINGS = {
    "transaction.state.log.num.partitions": 2,
    "offsets.topic.num.partitions": 2,
    "group.initial.rebalance.delay.ms": 100,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 2_000,
    "log.retention.check.interval.ms": 1_000,
    "producer.id.expiration.check.interval.ms": 2_000,
    "log.cleaner.backoff.ms": 1_000,
}
FIRST_MS = 1_700_000_000_000


class Gone(Exception):
    """The broker has crashed."""


class Line:
    """What handlers look at of a connection."""

    peer_host, peer_port, local_host = "10.0.0.1", 9, "10.0.0.2"
    listener, principal = "PLAINTEXT", ANONYMOUS
    closed = False

    def __init__(self) -> None:
        self.waits: set[object] = set()

    def close(self, reason: str) -> None:
        self.closed = True


class UnreliablePartitions(Partitions):
    broker: "SimulatedBroker"

    def __init__(self, broker: "SimulatedBroker") -> None:
        super().__init__(broker)
        self.made_at_once = 2
        self.housekeeping.slice_seconds = 0.0
        self.housekeeping.reopen_ms = 3_000
        self.housekeeping.checkpoint_ms = 5_000

    def new_store(self) -> AnyStore:
        return self.broker.store


class SimulatedBroker(Broker):
    def __init__(self, data: Path, store: AnyStore, dice: random.Random) -> None:
        super().__init__(data, settings=SETTINGS)
        self.store = store
        self.store.catalog = self.catalog
        self.is_gone = False
        self.failures: list[BaseException] = []
        self._dice = dice
        self._load_at_once_bytes = dice.choice((0, 1_000, 1 << 20))
        self.catalog.new_topic_id = lambda: UUID(int=dice.getrandbits(128))

    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self.loop.create_future()
        self.shares = Shares(1_000, 1_000)
        self.catalog.open()
        self.partitions = self._begin(UnreliablePartitions(self))
        self._start_coordinators()

    def _begin(self, part: Any) -> Any:
        if hasattr(part, "_loader"):
            part._loader.load_at_once_bytes = self._load_at_once_bytes
        return super()._begin(part)

    def report_failure(self, problem: BaseException) -> None:
        if not self.is_gone:
            self.failures.append(problem)

    @property
    def is_in_the_middle(self) -> bool:
        """Whether something in the background has only yielded, or left work to a thread."""
        loop: Any = self.loop
        assert isinstance(loop, JumpingLoop)
        # A task whose thread is done, but which has not gone on yet, is in the middle as well.
        waiters = (getattr(task, "_fut_waiter", None) for task in self._tasks)
        return loop.threads_at_work > 0 or any(
            waiter is None or waiter.done() for waiter in waiters
        )

    def now_ms(self) -> int:  # type: ignore[override]
        return FIRST_MS + int(self.loop.time() * 1000)

    async def ask(self, request: Message | Callable[[], Message], version: int) -> Any:
        """The answer, or `Gone`. A request may be made in the moment in which it arrives."""
        if self.is_gone:
            raise Gone
        answer = self.ask_now(request() if callable(request) else request, version)
        while isawaitable(answer):  # a coroutine may end with a future
            waiting = asyncio.ensure_future(answer)
            await asyncio.wait((waiting, self.gone), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                waiting.cancel()
                raise Gone
            answer = waiting.result()
        return answer

    def ask_now(self, request: Message, version: int) -> Any:
        """The answer, or something to wait for."""
        try:
            return api.handler(request.API_KEY)(self._context(), request, version)
        except ApiError as problem:
            return failure(request, version, problem.code, problem.message)

    def _context(self) -> Context:
        line: Any = Line()
        return Context(self, line, "simulated", b"")

    def crash(self) -> AnyStore:
        """Stop in the middle of everything; returns what the next one finds on the disk."""
        self.is_gone = True
        self.gone.set_result(None)
        left = self.store.crash()
        for task in list(self._tasks):
            task.cancel()
        for name in COORDINATORS:
            if (part := vars(self).get(name)) is not None:
                self._silence(part)
        self._leave_catalog()
        return left

    def _leave_catalog(self) -> None:
        """What is being written to it may be on the disk or not; nobody hears of it."""
        writer = self.catalog._writer
        write, writer._under_way = writer._under_way, None
        if write is not None:
            if self._dice.random() < 0.5:
                write.run()
            write._is_done = True
        self.catalog.close()

    def _silence(self, part: Any) -> None:
        """A dead broker's timers do not fire."""
        part._loader.stop()
        for timer in (getattr(part, "_timer", None), self._marker_timer(part)):
            if timer is not None:
                timer.cancel()

    @staticmethod
    def _marker_timer(part: Any) -> Any:
        return part.markers._again_timer if hasattr(part, "markers") else None
