"""Requests by API: how many, how long, with which errors, and the bytes of topics."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from semel.broker.dispatch import Dispatcher, Route
from semel.broker.failures import ApiError
from semel.wire.errors import ErrorCode
from semel.wire.schema import Struct

if TYPE_CHECKING:
    from semel.broker.context import Context
    from semel.broker.server import Broker

BUCKETS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 10.0)
#: Topics with numbers of their own; what is beyond is told together, as `(others)`.
MOST_TOPICS = 1_000
OTHERS = "(others)"
PRODUCE, FETCH = 0, 1


class ApiCounts:
    """The numbers of one API."""

    __slots__ = ("buckets", "errors", "sum_s")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS_S) + 1)
        self.sum_s = 0.0
        self.errors: Counter[int] = Counter()

    @property
    def count(self) -> int:
        return sum(self.buckets)


class RequestMeter:
    """Stands between the dispatcher and the handlers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.apis: dict[int, ApiCounts] = {}
        self.waiting: Counter[int] = Counter()
        self._bytes_in: dict[Any, int] = {}
        self._bytes_out: dict[Any, int] = {}

    def put_between(self, dispatcher: Dispatcher) -> None:
        dispatcher.routes.wrap(self._measure)

    def _measure(self, route: Route) -> None:
        if route.handle_many is not None:
            route.handle_many = self.many_handler(route)
        route.handle = self.handler(route)

    def counts_of(self, api_key: int) -> ApiCounts:
        found = self.apis.get(api_key)
        if found is None:
            found = self.apis[api_key] = ApiCounts()
        return found

    def bytes_in(self) -> dict[str, int]:
        return self._by_name(self._bytes_in)

    def bytes_out(self) -> dict[str, int]:
        return self._by_name(self._bytes_out)

    def _by_name(self, counted: dict[Any, int]) -> dict[str, int]:
        """Newer versions name topics by their ids. Those that are gone count among the others."""
        named: Counter[str] = Counter()
        for topic, size in counted.items():
            if not isinstance(topic, str):
                known = self._broker.catalog.topics_by_id.get(topic)
                topic = OTHERS if known is None else known.name
            named[topic] += size
        return dict(named)

    # One request

    def handler(self, route: Route) -> Callable[[Context, Any, int], Any]:
        handle, api_key = route.handle, route.api_key
        counts, ended = self.counts_of(api_key), self._end
        errors = error_finder(route.response_class)
        before = self._produced if api_key == PRODUCE else None
        fetches, response_class = api_key == FETCH, route.response_class
        buckets = counts.buckets

        def metered(ctx: Context, request: Any, version: int) -> Any:
            began = perf_counter()
            if before is not None:
                before(request)
            try:
                answer = handle(ctx, request, version)
            except ApiError as problem:
                counts.errors[problem.code] += 1
                ended(counts, began)
                raise
            if type(answer) is not response_class:
                return self._later(route, counts, began, answer)
            if errors is not None:
                errors(answer, counts.errors)
            if fetches:
                self._fetched(answer)
            took = perf_counter() - began  # as `_end`, written out for what is usual
            buckets[bisect_left(BUCKETS_S, took)] += 1
            counts.sum_s += took
            return answer

        return metered

    def many_handler(self, route: Route) -> Callable[[Context, list[Any], int], list[Any]]:
        handle, counts = route.handle_many, self.counts_of(route.api_key)
        assert handle is not None

        def metered(ctx: Context, requests: list[Any], version: int) -> list[Any]:
            began = perf_counter()
            if route.api_key == PRODUCE:
                for request in requests:
                    self._produced(request)
            answers = []
            for answer in handle(ctx, requests, version):
                if type(answer) is route.response_class:
                    self._answered(route, counts, began, answer)
                else:
                    answer = self._later(route, counts, began, answer)
                answers.append(answer)
            return answers

        return metered

    @staticmethod
    def _end(counts: ApiCounts, began: float) -> None:
        took = perf_counter() - began
        counts.buckets[bisect_left(BUCKETS_S, took)] += 1
        counts.sum_s += took

    def _later(self, route: Route, counts: ApiCounts, began: float, answer: Any) -> Any:
        """An answer that comes in its time: told then."""
        if isinstance(answer, asyncio.Future):
            self.waiting[route.api_key] += 1
            answer.add_done_callback(lambda done: self._came(route, counts, began, done))
            return answer
        if isinstance(answer, CoroutineType):
            return self._in_turn(route, counts, began, answer)
        self._end(counts, began)  # none: it asked for no answer
        return answer

    async def _in_turn(self, route: Route, counts: ApiCounts, began: float, answer: Any) -> Any:
        self.waiting[route.api_key] += 1
        try:
            result = await answer
        except ApiError as problem:
            counts.errors[problem.code] += 1
            self._end(counts, began)
            raise
        finally:
            self.waiting[route.api_key] -= 1
        if isinstance(result, asyncio.Future):
            return self._later(route, counts, began, result)
        self._answered(route, counts, began, result)
        return result

    def _came(
        self, route: Route, counts: ApiCounts, began: float, done: asyncio.Future[Any]
    ) -> None:
        self.waiting[route.api_key] -= 1
        if done.cancelled():
            return
        problem = done.exception()
        if problem is None and isinstance(done.result(), asyncio.Future):
            self._later(route, counts, began, done.result())
        elif problem is None:
            self._answered(route, counts, began, done.result())
        else:
            code = problem.code if isinstance(problem, ApiError) else ErrorCode.UNKNOWN_SERVER_ERROR
            counts.errors[code] += 1
            self._end(counts, began)

    def _answered(self, route: Route, counts: ApiCounts, began: float, answer: Any) -> None:
        find = error_finder(route.response_class)
        if find is not None and answer is not None:
            find(answer, counts.errors)
        if route.api_key == FETCH and answer is not None:
            self._fetched(answer)
        self._end(counts, began)

    # Bytes of topics

    def _produced(self, request: Any) -> None:
        counted = self._bytes_in
        for topic in request.topic_data:
            size = 0
            for data in topic.partition_data:
                if data.records is not None:
                    size += len(data.records)
            _add(counted, topic.name or topic.topic_id, size)

    def _fetched(self, answer: Any) -> None:
        counted = self._bytes_out
        for topic in answer.responses:
            size = 0
            for data in topic.partitions:
                if data.records:
                    size += len(data.records)
            if size:
                _add(counted, topic.topic or topic.topic_id, size)


def _add(counted: dict[Any, int], topic: Any, size: int) -> None:
    if topic not in counted and len(counted) >= MOST_TOPICS:
        topic = OTHERS
    counted[topic] = counted.get(topic, 0) + size


_ErrorFinder = Callable[[Any, Counter[int]], None]


@cache
def error_finder(response: type[Struct]) -> _ErrorFinder | None:
    """Counts the error codes in an answer, wherever the message has some. None if it has none."""
    paths = list(_paths(response, response, ()))
    if not paths:
        return None
    lines = ["def find(answer, errors):"]
    for path in paths:
        lines += _loops(path)
    made: dict[str, _ErrorFinder] = {}
    exec("\n".join(lines), made)  # every request passes here: loops written out cost half
    return made["find"]


def _loops(path: tuple[str, ...]) -> Iterator[str]:
    """`error_code` at the end of a path through lists, as lines of Python."""
    held, indent = "answer", "    "
    for depth, name in enumerate(path[:-1]):
        yield f"{indent}for at{depth} in {held}.{name} or ():"
        held, indent = f"at{depth}", indent + "    "
    yield f"{indent}if {held}.{path[-1]}:"
    yield f"{indent}    errors[{held}.{path[-1]}] += 1"


def _paths(
    message: type[Struct], struct: type[Struct], before: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    for name, field in struct.FIELDS.items():
        if name == "error_code":
            yield (*before, name)
        elif isinstance(inner := getattr(message, field.element or "-", None), type):
            yield from _paths(message, inner, (*before, name))
