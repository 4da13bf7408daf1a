"""The asyncio consumer: by assignment or as a member of a group, committed records by default.

async with Consumer("localhost:9092", group_id="billing") as consumer:
    consumer.subscribe(["orders"])
    async for record in consumer:
        ...
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from semel.client.cluster import Cluster
from semel.client.consumer.classic_group import ClassicGroupClient
from semel.client.consumer.committing import Committing
from semel.client.consumer.consumer_group import ConsumerGroupClient
from semel.client.consumer.fetcher import Fetcher
from semel.client.consumer.group import GroupClient, Listeners, Partitions
from semel.client.consumer.inquiries import Inquiries
from semel.client.consumer.positions import Positions
from semel.client.consumer.records import ConsumerRecord, Deserializers, K, V
from semel.client.machines.fetching import EARLIEST, LATEST, Reset, TopicPartitionState
from semel.client.machines.patience import Deadline
from semel.client.machines.records import as_offsets, as_place, as_topic
from semel.client.machines.subscription import Subscription
from semel.client.machines.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from semel.client.metrics import ConsumerMeter
from semel.client.settings import ConsumerSettings, Servers
from semel.errors import DeserializationError, UsageError
from semel.extras import needs_extra

if TYPE_CHECKING:
    from pyarrow import Table

    from semel.client.settings.keywords import ConsumerKeywords

T = TypeVar("T")
# What an application may want to do when its partitions change.
RebalanceListener = Callable[[Partitions], Awaitable[None] | None]

_GROUPS: dict[str, type[GroupClient]] = {
    "classic": ClassicGroupClient,
    "consumer": ConsumerGroupClient,
}


async def _told(listener: RebalanceListener | None, partitions: Partitions) -> None:
    result = None if listener is None else listener(partitions)
    if isawaitable(result):
        await result


class Consumer(Inquiries[K, V]):
    """Reads records: iterate it, or call `poll`, after `subscribe` or `assign`."""

    def __init__(
        self,
        bootstrap_servers: Servers | Mapping[str, Any] | None = None,
        *,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        settings: Mapping[str, Any] | None = None,
        **given: Unpack[ConsumerKeywords],
    ) -> None:
        """All settings of `ConsumerSettings` are keywords. A dict in the names of Java or
        librdkafka does as well, in place of the address or as `settings`; keywords win over it.

        The deserializers make keys and values of bytes; a null key or value stays None, without
        asking them. One that raises makes `poll` raise a `DeserializationError`.
        """
        self.settings = ConsumerSettings.of(bootstrap_servers, settings, **given)
        self._deserializers = Deserializers(key_deserializer, value_deserializer)
        self._states: dict[TopicPartition, TopicPartitionState] = {}
        self._subscription: Subscription | None = None
        self._on_revoked: RebalanceListener | None = None
        self._on_lost: RebalanceListener | None = None
        self._on_assigned: RebalanceListener | None = None
        self._listeners = Listeners(self._revoked, self._lost, self._assigned)
        self._group: GroupClient | None = None
        self._committing: Committing | None = None
        self._closed = False
        self._buffer = deque()

    async def start(self) -> None:
        """Connects. A `with` block does it too."""
        if self._is_started():
            return
        settings = self.settings
        self._meter = ConsumerMeter()
        self._cluster = Cluster(settings, creates_topics=settings.allow_auto_create_topics)
        self._started_ms = self._cluster.now_ms()
        if settings.group_id:
            self._group = _GROUPS[settings.group_protocol](self._cluster, settings)
            self._committing = Committing(
                self._cluster, settings, self._group, self.positions, self._meter
            )
        self._fetcher = Fetcher(
            self._cluster,
            settings,
            self._states,
            lambda state: self._positions.lost(state),
            self._meter,
            self._deserializers,
        )
        self._positions = Positions(
            self._cluster, settings, self._states, self._group, self._fetcher.wake
        )
        if self._group is not None:
            self._group.on_news = self._fetcher.wake
        try:
            await self._cluster.refresh()
        except BaseException:
            await self._cluster.close()
            raise
        self._settle_here()
        self._closed = False

    async def close(self) -> None:
        """Leaves the group and disconnects."""
        if not self._is_started():
            return
        self._leave()
        self._closed = True
        if self._committing is not None:
            await self._committing.commit_quietly()
        if self._group is not None:
            await self._group.leave()
        if self._committing is not None:
            await self._committing.close()
        await self._positions.close()
        await self._fetcher.close()
        await self._cluster.close()

    # What to read

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | None = None,
        on_revoked: RebalanceListener | None = None,
        on_lost: RebalanceListener | None = None,
        on_assigned: RebalanceListener | None = None,
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
        subscription = Subscription(frozenset(as_topic(topic) for topic in topics), pattern)
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

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to; of a pattern, those known to match it."""
        if self._subscription is None:
            return frozenset()
        assigned = {partition.topic for partition in self._states}
        return self._subscription.matching(self._cluster.metadata.topics.values()) | assigned

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads exactly these partitions, whoever else does."""
        if self._subscription is not None:
            raise UsageError("subscribe and assign exclude each other")
        self._set_assignment(frozenset(as_place(partition) for partition in partitions))

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read: assigned by hand, or by the group."""
        return frozenset(self._states)

    def pause(self, *partitions: TopicPartition) -> None:
        """Polls give out nothing of these until `resume`; the group's membership goes on."""
        for partition in partitions:
            self._state(partition).paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        """Undoes `pause`."""
        for partition in partitions:
            self._state(partition).paused = False

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return frozenset(partition for partition, state in self._states.items() if state.paused)

    # Reading

    async def poll(
        self, timeout_ms: float = 0, max_records: int | None = None
    ) -> list[ConsumerRecord[K, V]]:
        """Records that are there, at most `max_poll_records`; waits up to the timeout for some.

        The positions are behind them afterwards. A member of a group has to call it at least every
        `max_poll_interval_ms`: rebalances happen within.
        """
        self._need_started()
        most = self.settings.max_poll_records if max_records is None else max_records
        deadline = self._cluster.deadline(timeout_ms)
        if self._buffer:
            return [self._buffer.popleft() for _ in range(min(most, len(self._buffer)))]
        try:
            records = await self._polled(deadline, lambda: self._fetcher.take(most))
        except DeserializationError:
            self._meter.undeserialized += 1
            raise
        self._meter.records += len(records)
        return records

    async def poll_table(self, timeout_ms: float = 0) -> Table:
        """What has been fetched, as an Arrow table; needs `semel[arrow]`.

        Columns: topic, partition, offset, timestamp, key, value, headers; deserializers are not
        asked. Rows are in order within each partition. Up to `fetch_max_bytes` from every broker;
        an empty table after the timeout.
        """
        self._need_started()
        with needs_extra("arrow", "poll_table"):
            from semel.client.consumer.columnar_receive import take_tables, whole_table

        self._unread_buffered()
        deadline = self._cluster.deadline(timeout_ms)
        table = whole_table(await self._polled(deadline, lambda: take_tables(self._fetcher)))
        self._meter.records += table.num_rows
        return table

    async def _polled(self, deadline: Deadline, take: Callable[[], list[T]]) -> list[T]:
        """What is there, or arrives before the deadline."""
        self._meter.polls += 1
        while True:
            ready = await self._in_group(deadline)
            if ready:
                self._start_background_work()
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

    def __aiter__(self) -> Self:
        """Record after record, until the consumer is closed. After an error it may go on."""
        return self

    async def __anext__(self) -> ConsumerRecord[K, V]:
        """The next record; waits for it. The position is behind it afterwards."""
        while not self._buffer and not self._closed:
            self._buffer = deque(await self.poll(1_000))
        if self._closed:
            raise StopAsyncIteration
        return self._buffer.popleft()

    async def _in_group(self, deadline: Deadline) -> bool:
        if self._group is None or self._subscription is None:
            return True
        self._group.last_poll = asyncio.get_running_loop().time()
        return await self._group.ensure_joined(self._listeners, deadline)

    def _start_background_work(self) -> None:
        """What has to be done beside reading; none of it keeps a poll beyond its time."""
        if self._committing is not None:
            self._committing.start_what_is_due()
        self._positions.start_what_is_due()
        if self._cluster.metadata.needs_refresh(self._cluster.now_ms()):
            self._cluster.wanted_topics.update(p.topic for p in self._states)
            self._fetcher.refresh()

    async def _revoked(self, partitions: Partitions) -> None:
        if self._committing is not None:
            await self._committing.commit_quietly()
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
        self._meter.rebalances += 1
        new = partitions - self._states.keys()
        self._set_assignment(partitions)
        await _told(self._on_assigned, frozenset(new))

    def _set_assignment(self, partitions: Partitions) -> None:
        for partition in self._states.keys() - partitions:
            del self._states[partition]
            if self._is_started():
                self._fetcher.forget(partition)
        for partition in partitions - self._states.keys():
            self._states[partition] = TopicPartitionState(partition)

    # Positions

    async def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """The offset of the next record."""
        state = self._state(partition)
        self._need_started()
        await self._positions.settle(state.partition, self._cluster.deadline(timeout_ms))
        return self._buffered().get(state.partition, state.position)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Reads on from this offset."""
        self._state(partition).seek(offset)
        self._drop_buffered(partition)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Reads on from the first record there is; of all assigned partitions, if none is named."""
        self._seek_to(partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Reads on behind the last record; of all assigned partitions, if none is named."""
        self._seek_to(partitions, LATEST)

    async def seek_to_committed(self, *partitions: TopicPartition) -> None:
        """Reads on from what the group has committed, as after an aborted transaction; where it has
        not yet, from where `auto_offset_reset` says. Of all, if none is named."""
        wanted = [TopicPartition(*each) for each in partitions] or list(self._states)
        committed = await self.committed(wanted)
        for partition in wanted:
            state = self._state(partition)
            if partition in committed:
                state.seek(committed[partition].offset, committed[partition].leader_epoch)
            else:
                self._positions.lost(state)
            self._drop_buffered(partition)

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
        if self._is_started():
            self._fetcher.forget(partition)

    # Committing

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Stores where the group stands: the positions, or given offsets (of the *next* record)."""
        self._need_group("commit")
        assert self._committing is not None
        chosen = self.positions() if offsets is None else as_offsets(offsets)
        await self._committing.commit(chosen, self._cluster.deadline(timeout_ms))

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has committed; partitions without anything are left out. Offsets that an
        open transaction is about to commit are waited for."""
        group = self._need_group("committed")
        return await group.committed(list(partitions), self._cluster.deadline(timeout_ms))

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where the consumer stands in every partition it has a position in."""
        buffered = self._buffered()
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

    # Checks

    def _need_group(self, operation: str) -> GroupClient:
        if not self.settings.group_id:
            raise UsageError(f"{operation} needs a consumer with a group_id")
        self._need_started()
        assert self._group is not None
        return self._group
