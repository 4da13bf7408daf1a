"""The topics that are sent to: how many partitions they have, and the queue of each."""

from semel.client.cluster import Cluster
from semel.client.errors import no_such_partition
from semel.client.machines.accumulator import Accumulator, PartitionQueue
from semel.client.machines.metadata import TopicMetadata
from semel.client.machines.partitioner import StickyPartition
from semel.client.machines.patience import Deadline
from semel.client.machines.records import as_partition, as_topic
from semel.client.machines.types import TopicPartition


class SendTarget:
    """A topic that is sent to: what is looked up for every record."""

    __slots__ = ("known", "queues", "sticky")

    def __init__(self, known: TopicMetadata) -> None:
        self.known = known
        self.sticky = StickyPartition()
        self.queues: dict[int, PartitionQueue] = {}


class SendTargets:
    """SendTargets by the topics' names. Looking one up changes nothing but what is known."""

    def __init__(self, cluster: Cluster, accumulator: Accumulator) -> None:
        self.by_topic: dict[str, SendTarget] = {}
        self._cluster = cluster
        self._accumulator = accumulator

    async def find(self, topic: str, deadline: Deadline) -> SendTarget:
        """Made anew for a topic that was."""
        await self._cluster.topic(as_topic(topic), deadline)
        known = self._cluster.metadata.topics[topic]
        target = self.by_topic.get(topic)
        if target is None or target.known is not known:
            target = self.by_topic[topic] = SendTarget(known)
        return target

    async def queue(self, target: SendTarget, partition: int, deadline: Deadline) -> PartitionQueue:
        """Of a partition that was not sent to yet: it may be new, so metadata is asked once."""
        index = as_partition(partition)
        topic = target.known.name
        if index not in target.known.partitions:
            self._cluster.metadata.expire()
            target = await self.find(topic, deadline)
        if index not in target.known.partitions:
            raise no_such_partition(TopicPartition(topic, index), len(target.known.partitions))
        queue = self._accumulator.queue_of(TopicPartition(topic, index))
        target.queues[index] = queue
        return queue
