"""The asyncio consumer: by assignment or as a member of a group, committed data only if wished.

async with Consumer("localhost:9092", group_id="g", isolation_level="read_committed") as consumer:
    consumer.subscribe(["orders"])
    async for record in consumer:
        ...
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar

from semel.client.cluster import Cluster
from semel.client.consumer.classic_group import ClassicGroupClient
from semel.client.consumer.consumer_group import ConsumerGroupClient
from semel.client.consumer.fetcher import ConsumerRecord, Fetcher
from semel.client.consumer.group import GroupClient, Listeners, Partitions
from semel.client.consumer.positions import Positions
from semel.client.errors import ClientError, UsageError
from semel.client.lifetime import Lifetime
from semel.client.machines.fetching import EARLIEST, LATEST, Reset, TopicPartitionState
from semel.client.machines.patience import Deadline
from semel.client.machines.subscription import Subscription
from semel.client.machines.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from semel.client.offsets import FoundOffset, list_offsets
from semel.client.settings import ConsumerSettings

if TYPE_CHECKING:
    from pyarrow import Table

T = TypeVar("T")
# What an application may want to do when its partitions change.
RebalanceListener = Callable[[Partitions], Awaitable[None] | None]

_GROUPS: dict[str, type[GroupClient]] = {
    "classic": ClassicGroupClient,
    "consumer": ConsumerGroupClient,
}


def _ignore(_: Partitions) -> None:
    """What a consumer without a listener does about a rebalance."""


async def _told(listener: RebalanceListener, partitions: Partitions) -> None:
    result = listener(partitions)
    if isawaitable(result):
        await result


class Consumer(Lifetime):
    """Reads records. All settings of `ConsumerSettings` are keywords; a dict of Java-style names
    does as well, in place of the address or as `settings`."""

    def __init__(
        self,
        bootstrap_servers: str | list[str] | Mapping[str, Any] | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> None:
        self.settings = ConsumerSettings.of(bootstrap_servers, settings, **given)
        self._states: dict[TopicPartition, TopicPartitionState] = {}
        self._subscription: Subscription | None = None
        self._on_revoked: RebalanceListener = _ignore
        self._on_lost: RebalanceListener = _ignore
        self._on_assigned: RebalanceListener = _ignore
        self._listeners = Listeners(self._revoked, self._lost, self._assigned)
        self._group: GroupClient | None = None
        self._started = False
        self._committing: asyncio.Task[None] | None = None
        self._next_auto_commit = 0.0
        self._buffer: deque[ConsumerRecord] = deque()  # polled by iteration, not yielded yet

    async def start(self) -> None:
        """Connects. `async with` does it too."""
        if self._started:
            return
        create = self.settings.allow_auto_create_topics
        self._cluster = Cluster(self.settings, creates_topics=create)
        if self.settings.group_id:
            self._group = _GROUPS[self.settings.group_protocol](self._cluster, self.settings)
        self._fetcher = Fetcher(
            self._cluster, self.settings, self._states, lambda state: self._positions.lost(state)
        )
        self._positions = Positions(
            self._cluster, self.settings, self._states, self._group, self._fetcher.wake
        )
        if self._group is not None:
            self._group.on_news = self._fetcher.wake
        try:
            await self._cluster.refresh()
        except BaseException:
            await self._cluster.close()
            raise
        self._started = True

    async def close(self) -> None:
        """Leaves the group and disconnects."""
        if not self._started:
            return
        self._started = False
        if self._group is not None:
            if self.settings.enable_auto_commit and self._states:
                await self._commit_quietly()
            await self._group.leave()
        if self._committing is not None:
            self._committing.cancel()
            await asyncio.gather(self._committing, return_exceptions=True)
        await self._positions.close()
        await self._fetcher.close()
        await self._cluster.close()

    # What to read

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | None = None,
        on_revoked: RebalanceListener = _ignore,
        on_lost: RebalanceListener | None = None,
        on_assigned: RebalanceListener = _ignore,
    ) -> None:
        """Shares topics with the other members of the group: by name, or all that match a pattern.

        A pattern must match a topic's whole name; topics made later join in by themselves. Under
        group_protocol "consumer" the broker matches it (RE2's syntax), otherwise this client.
        The listeners (functions, or coroutine functions) run within `poll`: `on_revoked` before
        partitions are given up, so that it can still commit, `on_lost` where others may have them
        already (without one, `on_revoked`), `on_assigned` with those that are new.
        """
        if isinstance(topics, str):
            topics = [topics]
        group = self._need_group("subscribe")
        if self._states and self._subscription is None:
            raise UsageError("subscribe and assign exclude each other")
        subscription = Subscription(frozenset(topics), pattern)
        if bool(subscription.topics) == (pattern is not None):
            raise UsageError("subscribe to topics or to a pattern, one of the two")
        group.subscribe(subscription)
        self._subscription = subscription
        self._on_revoked, self._on_assigned = on_revoked, on_assigned
        self._on_lost = on_revoked if on_lost is None else on_lost

    async def unsubscribe(self) -> None:
        """Leaves the group and forgets what was assigned. Committing before is the caller's."""
        if self._group is not None and self._subscription is not None:
            await self._group.leave()
        self._subscription = None
        self._set_assignment(frozenset())
        self._buffer.clear()

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Reads exactly these partitions, whoever else does."""
        if self._subscription is not None:
            raise UsageError("subscribe and assign exclude each other")
        self._set_assignment(frozenset(TopicPartition(*partition) for partition in partitions))

    def assignment(self) -> Partitions:
        return frozenset(self._states)

    def pause(self, *partitions: TopicPartition) -> None:
        for partition in partitions:
            self._state(partition).paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        for partition in partitions:
            self._state(partition).paused = False

    async def partitions_for(self, topic: str) -> list[int]:
        self._need_started()
        await self._cluster.topic(topic, self._cluster.deadline())
        return sorted(self._cluster.metadata.topics[topic].partitions)

    # Reading

    async def poll(
        self, timeout_ms: float = 0, max_records: int | None = None
    ) -> list[ConsumerRecord]:
        """Records that are there, at most `max_poll_records`; waits up to the timeout for some."""
        self._need_started()
        most = self.settings.max_poll_records if max_records is None else max_records
        deadline = self._cluster.deadline(timeout_ms)
        if self._buffer:
            return [self._buffer.popleft() for _ in range(min(most, len(self._buffer)))]
        return await self._polled(deadline, lambda: self._fetcher.take(most))

    async def poll_table(self, timeout_ms: float = 0) -> "Table":
        """What has been fetched, as an Arrow table; needs `semel[arrow]`.

        Columns: topic, partition, offset, timestamp, key, value, headers. Rows are in order within
        each partition. Up to `fetch_max_bytes` from every broker; an empty table after the timeout.
        """
        self._need_started()
        from semel.client.consumer.columnar_receive import take_tables, whole_table

        self._unread_buffered()
        deadline = self._cluster.deadline(timeout_ms)
        return whole_table(await self._polled(deadline, lambda: take_tables(self._fetcher)))

    async def _polled(self, deadline: Deadline, take: Callable[[], list[T]]) -> list[T]:
        """What is there, or arrives before the deadline."""
        while True:
            ready = await self._in_group(deadline)
            if ready:
                self._look_after()
            taken = take() if ready else []
            if ready:
                self._fetcher.send_fetches()
            remaining = deadline.remaining_ms(self._cluster.now_ms())
            if taken:
                return taken
            if not remaining:
                await asyncio.sleep(0)  # a loop of polls without patience must let answers in
                return taken
            await self._fetcher.wait(min(remaining, 100.0) / 1000)

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Record after record, for ever. The position is behind the record that was yielded."""
        while self._started:
            if not self._buffer:
                self._buffer = deque(await self.poll(1_000))
            else:
                yield self._buffer.popleft()

    async def _in_group(self, deadline: Deadline) -> bool:
        if self._group is None or self._subscription is None:
            return True
        self._group.last_poll = asyncio.get_running_loop().time()
        return await self._group.ensure_joined(self._listeners, deadline)

    def _look_after(self) -> None:
        """What has to be done beside reading; none of it keeps a poll beyond its time."""
        self._auto_commit()
        self._positions.look_after()
        if self._cluster.metadata.needs_refresh(self._cluster.now_ms()):
            self._cluster.wanted_topics.update(p.topic for p in self._states)
            self._fetcher.refresh()

    async def _revoked(self, partitions: Partitions) -> None:
        if self.settings.enable_auto_commit:
            await self._commit_quietly()
        await _told(self._on_revoked, partitions)
        self._forget(partitions)

    async def _lost(self, partitions: Partitions) -> None:
        await _told(self._on_lost, partitions)
        self._forget(partitions)

    def _forget(self, partitions: Partitions) -> None:
        for partition in partitions:
            self._states.pop(partition, None)
            self._fetcher.forget(partition)
        self._buffer = deque(r for r in self._buffer if (r.topic, r.partition) not in partitions)

    async def _assigned(self, partitions: Partitions) -> None:
        new = partitions - self._states.keys()
        self._set_assignment(partitions)
        await _told(self._on_assigned, frozenset(new))

    def _set_assignment(self, partitions: Partitions) -> None:
        for partition in self._states.keys() - partitions:
            del self._states[partition]
            if self._started:
                self._fetcher.forget(partition)
        for partition in partitions - self._states.keys():
            self._states[partition] = TopicPartitionState(partition)

    # Positions

    async def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """The offset of the next record."""
        state = self._state(partition)
        self._need_started()
        await self._positions.settle(state.partition, self._cluster.deadline(timeout_ms))
        return state.position

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._state(partition).seek(offset)
        self._drop_buffered(partition)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        self._seek_to(partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        self._seek_to(partitions, LATEST)

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        return await self._offsets(partitions, EARLIEST)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The last stable offsets with read_committed, the high watermarks otherwise."""
        return await self._offsets(partitions, LATEST)

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, FoundOffset]:
        """The first offset at or after each timestamp; partitions without one are left out."""
        self._need_started()
        found = await list_offsets(
            self._cluster, times, self.settings.isolation_level, self._cluster.deadline()
        )
        return {partition: at for partition, at in found.items() if at.offset >= 0}

    def _seek_to(self, partitions: tuple[TopicPartition, ...], reset: Reset) -> None:
        for partition in partitions or tuple(self._states):
            self._state(partition).lose_position(reset)
            self._drop_buffered(partition)

    def _unread_buffered(self) -> None:
        """What iteration has polled ahead is fetched again by others."""
        for record in tuple(reversed(self._buffer)):
            self.seek(TopicPartition(record.topic, record.partition), record.offset)

    def _drop_buffered(self, partition: TopicPartition) -> None:
        self._buffer = deque(r for r in self._buffer if (r.topic, r.partition) != partition)
        if self._started:
            self._fetcher.forget(partition)

    async def _offsets(
        self, partitions: Iterable[TopicPartition], at: Reset
    ) -> dict[TopicPartition, int]:
        self._need_started()
        wanted = {TopicPartition(*p): at.timestamp for p in partitions}
        isolation = self.settings.isolation_level
        found = await list_offsets(self._cluster, wanted, isolation, self._cluster.deadline())
        return {partition: offset.offset for partition, offset in found.items()}

    # Committing

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Stores where the group stands: the positions, or given offsets (of the *next* record)."""
        group = self._need_group("commit")
        chosen = self.positions() if offsets is None else _as_offsets(offsets)
        await group.commit(chosen, self._cluster.deadline(timeout_ms))

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        group = self._need_group("committed")
        return await group.committed(list(partitions), self._cluster.deadline(timeout_ms))

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where the consumer stands in every partition it has a position in."""
        buffered: dict[TopicPartition, int] = {}
        for record in reversed(self._buffer):
            buffered[TopicPartition(record.topic, record.partition)] = record.offset
        return {
            partition: OffsetAndMetadata(
                buffered.get(partition, state.position), "", state.leader_epoch
            )
            for partition, state in self._states.items()
            if state.position >= 0
        }

    def group_metadata(self) -> GroupMetadata:
        """For `send_offsets_to_transaction`: who commits (KIP-447)."""
        return self._need_group("group_metadata").metadata

    def lag(self, partition: TopicPartition) -> int | None:
        """Records behind the end: the last stable offset, if only committed data is read."""
        state = self._state(partition)
        committed = self.settings.isolation_level == "read_committed"
        end = state.last_stable_offset if committed else state.high_watermark
        return end - state.position if end >= 0 and state.position >= 0 else None

    def _auto_commit(self) -> None:
        if not self.settings.enable_auto_commit or self._group is None:
            return
        now = self._cluster.now_ms()
        if now >= self._next_auto_commit and self._committing is None:
            if self._next_auto_commit:
                self._committing = asyncio.get_running_loop().create_task(self._commit_quietly())
                self._committing.add_done_callback(self._committed_quietly)
            self._next_auto_commit = now + self.settings.auto_commit_interval_ms

    def _committed_quietly(self, _: asyncio.Task[None]) -> None:
        self._committing = None

    async def _commit_quietly(self) -> None:
        assert self._group is not None
        with suppress(ClientError):  # the next commit covers it; the rest is read again
            await self._group.commit(self.positions(), self._cluster.deadline(5_000))

    # Checks

    def _state(self, partition: tuple[str, int]) -> TopicPartitionState:
        state = self._states.get(TopicPartition(*partition))
        if state is None:
            raise UsageError(f"{TopicPartition(*partition)} is not assigned to this consumer")
        return state

    def _need_group(self, operation: str) -> GroupClient:
        if not self.settings.group_id:
            raise UsageError(f"{operation} needs a consumer with a group_id")
        self._need_started()
        assert self._group is not None
        return self._group

    def _need_started(self) -> None:
        if not self._started:
            raise UsageError("the consumer is not started: use `async with`, or await start()")


def _as_offsets(
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        TopicPartition(*partition): offset
        if isinstance(offset, OffsetAndMetadata)
        else OffsetAndMetadata(offset)
        for partition, offset in offsets.items()
    }
