"""Connections over TLS: `ssl.SSLObject` between the socket and the connection, called from the
loop like everything else.

Ciphertext is read from the socket into the one BIO, and what comes out is put where a plain
connection would have read it; answers go the other way. Four things are easily forgotten. Data may
come with the last bytes of the handshake. Decrypted data that waits is not announced by epoll.
Ciphertext that the socket did not take outlives an empty outbox. And `sendfile` would send what is
in the file as it is: the outbox here reads files in pieces.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections import deque
from contextlib import suppress
from typing import Any, Protocol

from semel.net.connection import Connection, read_length
from semel.net.host import Host
from semel.net.listener import Connect
from semel.net.outbox import FileEnded, Outbox, UnsentRegion

#: Ciphertext read from a socket at once, and plaintext encrypted at once.
PIECE = 1 << 17
#: Time given to handshakes in one turn of the loop. One costs up to a millisecond (a signature);
#: whoever has finished theirs is served in between.
HANDSHAKE_SECONDS = 0.002


class Shield(Protocol):
    """What TLS connections of a listener share."""

    def begin(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject: ...
    def identify(self, tls: ssl.SSLObject) -> Any:
        """Who the client's certificate says it is; raises ValueError where that is nobody."""


class Handshakes:
    """Those who have sent something of a handshake, in order: a few of them have their turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[TlsConnection] = deque()

    def put(self, connection: TlsConnection) -> None:
        if not self._waiting:
            self._loop.call_soon(self._run)
        self._waiting.append(connection)

    def _run(self) -> None:
        ends = self._loop.time() + HANDSHAKE_SECONDS
        while self._waiting:
            connection = self._waiting.popleft()
            try:
                connection.shake()
            except Exception as problem:  # whatever one of them does, the others have their turn
                connection.close(f"TLS handshake failed: {problem!r}")
            if self._loop.time() > ends and self._waiting:
                self._loop.call_soon(self._run)
                return


class TlsConnection(Connection):
    __slots__ = (
        "_greeted",
        "_handshakes",
        "_incoming",
        "_is_queued",
        "_outgoing",
        "_pump_planned",
        "_shield",
        "_tls",
        "_unsent",
    )

    def __init__(
        self,
        host: Host,
        loop: asyncio.AbstractEventLoop,
        accepted: socket.socket,
        peer: Any,
        shield: Shield,
        handshakes: Handshakes,
    ) -> None:
        super().__init__(host, loop, accepted, peer)
        self._outbox = ReadingOutbox()
        self._shield = shield
        self._handshakes = handshakes
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = shield.begin(self._incoming, self._outgoing)
        self._greeted = False  # the handshake is over
        self._is_queued = False  # … or waits for its turn
        self._pump_planned = False
        self._unsent: memoryview | None = None  # ciphertext

    # Reading

    def readable(self) -> Any:
        if not self._reading:  # told all the same: nobody is there any more
            self._end()
            return None
        if not self._receive():
            return None
        if not self._greeted:
            self._queue()
            return None
        count = self._decrypt()
        if not self._at_rest or self._outgoing.pending:
            self._take_decrypted(count)
            return None
        return self._short_way(count) if count else None

    def _receive(self) -> bool:
        """Take ciphertext from the socket; whether there was any."""
        scratch = self._host.scratch
        try:
            count = self._socket.recv_into(scratch, PIECE)
        except OSError as problem:
            self._not_read(problem)
            return False
        if not count:
            self._end()
            return False
        with memoryview(scratch) as view:
            self._incoming.write(view[:count])
        return True

    def _decrypt(self) -> int:
        """Fill what room there is for the next bytes; how much of it."""
        room = self._room()
        tls, incoming = self._tls, self._incoming
        size, count = len(room), 0
        try:
            while count < size:
                got = int(tls.read(size - count, room[count:]))
                count += got
                if not got:
                    self._loop.call_soon(self._end)  # what came before the end is taken first
                    return count
                if not incoming.pending and not tls.pending():
                    return count
        except ssl.SSLWantReadError:
            return count
        except ssl.SSLError as problem:
            self._fail(problem)
            return 0
        self._plan_pump()  # there is more than there is room for
        return count

    def _short_way(self, count: int) -> Any:
        """As a plain connection's `readable`: one whole small request, and nothing else."""
        host = self._host
        scratch = host.scratch
        (size,) = read_length(scratch)
        if not 0 < size == count - 4 <= host.limits.short_frame_size:
            self._take_in(count)
            return None
        self.is_active = True
        self.request_size = size
        answer = host.receive(self, scratch[4:count])
        if answer is None or answer.regions:
            self._conclude(answer)
            return None
        return answer

    def _take_decrypted(self, count: int) -> None:
        self._push()
        if count and not self.closed:
            self._take_in(count)

    def _plan_pump(self) -> None:
        if not self._pump_planned:
            self._pump_planned = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        """Take what was decrypted already, which nobody else tells us of."""
        self._pump_planned = False
        if self._reading and not self.closed:
            self._take_decrypted(self._decrypt())

    def _resume(self) -> None:
        super()._resume()
        if self._incoming.pending or self._tls.pending():
            self._plan_pump()

    # The handshake

    def _queue(self) -> None:
        if not self._is_queued:
            self._is_queued = True
            self._handshakes.put(self)
        if self._incoming.pending > PIECE:  # more than a handshake needs: no more until it is done
            self._pause()

    def shake(self) -> None:
        """Go on with the handshake as far as what came allows."""
        self._is_queued = False
        if self.closed:
            return
        if not self._reading:
            super()._resume()
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._push()
            return
        except ssl.SSLError as problem:
            self._fail(problem)
            return
        self._push()
        try:
            self.principal = self._shield.identify(self._tls)
        except ValueError as problem:
            self.close(f"TLS: {problem}")
            return
        self._greeted = True
        self._host.greeted(self)
        self._pump()

    def _fail(self, problem: ssl.SSLError) -> None:
        """Tell the client by an alert, as far as it can be told, and ourselves by a line."""
        with suppress(OSError):
            self._socket.send(self._outgoing.read())
        why = (problem.reason or str(problem)).replace("_", " ").lower()
        self.close(f"TLS failed: {why}" if self._greeted else f"TLS handshake failed: {why}")

    # Writing

    def send(self, answer: Any) -> None:
        if self._unsent is not None or self._outbox.size:
            self._outbox.put_rest(answer, 0)
            self._flush()
            return
        written = self._write(answer)
        if written != len(answer):
            self._outbox.put_rest(answer, written)
        self._push()
        if self._outbox.size or self._unsent is not None:
            self._flush()

    def _write(self, data: Any) -> int:
        try:
            return self._tls.write(data)
        except ssl.SSLError as problem:
            self._fail(problem)
            return len(data)

    def _push(self) -> None:
        """Give the socket all ciphertext there is; what it does not take waits for `writable`."""
        if self.closed and self._socket.fileno() < 0:
            return
        rest = self._unsent
        if rest is None:
            if not self._outgoing.pending:
                return
            rest = memoryview(self._outgoing.read())
        try:
            sent = self._socket.send(rest)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self._end()
            return
        self._unsent = rest[sent:] if sent < len(rest) else None
        if self._unsent is not None:
            self._at_rest = False
            if not self._blocked:
                self._block()

    def _send_some(self) -> None:
        outbox = self._outbox
        assert isinstance(outbox, ReadingOutbox)
        try:
            outbox.taken(self._write(outbox.piece()))
        except FileEnded as problem:
            self.close(str(problem))
            return
        except OSError as problem:
            self.close(f"cannot read what was asked for: {problem.strerror}")
            return
        self.is_active = True
        self._push()

    def writable(self) -> None:
        self._push()
        if self._unsent is None and not self.closed:
            super().writable()

    def _finish(self) -> None:
        if self._greeted and not self.closed:
            with suppress(ssl.SSLError):  # it wants to read the client's goodbye: not waited for
                self._tls.unwrap()
            self._push()
        super()._finish()

    def _end(self) -> None:
        self._unsent = None
        super()._end()


class ReadingOutbox(Outbox):
    """Gives out bytes alone: files are read in pieces, for what leaves is encrypted first."""

    __slots__ = ()

    def piece(self) -> Any:
        """The next bytes to be encrypted."""
        first = self._parts[0]
        if not isinstance(first, UnsentRegion):
            return self._join()[:PIECE]
        data = os.pread(first.fd, min(PIECE, len(first)), first.position)
        if not data:
            raise FileEnded(f"a file ended {len(first)} bytes early")
        return data

    def taken(self, count: int) -> None:
        if not self._parts:  # the connection has ended meanwhile
            return
        first = self._parts[0]
        self.size -= count
        if count == len(first):
            self._parts.popleft()
        else:
            self._parts[0] = first[count:]

    def send(self, to: socket.socket) -> None:
        raise AssertionError("what is not encrypted does not leave here")


def tls_connections(shield: Shield, loop: asyncio.AbstractEventLoop) -> Connect:
    """What makes the connections of a listener with TLS."""
    handshakes = Handshakes(loop)

    def connect(
        host: Host, loop: asyncio.AbstractEventLoop, accepted: socket.socket, peer: Any
    ) -> Connection:
        return TlsConnection(host, loop, accepted, peer, shield, handshakes)

    return connect
