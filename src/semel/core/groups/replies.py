"""What a group coordinator answers, and what it orders.

JoinGroup and SyncGroup may have to wait for other members. Their decision then says `LATER`, and
the answer follows as an `Answer` effect addressed to the waiting request.
"""

from dataclasses import dataclass, field
from enum import Enum
from uuid import UUID

from semel.wire.errors import ErrorCode


class Later(Enum):
    """The one value `LATER`: no answer yet, an `Answer` to the request's id will follow."""

    LATER = "later"


LATER = Later.LATER


class RequestRefused(Exception):
    """Raised inside a decision: nothing is changed, and the request is answered with this error."""

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(error, message)
        self.error = error
        self.message = message


@dataclass(slots=True)  # not frozen: made for every request of a member
class ErrorReply:
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """How the leader sees a member it must assign partitions to."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(slots=True)  # not frozen: made for every request of a member
class JoinReply:
    error: ErrorCode
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@dataclass(slots=True)  # not frozen: made for every request of a member
class SyncReply:
    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class LeaveReply:
    error: ErrorCode
    members: tuple[tuple[str, str | None, ErrorCode], ...] = ()


@dataclass(slots=True)  # not frozen: made for every request of a member
class HeartbeatReply:
    """To ConsumerGroupHeartbeat. `assignment` None means: unchanged."""

    error: ErrorCode
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: dict[UUID, list[int]] | None = None


@dataclass(slots=True)  # not frozen: made for every commit
class CommitReply:
    """One error per offset, in the order they were asked."""

    errors: tuple[ErrorCode, ...]


@dataclass(frozen=True, slots=True)
class FetchedOffset:
    partition: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class FetchOffsetsReply:
    error: ErrorCode
    topics: tuple[tuple[str, UUID, tuple[FetchedOffset, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteOffsetsReply:
    error: ErrorCode
    errors: tuple[ErrorCode, ...] = ()


@dataclass(frozen=True, slots=True)
class ListedGroup:
    group_id: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class DescribedMember:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    error: ErrorCode
    group_id: str
    state: str
    message: str | None = None
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribedConsumer:
    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    assignment: dict[UUID, list[int]]
    target_assignment: dict[UUID, list[int]]
    is_classic: bool


@dataclass(frozen=True, slots=True)
class DescribedConsumerGroup:
    error: ErrorCode
    group_id: str
    message: str | None = None
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: tuple[DescribedConsumer, ...] = ()


# Effects: what the runtime does once the records are durable.


@dataclass(slots=True)  # not frozen: made for every request of a member
class Answer:
    """The answer to a request that was told to wait."""

    request_id: int
    reply: JoinReply | SyncReply


@dataclass(frozen=True, slots=True)
class ResolveRegexes:
    """Match these against the topics the asking member may see; bring back `RegexesResolved`."""

    group_id: str
    member_id: str
    regexes: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class StartTimers:
    """After a reload: submit `Loaded`, since deadlines are not written to the log."""


Effect = Answer | ResolveRegexes | StartTimers
