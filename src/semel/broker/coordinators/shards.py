"""Loads the shards of an internal topic, and brings them back when their disk has failed.

A short log is loaded on the spot, while its first caller waits; a long one in the background, and
callers hear COORDINATOR_LOAD_IN_PROGRESS meanwhile. After a failed write the log is opened again at
once: a disk that failed once costs its clients one retry. One that keeps failing is tried once a
second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Generic

from semel.broker.coordinators.runtime import M, Shard
from semel.store.interface import StorageError

if TYPE_CHECKING:
    from semel.broker.server import Broker

log = logging.getLogger("semel.shards")

LOAD_AT_ONCE_BYTES = 1 << 20
"""A log up to this size is loaded while its first caller waits: some tens of milliseconds."""
RELOAD_SECONDS = 1.0


class ShardLoader(Generic[M]):
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.load_at_once_bytes = LOAD_AT_ONCE_BYTES
        self._loading: set[Shard[M]] = set()
        self._tried: dict[Shard[M], float] = {}
        self._timers: dict[Shard[M], asyncio.TimerHandle] = {}

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def loaded(self, shard: Shard[M]) -> Shard[M]:
        """The shard, loaded if that is quick; otherwise it says that it is loading, or that there
        is no coordinator while its disk is broken."""
        partition = shard.partition
        if shard.machine is not None or shard in self._loading:
            return shard
        if partition.log.offline is not None:
            self.bring_back(shard)
        elif partition.log.size <= self.load_at_once_bytes:
            try:
                shard.load()
            except StorageError as problem:
                self._load_failed(shard, problem)
        else:
            self._loading.add(shard)
            self._broker.spawn(self._load(shard))
        return shard

    async def load_all(self, shards: Iterable[Shard[M]]) -> None:
        for shard in list(shards):
            self.loaded(shard)
            await asyncio.sleep(0)

    def bring_back(self, shard: Shard[M]) -> None:
        """Open its log again and load it: now, or a second after the last time."""
        if shard in self._timers:
            return
        loop = self._broker.loop
        due = self._tried.get(shard, float("-inf")) + RELOAD_SECONDS
        self._timers[shard] = loop.call_later(max(due - loop.time(), 0), self._try, shard)

    def _try(self, shard: Shard[M]) -> None:
        del self._timers[shard]
        partition = shard.partition
        if partition.is_deleted:
            return
        self._tried[shard] = self._broker.loop.time()
        if partition.log.offline is not None:
            try:
                self._broker.partitions.reopen(partition)
            except StorageError as problem:
                self._load_failed(shard, problem)
                return
        self.loaded(shard)

    async def _load(self, shard: Shard[M]) -> None:
        try:
            for _ in shard.load_steps():
                await asyncio.sleep(0)
                if shard.partition.is_deleted:
                    return  # whatever it still had to do is nobody's business any more
        except StorageError as problem:
            self._load_failed(shard, problem)
        finally:
            self._loading.discard(shard)

    def _load_failed(self, shard: Shard[M], problem: StorageError) -> None:
        log.warning("cannot be loaded yet", extra={"shard": shard, "why": str(problem)})
        self.bring_back(shard)
