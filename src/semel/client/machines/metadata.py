"""What the client knows of the cluster: brokers, topics, leaders; and when to ask again."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from semel.client.machines.types import Node, TopicPartition
from semel.wire.errors import ErrorCode
from semel.wire.messages.metadata import MetadataResponse

NO_TOPIC_ID = UUID(int=0)


@dataclass(slots=True)
class PartitionMetadata:
    leader: int
    leader_epoch: int = -1


@dataclass(slots=True)
class TopicMetadata:
    name: str
    topic_id: UUID = NO_TOPIC_ID
    is_internal: bool = False
    partitions: dict[int, PartitionMetadata] = field(default_factory=dict)


class ClusterMetadata:
    """A cache. `update` takes an answer in; a leader's epoch never goes back (KIP-320)."""

    def __init__(self, max_age_ms: float = 300_000.0) -> None:
        self.max_age_ms = max_age_ms
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.nodes: dict[int, Node] = {}
        self.topics: dict[str, TopicMetadata] = {}
        self.errors: dict[str, ErrorCode] = {}
        self.names: dict[UUID, str] = {}
        self.updated_ms: float | None = None
        self._stale = True

    def update(self, answer: MetadataResponse, now_ms: float, *, complete: bool = False) -> None:
        """`complete`: all topics were asked for, so those not in the answer are gone."""
        self.nodes = {b.node_id: Node(b.node_id, b.host, b.port) for b in answer.brokers}
        self.cluster_id = answer.cluster_id
        self.controller_id = answer.controller_id
        if complete:
            there = {topic.name for topic in answer.topics}
            self.topics = {name: t for name, t in self.topics.items() if name in there}
            self.errors = {name: code for name, code in self.errors.items() if name in there}
        for topic in answer.topics:
            if topic.name is not None:
                self._update_topic(topic.name, topic)
        self.updated_ms = now_ms
        self._stale = False

    def _update_topic(self, name: str, answer: MetadataResponse.MetadataResponseTopic) -> None:
        code = ErrorCode.of(answer.error_code)
        self.errors[name] = code
        if code is not ErrorCode.NONE:
            self.topics.pop(name, None)
            return
        known = self.topics.get(name)
        if known is None or known.topic_id != answer.topic_id:
            # Deleted and made again: nothing known of the old one holds.
            known = self.topics[name] = TopicMetadata(name, answer.topic_id, answer.is_internal)
            self.names[answer.topic_id] = name
        for partition in answer.partitions:
            fresh = PartitionMetadata(partition.leader_id, partition.leader_epoch)
            old = known.partitions.get(partition.partition_index)
            if old is None or fresh.leader_epoch < 0 or fresh.leader_epoch >= old.leader_epoch:
                known.partitions[partition.partition_index] = fresh

    def leader(self, partition: TopicPartition) -> Node | None:
        topic = self.topics.get(partition.topic)
        known = topic.partitions.get(partition.partition) if topic else None
        return self.nodes.get(known.leader) if known else None

    def leader_epoch(self, partition: TopicPartition) -> int:
        topic = self.topics.get(partition.topic)
        known = topic.partitions.get(partition.partition) if topic else None
        return known.leader_epoch if known else -1

    def leader_moved(self, partition: TopicPartition, leader: int, epoch: int) -> None:
        """An answer named the new leader (KIP-951): no need to ask."""
        topic = self.topics.get(partition.topic)
        known = topic.partitions.get(partition.partition) if topic else None
        if known is not None and epoch > known.leader_epoch and leader in self.nodes:
            known.leader, known.leader_epoch = leader, epoch
        else:
            self.expire()

    def partition_count(self, topic: str) -> int:
        known = self.topics.get(topic)
        return len(known.partitions) if known else 0

    def topic_id(self, topic: str) -> UUID:
        known = self.topics.get(topic)
        return known.topic_id if known else NO_TOPIC_ID

    def expire(self) -> None:
        """Something did not fit: ask again at the next opportunity."""
        self._stale = True

    def needs_refresh(self, now_ms: float, topics: Iterable[str] = ()) -> bool:
        if self._stale or self.updated_ms is None or now_ms - self.updated_ms >= self.max_age_ms:
            return True
        return any(topic not in self.topics for topic in topics)
