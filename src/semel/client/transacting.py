"""Consume, transform, produce: each batch of input and all it led to in one transaction.

    async with transact("localhost:9092", inputs=["orders"], group="billing",
                        transactional_id="billing-1") as batches:
        async for batch in batches:
            for record in batch.records:
                await batch.send("invoices", invoice_for(record), key=record.key)

Reaching the end of the loop's body commits: the records sent and the offsets read, together or not
at all. What can go wrong is taken care of here: next offsets, group metadata (KIP-447), aborting
and going back when the group moved on or the commit failed. The same records then come again.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import fields
from types import TracebackType
from typing import Any, Self

from semel.client.consumer.consumer import Consumer
from semel.client.consumer.records import ConsumerRecord
from semel.client.machines.patience import Backoff
from semel.client.machines.transactions import State
from semel.client.machines.types import TopicPartition
from semel.client.producer.producer import Delivery, Producer
from semel.client.settings import ConsumerSettings, ProducerSettings
from semel.errors import AbortableError, RetriableError, SemelError, UsageError

_PRODUCER = frozenset(field.name for field in fields(ProducerSettings))
_CONSUMER = frozenset(field.name for field in fields(ConsumerSettings))
# What makes it exactly once is not for the caller to change.
_DECIDED = frozenset(
    {"group_id", "transactional_id", "isolation_level", "enable_auto_commit", "enable_idempotence"}
)


class TransactBatch:
    """Records to work on, within an open transaction."""

    def __init__(self, producer: Producer, records: list[ConsumerRecord], attempt: int) -> None:
        self.producer = producer
        self.records = records
        self.attempt = attempt  # 1, and more when these records come again

    def __iter__(self) -> Any:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    async def send(self, topic: str, value: Any = None, key: Any = None, **more: Any) -> Delivery:
        return await self.producer.send(topic, value, key, **more)


class Transact:
    """Made by `transact`. Iterate it, or let `run` call a function for each batch."""

    def __init__(
        self,
        consumer: Consumer,
        producer: Producer,
        inputs: list[str],
        stop_when_idle_ms: float | None = None,
    ) -> None:
        self._consumer = consumer
        self._producer = producer
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
        await self._producer.start()
        try:
            await self._producer.init_transactions()
            await self._consumer.start()
        except BaseException:
            await self._producer.close()
            raise
        self._consumer.subscribe(self._inputs)
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
            await self._consumer.close()
            await self._producer.close()

    def stop(self) -> None:
        """Ends the iteration after the batch in hand is committed."""
        self._stopping = True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TransactBatch:
        if self._open is not None:
            await self._commit()
        idle_since = asyncio.get_running_loop().time()
        while not self._stopping and not self._is_idle(idle_since):
            records = await self._consumer.poll(200)
            if not records:
                continue
            self._open = {}
            for record in records:
                self._open.setdefault(TopicPartition(record.topic, record.partition), record.offset)
            await self._producer.begin_transaction()
            return TransactBatch(self._producer, records, self._attempt)
        raise StopAsyncIteration

    def _is_idle(self, since: float) -> bool:
        if self._stop_when_idle_ms is None:
            return False
        return (asyncio.get_running_loop().time() - since) * 1000 >= self._stop_when_idle_ms

    async def run(self, work: Callable[[TransactBatch], Awaitable[None]]) -> None:
        """Calls `work` for every batch; errors that a retry can repair are retried."""
        async for batch in self:
            try:
                await work(batch)
            except (AbortableError, RetriableError):
                await self._go_back()
                await self._wait()

    async def _commit(self) -> None:
        """Commits, or goes back so that the same records come again."""
        assert self._open is not None
        offsets = {
            partition: position
            for partition, position in self._consumer.positions().items()
            if position.offset != self._stored.get(partition)
        }
        while True:
            try:
                if self._producer.state is State.IN_TRANSACTION:
                    await self._producer.send_offsets_to_transaction(
                        offsets, self._consumer.group_metadata()
                    )
                await self._producer.commit_transaction()
            except RetriableError:
                continue  # the outcome is not known yet: only asking again settles it
            except AbortableError:
                await self._go_back()
                await self._wait()
                return
            self._stored |= {partition: position.offset for partition, position in offsets.items()}
            self._open = None
            self._attempt = 1
            return

    async def _go_back(self) -> None:
        """Aborts, and reads the batch again where it is still ours to read."""
        assert self._open is not None
        began, self._open = self._open, None
        if self._producer.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
            await self._producer.abort_transaction()
        for partition in self._consumer.assignment():
            if partition in began:
                self._consumer.seek(partition, began[partition])
        self._attempt += 1

    async def _wait(self) -> None:
        await asyncio.sleep(self._backoff.delay_ms(self._attempt - 1, random.random()) / 1000)


def transact(
    bootstrap_servers: str | list[str] | None = None,
    *,
    inputs: Iterable[str],
    group: str,
    transactional_id: str,
    stop_when_idle_ms: float | None = None,
    settings: Mapping[str, Any] | None = None,
    **given: Any,
) -> Transact:
    """The loop above. Two processes need two transactional ids; they may share the group.

    It goes on for ever, or until nothing came for `stop_when_idle_ms` (also if no broker is there).
    All settings of `Consumer` and `Producer` are keywords, or Java-style names in `settings`.
    """
    named = {name.replace(".", "_"): value for name, value in (settings or {}).items()} | given
    unknown = named.keys() - _PRODUCER - _CONSUMER
    if unknown:
        raise UsageError(f"unknown setting {', '.join(sorted(unknown))}")
    fixed = named.keys() & _DECIDED
    if fixed:
        raise UsageError(f"{', '.join(sorted(fixed))}: transact decides this itself")
    for_consumer = {name: value for name, value in named.items() if name in _CONSUMER}
    for_producer = {name: value for name, value in named.items() if name in _PRODUCER}
    consumer = Consumer(
        bootstrap_servers,
        **{"auto_offset_reset": "earliest", **for_consumer},
        group_id=group,
        isolation_level="read_committed",
        enable_auto_commit=False,
    )
    producer = Producer(bootstrap_servers, transactional_id=transactional_id, **for_producer)
    names = [inputs] if isinstance(inputs, str) else list(inputs)
    return Transact(consumer, producer, names, stop_when_idle_ms)
