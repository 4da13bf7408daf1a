"""A store in memory that is slow, fails and forgets: what disks do, on a simulated clock.

A write is durable some time after it was made, together with those before it; or the sync fails and
breaks every promise; or the write itself fails. After a crash a log holds what was durable and
maybe, whole batches at a time, some of what came after. What a failed sync covered can be read
until the crash and is gone after it, with all that follows, however well later syncs went.
"""

import asyncio
import random
from dataclasses import replace
from uuid import UUID

from tests.support.memory_log import MemoryLog, MemoryStore

from semel.broker.catalog.catalog import Catalog
from semel.store.interface import DURABLE, LogConfig, StorageError, Store, Ticket


class Disk:
    """How the disk behaves; one per world, whatever becomes of the brokers on it."""

    def __init__(self, dice: random.Random, is_instant: bool, failures: float) -> None:
        self.dice = dice
        self.is_instant = is_instant
        """Durable when written, as under `durability=os`: a crash of the process loses nothing."""
        self.failures = failures

    def fails(self) -> bool:
        return self.dice.random() < self.failures

    def sync_seconds(self) -> float:
        return self.dice.choice((0.0, 0.002, 0.002, 0.2))


class UnreliableLog(MemoryLog):
    disk: Disk

    def __init__(self, topic: str, partition: int, topic_id: UUID, config: LogConfig) -> None:
        super().__init__(topic, partition, topic_id, config)
        self.durable_to = 0
        self.hole: int | None = None
        """What lies here was dropped by a failed sync, though it can still be read."""
        self._promises: list[tuple[int, Ticket]] = []

    def append(self, batches: object) -> Ticket:
        if self.offline is None and self.disk.fails():
            self.fail(StorageError("a simulated write failed"))
        ticket = super().append(batches)  # type: ignore[arg-type]
        if ticket.error is not None:
            return ticket
        if self.disk.is_instant:
            self.durable_to = self.next_offset
            return DURABLE
        promise = Ticket()
        if not self._promises:
            self._sync_later()
        self._promises.append((self.next_offset, promise))
        return promise

    def fail(self, error: StorageError) -> None:
        super().fail(error)
        if self.hole is None and self.durable_to < self.next_offset:
            self.hole = self.durable_to
        promises, self._promises = self._promises, []
        for _, promise in promises:
            promise.settle(error)

    def truncate(self, offset: int) -> None:
        super().truncate(offset)
        if self.hole is not None and self.next_offset <= self.hole:
            self.hole = None
        self.durable_to = min(self.durable_to, self.next_offset)

    def _sync_later(self) -> None:
        asyncio.get_running_loop().call_later(self.disk.sync_seconds(), self._sync)

    def _sync(self) -> None:
        if self.offline is not None:
            return
        if self.disk.fails():
            self.fail(StorageError("a simulated sync failed"))
            return
        promises, self._promises = self._promises, []
        if promises:
            self.durable_to = promises[-1][0]
        for _, promise in promises:
            promise.settle()

    def survivor(self, cut: int) -> "UnreliableLog":
        """What is found when the log is opened again: everything below `cut`."""
        found = UnreliableLog(self.topic, self.partition, self.topic_id, self.config)
        found.disk = self.disk
        for segment in self._segments:
            for place, batch in segment.batches:
                if place.last_offset < cut:
                    MemoryLog.append(found, [batch])
        for epoch in self._epochs:
            if epoch[1] <= found.next_offset:
                found.assign_epoch(*epoch)
        found.durable_to = found.next_offset
        found.hole = self.hole if self.hole is not None and self.hole < cut else None
        found.recovered_from = 0
        return found


SEGMENT_BYTES = 1_500
"""So that a minute fills many."""


def in_small_segments(config: LogConfig | None) -> LogConfig:
    return replace(config or LogConfig(), segment_bytes=SEGMENT_BYTES)


class Watched(Store):
    """A store that sees to it that no log is deleted whose topic the catalog knows."""

    catalog: Catalog | None = None

    def delete(self, topic: str, partition: int) -> None:
        topic_id = self.topic_id(topic, partition)
        if self.catalog is not None:
            known = self.catalog.topics_by_id.get(topic_id)
            assert known is None, f"the log {topic}-{partition} of {known} is deleted"
        super().delete(topic, partition)  # type: ignore[safe-super]


class UnreliableStore(Watched, MemoryStore):
    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self.disk = disk
        self.is_gone = False

    def create(
        self, topic: str, partition: int, topic_id: UUID, config: LogConfig | None = None
    ) -> MemoryLog:
        log = UnreliableLog(topic, partition, topic_id, in_small_segments(config))
        log.disk = self.disk
        self._logs[topic, partition] = log
        return log

    def open(self, topic: str, partition: int, config: LogConfig | None = None) -> MemoryLog:
        log = self._logs[topic, partition]
        if self.is_gone or self.disk.fails():
            raise StorageError("a simulated open failed")
        if log.offline is None:
            return log
        assert isinstance(log, UnreliableLog)
        found = self._logs[topic, partition] = log.survivor(log.next_offset)
        return found

    def break_log(self, name: tuple[str, int]) -> None:
        """Its disk fails all by itself, with whatever is on its way to it."""
        log = self._logs[name]
        if log.offline is None:
            log.fail(StorageError("a simulated disk failed"))

    def strays(self) -> list[str]:
        return []

    def crash(self) -> "UnreliableStore":
        """The store that the next broker finds."""
        self.is_gone = True
        after = UnreliableStore(self.disk)
        for name, log in self._logs.items():
            assert isinstance(log, UnreliableLog)
            cut = self.disk.dice.randint(log.durable_to, log.next_offset)
            if log.hole is not None:
                cut = min(cut, log.hole)
            after._logs[name] = log.survivor(cut)
            log.offline = StorageError("the broker has crashed")
        return after
