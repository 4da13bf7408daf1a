"""Consume, transform, produce: each batch of input and all it led to in one transaction.

    async with transact("localhost:9092", inputs=["orders"], group_id="billing",
                        transactional_id="billing-1") as batches:
        async for batch in batches:
            for record in batch.records:
                await batch.send("invoices", invoice_for(record), record.key)

Reaching the end of the loop's body commits: the records sent and the offsets read, together or not
at all. What can go wrong is taken care of here: next offsets, group metadata (KIP-447), aborting
and going back when the group moved on or the commit failed. The same records then come again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, Unpack

from semel.client.consumer.consumer import Consumer
from semel.client.consumer.records import ConsumerRecord, K, V
from semel.client.machines.patience import Backoff
from semel.client.machines.records import Headers
from semel.client.machines.transactions import State
from semel.client.machines.types import TopicPartition
from semel.client.producer.deliveries import Delivery
from semel.client.producer.producer import Producer
from semel.client.settings import ConsumerSettings, ProducerSettings, Servers
from semel.client.settings.clients import TRANSACT_DECIDES
from semel.client.settings.spellings import own_names
from semel.errors import AbortableError, RetriableError, SemelError, UsageError

if TYPE_CHECKING:
    from semel.client.settings.keywords import TransactKeywords

_PRODUCER = frozenset(field.name for field in fields(ProducerSettings))
_CONSUMER = frozenset(field.name for field in fields(ConsumerSettings))


class TransactBatch(Generic[K, V]):
    """Records to work on, within an open transaction."""

    producer: Producer
    """Whose transaction it is."""
    records: list[ConsumerRecord[K, V]]
    attempt: int
    """1, and more when these records come again."""

    def __init__(
        self, producer: Producer, records: list[ConsumerRecord[K, V]], attempt: int
    ) -> None:
        self.producer = producer
        self.records = records
        self.attempt = attempt

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Sends a record within the transaction; see `Producer.send`."""
        return await self.producer.send(
            topic, value, key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
        )


class Transact(Generic[K, V]):
    """Made by `transact`. Iterate it, or let `run` call a function for each batch."""

    consumer: Consumer[K, V]
    """Who reads: to look at its metrics, or to `seek` past a record that cannot be deserialized."""
    producer: Producer
    """Who writes."""

    def __init__(
        self,
        consumer: Consumer[K, V],
        producer: Producer,
        inputs: list[str],
        stop_when_idle_ms: float | None = None,
    ) -> None:
        self.consumer = consumer
        self.producer = producer
        self._inputs = inputs
        self._stop_when_idle_ms = stop_when_idle_ms
        self._backoff = Backoff()
        # Where the open batch began. Taken from its records: a partition may have been another
        # member's since the last batch, and going back to where we once were would read it twice.
        self._open: dict[TopicPartition, int] | None = None
        self._stored: dict[TopicPartition, int] = {}
        self._attempt = 1
        self._stopping = False

    async def __aenter__(self) -> Self:
        await self.producer.start()
        try:
            await self.producer.init_transactions()
            await self.consumer.start()
        except BaseException:
            await self.producer.close()
            raise
        self.consumer.subscribe(self._inputs)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """An exception in the body aborts; leaving by `break` does too: its batch is not done."""
        try:
            if self._open is not None:
                await self._go_back()
        except SemelError:
            if error is None:
                raise
        finally:
            await self.consumer.close()
            await self.producer.close()

    def stop(self) -> None:
        """Ends the iteration after the batch in hand is committed."""
        self._stopping = True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TransactBatch[K, V]:
        """Commits the batch in hand, and waits for the next one."""
        if self._open is not None:
            await self._commit()
        idle_since = asyncio.get_running_loop().time()
        while not self._stopping and not self._is_idle(idle_since):
            records = await self.consumer.poll(200)
            if not records:
                continue
            self._open = {}
            for record in records:
                self._open.setdefault(record.topic_partition, record.offset)
            await self.producer.begin_transaction()
            return TransactBatch(self.producer, records, self._attempt)
        raise StopAsyncIteration

    def _is_idle(self, since: float) -> bool:
        if self._stop_when_idle_ms is None:
            return False
        return (asyncio.get_running_loop().time() - since) * 1000 >= self._stop_when_idle_ms

    async def run(self, work: Callable[[TransactBatch[K, V]], Awaitable[None]]) -> None:
        """Calls `work` for every batch; errors that a retry can repair are retried."""
        async for batch in self:
            try:
                await work(batch)
            except (AbortableError, RetriableError):
                await self.retry()

    async def retry(self) -> None:
        """Aborts the batch in hand; its records come again, after a short wait."""
        if self._open is None:
            raise UsageError("there is no batch in hand to retry")
        await self._go_back()
        await self._wait()

    async def _commit(self) -> None:
        """Commits, or goes back so that the same records come again."""
        assert self._open is not None
        offsets = {
            partition: position
            for partition, position in self.consumer.positions().items()
            if position.offset != self._stored.get(partition)
        }
        while True:
            try:
                if self.producer.state is State.IN_TRANSACTION:
                    await self.producer.send_offsets_to_transaction(
                        offsets, self.consumer.group_metadata()
                    )
                await self.producer.commit_transaction()
            except RetriableError:
                continue  # the outcome is not known yet: only asking again settles it
            except AbortableError:
                await self.retry()
                return
            self._stored |= {partition: position.offset for partition, position in offsets.items()}
            self._open = None
            self._attempt = 1
            return

    async def _go_back(self) -> None:
        """Aborts, and reads the batch again where it is still ours to read."""
        assert self._open is not None
        began, self._open = self._open, None
        if self.producer.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
            await self.producer.abort_transaction()
        for partition in self.consumer.assignment():
            if partition in began:
                self.consumer.seek(partition, began[partition])
        self._attempt += 1

    async def _wait(self) -> None:
        await asyncio.sleep(self._backoff.delay_ms(self._attempt - 1, random.random()) / 1000)


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
    known = _PRODUCER | _CONSUMER
    named: dict[str, Any] = {}
    if isinstance(bootstrap_servers, Mapping):
        named |= own_names(bootstrap_servers, known)
    elif bootstrap_servers is not None:
        named["bootstrap_servers"] = bootstrap_servers
    named |= own_names(settings or {}, known)
    named |= own_names(given, known)
    fixed = named.keys() & TRANSACT_DECIDES
    if fixed:
        raise UsageError(f"{', '.join(sorted(fixed))}: transact decides this itself")
    consumer = Consumer(
        key_deserializer=key_deserializer,
        value_deserializer=value_deserializer,
        settings={name: value for name, value in named.items() if name in _CONSUMER},
        group_id=group_id,
        isolation_level="read_committed",
        enable_auto_commit=False,
    )
    producer = Producer(
        key_serializer=key_serializer,
        value_serializer=value_serializer,
        settings={name: value for name, value in named.items() if name in _PRODUCER},
        transactional_id=transactional_id,
    )
    names = [inputs] if isinstance(inputs, str) else list(inputs)
    return Transact(consumer, producer, names, stop_when_idle_ms)
