"""The records of a group coordinator: applying one is the only way its state changes.

Records come in two kinds. Those with bytes (see `encoding`) are the group's memory across restarts.
The others (`ClassicGroupChanged` without `written`, and those under "in memory only") are applied
like the rest, since nothing else may change a machine, but are not written; a marker already is.
"""

from dataclasses import dataclass
from uuid import UUID

from semel.core.groups.classic.group import ClassicGroup, ClassicGroupMetadata
from semel.core.groups.consumer.group import Assignment, ConsumerMember, ResolvedRegex
from semel.core.groups.settings import GroupSettings
from semel.core.groups.timers import Key, TimerDeadline
from semel.core.groups.topics import NO_TOPIC_ID, Topics


@dataclass(slots=True)  # not frozen: made for every commit
class OffsetCommitted:
    """With a producer id: pending until the marker of that producer's transaction."""

    group_id: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: int = 0
    expire_ms: int = -1
    topic_id: UUID = NO_TOPIC_ID
    producer_id: int = -1
    producer_epoch: int = -1


@dataclass(frozen=True, slots=True)
class OffsetDeleted:
    group_id: str
    topic: str
    partition: int


@dataclass(slots=True)  # not frozen: made for every request of a member
class ClassicGroupChanged:
    group: ClassicGroup
    written: ClassicGroupMetadata | None = None


@dataclass(frozen=True, slots=True)
class ClassicGroupDeleted:
    group_id: str


@dataclass(slots=True)  # not frozen: made for every member that moves
class GroupEpoch:
    group_id: str
    epoch: int
    metadata_hash: int = 0


@dataclass(frozen=True, slots=True)
class ConsumerGroupDeleted:
    group_id: str


@dataclass(slots=True)  # not frozen: made for every member that moves
class MemberSubscription:
    """What a member says of itself. The rest of `member` is left as it is."""

    group_id: str
    member: ConsumerMember


@dataclass(frozen=True, slots=True)
class MemberDeleted:
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class TargetEpoch:
    """For which group epoch the target was computed. None: there is none any more."""

    group_id: str
    epoch: int | None
    computed_ms: int = 0


@dataclass(slots=True)  # not frozen: made for every member that moves
class TargetAssignment:
    group_id: str
    member_id: str
    partitions: Assignment | None


@dataclass(slots=True)  # not frozen: made for every member that moves
class CurrentAssignment:
    """How far a member has come: epochs, state and partitions of `member`, and no more of it."""

    group_id: str
    member: ConsumerMember


@dataclass(frozen=True, slots=True)
class CurrentAssignmentDeleted:
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RegexResolved:
    group_id: str
    regex: str
    resolved: ResolvedRegex | None


# In memory only.


@dataclass(frozen=True, slots=True)
class TransactionMarker:
    producer_id: int
    commit: bool


@dataclass(slots=True)  # not frozen: made for every commit
class TimerSet:
    key: Key
    deadline: TimerDeadline | None


@dataclass(frozen=True, slots=True)
class TopicsSeen:
    topics: Topics


@dataclass(frozen=True, slots=True)
class SettingsSeen:
    settings: GroupSettings


@dataclass(frozen=True, slots=True)
class MetadataChecked:
    """The group's subscriptions have been compared with this version of the topics."""

    group_id: str
    topics_version: int


Record = (
    OffsetCommitted
    | OffsetDeleted
    | ClassicGroupChanged
    | ClassicGroupDeleted
    | GroupEpoch
    | ConsumerGroupDeleted
    | MemberSubscription
    | MemberDeleted
    | TargetEpoch
    | TargetAssignment
    | CurrentAssignment
    | CurrentAssignmentDeleted
    | RegexResolved
    | TransactionMarker
    | TimerSet
    | TopicsSeen
    | SettingsSeen
    | MetadataChecked
)
