"""The client's own connections without a network: an event loop whose every connection leads to a
simulated broker, over a line that delays, loses and breaks as dice fall.

Client, connection and frames are the product's own. As on TCP, requests arrive in order and are
answered in order; what gets lost takes its connection with it.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Any

from tests.support.simulated.broker import Gone, SimulatedBroker
from tests.support.simulated.clock import JumpingLoop

from semel.wire.frames import decode_request, encode_response

MOST_BYTES = 100 << 20
"""Of a request: whoever promises more speaks another protocol."""
DELAYS_SECONDS = (0.0, 0.001, 0.001, 0.003, 0.05)


class WiredLoop(JumpingLoop):
    """`dial` opens a connection of a protocol, or raises OSError."""

    dial: Callable[[Any], asyncio.Transport]

    def call_at(  # type: ignore[override]
        self, when: float, *rest: Any, **more: Any
    ) -> asyncio.TimerHandle:
        """A microsecond late: whoever computes in milliseconds may find that it rang too early,
        and would set the same timer for ever, on a clock that stands still meanwhile."""
        return super().call_at(when + 1e-6, *rest, **more)

    async def create_connection(self, factory: Any, *_: Any, **more: Any) -> Any:  # type: ignore[override]
        await asyncio.sleep(0.001)
        if more.get("ssl") is not None:
            raise ConnectionResetError("the broker hangs up on who speaks TLS")
        protocol = factory()
        return self.dial(protocol), protocol


class Wire(asyncio.Transport):
    """The client's end of a connection, and everything behind it."""

    def __init__(
        self, protocol: Any, broker: SimulatedBroker, dice: random.Random, loss: float
    ) -> None:
        super().__init__()
        self._protocol = protocol
        self._broker = broker
        self._dice = dice
        self._loss = loss
        self._loop = asyncio.get_running_loop()
        self._bytes = bytearray()
        self._requests: asyncio.Queue[bytearray] = asyncio.Queue()
        self._answers: asyncio.Queue[Any] = asyncio.Queue()
        self._closed = False
        self._tasks = [
            self._loop.create_task(self._carry_requests()),
            self._loop.create_task(self._carry_answers()),
        ]
        _open.add(self)
        protocol.connection_made(self)

    # What the client calls

    def write(self, data: Any) -> None:
        self._bytes += data
        while len(self._bytes) >= 4:
            end = 4 + int.from_bytes(self._bytes[:4], "big")
            if end > MOST_BYTES:
                self._break(None)
                return
            if len(self._bytes) < end:
                return
            self._requests.put_nowait(self._bytes[4:end])
            del self._bytes[:end]

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is ever kept here."""

    def is_closing(self) -> bool:
        return self._closed

    def abort(self) -> None:
        self._break(None)

    close = abort

    # The line

    async def _carry_requests(self) -> None:
        while True:
            frame = await self._requests.get()
            await self._travel()
            header, message = decode_request(frame)
            answering = asyncio.ensure_future(self._broker.ask(message, header.api_version))
            answering.add_done_callback(_looked_at)
            self._answers.put_nowait((header, answering))

    async def _carry_answers(self) -> None:
        while True:
            header, answering = await self._answers.get()
            try:
                answer = await answering
            except Gone:
                self._break(ConnectionResetError("the broker has crashed"))
                return
            await self._travel()
            if answer is not None:
                self._hand_over(encode_response(header.correlation_id, answer, header.api_version))

    async def _travel(self) -> None:
        await asyncio.sleep(self._dice.choice(DELAYS_SECONDS))
        if self._dice.random() < self._loss:
            self._break(ConnectionResetError("the line is broken"))
            await asyncio.sleep(0)  # where this task hears that it was cancelled

    def _hand_over(self, frame: Any) -> None:
        view, position = memoryview(_whole(frame)), 0
        while position < len(view) and not self._closed:
            room = self._protocol.get_buffer(-1)
            size = min(len(room), len(view) - position)
            room[:size] = view[position : position + size]
            position += size
            try:
                self._protocol.buffer_updated(size)
            except Exception as error:  # as asyncio's own transports do
                self._loop.call_exception_handler(
                    {"message": "protocol.buffer_updated() call failed.", "exception": error}
                )
                self._break(error)

    def _break(self, error: Exception | None) -> None:
        if self._closed:
            return
        self._closed = True
        _open.discard(self)
        for task in self._tasks:
            task.cancel()
        self._loop.call_soon(self._protocol.connection_lost, error)


# An event loop holds its tasks but weakly.
_open: set[Wire] = set()


def _looked_at(answering: asyncio.Future[Any]) -> None:
    """Nobody may be left to hear that the broker has crashed."""
    if not answering.cancelled() and not isinstance(answering.exception(), Gone | None):
        raise answering.exception()  # type: ignore[misc]


def _whole(frame: Any) -> bytes:
    """A frame with the regions of files that belong into it."""
    whole, position = bytearray(), 0
    for at, region in frame.regions:
        whole += frame[position:at]
        whole += bytes(region)
        position = at
    return bytes(whole + frame[position:])
