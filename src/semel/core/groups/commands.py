"""What a group coordinator is asked: one class per request, and events of time and of the broker.

`request_id` names a request that may be answered later (see `replies.LATER`). A machine rolls no
dice, so new member ids come with the command as `fresh_member_id`.
"""

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from semel.core.groups.replies import (
    CommitReply,
    DeleteOffsetsReply,
    DescribedConsumerGroup,
    DescribedGroup,
    ErrorReply,
    FetchOffsetsReply,
    HeartbeatReply,
    JoinReply,
    LeaveReply,
    SyncReply,
)
from semel.core.groups.settings import GroupSettings
from semel.core.groups.topics import NO_TOPIC_ID, Topics
from semel.core.machine import Command as AnyCommand
from semel.core.machine import Reply_co
from semel.wire.errors import ErrorCode

Protocols = tuple[tuple[str, bytes], ...]
Owned = tuple[tuple[UUID, tuple[int, ...]], ...]


class GroupCommand(AnyCommand[Reply_co], Protocol[Reply_co]):
    """A command about one group."""

    @property
    def group_id(self) -> str: ...


@dataclass(slots=True)  # not frozen: made for every request of a member
class JoinGroup:
    group_id: str
    member_id: str = ""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    protocol_type: str = "consumer"
    protocols: Protocols = ()
    version: int = 9
    fresh_member_id: str = ""
    request_id: int = 0
    room: int = 2**62  # how many more bytes the members of all groups may say

    def refused(self, error: ErrorCode, message: str | None = None) -> JoinReply:
        return JoinReply(error, self.member_id)


@dataclass(slots=True)  # not frozen: made for every request of a member
class SyncGroup:
    group_id: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()
    request_id: int = 0

    def refused(self, error: ErrorCode, message: str | None = None) -> SyncReply:
        return SyncReply(error)


@dataclass(slots=True)  # not frozen: made for every request of a member
class Heartbeat:
    group_id: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None

    def refused(self, error: ErrorCode, message: str | None = None) -> ErrorReply:
        return ErrorReply(error, message)


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    group_id: str
    members: tuple[tuple[str, str | None], ...] = ()  # (member id, instance id)

    def refused(self, error: ErrorCode, message: str | None = None) -> LeaveReply:
        return LeaveReply(error)


@dataclass(slots=True)  # not frozen: made for every request of a member
class ConsumerGroupHeartbeat:
    """None and -1 mean "as before": a member sends only what changed (KIP-848)."""

    group_id: str
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    owned: Owned | None = None
    client_id: str = ""
    client_host: str = ""
    fresh_member_id: str = ""
    session_timeout_ms: int | None = None  # the group's own settings, where it has some
    heartbeat_interval_ms: int | None = None
    assignment_interval_ms: int | None = None

    def refused(self, error: ErrorCode, message: str | None = None) -> HeartbeatReply:
        return HeartbeatReply(error, message)


@dataclass(slots=True)
class Introduction:
    """A member joins, but is not led to its partitions before it says so a second time: those who
    come together introduce themselves first, and the target is computed for all."""

    group_id: str
    heartbeat: ConsumerGroupHeartbeat

    def refused(self, error: ErrorCode, message: str | None = None) -> HeartbeatReply:
        return HeartbeatReply(error, message)


@dataclass(frozen=True, slots=True)
class RegexesResolved:
    """The topics that the group's regular expressions match, seen with the member's rights."""

    group_id: str
    topics_by_regex: tuple[tuple[str, frozenset[str]], ...]
    topics_version: int

    def refused(self, error: ErrorCode, message: str | None = None) -> ErrorReply:
        return ErrorReply(error, message)


@dataclass(slots=True)  # not frozen: made for every commit
class OffsetToCommit:
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    topic_id: UUID = NO_TOPIC_ID


@dataclass(slots=True)  # not frozen: made for every commit
class OffsetCommit:
    group_id: str
    offsets: tuple[OffsetToCommit, ...] = ()
    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None
    retention_ms: int = -1
    version: int = 9

    def refused(self, error: ErrorCode, message: str | None = None) -> CommitReply:
        return CommitReply((error,) * len(self.offsets))


@dataclass(slots=True)  # not frozen: made for every commit
class TxnOffsetCommit:
    group_id: str
    producer_id: int
    producer_epoch: int
    offsets: tuple[OffsetToCommit, ...] = ()
    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None

    def refused(self, error: ErrorCode, message: str | None = None) -> CommitReply:
        return CommitReply((error,) * len(self.offsets))


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """`topics` None asks for everything the group ever committed."""

    group_id: str
    topics: tuple[tuple[str, UUID, tuple[int, ...]], ...] | None = None
    member_id: str | None = None
    member_epoch: int = -1
    require_stable: bool = False

    def refused(self, error: ErrorCode, message: str | None = None) -> FetchOffsetsReply:
        return FetchOffsetsReply(error)


@dataclass(frozen=True, slots=True)
class OffsetDelete:
    group_id: str
    partitions: tuple[tuple[str, int], ...] = ()

    def refused(self, error: ErrorCode, message: str | None = None) -> DeleteOffsetsReply:
        return DeleteOffsetsReply(error)


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    group_id: str

    def refused(self, error: ErrorCode, message: str | None = None) -> ErrorReply:
        return ErrorReply(error, message)


@dataclass(frozen=True, slots=True)
class DescribeGroup:
    """Of the classic kind; `ConsumerGroupDescribe` asks for the other."""

    group_id: str

    def refused(self, error: ErrorCode, message: str | None = None) -> DescribedGroup | ErrorReply:
        return ErrorReply(error, message)


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribe:
    group_id: str

    def refused(
        self, error: ErrorCode, message: str | None = None
    ) -> DescribedConsumerGroup | ErrorReply:
        return ErrorReply(error, message)


@dataclass(frozen=True, slots=True)
class ListGroups:
    """Empty filters let everything through; both are compared without regard to case."""

    states: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()

    def refused(self, error: ErrorCode, message: str | None = None) -> ErrorReply:
        return ErrorReply(error, message)


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """The catalog as it is now; `deleted` names topics whose offsets must go with them."""

    topics: Topics
    deleted: tuple[tuple[str, UUID], ...] = ()

    def refused(self, error: ErrorCode, message: str | None = None) -> ErrorReply:
        return ErrorReply(error, message)


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """The broker's settings as they are now."""

    settings: GroupSettings

    def refused(self, error: ErrorCode, message: str | None = None) -> ErrorReply:
        return ErrorReply(error, message)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The log has been replayed: members get a full session to show that they live."""

    def refused(self, error: ErrorCode, message: str | None = None) -> ErrorReply:
        return ErrorReply(error, message)


@dataclass(frozen=True, slots=True)
class Tick:
    """A deadline may have passed. Carries out one; the runtime asks again until none is due."""

    def refused(self, error: ErrorCode, message: str | None = None) -> ErrorReply:
        return ErrorReply(error, message)


Command = (
    JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | ConsumerGroupHeartbeat
    | Introduction
    | RegexesResolved
    | OffsetCommit
    | TxnOffsetCommit
    | OffsetFetch
    | OffsetDelete
    | DeleteGroup
    | DescribeGroup
    | ConsumerGroupDescribe
    | ListGroups
    | TopicsChanged
    | SettingsChanged
    | Loaded
    | Tick
)
