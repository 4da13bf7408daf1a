"""Consumer groups: who is in them, where they stand, and how far behind they are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from semel.client.cluster import Cluster
from semel.client.errors import error_for
from semel.client.machines.membership import by_topic, decode_assignment
from semel.client.machines.types import OffsetAndMetadata, TopicPartition
from semel.client.offsets import FoundOffset, list_offsets
from semel.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from semel.wire.messages.delete_groups import DeleteGroupsRequest
from semel.wire.messages.describe_groups import DescribeGroupsRequest
from semel.wire.messages.list_groups import ListGroupsRequest
from semel.wire.messages.offset_commit import OffsetCommitRequest
from semel.wire.messages.offset_fetch import OffsetFetchRequest
from semel.wire.schema import Message

_GROUP = 0


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group among others."""

    group_id: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group, and what it reads."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group and its members."""

    group_id: str
    state: str
    assignor: str
    members: tuple[GroupMember, ...]


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a group is behind in a partition: to what a committed reader can see at all."""

    partition: TopicPartition
    committed: int
    last_stable_offset: int
    high_watermark: int

    @property
    def lag(self) -> int:
        """Offsets that could be read and are not committed yet."""
        return max(0, self.last_stable_offset - self.committed)

    @property
    def held_back(self) -> int:
        """Records that an open transaction keeps from being read."""
        return self.high_watermark - self.last_stable_offset


class GroupAdministration:
    _cluster: Cluster

    async def list_groups(self) -> list[GroupListing]:
        """All groups of all brokers."""
        await self._cluster.refresh()
        found: dict[str, GroupListing] = {}
        for node in self._cluster.metadata.nodes.values():
            answer = await self._cluster.ask(ListGroupsRequest(), node=node)
            if answer.error_code:
                raise error_for(answer.error_code, "groups cannot be listed")
            for group in answer.groups:
                found[group.group_id] = GroupListing(
                    group.group_id, group.group_state, group.group_type
                )
        return [found[name] for name in sorted(found)]

    async def describe_group(self, group_id: str) -> GroupDescription:
        """Its state, and who its members are."""
        kinds = {group.group_id: group.type for group in await self.list_groups()}
        if kinds.get(group_id, "").lower() == "consumer":
            return await self._describe_consumer_group(group_id)
        group = await self._described(group_id, DescribeGroupsRequest(groups=[group_id]))
        members = tuple(
            GroupMember(
                member.member_id,
                member.client_id,
                member.client_host,
                member.group_instance_id,
                decode_assignment(bytes(member.member_assignment))
                if group.protocol_type == "consumer"
                else frozenset(),
            )
            for member in group.members
        )
        return GroupDescription(group_id, group.group_state, group.protocol_data, members)

    async def _describe_consumer_group(self, group_id: str) -> GroupDescription:
        group = await self._described(group_id, ConsumerGroupDescribeRequest(group_ids=[group_id]))
        members = tuple(
            GroupMember(
                member.member_id,
                member.client_id,
                member.client_host,
                member.instance_id,
                frozenset(
                    TopicPartition(topic.topic_name, index)
                    for topic in member.assignment.topic_partitions
                    for index in topic.partitions
                ),
            )
            for member in group.members
        )
        return GroupDescription(group_id, group.group_state, group.assignor_name, members)

    async def _described(self, group_id: str, request: Message) -> Any:
        """What the coordinator says of the one group that the request names."""
        deadline = self._cluster.deadline()
        node = await self._cluster.find_coordinator(_GROUP, group_id, deadline)
        answer = await self._cluster.ask(request, node=node, deadline=deadline)
        group = answer.groups[0]
        if group.error_code:
            raise error_for(group.error_code, f"group {group_id!r}", why=group.error_message)
        return group

    async def delete_groups(self, group_ids: Iterable[str]) -> None:
        """Deletes groups that have no members, with all that they have committed."""
        deadline = self._cluster.deadline()
        for group_id in group_ids:
            node = await self._cluster.find_coordinator(_GROUP, group_id, deadline)
            request = DeleteGroupsRequest(groups_names=[group_id])
            answer = await self._cluster.ask(request, node=node, deadline=deadline)
            if answer.results[0].error_code:
                raise error_for(answer.results[0].error_code, f"group {group_id!r}")

    async def group_offsets(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Everything that the group has committed."""
        deadline = self._cluster.deadline()
        node = await self._cluster.find_coordinator(_GROUP, group_id, deadline)

        def request(version: int) -> Message:
            if version < 8:
                return OffsetFetchRequest(group_id=group_id, topics=None)
            group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group_id, topics=None)
            return OffsetFetchRequest(groups=[group])

        answer = await self._cluster.ask(
            request, of=OffsetFetchRequest, node=node, deadline=deadline, at_most=9
        )
        found = answer.groups[0] if answer.groups else answer
        if found.error_code:
            raise error_for(found.error_code, f"group {group_id!r}")
        return {
            TopicPartition(topic.name, result.partition_index): OffsetAndMetadata(
                result.committed_offset, result.metadata or "", result.committed_leader_epoch
            )
            for topic in found.topics
            for result in topic.partitions
            if result.committed_offset >= 0
        }

    async def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int]
    ) -> None:
        """Moves a group that has no members."""
        deadline = self._cluster.deadline()
        node = await self._cluster.find_coordinator(_GROUP, group_id, deadline)
        request = OffsetCommitRequest(
            group_id=group_id,
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequest.OffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offsets[TopicPartition(topic, index)],
                            committed_metadata="",
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(offsets).items()
            ],
        )
        answer = await self._cluster.ask(request, node=node, deadline=deadline, at_most=9)
        for topic in answer.topics:
            for result in topic.partitions:
                if result.error_code:
                    what = f"group {group_id!r}, {topic.name}-{result.partition_index}"
                    raise error_for(result.error_code, what)

    async def group_lag(self, group_id: str) -> list[Lag]:
        """How far the group is behind, for each partition that it has committed in."""
        committed = await self.group_offsets(group_id)
        ends = dict.fromkeys(committed, -1)
        stable = await self._ends(ends, "read_committed")
        written = await self._ends(ends, "read_uncommitted")
        return [
            Lag(partition, offset.offset, stable[partition].offset, written[partition].offset)
            for partition, offset in sorted(committed.items())
        ]

    async def _ends(
        self, at: Mapping[TopicPartition, int], isolation: str
    ) -> dict[TopicPartition, FoundOffset]:
        return await list_offsets(self._cluster, at, isolation, self._cluster.deadline())
