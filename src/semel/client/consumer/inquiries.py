"""What can be asked of a consumer beside records: topics, offsets, its lag, its metrics."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Generic

from semel.client.cluster import Cluster
from semel.client.consumer.records import ConsumerRecord, K, V
from semel.client.lifetime import Lifetime
from semel.client.machines.fetching import EARLIEST, LATEST, Reset, TopicPartitionState
from semel.client.machines.types import TopicPartition
from semel.client.metrics import ConsumerMeter, ConsumerMetrics
from semel.client.offsets import FoundOffset, list_offsets
from semel.client.settings import ConsumerSettings
from semel.errors import UsageError
from semel.wire.messages.metadata import MetadataRequest


class Inquiries(Lifetime, Generic[K, V]):
    """The consumer's part that changes nothing."""

    settings: ConsumerSettings
    """All settings as they are in force."""
    _cluster: Cluster
    _meter: ConsumerMeter
    _states: dict[TopicPartition, TopicPartitionState]
    _buffer: deque[ConsumerRecord[K, V]]  # polled by iteration, not given out yet
    _started_ms: float

    async def topics(self) -> frozenset[str]:
        """The topics that this client may see, without the brokers' own."""
        self._need_started()
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        answer = await self._cluster.ask(request)
        found = (topic for topic in answer.topics if not topic.error_code)
        return frozenset(topic.name for topic in found if not topic.is_internal)

    async def partitions_for(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions."""
        self._need_started()
        await self._cluster.topic(topic, self._cluster.deadline())
        return sorted(self._cluster.metadata.topics[topic].partitions)

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """The first offsets there are."""
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

    def lag(self, partition: TopicPartition) -> int | None:
        """Offsets behind the end, or None while that is not known. The end is the last stable
        offset, if only committed records are read."""
        return self._lag(self._state(partition), self._buffered())

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The offset behind the last record that is safe, as of the last fetch."""
        known = self._state(partition).high_watermark
        return None if known < 0 else known

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        """The offset up to which all transactions are decided, as of the last fetch."""
        known = self._state(partition).last_stable_offset
        return None if known < 0 else known

    def metrics(self) -> ConsumerMetrics:
        """What this consumer has done since it was started; see `ConsumerMetrics`."""
        self._need_started()
        meter, buffered = self._meter, self._buffered()
        lags = {place: self._lag(state, buffered) for place, state in self._states.items()}
        return {
            "uptime_s": (self._cluster.now_ms() - self._started_ms) / 1000,
            "records_received": meter.records,
            "bytes_received": meter.bytes,
            "fetch_latency_ms": meter.fetches.shown(),
            "polls": meter.polls,
            "records_undeserialized": meter.undeserialized,
            "lag": {partition: lag for partition, lag in lags.items() if lag is not None},
            "rebalances": meter.rebalances,
            "commit_latency_ms": meter.commits.shown(),
            "commits_failed": meter.commits_failed,
            "errors": dict(meter.errors),
            "connections": self._cluster.open_connections,
            "connections_failed": self._cluster.failed_connections,
        }

    def _lag(
        self, state: TopicPartitionState, buffered: Mapping[TopicPartition, int]
    ) -> int | None:
        committed = self.settings.isolation_level == "read_committed"
        end = state.last_stable_offset if committed else state.high_watermark
        position = buffered.get(state.partition, state.position)
        return end - position if end >= 0 and position >= 0 else None

    def _buffered(self) -> dict[TopicPartition, int]:
        """The first record that iteration holds ready, where it does: the position is before it."""
        return {record.topic_partition: record.offset for record in reversed(self._buffer)}

    async def _offsets(
        self, partitions: Iterable[TopicPartition], at: Reset
    ) -> dict[TopicPartition, int]:
        self._need_started()
        wanted = {TopicPartition(*p): at.timestamp for p in partitions}
        isolation = self.settings.isolation_level
        found = await list_offsets(self._cluster, wanted, isolation, self._cluster.deadline())
        return {partition: offset.offset for partition, offset in found.items()}

    def _state(self, partition: tuple[str, int]) -> TopicPartitionState:
        state = self._states.get(TopicPartition(*partition))
        if state is None:
            raise UsageError(f"{TopicPartition(*partition)} is not assigned to this consumer")
        return state
