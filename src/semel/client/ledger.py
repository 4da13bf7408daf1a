"""The ledger: has this batch been committed? (application → last number), inside the transaction.

    ledger = Ledger("localhost:9092")
    async with ledger.once(producer, "billing", number) as fresh:
        if fresh:
            await producer.send(...)

A compacted topic, one partition, the application's name as key. The number is written in the same
transaction as the data, so that both are there or neither is; a number that is not larger than the
last one is skipped. Fence first, then look: `init_transactions` of the application's producer ends
whatever a predecessor left open, so what is read afterwards is the truth.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from semel.client.admin.admin import Admin
from semel.client.admin.topics import NewTopic
from semel.client.consumer.consumer import Consumer
from semel.client.machines.transactions import State
from semel.client.machines.types import TopicPartition
from semel.client.producer.deliveries import Serialized
from semel.client.producer.producer import Producer
from semel.client.settings import ClientSettings, Servers
from semel.errors import RetriableError, UsageError

if TYPE_CHECKING:
    from semel.client.settings.clients import IsolationLevel
    from semel.client.settings.keywords import ClientKeywords

DEFAULT_TOPIC = "semel-batches"
_CONFIGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"}


@dataclass(frozen=True, slots=True)
class Entry:
    """The last batch that an application committed."""

    application: str
    number: int
    note: Any = None


class Ledger:
    """Which numbers each application has committed. It connects by itself when it is asked."""

    topic: str
    """The compacted topic that holds it."""
    timeout_ms: float
    """How long it waits for other applications' transactions."""

    def __init__(
        self,
        bootstrap_servers: Servers | Mapping[str, Any] | None = None,
        *,
        topic: str = DEFAULT_TOPIC,
        timeout_ms: float = 60_000,
        settings: Mapping[str, Any] | None = None,
        **given: Unpack[ClientKeywords],
    ) -> None:
        """All settings of `ClientSettings` are keywords. A dict in the names of Java or librdkafka
        does as well, in place of the address or as `settings`; keywords win over it.
        """
        ClientSettings.of(bootstrap_servers, settings, **given)
        self.topic = topic
        self.timeout_ms = timeout_ms
        self._partition = TopicPartition(topic, 0)
        self._bootstrap = bootstrap_servers
        self._settings = settings
        self._given = given
        self._last: dict[str, int] = {}

    async def entries(self) -> dict[str, Entry]:
        """The last committed entry of every application.

        Reads up to the end of the log as it is now, and waits for transactions that are open
        there: one of another application must not hide our last commit.
        """
        await self._create_topic()
        found: dict[str, Entry] = {}
        async with self._consumer("read_uncommitted") as any_reader:
            end = (await any_reader.end_offsets([self._partition]))[self._partition]
        async with self._consumer("read_committed") as reader:
            reader.assign([self._partition])
            try:
                async with asyncio.timeout(self.timeout_ms / 1000):
                    while await reader.position(self._partition) < end:
                        for record in await reader.poll(200):
                            entry = _entry(record.key, record.value)
                            if entry is not None:
                                found[entry.application] = entry
            except TimeoutError:
                raise RetriableError(
                    f"another transaction has been open in {self.topic!r} for more than "
                    f"{self.timeout_ms / 1000:g} s; what lies behind it cannot be known yet"
                ) from None
        return found

    async def last(self, application: str) -> int | None:
        """The last number that the application committed."""
        entry = (await self.entries()).get(application)
        return None if entry is None else entry.number

    async def record(
        self, producer: Producer, application: str, number: int, note: Any = None
    ) -> None:
        """Writes the number within the producer's open transaction."""
        value = json.dumps({"number": number, "note": note}).encode()
        key = Serialized(application.encode())
        await producer.send(self.topic, Serialized(value), key, partition=0)

    @asynccontextmanager
    async def once(
        self, producer: Producer, application: str, number: int, note: Any = None
    ) -> AsyncIterator[bool]:
        """A transaction for this number; False where it was committed before: do nothing then."""
        if producer.state is State.UNINITIALIZED:
            await producer.init_transactions()
        if application not in self._last:
            self._last[application] = await self._known(application)
        if number <= self._last[application]:
            yield False
            return
        try:
            async with producer.transaction():
                yield True
                await self.record(producer, application, number, note)
        except BaseException:
            self._last.pop(application, None)  # committed or not: the next call looks
            raise
        self._last[application] = number

    async def _known(self, application: str) -> int:
        last = await self.last(application)
        return -1 if last is None else last

    def _consumer(self, isolation_level: IsolationLevel) -> Consumer:
        return Consumer(
            self._bootstrap,
            settings=self._settings,
            isolation_level=isolation_level,
            auto_offset_reset="earliest",
            **self._given,
        )

    async def _create_topic(self) -> None:
        async with Admin(self._bootstrap, settings=self._settings, **self._given) as admin:
            new = NewTopic(self.topic, partitions=1, configs=_CONFIGS)
            await admin.create_topics([new], exist_ok=True)
            policy = (await admin.describe_configs(self.topic)).get("cleanup.policy") or ""
            if "compact" not in policy:
                raise UsageError(
                    f"topic {self.topic!r} has cleanup.policy={policy}: a ledger must be "
                    "compacted, or the broker deletes what it remembers"
                )


def _entry(key: bytes | None, value: bytes | None) -> Entry | None:
    """None for what is not an entry: a tombstone, or something that others wrote."""
    try:
        said = json.loads(value or b"null")
        return Entry((key or b"").decode(), int(said["number"]), said.get("note"))
    except (ValueError, TypeError, KeyError):
        return None
