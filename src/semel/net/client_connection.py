"""The client's end of a connection: pipelined requests, a deadline for each, versions agreed.

Requests leave at once and are answered in order, as Kafka's protocol promises. A request that is
not answered in time takes the connection with it: whatever comes later could not be trusted to
belong to anybody, and a broker that is silent for one request is silent for all.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from ssl import SSLContext
from struct import Struct
from typing import Any, NamedTuple

from semel.net.client_sasl import Credentials
from semel.net.strangers import told_by
from semel.wire.errors import ErrorCode, ProtocolError
from semel.wire.frames import RequestHeader, decode_response, encode_request
from semel.wire.messages.api_versions import ApiVersionsRequest
from semel.wire.primitives import Buffer
from semel.wire.schema import Message

_LENGTH = Struct(">i")
_RECEIVE_BUFFER = 64 * 1024
# Joining what is small saves system calls; copying what is large costs more than it saves.
_SMALL_PIECE = 32 * 1024
_PIECE = 256 * 1024
# How many times as large as needed memory may be that is used again.
_SPARE_AT_MOST = 4
# No broker answers more than it was asked for; this keeps a stranger's bytes from being believed.
_LARGEST_ANSWER = 1 << 30
_LARGEST_FIRST_ANSWER = 1 << 20


class ConnectionLost(Exception):
    """The connection broke, was refused, or fell silent. Whether requests arrived is unknown."""


class NotABroker(ConnectionLost):
    """Somebody else listens there: trying again does not help."""


class AuthenticationFailed(Exception):
    """The broker refused the credentials, or the two sides share no mechanism."""


class VersionMismatch(Exception):
    """The broker speaks no version of a request that this client speaks."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Security:
    """How to connect: in the clear unless told otherwise."""

    ssl: SSLContext | None = None
    credentials: Credentials | None = None


IN_THE_CLEAR = Security()


class _Waiting(NamedTuple):
    correlation_id: int
    api_key: int
    version: int
    done: Callable[[Any, ConnectionLost | None], None]
    answer: asyncio.Future[Any] | None
    deadline: float


class ClientConnection(asyncio.BufferedProtocol):
    """One connection to a broker. Made by `open_connection`."""

    def __init__(self, endpoint: Endpoint, client_id: str) -> None:
        self.endpoint = endpoint
        self.client_id = client_id
        self.versions: dict[int, range] = {}
        self.features: dict[str, int] = {}
        self.expires_at: float | None = None
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[_Waiting] = deque()
        self._next_id = 0
        self._joined: list[Buffer] | None = None
        self._outgoing: deque[Buffer] = deque()
        self._may_write = True
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._lost: ConnectionLost | None = None
        self._buffer = bytearray(_RECEIVE_BUFFER)
        self._filled = 0
        self._large: memoryview | None = None  # an answer that does not fit the receive buffer
        self._spare = bytearray()  # the memory of the last one
        self._large_filled = 0
        self._largest = _LARGEST_FIRST_ANSWER

    # Asking

    @property
    def usable(self) -> bool:
        expired = self.expires_at is not None and self._loop.time() >= self.expires_at
        return self._lost is None and not expired

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    @property
    def was_heard(self) -> bool:
        """Whether anything came from there."""
        return self._filled > 0 or self._large is not None or bool(self.versions)

    def believe(self) -> None:
        """It is a broker: its answers may be large."""
        self._largest = _LARGEST_ANSWER

    def version_for(self, message: type[Message], at_most: int = 0x7FFF) -> int:
        """The newest version of a request that both sides speak."""
        theirs = self.versions.get(message.API_KEY, range(0))
        newest = min(theirs.stop - 1, message.VERSIONS.stop - 1, at_most)
        if newest < message.VERSIONS.start or newest not in theirs:
            raise VersionMismatch(
                f"{self.endpoint} speaks {message.__name__} {_spelled(theirs)}, "
                f"this client {_spelled(message.VERSIONS)}"
            )
        return newest

    def request(
        self, message: Message, timeout_s: float, version: int | None = None
    ) -> asyncio.Future[Any]:
        """Sends a request; the future holds its answer, or ConnectionLost."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._ask(message, timeout_s, version, partial(_resolve, answer), answer)
        return answer

    def ask(
        self,
        message: Message,
        timeout_s: float,
        version: int,
        done: Callable[[Any, ConnectionLost | None], None],
    ) -> None:
        """Sends a request; `done` is called in the very turn of the loop that brings its answer."""
        self._ask(message, timeout_s, version, done, None)

    def _ask(
        self,
        message: Message,
        timeout_s: float,
        version: int | None,
        done: Callable[[Any, ConnectionLost | None], None],
        answer: asyncio.Future[Any] | None,
    ) -> None:
        if self._lost is not None or self._transport is None:
            lost = self._lost or ConnectionLost(f"{self.endpoint} is not connected")
            # Later, like any answer: whoever asks is not called back before it has asked.
            self._loop.call_soon(done, None, ConnectionLost(str(lost)))
            return
        if version is None:
            version = self.version_for(type(message))
        deadline = self._loop.time() + timeout_s
        correlation_id = self._send(message, version)
        self._waiting.append(
            _Waiting(correlation_id, message.API_KEY, version, done, answer, deadline)
        )
        if self._timer is None or deadline < self._timer_at:
            self._arm(deadline)

    def tell(self, message: Message) -> None:
        """Sends a request that is not answered: Produce with acks 0."""
        if self._lost is not None:
            raise self._lost
        self._send(message, self.version_for(type(message)))

    def close(self, reason: str = "closed by this client") -> None:
        self._fail(ConnectionLost(f"{self.endpoint}: {reason}"))

    def _send(self, message: Message, version: int) -> int:
        assert self._transport is not None
        correlation_id = self._next_id
        self._next_id = (correlation_id + 1) & 0x7FFF_FFFF
        header = RequestHeader(message.API_KEY, version, correlation_id, self.client_id)
        frame = encode_request(header, message)
        pieces: list[Buffer] = frame.pieces() if frame.regions else [frame]
        if self._joined is not None:
            self._joined += pieces
        else:
            self._write(pieces)
        return correlation_id

    def join(self) -> None:
        """Requests from now on leave in one write: a system call costs more than many a request."""
        self._joined = []

    def send_joined(self) -> None:
        pieces, self._joined = self._joined, None
        if pieces and self._lost is None:
            self._write(pieces)

    def _write(self, pieces: list[Buffer]) -> None:
        """The transport copies what the socket does not take, so it gets one piece at a time."""
        small: list[Buffer] = []
        for piece in pieces:
            if len(piece) < _SMALL_PIECE:
                small.append(piece)
                continue
            if small:
                self._outgoing.append(b"".join(small))
                small = []
            view = memoryview(piece)
            self._outgoing += [view[at : at + _PIECE] for at in range(0, len(view), _PIECE)]
        if small:
            self._outgoing.append(b"".join(small) if len(small) > 1 else small[0])
        self._write_on()

    def _write_on(self) -> None:
        assert self._transport is not None
        while self._outgoing and self._may_write:
            self._transport.write(self._outgoing.popleft())

    def pause_writing(self) -> None:
        self._may_write = False

    def resume_writing(self) -> None:
        self._may_write = True
        self._write_on()

    # Deadlines: one timer for the earliest, because most never come

    def _arm(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._loop.call_at(deadline, self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._timer = None
        pending = [
            waiting.deadline
            for waiting in self._waiting
            if waiting.answer is None or not waiting.answer.done()
        ]
        if not pending:
            return
        if min(pending) <= self._loop.time():
            self.close("a request was not answered in time")
        else:
            self._arm(min(pending))

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        assert self._transport is not None
        # Paused whenever it holds anything. Not 0: asyncio's TLS would then pause for ever.
        self._transport.set_write_buffer_limits(high=1, low=0)

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(ConnectionLost(f"{self.endpoint}: {error or 'closed by the broker'}"))

    def eof_received(self) -> bool:
        return False

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._large is not None:
            return self._large[self._large_filled :]
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, size: int) -> None:
        try:
            if self._large is not None:
                self._large_filled += size
                if self._large_filled == len(self._large):
                    answer, self._large = self._large, None
                    self._answered(answer)
            else:
                self._filled += size
                self._take_answers()
        except ProtocolError as error:
            stranger = None if self.versions else told_by(bytes(self._buffer[: self._filled]))
            if stranger is not None:
                self._fail(not_a_broker(self.endpoint, stranger))
            else:
                self._fail(ConnectionLost(f"{self.endpoint}: an answer cannot be read: {error}"))

    def _take_answers(self) -> None:
        """Answers are copied out of the receive buffer: their records stay views of the copy."""
        position, filled, buffer = 0, self._filled, self._buffer
        while filled - position >= 4:
            (size,) = _LENGTH.unpack_from(buffer, position)
            if not 4 <= size <= self._largest:
                raise ProtocolError(f"an answer of {size} bytes")
            start, end = position + 4, position + 4 + size
            if end > filled:
                if end - position > len(buffer):
                    self._begin_large(size, start)
                    return
                break
            position = end
            self._answered(memoryview(bytes(memoryview(buffer)[start:end])))
        rest = filled - position
        if position and rest:
            buffer[:rest] = buffer[position:filled]
        self._filled = rest

    def _begin_large(self, size: int, start: int) -> None:
        self._large = memoryview(self._memory(size))[:size]
        self._large_filled = self._filled - start
        self._large[: self._large_filled] = self._buffer[start : self._filled]
        self._filled = 0

    def _memory(self, size: int) -> bytearray:
        """The last answer's, if nobody looks at it any more: fresh pages cost more than reading."""
        spare = self._spare
        if size <= len(spare) <= _SPARE_AT_MOST * size:
            try:
                spare.append(0)  # refused while there are views of it
                del spare[-1]
                return spare
            except BufferError:
                pass
        self._spare = bytearray(size)
        return self._spare

    def _answered(self, frame: memoryview) -> None:
        if not self._waiting:
            raise ProtocolError("an answer that nobody asked for")
        waiting = self._waiting.popleft()
        version = waiting.version
        if waiting.api_key == ApiVersionsRequest.API_KEY and _is_unsupported(frame):
            version = 0  # the one answer that comes in another version than was asked for
        try:
            echoed, message = decode_response(frame, waiting.api_key, version)
            if echoed != waiting.correlation_id:
                raise ProtocolError(f"answer {echoed} where {waiting.correlation_id} was next")
        except ProtocolError as error:
            waiting.done(None, ConnectionLost(f"{self.endpoint}: {error}"))
            raise
        waiting.done(message, None)

    def _fail(self, lost: ConnectionLost) -> None:
        if self._lost is not None:
            return
        self._lost = lost
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        self._outgoing.clear()
        waiting, self._waiting = self._waiting, deque()
        for entry in waiting:
            entry.done(None, type(lost)(str(lost)))


def not_a_broker(endpoint: Endpoint, stranger: str) -> NotABroker:
    return NotABroker(
        f"{endpoint} is not a Kafka broker, as this client speaks to it: {stranger}. "
        "Check the host, the port and security_protocol"
    )


def _resolve(answer: asyncio.Future[Any], message: Any, lost: ConnectionLost | None) -> None:
    if answer.done():
        return  # whoever asked has gone
    if lost is None:
        answer.set_result(message)
    else:
        answer.set_exception(lost)


def _is_unsupported(frame: memoryview) -> bool:
    return len(frame) >= 6 and frame[4] << 8 | frame[5] == ErrorCode.UNSUPPORTED_VERSION


def _spelled(versions: range) -> str:
    return f"{versions.start} to {versions.stop - 1}" if versions else "not at all"
