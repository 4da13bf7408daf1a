"""The broker: builds its parts in order, listens, and stops them in reverse.

    async with Broker(data="data") as broker:
        print(broker.bootstrap_servers)

or, without asyncio, `with Broker(data="data") as broker:`, which runs it in a thread of its own.

The order is: settings, the lock of the data directory, `catalog`, `partitions`, the coordinators
(`transactions`, `groups`), `metrics`, the listener. A part is a class that takes the broker and has
`start()` and `async stop()`; `start` may use every part before it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from semel.broker.access.control import access_control
from semel.broker.addresses import Address
from semel.broker.catalog.catalog import Catalog
from semel.broker.catalog.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from semel.broker.descriptors import share_out
from semel.broker.directory import DataDirectory
from semel.broker.dispatch import Dispatcher, Route
from semel.broker.listening import BrokerListeners
from semel.broker.settings.definitions import BadSetting
from semel.broker.settings.settings import Settings
from semel.broker.start_failures import using_directory
from semel.net.connection import Connection

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from semel.broker.access.throttling import Throttling
    from semel.broker.coordinators.groups import Groups
    from semel.broker.coordinators.transactions import Transactions
    from semel.broker.metrics import Metrics
    from semel.broker.metrics.requests import RequestMeter
    from semel.broker.partitions.partitions import Partitions
    from semel.broker.threaded import BrokerThread

log = logging.getLogger("semel.broker")

#: Coordinators start with the broker if they have a past (their topic is there), and otherwise when
#: first asked: their machines are half of what a broker loads.
COORDINATORS = {"transactions": TRANSACTION_STATE, "groups": CONSUMER_OFFSETS}


class Part(Protocol):
    """One of those between the catalog and the listener. They are imported when they start."""

    def start(self) -> None: ...
    async def stop(self) -> None: ...


P = TypeVar("P", bound=Part)
T = TypeVar("T")


class Broker:
    """A Kafka-compatible broker in this process.

    Without `data` it keeps everything in a temporary directory that is removed when it stops.
    `port` 0 takes a free one. `settings` have Kafka's names: `{"num.partitions": 3}`.
    """

    loop: asyncio.AbstractEventLoop
    partitions: Partitions
    metrics: Metrics

    def __init__(
        self,
        data: str | os.PathLike[str] | None = None,
        *,
        host: str | None = None,
        port: int | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        given = dict(settings or {})
        if "listeners" not in given:
            given["listeners"] = f"PLAINTEXT://{Address(host or '127.0.0.1', port or 0)}"
        elif host is not None or port is not None:
            raise BadSetting(
                "`host` and `port`, and the setting listeners, say where to listen: give one of "
                "the two"
            )
        self.settings = Settings(given)
        self._temporary: TemporaryDirectory[str] | None = None
        self._thread: BrokerThread | None = None
        if data is None and "log.dir" not in given:
            from tempfile import TemporaryDirectory

            self._temporary = TemporaryDirectory(prefix="semel-")
            data = self._temporary.name
        self.data = Path(data if data is not None else self.settings["log.dir"]).absolute()
        self.catalog = Catalog(self.data, self.settings)
        self.access = access_control(self)
        self._directory = DataDirectory(self.data)
        self._dispatcher = Dispatcher(self)
        self.listeners = BrokerListeners(self, self._dispatcher)
        self._started: list[Part] = []
        self._stopped = False
        self._tasks: set[asyncio.Task[Any]] = set()

    # Life

    async def start(self) -> None:
        if hasattr(self, "loop"):
            raise RuntimeError("A broker starts once: make a new one on the same directory.")
        self.loop = asyncio.get_running_loop()
        self.shares = share_out()
        self.listeners.load()
        try:
            with using_directory(self.data):
                self._directory.open()
                self.catalog.open()
                if self.catalog.quotas:
                    self.throttling  # noqa: B018  (asking for it starts it)
                self._start_partitions()
                self._start_coordinators()
            if self.settings["metrics.port"] >= 0:
                self._start_metrics()
            await self.listeners.start()
        except BaseException:
            await self.listeners.stop()
            await self._stop_parts()
            raise
        log.info("listening", extra={"address": self.bootstrap_servers, "data": self.data})

    async def stop(self) -> None:
        """Answer what was started, then stop the parts in reverse order. Again does nothing."""
        if self._stopped:
            return
        self._stopped = True
        await self.listeners.stop()
        await self._stop_parts()
        if self._temporary is not None:
            self._temporary.cleanup()
        log.info("stopped")

    def _start_partitions(self) -> None:
        from semel.broker.partitions.partitions import Partitions

        self.partitions = self._begin(Partitions(self))

    def _start_coordinators(self) -> None:
        for part, topic in COORDINATORS.items():
            if topic in self.catalog.topics:
                getattr(self, part)  # asking for it starts it

    def _start_metrics(self) -> None:
        from semel.broker.metrics import Metrics

        self.metrics = self._begin(Metrics(self))

    @cached_property
    def throttling(self) -> Throttling:
        """What makes clients wait; it starts with the broker if a quota is set, or with the first
        that is."""
        from semel.broker.access.throttling import Throttling

        return Throttling(self)

    @cached_property
    def transactions(self) -> Transactions:
        """The transaction coordinators; they start when first asked for."""
        from semel.broker.coordinators.transactions import Transactions

        return self._begin(Transactions(self))

    @cached_property
    def groups(self) -> Groups:
        """The group coordinators; they start when first asked for."""
        from semel.broker.coordinators.groups import Groups

        return self._begin(Groups(self))

    def _begin(self, part: P) -> P:
        if not hasattr(self, "loop"):
            raise RuntimeError("The broker is not started.")
        part.start()
        self._started.append(part)
        return part

    async def _stop_parts(self) -> None:
        for task in self._tasks:
            task.cancel()
        while self._started:
            await self._started.pop().stop()
        self.catalog.close()
        self._directory.close()

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run in the background until done or the broker stops; a failure is logged."""
        task = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self.report_failure(problem)

    def report_failure(self, problem: BaseException) -> None:
        """Of something that nobody waits for."""
        log.error("a background task failed", exc_info=problem)

    def use_routes(self, make: Callable[[int, int], Route]) -> None:
        self._dispatcher.routes.use(make)

    # What others ask

    @property
    def port(self) -> int:
        return self.listeners.first.net.port

    @property
    def listen_address(self) -> Address:
        return self.listeners.first.place.address

    @property
    def is_ready(self) -> bool:
        """Whether clients are served: it is started, and does not stop."""
        return hasattr(self, "loop") and not self._stopped

    @property
    def open_connections(self) -> int:
        return sum(len(each.net.connections) for each in self.listeners.all.values())

    def measure(self, meter: RequestMeter) -> None:
        """Have requests counted. Without this there is nothing between dispatcher and handlers."""
        meter.put_between(self._dispatcher)

    @property
    def bootstrap_servers(self) -> str:
        """What clients are given to connect to: the first listener's address."""
        return self.bootstrap_servers_of(self.listeners.first.place.name)

    def bootstrap_servers_of(self, listener: str) -> str:
        """The same of a listener by its name, as `SASL_SSL`."""
        return str(self.listeners.advertised_by(listener.upper()))

    def advertised(self, connection: Connection) -> Address:
        """The address to tell this client: that of the listener it came by."""
        return self.listeners.advertised(connection)

    @staticmethod
    def now_ms() -> int:
        return time.time_ns() // 1_000_000

    # Two ways to hold it

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.stop()

    def __enter__(self) -> Self:
        from semel.broker.threaded import run_in_thread

        self._thread = run_in_thread(self)
        return self

    def __exit__(self, *problem: object) -> None:
        assert self._thread is not None
        self._thread.stop()
