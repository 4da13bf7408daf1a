"""The listening socket: accepts connections within limits, ends idle ones, drains at the end.

What a request means is not known here: `receive(connection, frame)` is called for each, in order,
and returns the answer, or gives it to the connection (`reply`, or `reserve` and `fill`). Large
frames go to `receive_large`, which may look at them more closely first.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from semel.net import serving
from semel.net.connection import SCRATCH_SIZE, Connection
from semel.net.host import Host
from semel.net.memory import RequestMemory
from semel.net.turns import Turns
from semel.net.watching import watcher_of

log = logging.getLogger("semel.net")

Connect = Callable[[Host, asyncio.AbstractEventLoop, socket.socket, Any], Connection]

#: Idle connections are looked for this many times within the idle time.
SWEEPS_PER_IDLE_TIME = 4
ACCEPT_AGAIN_SECONDS = 1.0
SHORT_FRAME = 1 << 16


@dataclass(slots=True)
class ListenerLimits:
    """Limits of a listener; read at each use, so they may change while it runs."""

    max_frame_size: int = 100 << 20
    short_frame_size: int = field(init=False)  # larger ones go to `receive_large`
    max_connections: int = 2**31 - 1
    max_connections_per_address: int = 2**31 - 1
    max_waiting: int = 500
    idle_seconds: float = 600.0
    backlog: int = 128
    send_buffer: int = -1
    receive_buffer: int = -1

    def __post_init__(self) -> None:
        self.set_max_frame_size(self.max_frame_size)

    def set_max_frame_size(self, size: int) -> None:
        self.max_frame_size = size
        self.short_frame_size = min(size, SHORT_FRAME)


class Listener:
    def __init__(
        self,
        receive: Callable[[Connection, bytearray], Any],
        limits: ListenerLimits | None = None,
        finish: Callable[[], None] = lambda: None,
        receive_large: Callable[[Connection, bytearray], Any] | None = None,
        name: str = "PLAINTEXT",
        memory: RequestMemory | None = None,
        principal: Any = None,
    ) -> None:
        self.name = name
        self.principal = principal  # of those who come here, before they say more
        self.receive = receive
        self.receive_large = receive_large or receive
        self.finish = finish
        self.limits = limits or ListenerLimits()
        self.connections: set[Connection] = set()
        self.scratch = bytearray(SCRATCH_SIZE)
        self.spare: bytearray | None = None
        self.memory = memory or RequestMemory()
        self.turns = Turns()
        self.host, self.port = "", 0
        #: Who looks after new connections, and what makes them; set before it starts.
        self.first_host: Host = self
        self.connect: Connect = Connection
        #: The time a new connection has to show who it is, where that is asked.
        self.admission_seconds: float | None = None
        self._newcomers: dict[Connection, asyncio.TimerHandle] = {}
        #: By address, of all listeners that share it: a broker's limits count them together.
        self.per_address: Counter[str] = Counter()
        self._drained: asyncio.Event | None = None
        self._sockets: list[ListeningSocket] = []

    async def start(self, host: str, port: int) -> None:
        """Listen on host and port; port 0 takes a free one, told by `port` afterwards."""
        self._loop = asyncio.get_running_loop()
        self.watcher = watcher_of(self._loop)
        for listening in await _listen(self._loop, host, port, self.limits.backlog):
            self._sockets.append(ListeningSocket(self, self._loop, listening))
        self.host, self.port = host, self._sockets[0].port
        self._sweep_timer = self._loop.call_later(self._sweep_seconds(), self._sweep)
        serving.begin(self._loop)

    async def stop(self, patience_seconds: float = 5.0) -> None:
        """Accept nothing new, let every started request be answered, then close what is left."""
        self._sweep_timer.cancel()
        serving.end(self._loop)
        for door in self._sockets:
            door.close()
        self._drained = asyncio.Event()
        for connection in list(self.connections):
            connection.drain()
        if self.connections:
            try:
                await asyncio.wait_for(self._drained.wait(), patience_seconds)
            except TimeoutError:
                for connection in list(self.connections):
                    connection.close("the broker stops and could not wait longer")

    def accepted(self, accepted: socket.socket, peer: tuple[str, int]) -> None:
        """Begin a connection, or end it with the reason why it may not stay."""
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, size in (
            (socket.SO_SNDBUF, self.limits.send_buffer),
            (socket.SO_RCVBUF, self.limits.receive_buffer),
        ):
            if size > 0:
                accepted.setsockopt(socket.SOL_SOCKET, option, size)
        connection = self.connect(self.first_host, self._loop, accepted, peer)
        self.watcher.watch(accepted.fileno(), connection)
        refusal = self._admit(connection)
        if refusal is not None:
            connection.close(refusal)
        elif self.admission_seconds is not None:
            self._newcomers[connection] = self._loop.call_later(
                self.admission_seconds, self._close_stranger, connection
            )

    def _close_stranger(self, connection: Connection) -> None:
        connection.close(f"did not show who it is within {self.admission_seconds:g} s")

    def admitted(self, connection: Connection) -> None:
        """The client has shown who it is."""
        timer = self._newcomers.pop(connection, None)
        if timer is not None:
            timer.cancel()

    greeted = admitted  # where TLS is all that is asked

    def _admit(self, connection: Connection) -> str | None:
        """Count a connection that was made, or say why it may not stay."""
        address = connection.peer_host
        self.connections.add(connection)
        self.per_address[address] += 1
        if self._drained is not None:
            return "the broker stops"
        if self.per_address.total() > self.limits.max_connections:
            return f"max.connections={self.limits.max_connections} reached"
        if self.per_address[address] > self.limits.max_connections_per_address:
            return f"max.connections.per.ip={self.limits.max_connections_per_address} reached"
        return None

    def forget(self, connection: Connection) -> None:
        if self._newcomers:
            self.admitted(connection)
        self.connections.discard(connection)
        self.per_address[connection.peer_host] -= 1
        if not self.per_address[connection.peer_host]:
            del self.per_address[connection.peer_host]
        if self._drained is not None and not self.connections:
            self._drained.set()

    def _sweep_seconds(self) -> float:
        return self.limits.idle_seconds / SWEEPS_PER_IDLE_TIME

    def _sweep(self) -> None:
        """Close connections that neither asked nor took anything for too long.

        One that waits for our answer is spared; one that does not take its answers is not.
        """
        now = self._loop.time()
        too_old = now - self.limits.idle_seconds
        for connection in list(self.connections):
            if connection.is_active:
                connection.is_active, connection.idle_since = False, now
            if connection.idle_since < too_old and not connection.awaits_answer:
                connection.close(f"idle for {self.limits.idle_seconds:g} s")
        self._sweep_timer = self._loop.call_later(self._sweep_seconds(), self._sweep)


class ListeningSocket:
    """One listening socket."""

    def __init__(
        self, listener: Listener, loop: asyncio.AbstractEventLoop, listening: socket.socket
    ) -> None:
        self._listener = listener
        self._loop = loop
        self._socket = listening
        self.port: int = listening.getsockname()[1]
        self._open()

    def _open(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.add_reader(self._socket.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(self._listener.limits.backlog):
            try:
                accepted, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as problem:
                # No descriptors or memory left: asking again at once would only cost CPU time.
                log.error("cannot accept connections", extra={"reason": problem.strerror})
                self._loop.remove_reader(self._socket.fileno())
                self._loop.call_later(ACCEPT_AGAIN_SECONDS, self._open)
                return
            try:
                self._listener.accepted(accepted, peer)
            except OSError:  # closed before it was accepted
                accepted.close()

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()


async def _listen(
    loop: asyncio.AbstractEventLoop, host: str, port: int, backlog: int
) -> list[socket.socket]:
    """A socket for each address of `host`; no host means every address there is."""
    try:
        server = await loop.create_server(
            asyncio.Protocol, host or None, port, backlog=backlog, start_serving=False
        )
    except OSError as problem:
        if problem.errno is None:  # Python 3.13 says so in words: no address of these is ours
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL)) from problem
        raise
    try:
        listening = [one.dup() for one in server.sockets]
    finally:
        server.close()
    for one in listening:
        one.listen(backlog)
        one.setblocking(False)
    return listening
