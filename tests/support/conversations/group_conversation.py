"""A scripted exchange about groups, told in a way that can be compared with another broker's.

Several members speak over connections of their own, since JoinGroup and SyncGroup may be answered
late. Member ids, topics and groups have names of chance; the transcript shows symbols for them, in
the order of first sight, and everything else as it was answered.
"""

from __future__ import annotations

import time
import uuid
from typing import Any

from tests.support.conversations.conversation import UNSETTLED, Conversation
from tests.support.conversations.raw_client import RawClient
from tests.support.groups.subscriptions import write_subscription

from semel.core.groups.classic import embedded
from semel.wire.errors import ErrorCode
from semel.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from semel.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from semel.wire.messages.delete_groups import DeleteGroupsRequest
from semel.wire.messages.describe_groups import DescribeGroupsRequest
from semel.wire.messages.heartbeat import HeartbeatRequest
from semel.wire.messages.join_group import JoinGroupRequest
from semel.wire.messages.leave_group import LeaveGroupRequest
from semel.wire.messages.list_groups import ListGroupsRequest
from semel.wire.messages.metadata import MetadataRequest
from semel.wire.messages.offset_commit import OffsetCommitRequest
from semel.wire.messages.offset_delete import OffsetDeleteRequest
from semel.wire.messages.offset_fetch import OffsetFetchRequest
from semel.wire.messages.sync_group import SyncGroupRequest

JOIN, SYNC = 11, 14


class GroupConversation:
    """`a.join()` … speak as member `a`; `c.admin_…` speak as nobody in particular."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.transactions = Conversation(bootstrap, partitions=4)  # makes the topic, too
        self.topic, self.group = self.transactions.topic, self.transactions.group
        self.client = self.transactions.client
        self.transcript = self.transactions.transcript
        self._symbols = {self.topic: "T", self.group: "G", "": "nobody"}
        self._members: list[Member] = []
        metadata = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=self.topic)])
        self.topic_id: uuid.UUID = self.client.ask(metadata, 10).topics[0].topic_id
        self._wait_for_coordinator()

    def _wait_for_coordinator(self) -> None:
        """Kafka makes the offsets topic when it is first asked, and says so with errors."""
        request = DescribeGroupsRequest(groups=[self.group])
        while self.client.ask(request, 5).groups[0].error_code in UNSETTLED:
            time.sleep(0.1)

    def member(self, name: str, instance_id: str | None = None) -> Member:
        self._members.append(Member(self, name, RawClient(self._bootstrap, name), instance_id))
        return self._members[-1]

    def close(self) -> None:
        for member in self._members:
            member.client.close()
        self.transactions.close()

    def symbol(self, name: str | None) -> str:
        if name is None:
            return "none"
        return self._symbols.setdefault(name, f"M{len(self._symbols)}")

    def tell(self, what: str, error: int, *more: Any) -> None:
        shown = " ".join(str(part) for part in more)
        self.transcript.append(f"{what} -> {ErrorCode.of(error).name} {shown}".rstrip())

    # As an administrator

    def fetch(
        self, *partitions: int, version: int = 9, require_stable: bool = False, **fields: Any
    ) -> None:
        """`topic`, `topic_id`: another one; the rest is of the group: `member_epoch` and such."""
        wanted = OffsetFetchRequest.OffsetFetchRequestTopics(
            name=fields.pop("topic", self.topic),
            topic_id=fields.pop("topic_id", self.topic_id),
            partition_indexes=list(partitions),
        )
        given: dict[str, Any] = {"group_id": self.group, "topics": [wanted] if partitions else None}
        asked = OffsetFetchRequest.OffsetFetchRequestGroup(**(given | fields))
        request = OffsetFetchRequest(groups=[asked], require_stable=require_stable)
        [group] = self.client.ask(request, version).groups
        shown = f"OffsetFetch v{version} {list(partitions)}"
        self.tell(shown, group.error_code, _fetched(group.topics))

    def fetch_as_of_old(self, *partitions: int, version: int) -> None:
        """Before version 8: one group, and its topics by name."""
        wanted = OffsetFetchRequest.OffsetFetchRequestTopic(
            name=self.topic, partition_indexes=list(partitions)
        )
        request = OffsetFetchRequest(
            group_id=self.group, topics=[wanted] if partitions or version < 2 else None
        )
        answer = self.client.ask(request, version)
        shown = f"OffsetFetch v{version} {list(partitions)}"
        self.tell(shown, answer.error_code, _fetched(answer.topics))

    def fetch_groups(self, *groups: str) -> None:
        asked = [
            OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
            for group in groups
        ]
        for group in self.client.ask(OffsetFetchRequest(groups=asked), 8).groups:
            self.tell("OffsetFetch of several", group.error_code, _fetched(group.topics))

    def delete_offsets(self, *partitions: int, group: str | None = None) -> None:
        wanted = OffsetDeleteRequest.OffsetDeleteRequestTopic(
            name=self.topic,
            partitions=[
                OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=partition)
                for partition in partitions
            ],
        )
        request = OffsetDeleteRequest(group_id=group or self.group, topics=[wanted])
        answer = self.client.ask(request, 0)
        errors = {
            p.partition_index: ErrorCode.of(p.error_code).name
            for topic in answer.topics
            for p in topic.partitions
        }
        shown = f"OffsetDelete {list(partitions)}"
        self.tell(shown, answer.error_code, sorted(errors.items()))

    def describe(self, version: int = 6, group: str | None = None) -> None:
        request = DescribeGroupsRequest(groups=[group or self.group])
        [found] = self.client.ask(request, version).groups
        members = sorted(
            (m.client_id, m.client_host, len(m.member_metadata), len(m.member_assignment))
            for m in found.members
        )
        self.tell(
            f"DescribeGroups v{version}", found.error_code,
            found.group_state, found.protocol_type, found.protocol_data, members,
        )  # fmt: skip

    def describe_consumer(self) -> None:
        request = ConsumerGroupDescribeRequest(group_ids=[self.group])
        [found] = self.client.ask(request, 1).groups
        members = sorted(
            (
                m.client_id, m.member_epoch, m.member_type,
                m.subscribed_topic_names == [self.topic],
                _counts(m.assignment), _counts(m.target_assignment),
            )
            for m in found.members
        )  # fmt: skip
        self.tell(
            "ConsumerGroupDescribe", found.error_code, found.group_state, found.group_epoch,
            found.assignment_epoch, found.assignor_name, members,
        )  # fmt: skip

    def listed(self, **filters: list[str]) -> None:
        answer = self.client.ask(ListGroupsRequest(**filters), 5)
        mine = [
            (g.protocol_type, g.group_state, g.group_type)
            for g in answer.groups
            if g.group_id == self.group
        ]
        self.tell(f"ListGroups {filters}", answer.error_code, mine)

    def delete_group(self, group: str | None = None) -> None:
        answer = self.client.ask(DeleteGroupsRequest(groups_names=[group or self.group]), 2)
        self.tell("DeleteGroups", answer.results[0].error_code)

    def admin_commit(self, offset: int, partition: int = 0, **fields: Any) -> None:
        Member(self, "admin", self.client, None).commit(offset, partition, **fields)


class Member:
    def __init__(
        self, talk: GroupConversation, name: str, client: RawClient, instance_id: str | None
    ) -> None:
        self.talk = talk
        self.name = name
        self.client = client
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.leads: list[str] = []
        self.owned: dict[uuid.UUID, list[int]] = {}

    # The classic protocol

    def ask_to_join(self, version: int = 9, **fields: Any) -> None:
        """Send JoinGroup; `hear_join` takes the answer, maybe much later."""
        subscription = write_subscription([self.talk.topic])
        given: dict[str, Any] = {
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 30_000,
            "protocol_type": "consumer",
            "protocols": [
                JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=subscription)
            ],
            "group_instance_id": self.instance_id if version >= 5 else None,
        }
        request = JoinGroupRequest(
            group_id=self.talk.group, member_id=self.member_id, **(given | fields)
        )
        self.client.tell(request, version)

    def hear_join(self, version: int = 9) -> int:
        answer = self.client.hear(JOIN, version)
        self.member_id = answer.member_id or self.member_id
        if answer.error_code == 0:
            self.generation = answer.generation_id
            self.leads = [member.member_id for member in answer.members]
        # The order of members is that of a hash table in Kafka: only who they are is compared.
        talk, instances = self.talk, sorted(str(m.group_instance_id) for m in answer.members)
        talk.tell(
            f"{self.name} JoinGroup v{version}", answer.error_code, talk.symbol(answer.member_id),
            answer.generation_id, answer.protocol_type, answer.protocol_name,
            talk.symbol(answer.leader), answer.skip_assignment, instances,
        )  # fmt: skip
        error: int = answer.error_code
        return error

    def join(self, version: int = 9, **fields: Any) -> None:
        """Join and hear it, in two steps where the broker wants them."""
        self.ask_to_join(version, **fields)
        if self.hear_join(version) == ErrorCode.MEMBER_ID_REQUIRED:
            self.ask_to_join(version, **fields)
            self.hear_join(version)

    def ask_to_sync(self, version: int = 5, **fields: Any) -> None:
        hands = [
            SyncGroupRequest.SyncGroupRequestAssignment(
                member_id=member_id,
                assignment=embedded.write_assignment(
                    {self.talk.topic: list(range(4))[index :: len(self.leads)]}, 1
                ),
            )
            for index, member_id in enumerate(sorted(self.leads, key=self._myself_first))
        ]
        given: dict[str, Any] = {
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id if version >= 3 else None,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": hands,
        }
        self.client.tell(SyncGroupRequest(group_id=self.talk.group, **(given | fields)), version)

    def _myself_first(self, member_id: str) -> bool:
        return member_id != self.member_id

    def hear_sync(self, version: int = 5) -> None:
        answer = self.client.hear(SYNC, version)
        self.talk.tell(
            f"{self.name} SyncGroup v{version}", answer.error_code,
            answer.protocol_type, answer.protocol_name, _assigned(answer.assignment),
        )  # fmt: skip

    def sync(self, version: int = 5, **fields: Any) -> None:
        self.ask_to_sync(version, **fields)
        self.hear_sync(version)

    def beat(self, generation: int | None = None, member_id: str | None = None) -> None:
        request = HeartbeatRequest(
            group_id=self.talk.group,
            generation_id=self.generation if generation is None else generation,
            member_id=self.member_id if member_id is None else member_id,
            group_instance_id=self.instance_id,
        )
        answer = self.client.ask(request, 4)
        self.talk.tell(f"{self.name} Heartbeat {request.generation_id}", answer.error_code)

    def leave(self, member_id: str | None = None, version: int = 5) -> None:
        mine = self.member_id if member_id is None else member_id
        request = LeaveGroupRequest(group_id=self.talk.group)
        if version < 3:
            request.member_id = mine
        else:
            identity = LeaveGroupRequest.MemberIdentity(
                member_id=mine, group_instance_id=self.instance_id
            )
            request.members = [identity]
        answer = self.client.ask(request, version)
        errors = [ErrorCode.of(m.error_code).name for m in answer.members]
        self.talk.tell(f"{self.name} LeaveGroup v{version}", answer.error_code, errors)

    # Offsets

    def commit(self, offset: int, partition: int = 0, version: int = 9, **fields: Any) -> None:
        wanted = OffsetCommitRequest.OffsetCommitRequestTopic(
            name=fields.pop("topic", self.talk.topic),
            topic_id=self.talk.topic_id,
            partitions=[
                OffsetCommitRequest.OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_metadata=fields.pop("metadata", ""),
                )
            ],
        )
        given: dict[str, Any] = {
            "generation_id_or_member_epoch": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id if version >= 7 else None,
        }
        request = OffsetCommitRequest(group_id=self.talk.group, topics=[wanted], **(given | fields))
        [topic] = self.client.ask(request, version).topics
        shown = f"{self.name} OffsetCommit v{version} p{partition} {offset}"
        self.talk.tell(shown, topic.partitions[0].error_code)

    # The consumer protocol

    def heartbeat(self, epoch: int | None = None, version: int = 1, **fields: Any) -> None:
        """Epoch 0 joins; without one, the member goes on where it stands and says what it owns."""
        if not self.member_id and version >= 1:
            self.member_id = str(uuid.uuid4())
        epoch = self.generation if epoch is None else epoch
        given: dict[str, Any] = {"topic_partitions": self._owned()}
        if epoch == 0:
            given = {
                "rebalance_timeout_ms": 30_000,
                "subscribed_topic_names": [self.talk.topic],
                "topic_partitions": [],
            }
        request = ConsumerGroupHeartbeatRequest(
            group_id=fields.pop("group_id", self.talk.group),
            member_id=fields.pop("member_id", self.member_id),
            member_epoch=epoch,
            instance_id=self.instance_id,
            **(given | fields),
        )
        answer = self.client.ask(request, version)
        told = None
        if answer.error_code == 0:
            self.generation = answer.member_epoch
            self.member_id = answer.member_id
            if answer.assignment is not None:
                told = sum(len(t.partitions) for t in answer.assignment.topic_partitions)
                self._reconcile(answer.assignment)
        self.talk.tell(
            f"{self.name} ConsumerGroupHeartbeat {epoch}", answer.error_code,
            answer.error_message if answer.error_code == ErrorCode.INVALID_REQUEST else "",
            answer.member_epoch, f"told {told}",
        )  # fmt: skip

    def _owned(self) -> list[Any]:
        return [
            ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic, partitions=partitions)
            for topic, partitions in self.owned.items()
        ]

    def _reconcile(self, assignment: Any) -> None:
        """Lets go and takes up at once; which partitions those are is the broker's choice."""
        self.owned = {t.topic_id: list(t.partitions) for t in assignment.topic_partitions}


def _assigned(assignment: bytes) -> Any:
    if not assignment:
        return []
    try:
        found = embedded.read_assignment(assignment).assigned_partitions
    except embedded.Malformed:
        return assignment
    return [sorted(topic.partitions) for topic in found]


def _fetched(topics: list[Any]) -> list[tuple[Any, ...]]:
    return [
        (p.partition_index, p.committed_offset, p.committed_leader_epoch, p.metadata)
        + ((ErrorCode.of(p.error_code).name,) if p.error_code else ())
        for topic in topics
        for p in sorted(topic.partitions, key=lambda p: p.partition_index)
    ]


def _counts(assignment: Any) -> int:
    return sum(len(topic.partitions) for topic in assignment.topic_partitions)
