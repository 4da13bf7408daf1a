"""The page for Prometheus and the answers to health checks, on a port of their own.

`/metrics` is the page; so is every other path, as it always was. `/health/live` says that the event
loop turns, `/health/ready` that clients are served: it answers 503 while the broker stops.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING

from semel.broker.addresses import Address
from semel.broker.metrics.collector import MetricsCollector
from semel.broker.metrics.loop_delay import LoopDelay
from semel.broker.metrics.requests import RequestMeter
from semel.broker.start_failures import listening_on

if TYPE_CHECKING:
    from semel.broker.server import Broker

log = logging.getLogger("semel.metrics")

LONGEST_REQUEST = 8192
_TEXT = b"text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Answers GET requests, each on a connection of its own."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._socket: socket.socket | None = None
        self.requests = RequestMeter(broker)
        self.loop_delay = LoopDelay()

    def start(self) -> None:
        address = Address(self._broker.listen_address.host, self._broker.settings["metrics.port"])
        with listening_on(address):
            family = socket.AF_INET6 if address.is_ipv6 else socket.AF_INET
            self._socket = socket.create_server(address, family=family)
        self._broker.measure(self.requests)
        self._listening = self._broker.spawn(self._listen(self._socket))
        self._broker.spawn(self.loop_delay.watch())

    async def stop(self) -> None:
        if self._socket is not None:
            self._listening.cancel()
            # The server closes in its own way; its socket must live as long.
            await asyncio.gather(self._listening, return_exceptions=True)
            self._socket.close()

    @property
    def port(self) -> int:
        assert self._socket is not None
        number: int = self._socket.getsockname()[1]
        return number

    def page(self) -> bytes:
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(MetricsCollector(self._broker, self))
        return generate_latest(registry)

    async def _listen(self, listening: socket.socket) -> None:
        async with await asyncio.start_server(
            self._answer, sock=listening, limit=LONGEST_REQUEST
        ) as server:
            await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                request = await reader.readuntil(b"\r\n\r\n")
            status, page = self._answer_to(request)
            writer.write(
                b"HTTP/1.1 %s\r\nContent-Type: %s\r\n"
                b"Content-Length: %d\r\nConnection: close\r\n\r\n"
                % (status, _TEXT, len(page))
                + page
            )
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            log.debug("a client of the metrics page went away")
        finally:
            writer.close()

    def _answer_to(self, request: bytes) -> tuple[bytes, bytes]:
        method, _, rest = request.partition(b" ")
        if method != b"GET":
            return b"405 Method Not Allowed", b""
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if path == b"/health/live":
            return b"200 OK", b"live\n"
        if path == b"/health/ready":
            ready = self._broker.is_ready
            return (b"200 OK", b"ready\n") if ready else (b"503 Service Unavailable", b"stopping\n")
        return b"200 OK", self.page()
