"""Blocking twins of the clients, for scripts and notebooks: the same names, without await.

    from semel.client.blocking import Producer

    with Producer("localhost:9092", transactional_id="t") as producer:
        with producer.transaction():
            producer.send("topic", b"value")

One event loop in a thread of its own serves all of them. Every method that the asyncio client has
is here; what it awaits is awaited there, and its exceptions are raised here.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutinefunction
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from semel.client import ledger as ledgers
from semel.client import transacting
from semel.client.admin import admin
from semel.client.consumer import consumer
from semel.client.consumer.records import ConsumerRecord
from semel.client.producer import producer
from semel.client.producer.producer import RecordMetadata
from semel.errors import UsageError

if TYPE_CHECKING:
    from semel.client.producer.columnar_send import TableMetadata

T = TypeVar("T")


class _LoopThread:
    """The event loop behind all blocking clients of the process; started when first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise UsageError(
                "a listener runs on the clients' own thread and cannot wait for it: "
                "use the asyncio client where a listener has to commit"
            )
        future: Future[Any] = asyncio.run_coroutine_threadsafe(coroutine, self._running())
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="semel-client", daemon=True
                )
                self._thread.start()
            return self._loop


_thread = _LoopThread()


def _twin(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A blocking method for one of the asyncio client's. Plain ones run on the loop as well:
    the clients' state belongs to it alone."""

    @wraps(method)
    def call(self: Any, *positional: Any, **named: Any) -> Any:
        async def on_loop() -> Any:
            result = getattr(self._client, name)(*positional, **named)
            return await result if iscoroutinefunction(method) else result

        return _thread.run(on_loop())

    return call


@contextmanager
def _inside(around: Any) -> Iterator[Any]:
    """An asynchronous context manager, entered and left on the loop."""
    value = _thread.run(around.__aenter__())
    try:
        yield value
    except BaseException as error:
        _thread.run(around.__aexit__(type(error), error, error.__traceback__))
        raise
    _thread.run(around.__aexit__(None, None, None))


class _Blocking:
    """Takes the public methods of `TWIN`, blocking."""

    TWIN: type[Any]

    def __init_subclass__(cls) -> None:
        for name in dir(cls.TWIN):
            method = getattr(cls.TWIN, name)
            if not name.startswith("_") and callable(method) and name not in vars(cls):
                setattr(cls, name, _twin(name, method))

    def __init__(self, *positional: Any, **named: Any) -> None:
        self._client = self.TWIN(*positional, **named)

    def __enter__(self) -> Self:
        _thread.run(self._client.start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _thread.run(self._client.close())


class Delivery(Generic[T]):
    """A record or a table on its way; `result()` waits for it."""

    def __init__(self, delivery: Any) -> None:
        self._delivery = delivery

    def done(self) -> bool:
        return bool(self._delivery.done())

    def result(self) -> T:
        async def wait() -> T:
            metadata: T = await self._delivery
            return metadata

        written: T = _thread.run(wait())
        return written


class Producer(_Blocking):
    TWIN = producer.Producer

    def send(
        self, topic: str, value: Any = None, key: Any = None, **more: Any
    ) -> Delivery[RecordMetadata]:
        """Buffers a record. Waits only for room in the buffer and for a new topic's metadata."""
        return Delivery(_thread.run(self._client.send(topic, value, key, **more)))

    def send_table(self, topic: str | None, table: Any) -> "Delivery[TableMetadata]":
        """Buffers the rows of an Arrow table; see the asyncio producer's."""
        return Delivery(_thread.run(self._client.send_table(topic, table)))

    def send_many(self, topic: str, records: Any) -> None:
        """Sends (key, value) pairs: one visit to the event loop for all of them."""

        async def send_all() -> None:
            for key, value in records:
                await self._client.send(topic, value, key)

        _thread.run(send_all())

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """A transaction around a block: committed at its end, aborted if it raises."""
        with _inside(self._client.transaction()):
            yield self

    @property
    def identity(self) -> Any:
        return self._client.identity

    @property
    def state(self) -> Any:
        return self._client.state


class Consumer(_Blocking):
    TWIN = consumer.Consumer

    def __iter__(self) -> Iterator[ConsumerRecord]:
        while True:
            yield _thread.run(anext(self._records()))

    def _records(self) -> Any:
        if getattr(self, "_iterator", None) is None:
            self._iterator = self._client.__aiter__()
        return self._iterator


class TransactBatch:
    """Records to work on, within an open transaction."""

    def __init__(self, batch: transacting.TransactBatch) -> None:
        self._batch = batch
        self.records = batch.records
        self.attempt = batch.attempt

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def send(
        self, topic: str, value: Any = None, key: Any = None, **more: Any
    ) -> Delivery[RecordMetadata]:
        return Delivery(_thread.run(self._batch.send(topic, value, key, **more)))


class Transact:
    """Made by `transact`: iterate it within `with`."""

    def __init__(self, loop: transacting.Transact) -> None:
        self._loop = loop

    def __enter__(self) -> Self:
        _thread.run(self._loop.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _thread.run(self._loop.__aexit__(kind, error, trace))

    def __iter__(self) -> Iterator[TransactBatch]:
        while True:
            try:
                yield TransactBatch(_thread.run(self._loop.__anext__()))
            except StopAsyncIteration:
                return

    def stop(self) -> None:
        """Ends the iteration after the batch in hand is committed."""
        self._loop.stop()


def transact(bootstrap_servers: str | list[str] | None = None, **given: Any) -> Transact:
    """Consume, transform, produce: see `semel.client.transact`, which takes the same."""
    return Transact(transacting.transact(bootstrap_servers, **given))


class Admin(_Blocking):
    TWIN = admin.Admin


class Ledger(_Blocking):
    TWIN = ledgers.Ledger

    @contextmanager
    def once(
        self, producer: Producer, application: str, number: int, note: Any = None
    ) -> Iterator[bool]:
        """A transaction for this number; False where it was committed before: do nothing then."""
        with _inside(self._client.once(producer._client, application, number, note)) as fresh:
            yield fresh
