"""The listening socket: accepts connections within limits, ends idle ones, drains at the end.

What a request means is not known here: `receive(connection, frame)` is called for each, in order,
and answers through the connection (`reply`, or `reserve` and `fill`).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from semel.net.connection import SCRATCH_SIZE, Connection

log = logging.getLogger("semel.net")

#: Idle connections are looked for this many times within the idle time.
SWEEPS_PER_IDLE_TIME = 4


@dataclass(slots=True)
class ListenerLimits:
    """Limits of a listener; read at each use, so they may change while it runs."""

    max_frame_size: int = 100 << 20
    max_connections: int = 2**31 - 1
    max_connections_per_address: int = 2**31 - 1
    max_waiting: int = 500
    idle_seconds: float = 600.0
    backlog: int = 128
    send_buffer: int = -1
    receive_buffer: int = -1


class Listener:
    def __init__(
        self, receive: Callable[[Connection, bytearray], None], limits: ListenerLimits | None = None
    ) -> None:
        self.receive = receive
        self.limits = limits or ListenerLimits()
        self.connections: set[Connection] = set()
        self.scratch = memoryview(bytearray(SCRATCH_SIZE))
        self.spare: bytearray | None = None
        self.host, self.port = "", 0
        self._per_address: Counter[str] = Counter()
        self._drained: asyncio.Event | None = None

    @property
    def max_frame_size(self) -> int:
        return self.limits.max_frame_size

    @property
    def max_waiting(self) -> int:
        return self.limits.max_waiting

    async def start(self, host: str, port: int) -> None:
        """Listen on host and port; port 0 takes a free one, told by `port` afterwards."""
        self._loop = asyncio.get_running_loop()
        self._server = await self._loop.create_server(
            self._new_connection, host or None, port, backlog=self.limits.backlog
        )
        self.host, self.port = host, self._server.sockets[0].getsockname()[1]
        self._sweep_timer = self._loop.call_later(self._sweep_seconds(), self._sweep)

    async def stop(self, patience_seconds: float = 5.0) -> None:
        """Accept nothing new, let every started request be answered, then close what is left."""
        self._sweep_timer.cancel()
        self._server.close()
        self._drained = asyncio.Event()
        for connection in list(self.connections):
            connection.drain()
        if self.connections:
            try:
                await asyncio.wait_for(self._drained.wait(), patience_seconds)
            except TimeoutError:
                for connection in list(self.connections):
                    connection.close("the broker stops and could not wait longer")
                await asyncio.sleep(0)  # lets the transports report the end

    def _new_connection(self) -> Connection:
        return _Guarded(self, self._loop)

    def admit(self, connection: Connection) -> str | None:
        """Count a connection that was made, or say why it may not stay."""
        address = connection.peer_host
        self.connections.add(connection)
        self._per_address[address] += 1
        if self._drained is not None:
            return "the broker stops"
        if len(self.connections) > self.limits.max_connections:
            return f"max.connections={self.limits.max_connections} reached"
        if self._per_address[address] > self.limits.max_connections_per_address:
            return f"max.connections.per.ip={self.limits.max_connections_per_address} reached"
        return None

    def forget(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._per_address[connection.peer_host] -= 1
        if not self._per_address[connection.peer_host]:
            del self._per_address[connection.peer_host]
        if self._drained is not None and not self.connections:
            self._drained.set()

    def _sweep_seconds(self) -> float:
        return self.limits.idle_seconds / SWEEPS_PER_IDLE_TIME

    def _sweep(self) -> None:
        """Close connections that neither asked nor took anything for too long.

        One that waits for our answer is spared; one that does not take its answers is not.
        """
        too_old = self._loop.time() - self.limits.idle_seconds
        for connection in list(self.connections):
            if connection.active_at < too_old and not connection.awaits_answer:
                connection.close(f"idle for {self.limits.idle_seconds:g} s")
        self._sweep_timer = self._loop.call_later(self._sweep_seconds(), self._sweep)


class _Guarded(Connection):
    """A connection that asks its listener whether it may stay, and sets its socket up."""

    __slots__ = ("_listener",)

    def __init__(self, listener: Listener, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(listener, loop)
        self._listener = listener

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        refusal = self._listener.admit(self)
        if refusal is not None:
            self.close(refusal)
            return
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, size in (
            (socket.SO_SNDBUF, self._listener.limits.send_buffer),
            (socket.SO_RCVBUF, self._listener.limits.receive_buffer),
        ):
            if size > 0:
                self._socket.setsockopt(socket.SOL_SOCKET, option, size)
