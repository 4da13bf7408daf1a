"""All partitions of this broker: opened at start, made and dropped as the catalog says.

Transactional batches are appended only inside a transaction that its coordinator knows (KIP-890):
Produce asks `broker.transactions.verify`. Meanwhile each partition holds a guard
(`partition.state.ask_verification`), which the append must bring back.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from semel.broker.catalog.catalog import Topic
from semel.broker.catalog.draft import CatalogDraft
from semel.broker.partitions.fetch_sessions import FetchSessions
from semel.broker.partitions.housekeeping import Housekeeping
from semel.broker.partitions.log_settings import log_config
from semel.broker.partitions.opening import Opener
from semel.broker.partitions.partition import Partition
from semel.core.transactions.producer_ids import ProducerIds
from semel.store.commit import SyncTimes
from semel.store.directory import DiskStore
from semel.store.files import Files
from semel.store.interface import Log, StorageError, Store
from semel.store.unavailable import UnavailableLog

if TYPE_CHECKING:
    from semel.broker.server import Broker

logger = logging.getLogger("semel.partitions")

#: Partitions that are made in one turn of the loop; further ones come one by one.
MADE_AT_ONCE = 20
UNMADE: Any = None


class PartitionsToMake(list[Partition]):
    """The partitions of a large new topic, or of one of many: each is made when first asked for.
    Its files take about a millisecond, so that thousands made at once would hold up everybody."""

    def __init__(
        self, known: list[Partition], count: int, make: Callable[[int], Partition]
    ) -> None:
        there = list.__iter__(known)
        super().__init__([*there, *([UNMADE] * (count - len(known)))])
        self._make_one = make

    def __getitem__(self, index: Any) -> Any:
        partition = super().__getitem__(index)
        if partition is UNMADE:
            partition = self[index] = self._make_one(index)
        return partition

    def __iter__(self) -> Iterator[Partition]:
        return (self[index] for index in range(len(self)))


def _made(partitions: list[Partition]) -> Iterator[Partition]:
    return (partition for partition in list.__iter__(partitions) if partition is not UNMADE)


class Partitions:
    files: Files | None = None
    """The way to the disk; a test puts a failing one here."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.store = self.new_store()
        self.opener = Opener()
        self.sessions = FetchSessions(
            broker.settings["max.incremental.fetch.session.cache.slots"],
            broker.settings["max.incremental.fetch.session.cache.bytes"],
        )
        self.producer_ids = ProducerIds(
            broker.catalog.allocate_producer_ids, self._order_producer_ids
        )
        self.made_at_once = MADE_AT_ONCE
        self._made_in_turn = 0
        self._to_make: deque[tuple[Topic, PartitionsToMake]] = deque()
        self._by_topic: dict[str, list[Partition]] = {}
        self._woken: set[Partition] = set()
        self.housekeeping = Housekeeping(self)

    # Life

    def new_store(self) -> Store:
        durability = self.broker.settings["durability"]
        return DiskStore(
            self.broker.data,
            durability=durability,
            files=self.files,
            open_files=self.broker.shares.files,
        )

    def start(self) -> None:
        self._remove_unclaimed()
        for topic in self.broker.catalog.topics.values():
            make = partial(self._make, topic)
            self._by_topic[topic.name] = [make(index) for index in range(topic.partition_count)]
        self.broker.catalog.listeners.append(self)
        self.housekeeping.start()

    async def stop(self) -> None:
        self.housekeeping.stop()
        for partition in self:
            try:
                partition.snapshot()
            except StorageError as problem:  # the next start reads more of the log instead
                logger.error("no snapshot at the stop", extra={"why": str(problem)})
        self.opener.close()
        self.store.close()

    @property
    def sync_times(self) -> SyncTimes:
        """How long the disk takes; zero where no disk is under it."""
        return self.store.syncer.times if isinstance(self.store, DiskStore) else SyncTimes()

    # Finding

    def find(self, topic: str, index: int) -> Partition | None:
        try:
            return self._by_topic.get(topic, ())[index] if index >= 0 else None
        except IndexError:
            return None

    def of(self, topic: str) -> list[Partition]:
        return self._by_topic.get(topic, [])

    def __iter__(self) -> Iterator[Partition]:
        """Those that are made; a large new topic's may still be on their way. Whoever pauses on the
        way is not given what was deleted meanwhile: its name may be another topic's by then."""
        for partitions in list(self._by_topic.values()):
            for partition in _made(partitions):
                if not partition.is_deleted:
                    yield partition

    def name_of(self, topic_id: UUID) -> str | None:
        topic = self.broker.catalog.topics_by_id.get(topic_id)
        return topic.name if topic is not None else None

    # What the catalog tells

    def topic_created(self, topic: Topic) -> None:
        self._by_topic[topic.name] = []
        self.partitions_added(topic, 0)

    def partitions_added(self, topic: Topic, first: int) -> None:
        make = partial(self._make, topic)
        rest = PartitionsToMake(self._by_topic[topic.name], topic.partition_count, make)
        self._by_topic[topic.name] = rest
        if not self._made_in_turn:
            self.broker.loop.call_soon(self._turn_ended)
        self._made_in_turn += topic.partition_count - first
        if self._made_in_turn <= self.made_at_once:
            self._by_topic[topic.name] = list(rest)
            return
        if not self._to_make:
            self.broker.spawn(self._make_gently())
        self._to_make.append((topic, rest))

    def _turn_ended(self) -> None:
        self._made_in_turn = 0

    def topic_deleted(self, topic: Topic) -> None:
        for partition in _made(self._by_topic.pop(topic.name)):
            partition.is_deleted = True
            if (topic.name, partition.index) in self.store:  # otherwise it could never be made
                self._remove_log(topic.name, partition.index)
            self._wake(partition)

    def topic_configured(self, topic: Topic) -> None:
        for partition in _made(self._by_topic[topic.name]):
            partition.configure()
            partition.log.config = log_config(topic.config)

    def _make(self, topic: Topic, index: int) -> Partition:
        """With its log or, where the disk fails, with one that refuses everything for now."""
        make = partial(Partition, topic, index, now_ms=self.broker.now_ms, wake=self._wake)
        try:
            return make(log=self._find_log(topic, index))
        except StorageError as problem:
            logger.error("a partition is offline", extra={"why": str(problem)})
            config = log_config(topic.config)
            return make(log=UnavailableLog(topic.name, index, topic.id, config, problem))

    async def _make_gently(self) -> None:
        """One at a time, others being served in between."""
        while self._to_make:
            topic, partitions = self._to_make[0]
            for index in range(len(partitions)):
                if self._by_topic.get(topic.name) is not partitions:
                    break  # deleted, or grown again: then it comes once more
                partitions[index]
                await asyncio.sleep(0)
            if self._by_topic.get(topic.name) is partitions:
                self._by_topic[topic.name] = list(partitions)
            self._to_make.popleft()

    # Logs

    def reopen(self, partition: Partition) -> None:
        """Bring back a partition whose disk failed, if the disk is better now."""
        topic = partition.topic
        is_unavailable = isinstance(partition.log, UnavailableLog)
        log = self._find_log(topic, partition.index)
        partition.reopen(log, None if is_unavailable else partition.high_watermark)
        logger.warning("back online", extra={"partition": partition})

    def _find_log(self, topic: Topic, index: int) -> Log:
        """The log on disk, or a new one."""
        known = self.broker.catalog.topics_by_id.get(topic.id)
        assert known is topic, f"{topic} is not, or no longer, in the catalog"
        config = log_config(topic.config)
        if (topic.name, index) in self.store:
            log = self.store.open(topic.name, index, config)
            if log.topic_id == topic.id:
                return log
            self._remove_log(topic.name, index)  # of an older topic of the same name
        if (topic.name, index) in self.store:
            raise StorageError(f"{topic.name}-{index} holds the log of another topic")
        return self.store.create(topic.name, index, topic.id, config)

    def _remove_log(self, name: str, index: int) -> None:
        """The only way a log is deleted, and never one whose topic the catalog knows. Where the
        disk refuses, the next start finds a log that no topic claims."""
        try:
            topic = self.broker.catalog.topics_by_id.get(self.store.topic_id(name, index))
            if topic is None:
                self.store.delete(name, index)
            else:
                facts = {"log": (name, index), "topic": topic}
                logger.error("this log belongs to another topic, and stays", extra=facts)
        except StorageError as problem:
            logger.error("a deleted partition's files stay", extra={"why": str(problem)})

    def _remove_unclaimed(self) -> None:
        """A crash between the catalog's record and the directories may leave one of them alone."""
        for name, index in self.store.list():
            topic = self.broker.catalog.topics.get(name)
            if topic is None or index >= topic.partition_count:
                logger.warning("removing a log that no topic claims", extra={"log": (name, index)})
                self._remove_log(name, index)

    # Producer ids

    def _order_producer_ids(self) -> None:
        def allocate(draft: CatalogDraft) -> range:
            return draft.allocate_producer_ids()

        self.broker.catalog.change(allocate).add_done_callback(self._producer_ids_came)

    def _producer_ids_came(self, done: asyncio.Future[range]) -> None:
        if done.cancelled() or done.exception() is not None:
            self.producer_ids.not_added()
        else:
            self.producer_ids.add(done.result())

    # Waking those who wait for data

    def _wake(self, partition: Partition) -> None:
        """Wake them once per turn of the loop: an answer then holds all that a request brought."""
        if not self._woken:
            self.broker.loop.call_soon(self._wake_all)
        self._woken.add(partition)

    def _wake_all(self) -> None:
        woken, self._woken = self._woken, set()
        for partition in woken:
            for waiter in tuple(partition.waiters):
                waiter.wake()
