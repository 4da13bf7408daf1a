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
from semel.wire.frames import REQUEST_START, Exchange, encode_response, peek_request
from semel.wire.messages import APIS
from semel.wire.schema import Message

if TYPE_CHECKING:
    from semel.broker.server import Broker
    from semel.net.connection import Connection, Slot

log = logging.getLogger("semel.dispatch")

API_VERSIONS, PRODUCE = 18, 0
MOST_GATHERED = 64
NAME_AT = REQUEST_START.size
SIZE_AT = NAME_AT - 2


class Route:
    """Where requests of one API and version go."""

    __slots__ = ("api_key", "exchange", "handle", "handle_many")

    def __init__(self, api_key: int, version: int) -> None:
        self.api_key = api_key
        self.exchange = Exchange(api_key, version)
        self.handle = api.handler(api_key)
        self.handle_many = api.handler_of_many(api_key)


class Dispatcher:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._versions = api.versions(broker.settings) | api.BETWEEN_BROKERS
        self._routes: dict[tuple[int, int], Route] = {}
        self._gathered: list[tuple[Context, Route, int, Message]] = []

    def receive(self, connection: Connection, frame: bytearray) -> None:
        """Start the request in `frame`; its answer goes to the connection now or later.

        Those whose API answers many at once are gathered until another kind of request comes, at
        the latest until `finish`: nothing is read from another connection, or sent, before that.
        """
        try:
            key, version, correlation_id, size = REQUEST_START.unpack_from(frame)
            route = self._routes.get((key, version)) or self._find(key, version)
            if route is None:
                self._refuse(connection, frame)
                return
            body_at = NAME_AT + size if size > 0 else NAME_AT
            name = frame[SIZE_AT:body_at]
            ctx = connection.state
            if ctx is None or ctx.client_name != name:
                ctx = self._meet(connection, frame, name)
            exchange = route.exchange
            request = exchange.decode(frame, body_at)
        except (ProtocolError, struct.error) as problem:
            connection.close(f"malformed request: {problem}")
            return
        if self._gathered:
            first = self._gathered[0]
            is_other = first[0] is not ctx or first[1] is not route
            if is_other or len(self._gathered) >= MOST_GATHERED:
                self.finish()
        if route.handle_many is not None:
            self._gathered.append((ctx, route, correlation_id, request))
            return
        try:
            answer = route.handle(ctx, request, version)
            if answer is None:
                return
            if isinstance(answer, Message):
                connection.reply(exchange.answer(correlation_id, answer))
                return
        except Exception as problem:
            self._fail(connection, route, correlation_id, request, problem)
            return
        self._answer_later(connection, route, correlation_id, request, answer)

    def finish(self) -> None:
        """All that was read in one go has been given to `receive`: answer what was gathered."""
        if not self._gathered:
            return
        gathered, self._gathered = self._gathered, []
        ctx, route, _, _ = gathered[0]
        connection = ctx.connection
        try:
            assert route.handle_many is not None
            requests = [request for _, _, _, request in gathered]
            answers = route.handle_many(ctx, requests, route.exchange.version)
        except Exception as problem:
            for _, _, correlation_id, request in gathered:
                self._fail(connection, route, correlation_id, request, problem)
            return
        for (_, _, correlation_id, request), answer in zip(gathered, answers, strict=True):
            if isinstance(answer, Message):
                connection.reply(route.exchange.answer(correlation_id, answer))
            else:
                self._answer_later(connection, route, correlation_id, request, answer)

    def _fail(
        self,
        connection: Connection,
        route: Route,
        correlation_id: int,
        request: Message,
        problem: BaseException,
    ) -> None:
        frame = self._failure(connection, route, correlation_id, request, problem)
        if frame is not None:
            connection.reply(frame)

    def _find(self, key: int, version: int) -> Route | None:
        if version not in self._versions.get(key, ()):
            return None
        self._routes[key, version] = found = Route(key, version)
        return found

    def _meet(self, connection: Connection, frame: bytearray, name: bytearray) -> Context:
        """A client whose name was not heard on this connection before, or not last."""
        header, _ = peek_request(frame)
        ctx = connection.state = Context(self.broker, connection, header.client_id, name)
        return ctx

    def _refuse(self, connection: Connection, frame: bytearray) -> None:
        header, _ = peek_request(frame)
        name = APIS.get(header.api_key, (f"API {header.api_key}",))[0]
        if header.api_key != API_VERSIONS:
            connection.close(f"unsupported request: {name} v{header.api_version}")
            return
        from semel.broker.api.k18_api_versions import unsupported_version

        connection.reply(encode_response(header.correlation_id, unsupported_version(), 0))

    def _answer_later(
        self,
        connection: Connection,
        route: Route,
        correlation_id: int,
        request: Message,
        answer: Any,
    ) -> None:
        """Keep the answer's place; a coroutine holds back the requests after it."""
        is_future = asyncio.isfuture(answer)
        slot = connection.reserve(exclusive=not is_future)
        future = answer if is_future else self.broker.loop.create_task(answer)
        future.add_done_callback(
            lambda done: self._finish(slot, route, correlation_id, request, done)
        )

    def _finish(
        self,
        slot: Slot,
        route: Route,
        correlation_id: int,
        request: Message,
        done: asyncio.Future[Any],
    ) -> None:
        if slot.connection.closed:
            done.cancelled() or done.exception()  # looked at, or asyncio complains about it
            return
        try:
            answer = done.result()
            frame = answer and route.exchange.answer(correlation_id, answer)
        except (Exception, asyncio.CancelledError) as problem:
            frame = self._failure(slot.connection, route, correlation_id, request, problem)
        slot.fill(frame)

    def _failure(
        self,
        connection: Connection,
        route: Route,
        correlation_id: int,
        request: Message,
        problem: BaseException,
    ) -> Any:
        """The frame that says so; None where nobody would read it."""
        code, message = _code_of(problem)
        version = route.exchange.version
        if not isinstance(problem, ApiError):
            log.error(
                "a request failed",
                exc_info=problem,
                extra={"api": APIS[route.api_key][0], "version": version},
            )
        if route.api_key == PRODUCE and getattr(request, "acks", 1) == 0:
            # As in Kafka, only a closed connection tells of the loss.
            connection.close("a Produce with acks 0 failed")
            return None
        return route.exchange.answer(correlation_id, failure(request, version, code, message))


def _code_of(problem: BaseException) -> tuple[ErrorCode, str | None]:
    if isinstance(problem, ApiError):
        return problem.code, problem.message
    if isinstance(problem, OSError):
        return ErrorCode.KAFKA_STORAGE_ERROR, problem.strerror
    return ErrorCode.UNKNOWN_SERVER_ERROR, None
