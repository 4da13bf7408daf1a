"""A member of a classic consumer group: joining, the leader's work, heartbeats, errors.

Pure. The shell sends what is built here and reports the answers; `Membership` says what is next.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from semel.client.machines.assignors import ASSIGNORS, Member
from semel.client.machines.types import GroupMetadata, TopicPartition
from semel.wire.errors import ErrorCode
from semel.wire.messages.heartbeat import HeartbeatRequest
from semel.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from semel.wire.messages.sync_group import SyncGroupRequest
from semel.wire.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

E = ErrorCode
_SUBSCRIPTION_VERSION = 3
_ASSIGNMENT_VERSION = 0


class Next(Enum):
    GO_ON = "go on"
    JOIN = "join again"
    FIND = "look the coordinator up, then join again"
    WAIT = "the same again after a wait"
    FAIL = "tell the user"


class ClassicMemberSettings(NamedTuple):
    group_id: str
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    instance_id: str | None = None
    strategies: tuple[str, ...] = ("range",)


class Membership:
    def __init__(self, settings: ClassicMemberSettings) -> None:
        unknown = [name for name in settings.strategies if name not in ASSIGNORS]
        if unknown or not settings.strategies:
            raise ValueError(
                f"unknown partition_assignment_strategy {', '.join(unknown) or '(none)'}: "
                f"use {', '.join(ASSIGNORS)}"
            )
        self.settings = settings
        self.member_id = ""
        self.generation = -1
        self.protocol = ""
        self.leader = False
        self.topics: frozenset[str] = frozenset()
        self.assigned: frozenset[TopicPartition] = frozenset()
        self.wants_to_join = True
        self._others: Mapping[str, Member] = {}

    @property
    def cooperative(self) -> bool:
        """Whether partitions are kept over a rebalance: only if every strategy can (KIP-429)."""
        return all(name == "cooperative-sticky" for name in self.settings.strategies)

    @property
    def group_metadata(self) -> GroupMetadata:
        return GroupMetadata(
            self.settings.group_id, self.generation, self.member_id, self.settings.instance_id
        )

    def subscribe(self, topics: Iterable[str]) -> None:
        wanted = frozenset(topics)
        if wanted != self.topics:
            self.topics = wanted
            self.wants_to_join = True

    # Joining

    def join_request(self) -> JoinGroupRequest:
        subscription = bytearray(_SUBSCRIPTION_VERSION.to_bytes(2, "big"))
        ConsumerProtocolSubscription(
            topics=sorted(self.topics),
            owned_partitions=[
                ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=indexes)
                for topic, indexes in by_topic(self.assigned).items()
            ],
            generation_id=self.generation,
        ).encode(subscription, _SUBSCRIPTION_VERSION)
        return JoinGroupRequest(
            group_id=self.settings.group_id,
            session_timeout_ms=self.settings.session_timeout_ms,
            rebalance_timeout_ms=self.settings.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.settings.instance_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=bytes(subscription))
                for name in self.settings.strategies
            ],
        )

    def joined(self, answer: JoinGroupResponse) -> Next:
        code = E.of(answer.error_code)
        if code is E.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return Next.JOIN
        if code is not E.NONE:
            return self.refused(code)
        self.member_id = answer.member_id
        self.generation = answer.generation_id
        self.protocol = answer.protocol_name or ""
        self.leader = answer.leader == answer.member_id
        self.wants_to_join = False
        self._others = {
            member.member_id: _subscription(member.metadata, member.group_instance_id)
            for member in answer.members
        }
        return Next.GO_ON

    @property
    def topics_of_all(self) -> frozenset[str]:
        """What the leader must know the partition counts of."""
        return frozenset(topic for member in self._others.values() for topic in member.topics)

    def sync_request(self, partitions: Mapping[str, int]) -> SyncGroupRequest:
        request = SyncGroupRequest(
            group_id=self.settings.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.settings.instance_id,
            protocol_type="consumer",
            protocol_name=self.protocol,
        )
        if self.leader:
            shares = ASSIGNORS[self.protocol](self._others, partitions)
            request.assignments = [
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=member, assignment=_encode_assignment(share)
                )
                for member, share in shares.items()
            ]
        return request

    def synced(self, error_code: int, assignment: bytes) -> tuple[Next, frozenset[TopicPartition]]:
        """What is next, and the partitions that are ours now."""
        code = E.of(error_code)
        if code is not E.NONE:
            return self.refused(code), self.assigned
        mine = decode_assignment(assignment)
        if self.cooperative and self.assigned - mine:
            self.wants_to_join = True  # given up what others wait for: tell the group
        self.assigned = mine
        return Next.GO_ON, mine

    # Staying

    def heartbeat_request(self) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self.settings.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.settings.instance_id,
        )

    def refused(self, code: ErrorCode) -> Next:
        """An error from the group's coordinator, to whichever request."""
        if code in (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE):
            return Next.FIND
        if code is E.REBALANCE_IN_PROGRESS:
            self.wants_to_join = True
            return Next.JOIN
        if code in (E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION):
            self.reset(keep_id=code is E.ILLEGAL_GENERATION)
            return Next.JOIN
        return Next.WAIT if code.retriable else Next.FAIL

    def reset(self, keep_id: bool = False) -> None:
        """No longer a member: whatever was assigned may be another's by now."""
        self.generation = -1
        self.member_id = self.member_id if keep_id else ""
        self.assigned = frozenset()
        self.wants_to_join = True


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    result: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        result.setdefault(topic, []).append(partition)
    return result


def _subscription(data: bytes, instance_id: str | None) -> Member:
    version = min(int.from_bytes(data[:2], "big"), _SUBSCRIPTION_VERSION)
    said, _ = ConsumerProtocolSubscription.decode(data, 2, version)
    owned = frozenset(
        TopicPartition(entry.topic, index)
        for entry in said.owned_partitions
        for index in entry.partitions
    )
    return Member(frozenset(said.topics), owned, said.generation_id, instance_id)


def _encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    out = bytearray(_ASSIGNMENT_VERSION.to_bytes(2, "big"))
    ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    ).encode(out, _ASSIGNMENT_VERSION)
    return bytes(out)


def decode_assignment(data: bytes) -> frozenset[TopicPartition]:
    if not data:
        return frozenset()
    version = min(int.from_bytes(data[:2], "big"), 3)
    said, _ = ConsumerProtocolAssignment.decode(data, 2, version)
    return frozenset(
        TopicPartition(entry.topic, index)
        for entry in said.assigned_partitions
        for index in entry.partitions
    )
