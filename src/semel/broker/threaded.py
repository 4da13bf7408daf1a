"""A broker in a thread of its own, for programs and notebooks that know no asyncio."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

from semel.net.watching import new_loop

if TYPE_CHECKING:
    from semel.broker.server import Broker


class BrokerThread:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="semel-broker", daemon=True)

    def start(self) -> None:
        self._thread.start()
        try:
            self._ready.result()
        except BaseException:
            self._thread.join()
            raise

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        try:
            await self._broker.start()
        except BaseException as problem:
            self._ready.set_exception(problem)
            return
        self._ready.set_result(None)
        await self._stopping.wait()
        await self._broker.stop()


def run_in_thread(broker: Broker) -> BrokerThread:
    """Start the broker in a thread and return once it listens, or raise what kept it from that."""
    thread = BrokerThread(broker)
    thread.start()
    return thread
