"""Committing a consumer's positions: when asked to, or now and then in the background."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from semel.client.cluster import Cluster
from semel.client.consumer.group import GroupClient
from semel.client.machines.patience import Deadline
from semel.client.machines.types import OffsetAndMetadata, TopicPartition
from semel.client.metrics import ConsumerMeter
from semel.client.settings import ConsumerSettings
from semel.errors import SemelError

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
_QUIET_MS = 5_000


class Committing:
    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        group: GroupClient,
        positions: Callable[[], Offsets],
        meter: ConsumerMeter,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._group = group
        self._positions = positions
        self._meter = meter
        self._task: asyncio.Task[None] | None = None
        self._next_ms = 0.0

    async def commit(self, offsets: Offsets, deadline: Deadline) -> None:
        began_ms = self._cluster.now_ms()
        try:
            await self._group.commit(offsets, deadline)
        except SemelError:
            self._meter.commits_failed += 1
            raise
        self._meter.commits.add(self._cluster.now_ms() - began_ms)

    async def commit_quietly(self) -> None:
        """The positions, if commits are automatic."""
        if self._settings.enable_auto_commit and (offsets := self._positions()):
            with suppress(SemelError):  # the next commit covers it; the rest is read again
                await self.commit(offsets, self._cluster.deadline(_QUIET_MS))

    def start_what_is_due(self) -> None:
        """Starts a commit in the background, if it is time for one; never waits."""
        if not self._settings.enable_auto_commit:
            return
        now_ms = self._cluster.now_ms()
        if now_ms >= self._next_ms and self._task is None:
            if self._next_ms:
                self._task = asyncio.get_running_loop().create_task(self.commit_quietly())
                self._task.add_done_callback(self._done)
            self._next_ms = now_ms + self._settings.auto_commit_interval_ms

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _done(self, _: asyncio.Task[None]) -> None:
        self._task = None
