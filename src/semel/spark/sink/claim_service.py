"""The claims of one batch attempt over TCP: the driver's side as a thread, the task's as a client.

Frames are a length and a JSON value. A connection opens with the token; it is the only gate.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from semel.spark.sink.claims import ClaimReply, Claims, Grant, Target, TaskReport, Want

_LENGTH = 4
_LARGEST = 4 << 20
_LARGEST_REGISTRATION = 1024
_LONGEST_REASON = 1000
_WAIT_S = 300.0


class MustAbort(Exception):
    """This attempt's transaction cannot be committed any more; the driver runs the batch again."""


class ClaimService:
    """Serves one `Claims` until it is closed; listens on its own port and dies with the batch."""

    def __init__(
        self,
        token: str,
        bind: str,
        before_grant: Callable[[Iterable[Target]], None],
        on_abort: Callable[[str], None],
    ) -> None:
        self.claims = Claims()
        self.port = 0
        self._token = token
        self._before_grant = before_grant
        self._on_abort = on_abort
        self._announced = False
        self._sessions: dict[int, _TaskConnection] = {}
        self._next_session = 0
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(
            self._loop.create_server(lambda: _TaskConnection(self), bind, 0)
        )
        self.port = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._run, name="semel-claims", daemon=True)
        self._thread.start()

    def close(self, reports: Iterable[TaskReport]) -> str | None:
        """Close the token. Returns why the batch must not be committed, or None."""
        reason: str | None = self._in_loop(lambda: self.claims.close(reports))
        return reason

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _in_loop(self, action: Callable[[], Any]) -> Any:
        async def run() -> Any:
            return action()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._server.close()
        for session in self._sessions.values():
            session.transport.abort()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    # ------------------------------------------------------------------ called by sessions

    def opened(self, session: _TaskConnection) -> int:
        self._next_session += 1
        self._sessions[self._next_session] = session
        return self._next_session

    def lost(self, number: int) -> None:
        self._sessions.pop(number, None)
        self._answer(self.claims.lost(number))

    def register(self, number: int, message: dict[str, Any]) -> None:
        if not hmac.compare_digest(str(message.get("token")), self._token):
            self._answer([ClaimReply(number, refused="not this batch's token")])
            return
        partition, attempt = int(message["partition"]), int(message["attempt"])
        self._answer([self.claims.register(number, partition, attempt)])

    def claim(self, number: int, message: dict[str, Any]) -> None:
        if "failed" in message:
            self.claims.failed(number, str(message["failed"]))
            return
        released = [((str(t), int(p)), int(rows)) for t, p, rows in message["released"]]
        wanted = tuple(
            Want(int(rows), tuple((str(topic), int(p)) for p in partitions))
            for rows, topic, partitions in message["wanted"]
        )
        self._answer(self.claims.claim(number, released, wanted))

    def _answer(self, replies: list[ClaimReply]) -> None:
        targets = [grant.target for reply in replies for grant in reply.grants]
        try:
            # Under the older protocol the coordinator must know a partition before its leader does.
            if targets:
                self._before_grant(targets)
        except Exception as error:
            self.claims.must_abort(f"a partition could not be added to the transaction: {error}")
        if self.claims.abort_reason and not self._announced:
            self._announced = True
            replies = [
                ClaimReply(number, refused=self.claims.abort_reason) for number in self._sessions
            ]
            self._on_abort(self.claims.abort_reason)
        for reply in replies:
            session = self._sessions.get(reply.session)
            if session is not None:
                session.reply(reply)


class _TaskConnection(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, service: ClaimService) -> None:
        self._service = service
        self._buffer = bytearray()
        self._registered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = self._service.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._service.lost(self.number)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= _LENGTH:
            size = int.from_bytes(self._buffer[:_LENGTH], "big")
            if size > (_LARGEST if self._registered else _LARGEST_REGISTRATION):
                self.transport.abort()
                return
            if len(self._buffer) < _LENGTH + size:
                return
            message = bytes(self._buffer[_LENGTH : _LENGTH + size])
            del self._buffer[: _LENGTH + size]
            self._handle(message)

    def _handle(self, message: bytes) -> None:
        try:
            value = json.loads(message)
            if self._registered:
                self._service.claim(self.number, value)
            else:
                self._service.register(self.number, value)
        except (ValueError, KeyError, TypeError, AttributeError):
            self.transport.abort()

    def reply(self, reply: ClaimReply) -> None:
        if reply.refused is not None:
            self.transport.write(_frame({"refused": reply.refused}))
            self.transport.close()
            return
        self._registered = True
        grants = [[grant.want, *grant.target, grant.sequence] for grant in reply.grants]
        self.transport.write(_frame({"grants": grants}))


class ClaimClient:
    """A task's line to the driver."""

    def __init__(self, host: str, port: int, token: str, partition: int, attempt: int) -> None:
        try:
            self._socket = socket.create_connection((host, port), timeout=_WAIT_S)
        except OSError as error:
            raise MustAbort(f"the driver's claim service is gone: {error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ask({"token": token, "partition": partition, "attempt": attempt})

    def claim(
        self,
        released: Sequence[tuple[Target, int]],
        wanted: Sequence[tuple[int, str, Sequence[int]]],
    ) -> list[Grant]:
        """Give back, ask for more, and wait for at least one of `wanted` (rows, topic, choice)."""
        answer = self._ask(
            {"released": [[*target, rows] for target, rows in released], "wanted": wanted}
        )
        return [Grant(want, (topic, p), seq) for want, topic, p, seq in answer["grants"]]

    def fail(self, error: BaseException) -> None:
        """Say why this task ends. If it holds partitions, the transaction is aborted."""
        if isinstance(error, MustAbort):  # that came from the driver
            return
        reason = str(error) or type(error).__name__
        with contextlib.suppress(OSError):
            self._socket.sendall(_frame({"failed": reason[:_LONGEST_REASON]}))

    def close(self) -> None:
        self._socket.close()

    def _ask(self, message: Any) -> Any:
        try:
            self._socket.sendall(_frame(message))
            size = int.from_bytes(self._read(_LENGTH), "big")
            answer = json.loads(self._read(size))
        except OSError as error:
            raise MustAbort(f"the driver's claim service is gone: {error}") from error
        if "refused" in answer:
            raise MustAbort(answer["refused"])
        return answer

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionError("closed")
            data += more
        return data


def _frame(value: Any) -> bytes:
    body = json.dumps(value, separators=(",", ":")).encode()
    return len(body).to_bytes(_LENGTH, "big") + body
