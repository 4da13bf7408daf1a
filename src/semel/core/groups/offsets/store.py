"""Committed offsets, and those that wait for the end of their transaction.

When the same partition is committed both inside and outside transactions, the later *record* wins,
not the later marker: else compaction of __consumer_offsets could change the outcome. `order`, the
number of the record among all applied, keeps that (Kafka's OffsetAndMetadata.recordOffset).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID


@dataclass(slots=True)  # not frozen: made for every commit
class CommittedOffset:
    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int
    topic_id: UUID
    order: int


ByPartition = dict[int, CommittedOffset]
ByTopic = dict[str, ByPartition]


class OffsetStore:
    def __init__(self) -> None:
        self._committed: dict[str, ByTopic] = {}
        self.pending: dict[int, dict[tuple[str, str, int], CommittedOffset]] = {}
        """By producer id: what its transaction will commit, if it does."""
        self._open: dict[str, dict[tuple[str, int], set[int]]] = {}

    # Questions

    def of_group(self, group_id: str) -> ByTopic:
        return self._committed.get(group_id, {})

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self.of_group(group_id).get(topic, {}).get(partition)

    def groups(self) -> Iterator[str]:
        return iter(self._committed)

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        return (topic, partition) in self._open.get(group_id, {})

    def pending_partitions(self, group_id: str) -> list[tuple[str, int]]:
        return list(self._open.get(group_id, {}))

    def has_open_transaction(self, group_id: str) -> bool:
        return group_id in self._open

    def partitions_of_topic(self, topic: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Every offset kept for a topic, committed or pending: (group, partition, offset)."""
        for group_id, topics in self._committed.items():
            for partition, offset in topics.get(topic, {}).items():
                yield group_id, partition, offset
        for offsets in self.pending.values():
            for (group_id, name, partition), offset in offsets.items():
                if name == topic:
                    yield group_id, partition, offset

    def everything(self) -> Iterator[tuple[str, str, int, CommittedOffset]]:
        """The same for all topics: (group, topic, partition, offset)."""
        for group_id, topics in self._committed.items():
            for topic, partitions in topics.items():
                for partition, offset in partitions.items():
                    yield group_id, topic, partition, offset
        for offsets in self.pending.values():
            for place, offset in offsets.items():
                yield *place, offset

    # Changes

    def commit(self, group_id: str, topic: str, partition: int, offset: CommittedOffset) -> None:
        self._committed.setdefault(group_id, {}).setdefault(topic, {})[partition] = offset

    def hold(
        self, producer_id: int, group_id: str, topic: str, partition: int, offset: CommittedOffset
    ) -> None:
        """Keep it until the transaction of this producer ends."""
        self.pending.setdefault(producer_id, {})[group_id, topic, partition] = offset
        holders = self._open.setdefault(group_id, {}).setdefault((topic, partition), set())
        holders.add(producer_id)

    def end(self, producer_id: int, commit: bool) -> None:
        """A marker: what the transaction committed counts, or was never there."""
        for (group_id, topic, partition), offset in self.pending.pop(producer_id, {}).items():
            self._release(group_id, topic, partition, producer_id)
            if commit:
                known = self.get(group_id, topic, partition)
                if known is None or offset.order > known.order:
                    self.commit(group_id, topic, partition, offset)

    def delete(self, group_id: str, topic: str, partition: int) -> None:
        """Gone for good: a pending offset of an open transaction goes too."""
        topics = self._committed.get(group_id, {})
        partitions = topics.get(topic, {})
        partitions.pop(partition, None)
        if not partitions:
            topics.pop(topic, None)
        if not topics:
            self._committed.pop(group_id, None)
        for producer_id in self._open.get(group_id, {}).get((topic, partition), set()).copy():
            held = self.pending[producer_id]
            del held[group_id, topic, partition]
            if not held:
                del self.pending[producer_id]
            self._release(group_id, topic, partition, producer_id)

    def _release(self, group_id: str, topic: str, partition: int, producer_id: int) -> None:
        partitions = self._open[group_id]
        holders = partitions[topic, partition]
        holders.discard(producer_id)
        if not holders:
            del partitions[topic, partition]
        if not partitions:
            del self._open[group_id]
