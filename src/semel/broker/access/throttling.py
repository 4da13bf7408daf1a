"""Quotas at work: requests are counted, answers say how long to wait, and meanwhile the connection
is not served (Kafka's ClientQuotaManager and its muted channels).

Only where a quota is set: then the routes of all requests are replaced by those that count. Without
one, nothing here is on the way of a request.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Coroutine
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from semel.broker.dispatch import Route
from semel.broker.replies import when
from semel.core.access.quotas import FETCH, PRODUCE, REQUEST, Mutations, QuotaMeters, Windows
from semel.wire.messages.fetch import FetchResponse
from semel.wire.schema import Message

if TYPE_CHECKING:
    from semel.broker.context import Context
    from semel.broker.server import Broker

PRODUCE_KEY, FETCH_KEY = 0, 1
PERCENT_PER_NANOSECOND = 100 / 1_000_000_000
FULL_EPOCHS = (0, -1)  # of fetches that name everything they read


class Throttling:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        settings = broker.settings
        self.windows = Windows(
            settings["quota.window.num"], settings["quota.window.size.seconds"] * 1000
        )
        book = broker.catalog.quotas
        self.meters = QuotaMeters(book, self.windows)
        self._mutation_meters = QuotaMeters(
            book,
            Windows(
                settings["controller.quota.window.num"],
                settings["controller.quota.window.size.seconds"] * 1000,
            ),
        )
        self._book = book
        book.observers.append(self._choose_routes)
        self._choose_routes()

    def now_ms(self) -> int:
        return int(self._broker.loop.time() * 1000)

    def mutations(self, ctx: Context, is_strict: bool) -> Mutations | None:
        """What a request may make or delete; None without a quota."""
        if not self._book:
            return None
        return self._mutation_meters.mutation(
            ctx.principal.name, ctx.client_id or "", self.now_ms(), is_strict
        )

    def _choose_routes(self) -> None:
        self._broker.use_routes(partial(MeteredRoute, self) if self._book else Route)


class MeteredRoute(Route):
    """A route whose requests are counted."""

    __slots__ = ("_inner", "_throttling")

    def __init__(self, throttling: Throttling, api_key: int, version: int) -> None:
        super().__init__(api_key, version)
        self._throttling = throttling
        self._inner = self.handle
        self.handle = self._handle
        self.handle_many = None

    def _handle(self, ctx: Context, request: Any, version: int) -> Any:
        size = ctx.connection.request_size
        if self.api_key == FETCH_KEY:
            most = self._throttling.meters.most_at_once(FETCH, *_client(ctx))
            if most is not None:
                request.max_bytes = min(request.max_bytes, most)
        began = perf_counter_ns()
        answer = self._inner(ctx, request, version)
        nanoseconds = perf_counter_ns() - began
        charge = partial(self._charge, ctx, request, size, nanoseconds)
        if isinstance(answer, Future):
            return when(answer, charge)
        if isinstance(answer, Coroutine):
            return _charged_in_turn(answer, charge)
        return charge(answer)

    def _charge(
        self, ctx: Context, request: Any, size: int, nanoseconds: int, response: Any
    ) -> Any:
        """The response, with the time to wait in it; from now on, for that long, nothing more of
        the connection is started."""
        throttling = self._throttling
        now_ms = throttling.now_ms()
        client = _client(ctx)
        meters = throttling.meters
        wait_ms = 0
        if response is not None:  # without an answer (acks 0) time is not counted, as in Kafka
            percent = nanoseconds * PERCENT_PER_NANOSECOND
            wait_ms = meters.used(REQUEST, *client, percent, now_ms)
            wait_ms = min(wait_ms, throttling.windows.size_ms)
            wait_ms = max(wait_ms, getattr(response, "throttle_time_ms", 0))
        if self.api_key == PRODUCE_KEY:
            wait_ms = max(wait_ms, meters.used(PRODUCE, *client, size, now_ms))
        elif self.api_key == FETCH_KEY:
            size = _fetched(response)
            wait_ms = max(wait_ms, meters.used(FETCH, *client, size, now_ms))
            if wait_ms:
                meters.give_back(FETCH, *client, size, now_ms)
                response = _nothing_fetched(request, response)
        if wait_ms:
            ctx.connection.mute(wait_ms / 1000)
            self._tell(response, wait_ms)
        return response

    def _tell(self, response: Message | None, wait_ms: int) -> None:
        field = None if response is None else response.FIELDS.get("throttle_time_ms")
        if field is not None and self.version in field.versions:
            setattr(response, "throttle_time_ms", min(wait_ms, 2**31 - 1))  # noqa: B010


def _client(ctx: Context) -> tuple[str, str]:
    return ctx.principal.name, ctx.client_id or ""


async def _charged_in_turn(answer: Coroutine[Any, Any, Any], charge: Callable[[Any], Any]) -> Any:
    reply = await answer
    return when(reply, charge)


def _fetched(response: FetchResponse) -> int:
    """About the size of the answer: the records, and what is said of each partition."""
    return sum(
        len(part.records or b"") + 60 for topic in response.responses for part in topic.partitions
    )


def _nothing_fetched(request: Any, response: FetchResponse) -> FetchResponse:
    """As FetchContext.getThrottledResponse: a session that was to begin does not."""
    begins = request.session_epoch in FULL_EPOCHS
    return FetchResponse(session_id=0 if begins else response.session_id)
