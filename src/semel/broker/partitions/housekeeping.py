"""What must be done to the logs every now and then, driven by one timer.

Retention, compaction, forgetting idle producers, checkpoints, and the way back for partitions whose
disk failed. The loop is yielded to between partitions, so that thousands of them do not hold up a
request. Whatever such a request deletes is left out from then on: iterating over the partitions
gives none that is deleted, also of topics that were there when the walk began.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakSet

from semel.core.partition.compaction import CompactionPolicy
from semel.store.cleanable import LogToClean, dirtiest, measure
from semel.store.compaction import SLICE_SECONDS, CorruptSegment, compact_gently
from semel.store.disk import DiskLog
from semel.store.interface import StorageError

if TYPE_CHECKING:
    from semel.broker.partitions.partition import Partition
    from semel.broker.partitions.partitions import Partitions

logger = logging.getLogger("semel.housekeeping")

TICK_MS = 1_000
CHECKPOINT_MS = 60_000  # as Kafka's log.flush.offset.checkpoint.interval.ms
REOPEN_MS = 10_000


class Housekeeping:
    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._settings = partitions.broker.settings
        self._now_ms = partitions.broker.now_ms
        self._done_ms: dict[str, int] = {}
        self._left_alone: WeakSet[DiskLog] = WeakSet()
        """Logs that could not be compacted. One that is opened again gets another chance."""
        self.slice_seconds = SLICE_SECONDS
        self.reopen_ms = REOPEN_MS
        self.checkpoint_ms = CHECKPOINT_MS
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = self._partitions.broker.spawn(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(TICK_MS / 1000)
            try:
                await self.tick()
            except Exception as problem:  # the others' logs need their keeper all the same
                self._partitions.broker.report_failure(problem)

    async def tick(self) -> None:
        """Do whatever is due."""
        settings = self._settings
        await self._each("retention", settings["log.retention.check.interval.ms"], self.retain)
        await self._each(
            "expiry", settings["producer.id.expiration.check.interval.ms"], self.expire
        )
        await self._each("reopening", self.reopen_ms, self.reopen)
        if self._is_due("checkpoint", self.checkpoint_ms):
            self._partitions.store.checkpoint()
        for _ in self._partitions.store.sweep():
            await asyncio.sleep(0)
        if settings["log.cleaner.enable"] and self._is_due(
            "compaction", settings["log.cleaner.backoff.ms"]
        ):
            await self.compact()

    def retain(self, partition: Partition) -> None:
        if partition.log.offline is None:
            partition.log.retain(self._now_ms(), partition.high_watermark)
            partition.start_moved()

    def expire(self, partition: Partition) -> None:
        partition.state.expire(self._now_ms() - self._settings["producer.id.expiration.ms"])

    def reopen(self, partition: Partition) -> None:
        """Try again where the disk failed: it may have room now."""
        if partition.log.offline is not None:
            self._partitions.reopen(partition)

    async def compact(self) -> None:
        """Compact the logs that are due, the dirtiest first."""
        while (partition := self._dirtiest()) is not None:
            log = partition.log
            assert isinstance(log, DiskLog)
            policy = CompactionPolicy(partition.state)
            try:
                section = self._to_clean(partition)
                result = await compact_gently(
                    log, policy, section, self._now_ms(), slice_seconds=self.slice_seconds
                )
            except (CorruptSegment, StorageError) as problem:
                self._not_compacted(partition, log, problem)
                continue
            logger.info("compacted", extra={"partition": partition, **result._asdict()})
            if result.cleaned_to <= section.first_offset:
                return  # no progress: a single key map could not hold a batch's keys

    def _not_compacted(self, partition: Partition, log: DiskLog, problem: Exception) -> None:
        self._left_alone.add(log)
        if log.offline is None:
            logger.error(
                "compaction failed; this log is left alone from now on",
                extra={"partition": partition, "why": str(problem)},
            )
        else:  # deleted meanwhile, or its disk failed: that is told elsewhere
            logger.info(
                "compaction ends in the middle",
                extra={"partition": partition, "why": str(problem)},
            )

    def _dirtiest(self) -> Partition | None:
        due = []
        for partition in self._partitions:
            log = partition.log
            if (
                log.config.compact
                and log.offline is None
                and isinstance(log, DiskLog)
                and log not in self._left_alone
            ):
                try:
                    due.append((partition, self._to_clean(partition), log.config))
                except StorageError as problem:
                    self._not_compacted(partition, log, problem)
        return dirtiest(due)

    def _to_clean(self, partition: Partition) -> LogToClean:
        log = partition.log
        assert isinstance(log, DiskLog)
        return measure(
            log.segments(),
            log.config,
            log.cleaned_to,
            log.start_offset,
            partition.last_stable_offset,
            self._now_ms(),
        )

    async def _each(self, chore: str, every_ms: int, do: Callable[[Partition], None]) -> None:
        if not self._is_due(chore, every_ms):
            return
        for partition in self._partitions:
            try:
                do(partition)
            except StorageError as problem:
                logger.error(
                    "%s failed", chore, extra={"partition": partition, "why": str(problem)}
                )
            await asyncio.sleep(0)

    def _is_due(self, chore: str, every_ms: int) -> bool:
        """A chore is first due one interval after the start."""
        now_ms = self._now_ms()
        if now_ms - self._done_ms.setdefault(chore, now_ms) < every_ms:
            return False
        self._done_ms[chore] = now_ms
        return True
