"""From a frame to its handler and back: decode, find, call, encode, and answer whatever happens.

A handler's exception is answered in the response's own shape and logged with the request's kind;
bytes that are no request close the connection with one log line, as does a version we do not
speak, except that ApiVersions is then answered with error 35 in its oldest form, so that any
client learns what we speak.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from typing import TYPE_CHECKING, Any

from semel.broker import api
from semel.broker.context import Context
from semel.broker.failures import ApiError, failure
from semel.wire.errors import ErrorCode, ProtocolError
from semel.wire.frames import RequestHeader, decode_request, encode_response, peek_request
from semel.wire.messages import APIS
from semel.wire.schema import Message

if TYPE_CHECKING:
    from semel.broker.server import Broker
    from semel.net.connection import Connection, Slot

log = logging.getLogger("semel.dispatch")

API_VERSIONS, PRODUCE = 18, 0
KEY_AND_VERSION = struct.Struct(">hh")


class Dispatcher:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._versions = api.versions(broker.settings) | api.BETWEEN_BROKERS
        self._handlers: dict[tuple[int, int], api.Handler] = {}

    def receive(self, connection: Connection, frame: bytearray) -> None:
        """Start the request in `frame`; its answer goes to the connection now or later."""
        try:
            kind = KEY_AND_VERSION.unpack_from(frame)
            handle = self._handlers.get(kind) or self._find(kind)
            if handle is None:
                self._refuse(connection, frame)
                return
            header, request = decode_request(frame)
        except (ProtocolError, struct.error) as problem:
            connection.close(f"malformed request: {problem}")
            return
        ctx = connection.state
        if ctx is None or ctx.client_id != header.client_id:
            ctx = connection.state = Context(self.broker, connection, header.client_id)
        try:
            answer = handle(ctx, request, header.api_version)
            if answer is None:
                return
            if isinstance(answer, Message):
                connection.reply(encode_response(header.correlation_id, answer, header.api_version))
                return
        except Exception as problem:
            self._answer_failure(connection, header, request, problem)
            return
        self._answer_later(connection, header, request, answer)

    def _find(self, kind: tuple[int, int]) -> api.Handler | None:
        key, version = kind
        if version not in self._versions.get(key, ()):
            return None
        self._handlers[kind] = found = api.handler(key)
        return found

    def _refuse(self, connection: Connection, frame: bytearray) -> None:
        header, _ = peek_request(frame)
        name = APIS.get(header.api_key, (f"API {header.api_key}",))[0]
        if header.api_key != API_VERSIONS:
            connection.close(f"unsupported request: {name} v{header.api_version}")
            return
        from semel.broker.api.k18_api_versions import unsupported_version

        connection.reply(encode_response(header.correlation_id, unsupported_version(), 0))

    def _answer_later(
        self, connection: Connection, header: RequestHeader, request: Message, answer: Any
    ) -> None:
        """Keep the answer's place; a coroutine holds back the requests after it."""
        is_future = asyncio.isfuture(answer)
        slot = connection.reserve(exclusive=not is_future)
        future = answer if is_future else self.broker.loop.create_task(answer)
        future.add_done_callback(lambda done: self._finish(slot, header, request, done))

    def _finish(
        self, slot: Slot, header: RequestHeader, request: Message, done: asyncio.Future[Any]
    ) -> None:
        if slot.connection.closed:
            done.cancelled() or done.exception()  # looked at, or asyncio complains about it
            return
        try:
            answer = done.result()
            frame = answer and encode_response(header.correlation_id, answer, header.api_version)
        except (Exception, asyncio.CancelledError) as problem:
            frame = self._failure_frame(slot.connection, header, request, problem)
        slot.fill(frame)

    def _answer_failure(
        self, connection: Connection, header: RequestHeader, request: Message, problem: Exception
    ) -> None:
        frame = self._failure_frame(connection, header, request, problem)
        if frame is not None:
            connection.reply(frame)

    def _failure_frame(
        self,
        connection: Connection,
        header: RequestHeader,
        request: Message,
        problem: BaseException,
    ) -> Any:
        code, message = _code_of(problem)
        if not isinstance(problem, ApiError):
            log.error(
                "a request failed",
                exc_info=problem,
                extra={"api": APIS[header.api_key][0], "version": header.api_version},
            )
        if header.api_key == PRODUCE and getattr(request, "acks", 1) == 0:
            # Nobody reads an answer; as in Kafka, only a closed connection tells of the loss.
            connection.close("a Produce with acks 0 failed")
            return None
        answer = failure(request, header.api_version, code, message)
        return encode_response(header.correlation_id, answer, header.api_version)


def _code_of(problem: BaseException) -> tuple[ErrorCode, str | None]:
    if isinstance(problem, ApiError):
        return problem.code, problem.message
    if isinstance(problem, OSError):
        return ErrorCode.KAFKA_STORAGE_ERROR, problem.strerror
    return ErrorCode.UNKNOWN_SERVER_ERROR, None
