"""A line to a broker that loses what it is told to lose.

    with Line() as line, Broker(settings=line.settings) as broker:
        line.connect(broker.port)
        line.lose(26, ANSWER)           # the next EndTxn is carried out, and nobody hears of it

The broker advertises the line's address, so that every client's every connection goes through it. A
lost request or answer takes its connection with it. A request may also be *held*: the client sees
its connection break and sends again, and `deliver` brings the first copy to the broker when the
test says so, as a network or a paused machine may.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import deque
from types import TracebackType
from typing import Any, NamedTuple

from semel.wire.frames import decode_response

REQUEST, ANSWER, HELD = "request", "answer", "held"
_KEY_AND_VERSION = struct.Struct(">hh")


class Loss(NamedTuple):
    api_key: int
    moment: str


class Line:
    """Losses happen in the order they were asked for, one at a time."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.happened: list[Loss] = []
        self._broker_port = 0
        self._losses: deque[Loss] = deque()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._held: list[bytes] = []

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, str]:
        """What the broker behind the line is started with."""
        return {"advertised.listeners": f"PLAINTEXT://{self.bootstrap}"}

    @property
    def pending(self) -> list[Loss]:
        return list(self._losses)

    def connect(self, broker_port: int) -> None:
        self._broker_port = broker_port
        threading.Thread(target=self._accept, name="line", daemon=True).start()

    def lose(self, api_key: int, moment: str) -> None:
        with self._lock:
            self._losses.append(Loss(api_key, moment))

    def deliver(self) -> Any:
        """Bring the oldest held request to the broker; its answer."""
        frame = self._held.pop(0)
        with socket.create_connection(("127.0.0.1", self._broker_port)) as broker:
            broker.sendall(frame)
            answer = _read_frame(broker)
        assert answer is not None, "the broker closed the connection"
        return decode_response(memoryview(answer)[4:], *_KEY_AND_VERSION.unpack_from(frame, 4))[1]

    def __enter__(self) -> Line:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            sockets = [self._listener, *self._open]
        for each in sockets:
            _hang_up(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(("127.0.0.1", self._broker_port))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._open |= {client, broker}
            asked: deque[int] = deque()
            for carry in (self._carry_requests, self._carry_answers):
                threading.Thread(target=carry, args=(client, broker, asked), daemon=True).start()

    def _carry_requests(
        self, client: socket.socket, broker: socket.socket, asked: deque[int]
    ) -> None:
        with contextlib.suppress(OSError):
            while (frame := _read_frame(client)) is not None:
                api_key, _ = _KEY_AND_VERSION.unpack_from(frame, 4)
                if self._is_lost(api_key, REQUEST):
                    break
                if self._is_lost(api_key, HELD):
                    self._held.append(frame)
                    break
                asked.append(api_key)
                broker.sendall(frame)
        self._forget(client, broker)

    def _carry_answers(
        self, client: socket.socket, broker: socket.socket, asked: deque[int]
    ) -> None:
        with contextlib.suppress(OSError):
            while (frame := _read_frame(broker)) is not None:
                if self._is_lost(asked.popleft(), ANSWER):
                    break
                client.sendall(frame)
        self._forget(client, broker)

    def _is_lost(self, api_key: int, moment: str) -> bool:
        with self._lock:
            if not self._losses or self._losses[0] != (api_key, moment):
                return False
            self.happened.append(self._losses.popleft())
            return True

    def _forget(self, *ends: socket.socket) -> None:
        with self._lock:
            self._open -= set(ends)
        for end in ends:
            _hang_up(end)


def _hang_up(end: socket.socket) -> None:
    """`shutdown` wakes a thread that waits in `recv`; `close` alone would not."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


def _read_frame(source: socket.socket) -> bytes | None:
    """A whole frame with its length; None at the end of the line."""
    length = _read(source, 4)
    if length is None:
        return None
    body = _read(source, int.from_bytes(length, "big"))
    return None if body is None else length + body


def _read(source: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        more = source.recv(min(size - len(data), 1 << 20))
        if not more:
            return None
        data += more
    return bytes(data)
