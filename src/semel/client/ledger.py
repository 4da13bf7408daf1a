"""The ledger, for asyncio: has this batch been committed? (application → last number)

    ledger = Ledger("localhost:9092")
    async with ledger.once(producer, "billing", number) as fresh:
        if fresh:
            await producer.send(...)

The number is written in the same transaction as the data; one that is not larger than the last is
skipped. Fence first, then look: `init_transactions` of the application's producer ends whatever a
predecessor left open, so what is read afterwards is the truth. What the ledger is and how it is
searched: `semel.client.machines.ledger`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from semel.client.admin.admin import Admin
from semel.client.admin.topics import NewTopic
from semel.client.cluster import Cluster
from semel.client.errors import error_for
from semel.client.machines.ledger import (
    HIGHEST_FETCH_VERSION,
    LEDGER_PARTITION,
    LEDGER_TOPIC,
    TOPIC_CONFIGS,
    LedgerEntry,
    LedgerRefusal,
    Search,
    Unstable,
    all_entries,
    check_policy,
    last_entry,
    partition_of,
)
from semel.client.machines.transactions import State
from semel.client.machines.types import TopicPartition
from semel.client.producer.producer import Producer
from semel.client.producer.serializing import Serialized
from semel.client.settings import ClientSettings, Servers
from semel.errors import RetriableError, UsageError
from semel.wire.errors import ErrorCode
from semel.wire.messages.fetch import FetchRequest
from semel.wire.messages.list_offsets import ListOffsetsRequest

if TYPE_CHECKING:
    from semel.client.settings.keywords import ClientKeywords

_LOOK_AGAIN_S = 0.1
T = TypeVar("T")


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
        topic: str = LEDGER_TOPIC,
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
        self._partition = TopicPartition(topic, LEDGER_PARTITION)
        self._bootstrap = bootstrap_servers
        self._settings = settings
        self._given = given
        self._last: dict[str, int] = {}

    async def entries(self) -> dict[str, LedgerEntry]:
        """The last committed entry of every application.

        Reads up to the end of the log as it is now, and waits for transactions that are open
        there: one of another application must not hide our last commit.
        """
        return await self._run(all_entries(self.topic))

    async def last(self, application: str) -> int | None:
        """The last number that the application committed."""
        entry = await self._run(last_entry(self.topic, application))
        return None if entry is None else entry.number

    async def record(
        self, producer: Producer, application: str, number: int, note: Any = None
    ) -> None:
        """Writes the number within the producer's open transaction."""
        entry = LedgerEntry(application, number, note)
        key, value = Serialized(entry.key), Serialized(entry.encode())
        await producer.send(self.topic, value, key, partition=LEDGER_PARTITION)

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
        entry = await self._run(last_entry(self.topic, application))
        if entry is None:
            return -1
        try:
            entry.check_writer("client")
        except LedgerRefusal as refusal:
            raise UsageError(str(refusal)) from None
        return entry.number

    async def _run(self, search: Search[T]) -> T:
        async with Admin(self._bootstrap, settings=self._settings, **self._given) as admin:
            try:
                await self._create_topic(admin)
                return await self._answer(search, admin._cluster)
            except LedgerRefusal as refusal:
                raise UsageError(str(refusal)) from None

    async def _create_topic(self, admin: Admin) -> None:
        new = NewTopic(self.topic, partitions=1, configs=TOPIC_CONFIGS)
        await admin.create_topics([new], exist_ok=True)
        configs = await admin.describe_configs(self.topic)
        check_policy(self.topic, configs.get("cleanup.policy"))

    async def _answer(self, search: Search[T], cluster: Cluster) -> T:
        """Carries a search's requests to the leader, and its answers back."""
        give_up = cluster.deadline(self.timeout_ms)
        try:
            question = next(search)
            while True:
                if not isinstance(question, Unstable):
                    question = search.send(await self._ask_leader(cluster, question))
                    continue
                if give_up.has_passed(cluster.now_ms()):
                    raise RetriableError(
                        f"another transaction has been open in {self.topic!r} for more than "
                        f"{self.timeout_ms / 1000:g} s; what lies behind it cannot be known yet"
                    )
                await asyncio.sleep(_LOOK_AGAIN_S)
                question = next(search)
        except StopIteration as done:
            found: T = done.value
            return found

    async def _ask_leader(
        self, cluster: Cluster, request: ListOffsetsRequest | FetchRequest
    ) -> Any:
        at_most = HIGHEST_FETCH_VERSION if isinstance(request, FetchRequest) else 0x7FFF
        deadline, attempt = cluster.deadline(), 0
        while True:
            await cluster.topic(self.topic, deadline)
            leader = cluster.metadata.leader(self._partition)
            code = ErrorCode.LEADER_NOT_AVAILABLE
            if leader is not None:
                answer = await cluster.ask(request, node=leader, deadline=deadline, at_most=at_most)
                part = partition_of(answer)
                code = ErrorCode.of(part.error_code)
                if code is ErrorCode.NONE:
                    return part
            attempt += 1
            if not await cluster.may_try_again(code, attempt, deadline):
                raise error_for(code, f"reading {self.topic!r}")
            cluster.metadata.expire()
