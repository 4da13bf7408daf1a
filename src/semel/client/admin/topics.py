"""Topics, their partitions, configs and records."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from semel.client.cluster import Cluster
from semel.client.errors import error_for
from semel.client.machines.metadata import TopicMetadata
from semel.client.machines.types import Node, TopicPartition
from semel.client.offsets import FoundOffset, list_offsets
from semel.client.settings.clients import IsolationLevel
from semel.errors import UsageError
from semel.wire.errors import ErrorCode
from semel.wire.messages.create_partitions import CreatePartitionsRequest
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.delete_records import DeleteRecordsRequest
from semel.wire.messages.delete_topics import DeleteTopicsRequest
from semel.wire.messages.describe_cluster import DescribeClusterRequest
from semel.wire.messages.describe_configs import DescribeConfigsRequest
from semel.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from semel.wire.messages.metadata import MetadataRequest
from semel.wire.schema import Message

_TOPIC, _BROKER = 2, 4  # ConfigResource.Type
_SET, _DELETE = 0, 1  # AlterConfigOp.OpType


@dataclass(frozen=True)
class NewTopic:
    """A topic to be created; −1 leaves a number to the broker."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """A cluster and its brokers."""

    cluster_id: str
    controller_id: int
    brokers: tuple[Node, ...]


class TopicAdministration:
    _cluster: Cluster

    async def describe_cluster(self) -> ClusterInfo:
        """The cluster's id, its controller and its brokers."""
        answer = await self._cluster.ask(DescribeClusterRequest())
        if answer.error_code:
            raise error_for(answer.error_code, "the cluster", why=answer.error_message)
        brokers = tuple(Node(b.broker_id, b.host, b.port) for b in answer.brokers)
        return ClusterInfo(answer.cluster_id, answer.controller_id, brokers)

    async def create_topics(
        self, topics: Iterable[NewTopic | str], *, exist_ok: bool = False
    ) -> None:
        """All of them, or an error that names the first that could not be created."""
        wanted = [NewTopic(topic) if isinstance(topic, str) else topic for topic in topics]
        request = CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name=topic.name,
                    num_partitions=topic.partitions,
                    replication_factor=topic.replication_factor,
                    configs=[
                        CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
                        for name, value in topic.configs.items()
                    ],
                )
                for topic in wanted
            ],
            timeout_ms=self._cluster.settings.request_timeout_ms,
        )
        answer = await self._cluster.ask(request, node=await self._controller())
        for result in answer.topics:
            exists = result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
            if result.error_code and not (exists and exist_ok):
                raise error_for(
                    result.error_code, f"topic {result.name!r}", why=result.error_message
                )

    async def delete_topics(self, names: Iterable[str], *, missing_ok: bool = False) -> None:
        """All of them, or an error that names the first that could not be deleted."""
        wanted = list(names)

        def request(version: int) -> Message:
            timeout_ms = self._cluster.settings.request_timeout_ms
            if version < 6:
                return DeleteTopicsRequest(topic_names=wanted, timeout_ms=timeout_ms)
            states = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in wanted]
            return DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)

        node = await self._controller()
        answer = await self._cluster.ask(request, of=DeleteTopicsRequest, node=node)
        for result in answer.responses:
            missing = result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if result.error_code and not (missing and missing_ok):
                raise error_for(
                    result.error_code, f"topic {result.name!r}", why=result.error_message
                )

    async def create_partitions(self, counts: Mapping[str, int]) -> None:
        """Grows topics to these numbers of partitions."""
        request = CreatePartitionsRequest(
            topics=[
                CreatePartitionsRequest.CreatePartitionsTopic(
                    name=name, count=count, assignments=None
                )
                for name, count in counts.items()
            ],
            timeout_ms=self._cluster.settings.request_timeout_ms,
        )
        answer = await self._cluster.ask(request, node=await self._controller())
        for result in answer.results:
            if result.error_code:
                what = f"topic {result.name!r}"
                raise error_for(result.error_code, what, why=result.error_message)

    async def list_topics(self, *, internal: bool = False) -> list[str]:
        """The names of all topics; the brokers' own too, if asked for."""
        topics = await self.describe_topics()
        return sorted(name for name, topic in topics.items() if internal or not topic.is_internal)

    async def describe_topics(self, names: Iterable[str] | None = None) -> dict[str, TopicMetadata]:
        """Partitions and leaders of these topics, or of all."""
        wanted = None if names is None else list(names)
        request = MetadataRequest(
            topics=None
            if wanted is None
            else [MetadataRequest.MetadataRequestTopic(name=name) for name in wanted],
            allow_auto_topic_creation=False,
        )
        answer = await self._cluster.ask(request)
        self._cluster.metadata.update(answer, self._cluster.now_ms(), complete=wanted is None)
        for topic in answer.topics:
            if topic.error_code and wanted is not None:
                raise error_for(topic.error_code, f"topic {topic.name!r}")
        topics = self._cluster.metadata.topics
        return {name: topics[name] for name in (topics if wanted is None else wanted)}

    async def describe_configs(
        self, topic: str | None = None, *, broker: int | None = None, only_changed: bool = False
    ) -> dict[str, str | None]:
        """The configs of a topic, or of a broker by its id; `only_changed` leaves defaults out."""
        if (topic is None) == (broker is None):
            raise UsageError("describe_configs of a topic or of a broker: name one of the two")
        kind, name = (_TOPIC, topic or "") if broker is None else (_BROKER, str(broker))
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None
        )
        node = None if broker is None else await self._broker(broker)
        request, deadline = DescribeConfigsRequest(resources=[resource]), self._cluster.deadline()
        attempt = 0
        while True:
            answer = await self._cluster.ask(request, node=node, deadline=deadline)
            result = answer.results[0]
            attempt += 1
            code = ErrorCode.of(result.error_code)
            if code is ErrorCode.NONE:
                break
            # A topic just created is not known everywhere at once.
            if attempt > 10 or not await self._cluster.may_try_again(code, attempt, deadline):
                raise error_for(code, f"configs of {name!r}", why=result.error_message)
        default = 5  # ConfigSource.DEFAULT_CONFIG
        return {
            config.name: config.value
            for config in result.configs
            if not (only_changed and config.config_source == default)
        }

    async def alter_configs(self, topic: str, changes: Mapping[str, str | None]) -> None:
        """Sets configs of a topic; None takes one back to its default."""
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=_TOPIC,
            resource_name=topic,
            configs=[
                IncrementalAlterConfigsRequest.AlterableConfig(
                    name=name, value=value, config_operation=_DELETE if value is None else _SET
                )
                for name, value in changes.items()
            ],
        )
        answer = await self._cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]))
        result = answer.responses[0]
        if result.error_code:
            raise error_for(result.error_code, f"configs of {topic!r}", why=result.error_message)

    async def list_offsets(
        self,
        at: Mapping[TopicPartition, int],
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> dict[TopicPartition, FoundOffset]:
        """Offsets by timestamp; −1 is the end, −2 the beginning. The end is the last stable offset
        with `read_committed`, else the high watermark."""
        wanted = {TopicPartition(*partition): when for partition, when in at.items()}
        deadline = self._cluster.deadline()
        return await list_offsets(self._cluster, wanted, isolation_level, deadline)

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Deletes everything below these offsets."""
        deadline = self._cluster.deadline()
        for partition, offset in before.items():
            topic, index = partition
            await self._cluster.topic(topic, deadline)
            entry = DeleteRecordsRequest.DeleteRecordsPartition(
                partition_index=index, offset=offset
            )
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[entry])],
                timeout_ms=self._cluster.settings.request_timeout_ms,
            )
            leader = self._cluster.metadata.leader(TopicPartition(topic, index))
            answer = await self._cluster.ask(request, node=leader, deadline=deadline)
            code = answer.topics[0].partitions[0].error_code
            if code:
                raise error_for(code, f"records of {topic}-{index}")

    async def _controller(self) -> Node | None:
        if self._cluster.metadata.updated_ms is None:
            await self._cluster.refresh()
        return self._cluster.metadata.nodes.get(self._cluster.metadata.controller_id)

    async def _broker(self, node_id: int) -> Node:
        await self._cluster.refresh()
        node = self._cluster.metadata.nodes.get(node_id)
        if node is None:
            raise error_for(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {node_id}")
        return node
