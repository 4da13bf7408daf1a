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
from collections.abc import Callable, Mapping
from types import CoroutineType
from typing import TYPE_CHECKING

from semel.broker import api
from semel.broker.context import NAME_AT, Context
from semel.broker.failures import ApiError, failure
from semel.wire.errors import ErrorCode, ProtocolError
from semel.wire.frames import (
    Frame,
    encode_response,
    peek_request,
    request_checker,
    request_reader,
    response_writer,
)
from semel.wire.messages import APIS, response_class
from semel.wire.schema import Message

if TYPE_CHECKING:
    from semel.broker.server import Broker
    from semel.net.connection import Connection
    from semel.net.slots import Slot

log = logging.getLogger("semel.dispatch")

API_VERSIONS, PRODUCE = 18, 0
MOST_GATHERED = 64
read_start = struct.Struct(">Ii").unpack_from  # API and version in one number, correlation id


class Route:
    """Where requests of one API and version go."""

    __slots__ = (
        "api_key", "handle", "handle_many", "read", "response_class", "version", "write",
    )  # fmt: skip

    def __init__(self, api_key: int, version: int) -> None:
        self.api_key = api_key
        self.version = version
        self.read = request_reader(api_key, version)
        self.handle = api.handler(api_key)
        self.handle_many = api.handler_of_many(api_key)
        self.response_class = response_class(api_key)
        self.write = response_writer(api_key, version)


class Routes(dict[int, Route]):
    """By API and version in one number; made when first asked for, None where we speak neither."""

    def __init__(self, versions: Mapping[int, range]) -> None:
        self._versions = versions
        self._make: Callable[[int, int], Route] = Route
        self._wrappers: list[Callable[[Route], None]] = []

    def wrap(self, change: Callable[[Route], None]) -> None:
        """Have every route changed before it is used, however it is made; the last one to ask is
        the first to see a request."""
        self._wrappers.append(change)
        self.clear()

    def use(self, make: Callable[[int, int], Route]) -> None:
        """Have routes made in another way from now on."""
        self._make = make
        self.clear()

    def __missing__(self, start: int) -> Route | None:
        api_key, version = start >> 16, start & 0xFFFF
        if version not in self._versions.get(api_key, ()):
            return None
        self[start] = route = self._make(api_key, version)
        for change in self._wrappers:
            change(route)
        return route


class Dispatcher:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.routes = Routes(api.versions(broker.settings))
        self._gathered: list[tuple[Context, Route, int, Message]] = []

    def receive(self, connection: Connection, frame: bytearray) -> Frame | None:
        """Start the request in `frame`; its answer, or None if that goes to the connection later.

        Those whose API answers many at once are gathered until another kind of request comes, at
        the latest until `finish`: nothing is read from another connection, or sent, before that.
        """
        try:
            start, correlation_id = read_start(frame)
            route = self.routes[start]
            if route is None:
                return self._refuse(connection, frame)
            ctx: Context | None = connection.state
            if ctx is None or not frame.startswith(ctx.client_name, NAME_AT):
                ctx = self._context_of(connection, frame)
            request = route.read(frame, ctx.body_at)
        except (ProtocolError, struct.error) as problem:
            connection.close(f"malformed request: {problem}")
            return None
        may_gather = self._gathered or route.handle_many is not None
        if may_gather and self._gather(ctx, route, correlation_id, request):
            return None
        try:
            answer = route.handle(ctx, request, route.version)
            if type(answer) is route.response_class:
                return route.write(answer, correlation_id)
        except Exception as problem:
            return self._failure(connection, route, correlation_id, request, problem)
        if answer is not None:
            self._answer_later(connection, route, correlation_id, request, answer)
        return None

    def receive_large(self, connection: Connection, frame: bytearray) -> Frame | None:
        """As `receive`, of a frame large enough to hold more than we serve at once: what it asks
        for is counted first."""
        try:
            _, body_at = peek_request(frame)
            route = self.routes[read_start(frame)[0]]
            if route is not None:
                check = request_checker(route.api_key, route.version)
                check(frame, body_at, self.broker.settings["request.max.elements"])
        except (ProtocolError, struct.error) as problem:
            connection.close(f"malformed request: {problem}")
            return None
        return self.receive(connection, frame)

    def _gather(self, ctx: Context, route: Route, correlation_id: int, request: Message) -> bool:
        """Whether the request is answered together with its like; what is not is answered first."""
        gathered = self._gathered
        if gathered:
            first_ctx, first_route, _, _ = gathered[0]
            is_like = first_ctx is ctx and first_route is route
            if not is_like or len(gathered) >= MOST_GATHERED:
                self.finish()
        if route.handle_many is None:
            return False
        self._gathered.append((ctx, route, correlation_id, request))
        return True

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
            answers = route.handle_many(ctx, requests, route.version)
        except Exception as problem:
            for _, _, correlation_id, request in gathered:
                frame = self._failure(connection, route, correlation_id, request, problem)
                if frame is not None:
                    connection.reply(frame)
            return
        for (_, _, correlation_id, request), answer in zip(gathered, answers, strict=True):
            if type(answer) is route.response_class:
                connection.reply(route.write(answer, correlation_id))
            else:
                self._answer_later(connection, route, correlation_id, request, answer)

    def _context_of(self, connection: Connection, frame: bytearray) -> Context:
        """A client whose name was not heard on this connection before, or not last."""
        header, body_at = peek_request(frame)
        name = bytes(frame[NAME_AT:body_at])
        ctx = connection.state = Context(self.broker, connection, header.client_id, name)
        return ctx

    def _refuse(self, connection: Connection, frame: bytearray) -> Frame | None:
        header, _ = peek_request(frame)
        name = APIS.get(header.api_key, (f"API {header.api_key}",))[0]
        if header.api_key != API_VERSIONS:
            connection.close(f"unsupported request: {name} v{header.api_version}")
            return None
        from semel.broker.api.k18_api_versions import unsupported_version

        return encode_response(header.correlation_id, unsupported_version(), 0)

    def _answer_later(
        self,
        connection: Connection,
        route: Route,
        correlation_id: int,
        request: Message,
        answer: api.Answer,
    ) -> None:
        """Keep the answer's place; a coroutine holds back the requests after it."""
        future: asyncio.Future[Message | None]
        if isinstance(answer, asyncio.Future):
            slot, future = connection.reserve(), answer
        else:
            assert isinstance(answer, CoroutineType), f"{answer!r} does not answer {route.api_key}"
            slot = connection.reserve(exclusive=True)
            future = self.broker.loop.create_task(answer)
        future.add_done_callback(
            lambda done: self._finish(slot, route, correlation_id, request, done)
        )

    def _finish(
        self,
        slot: Slot,
        route: Route,
        correlation_id: int,
        request: Message,
        done: asyncio.Future[Message | None],
    ) -> None:
        if slot.connection.closed:
            done.cancelled() or done.exception()  # looked at, or asyncio complains about it
            return
        try:
            answer = done.result()
            if isinstance(answer, asyncio.Future):  # what must keep its order is done
                slot.release()
                answer.add_done_callback(
                    lambda done: self._finish(slot, route, correlation_id, request, done)
                )
                return
            frame = answer and route.write(answer, correlation_id)
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
    ) -> Frame | None:
        """The frame that says so; None where nobody would read it."""
        code, message = _code_of(problem)
        if not isinstance(problem, ApiError):
            log.error(
                "a request failed",
                exc_info=problem,
                extra={"api": APIS[route.api_key][0], "version": route.version},
            )
        if route.api_key == PRODUCE and getattr(request, "acks", 1) == 0:
            # As in Kafka, only a closed connection tells of the loss.
            connection.close("a Produce with acks 0 failed")
            return None
        try:
            return route.write(failure(request, route.version, code, message), correlation_id)
        except ProtocolError as unsaid:
            connection.close(f"a failed request cannot be answered: {unsaid}")
            return None


def _code_of(problem: BaseException) -> tuple[ErrorCode, str | None]:
    if isinstance(problem, ApiError):
        return problem.code, problem.message
    if isinstance(problem, OSError):
        return ErrorCode.KAFKA_STORAGE_ERROR, problem.strerror
    return ErrorCode.UNKNOWN_SERVER_ERROR, None
