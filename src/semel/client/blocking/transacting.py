"""Consume, transform, produce without await: see `semel.client.transacting`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, Unpack

from semel.client import transacting
from semel.client.blocking.consumer import Consumer
from semel.client.blocking.loop import following, run
from semel.client.blocking.producer import Producer
from semel.client.blocking.wrapping import Delivery
from semel.client.consumer.records import ConsumerRecord, K, V
from semel.client.machines.records import Headers
from semel.client.producer.deliveries import RecordMetadata
from semel.client.settings import Servers
from semel.errors import AbortableError, RetriableError

if TYPE_CHECKING:
    from semel.client.settings.keywords import TransactKeywords


class TransactBatch(Generic[K, V]):
    """Records to work on, within an open transaction."""

    records: list[ConsumerRecord[K, V]]
    attempt: int
    """1, and more when these records come again."""

    def __init__(self, batch: transacting.TransactBatch[K, V]) -> None:
        self._batch = batch
        self.records = batch.records
        self.attempt = batch.attempt

    @property
    def producer(self) -> Producer:
        """Whose transaction it is."""
        return Producer._of(self._batch.producer)

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> Delivery[RecordMetadata]:
        """Sends a record within the transaction; see `Producer.send`."""
        sent = self._batch.send(
            topic, value, key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
        )
        return Delivery(run(sent))


class Transact(Generic[K, V]):
    """Made by `transact`: iterate it within `with`, or let `run` call a function for each batch."""

    def __init__(self, loop: transacting.Transact[K, V]) -> None:
        self._loop = loop

    @property
    def consumer(self) -> Consumer[K, V]:
        """Who reads: to look at its metrics, or to `seek` past a record that cannot be
        deserialized."""
        return Consumer._of(self._loop.consumer)

    @property
    def producer(self) -> Producer:
        """Who writes."""
        return Producer._of(self._loop.producer)

    def __enter__(self) -> Self:
        run(self._loop.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        run(self._loop.__aexit__(kind, error, trace))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> TransactBatch[K, V]:
        """Commits the batch in hand, and waits for the next one."""
        return TransactBatch(following(self._loop))

    def stop(self) -> None:
        """Ends the iteration after the batch in hand is committed."""
        self._loop.stop()

    def run(self, work: Callable[[TransactBatch[K, V]], None]) -> None:
        """Calls `work` for every batch; errors that a retry can repair are retried."""
        for batch in self:
            try:
                work(batch)
            except (AbortableError, RetriableError):
                run(self._loop.retry())


def transact(
    bootstrap_servers: Servers | Mapping[str, Any] | None = None,
    *,
    inputs: str | Iterable[str],
    group_id: str,
    transactional_id: str,
    stop_when_idle_ms: float | None = None,
    key_deserializer: Callable[[bytes], K] | None = None,
    value_deserializer: Callable[[bytes], V] | None = None,
    key_serializer: Callable[[Any], bytes | None] | None = None,
    value_serializer: Callable[[Any], bytes | None] | None = None,
    settings: Mapping[str, Any] | None = None,
    **given: Unpack[TransactKeywords],
) -> Transact[K, V]:
    """Reads the topics `inputs` in batches, each in a transaction with all that it leads to.

    Two processes need two transactional ids; they may share the group. It goes on for ever, or
    until nothing came for `stop_when_idle_ms` (also if no broker is there). All settings of
    `Consumer` and `Producer` are keywords, or in a dict in the names of Java or librdkafka; what
    makes it exactly once (isolation level, commits, idempotence) is decided here.
    """
    loop = transacting.transact(
        bootstrap_servers,
        inputs=inputs,
        group_id=group_id,
        transactional_id=transactional_id,
        stop_when_idle_ms=stop_when_idle_ms,
        key_deserializer=key_deserializer,
        value_deserializer=value_deserializer,
        key_serializer=key_serializer,
        value_serializer=value_serializer,
        settings=settings,
        **given,
    )
    return Transact(loop)
