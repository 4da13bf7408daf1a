"""A member of a group of the newer protocol (KIP-848): the broker divides, the member follows.

Pure. The shell sends `heartbeat()` and reports what came of it. Between heartbeats it brings what
is owned nearer to the target, in the order that keeps a partition from having two readers: it stops
reading (`gave_up`), the next heartbeat says so, and only then does the broker give it to another.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from semel.client.machines.membership import Next
from semel.client.machines.subscription import Subscription
from semel.client.machines.types import GroupMetadata
from semel.wire.errors import ErrorCode
from semel.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

E = ErrorCode
JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2  # the place is kept for the member with this instance id

# Sent before the broker said how often it wants to hear from the member.
FIRST_INTERVAL_MS = 1_000

# Kafka 4.3.1 stumbles (UNKNOWN_SERVER_ERROR) over who joins by this protocol while classic members
# have not agreed on theirs yet. A moment later it can; being let in twice is the same as once.
MOST_STUMBLES = 10


class TopicIdPartition(NamedTuple):
    topic_id: UUID
    partition: int


Partitions = frozenset[TopicIdPartition]
NOTHING: Partitions = frozenset()


class Phase(Enum):
    JOINING = "joining"  # the next heartbeat asks to be let in
    MEMBER = "member"
    EXPELLED = "expelled"  # what it owned may be another's: it must be dropped before joining again
    LEFT = "left"


MOVES: dict[Phase, frozenset[Phase]] = {
    Phase.JOINING: frozenset({Phase.MEMBER, Phase.EXPELLED, Phase.LEFT}),
    Phase.MEMBER: frozenset({Phase.EXPELLED, Phase.LEFT}),
    Phase.EXPELLED: frozenset({Phase.JOINING, Phase.LEFT}),
    Phase.LEFT: frozenset({Phase.JOINING}),
}


class MemberSettings(NamedTuple):
    group_id: str
    rebalance_timeout_ms: int = 300_000
    instance_id: str | None = None
    rack_id: str | None = None
    assignor: str | None = None


class Plan(NamedTuple):
    """What lies between what is owned and what the broker wants: first revoke, then take."""

    revoke: Partitions
    take: Partitions


class _Facts(NamedTuple):
    """What a heartbeat can tell; the broker remembers it, so that only changes are sent."""

    subscription: Subscription
    owned: Partitions


class ConsumerMembership:
    def __init__(self, settings: MemberSettings, member_id: str) -> None:
        self.settings = settings
        self.member_id = (
            member_id  # made by the client (KIP-1082): a lost answer makes no second member
        )
        self.epoch = JOIN_EPOCH
        self.phase = Phase.JOINING
        self.owned = NOTHING
        self.target = NOTHING
        self.interval_ms = FIRST_INTERVAL_MS
        # Under which epoch positions are held. It outlives the membership: a member that was
        # expelled and let in again must not commit what it read before that.
        self.metadata = GroupMetadata(settings.group_id)
        self._subscription = Subscription()
        self._saying: _Facts | None = None  # in the heartbeat under way
        self._told: _Facts | None = None
        self._has_asked = False
        self._had_pattern = False
        self._stumbles = 0  # of the broker, in a row

    def subscribe(self, subscription: Subscription) -> None:
        self._subscription = subscription

    # Heartbeats

    @property
    def has_news(self) -> bool:
        """Whether the next heartbeat should not wait for its time."""
        if self.phase is Phase.MEMBER:
            return self._told != self._facts()
        return self.phase is Phase.JOINING

    def heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        settings, facts = self.settings, self._facts()
        told = self._told if self.phase is Phase.MEMBER else None
        self._saying, self._has_asked = facts, True
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=settings.instance_id,
        )
        if told is None:
            request.rack_id = settings.rack_id
            request.rebalance_timeout_ms = settings.rebalance_timeout_ms
            request.server_assignor = settings.assignor
        if told is None or told.subscription != facts.subscription:
            request.subscribed_topic_names = sorted(facts.subscription.topics)
            request.subscribed_topic_regex = self._pattern()
        if told is None or told.owned != facts.owned:
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic, partitions=indexes)
                for topic, indexes in _by_topic(facts.owned).items()
            ]
        return request

    def answered(self, answer: ConsumerGroupHeartbeatResponse) -> Next:
        if self._saying is None or self.phase not in (Phase.JOINING, Phase.MEMBER):
            return Next.GO_ON  # asked before it left or was expelled
        code = E.of(answer.error_code)
        if code is not E.NONE:
            return self.refused(code)
        if self.phase is Phase.JOINING:
            self._move(Phase.MEMBER)
        self._stumbles = 0
        self.member_id = answer.member_id or self.member_id
        self.epoch = answer.member_epoch
        self.interval_ms = answer.heartbeat_interval_ms
        self._told, self._saying = self._saying, None
        self.metadata = GroupMetadata(
            self.settings.group_id, self.epoch, self.member_id, self.settings.instance_id
        )
        if answer.assignment is not None:
            self.target = frozenset(
                TopicIdPartition(topic.topic_id, index)
                for topic in answer.assignment.topic_partitions
                for index in topic.partitions
            )
        return Next.GO_ON

    def refused(self, code: ErrorCode) -> Next:
        """Kafka's AbstractHeartbeatRequestManager.onErrorResponse."""
        self.lost()
        if code in (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE):
            return Next.FIND
        if code in (E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND):
            self.expelled()
            return Next.JOIN
        if code.retriable or self._may_ask_again(code):
            return Next.WAIT
        self._stumbles = 0
        self.expelled()
        return Next.FAIL

    def _may_ask_again(self, code: ErrorCode) -> bool:
        if code is not E.UNKNOWN_SERVER_ERROR or self.phase is not Phase.JOINING:
            return False
        self._stumbles += 1
        return self._stumbles <= MOST_STUMBLES

    def lost(self) -> None:
        """No answer: what the broker has heard is not known, so all is said again."""
        self._told = self._saying = None

    # What is owned

    @property
    def plan(self) -> Plan:
        if self.phase is not Phase.MEMBER:
            return Plan(NOTHING, NOTHING)
        return Plan(self.owned - self.target, self.target - self.owned)

    def gave_up(self, partitions: Iterable[TopicIdPartition]) -> None:
        """They are read no more, and what was read of them is committed."""
        self.owned -= frozenset(partitions)

    def took(self, partitions: Iterable[TopicIdPartition]) -> None:
        if self.phase is Phase.MEMBER:  # otherwise they were lost while they were taken
            self.owned |= frozenset(partitions)

    # Ends

    def expelled(self) -> None:
        """The group gave this member up, or it gave itself up: others may have its partitions."""
        if self.phase in (Phase.JOINING, Phase.MEMBER):
            self._move(Phase.EXPELLED)

    def dropped(self) -> None:
        """What it owned is read no more: it may join again."""
        self._move(Phase.JOINING)
        self.epoch = JOIN_EPOCH
        self.owned = self.target = NOTHING
        self.lost()

    def left(self) -> None:
        self._move(Phase.LEFT)
        self.metadata = GroupMetadata(self.settings.group_id)

    def leave_request(self) -> ConsumerGroupHeartbeatRequest | None:
        """The last heartbeat, if the group may know of this member."""
        if self.phase not in (Phase.JOINING, Phase.MEMBER) or not self._has_asked:
            return None
        static = self.settings.instance_id is not None
        return ConsumerGroupHeartbeatRequest(
            group_id=self.settings.group_id,
            member_id=self.member_id,
            member_epoch=LEAVE_STATIC_EPOCH if static else LEAVE_EPOCH,
            instance_id=self.settings.instance_id,
        )

    def _pattern(self) -> str | None:
        """An empty pattern takes an earlier one back; null would leave it as it was."""
        pattern = self._subscription.pattern
        if pattern is None:
            return "" if self._had_pattern else None
        self._had_pattern = True
        return pattern

    def _facts(self) -> _Facts:
        return _Facts(self._subscription, self.owned)

    def _move(self, to: Phase) -> None:
        assert to in MOVES[self.phase], f"a member that is {self.phase.value} cannot be {to.value}"
        self.phase = to


def _by_topic(partitions: Partitions) -> dict[UUID, list[int]]:
    result: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(partitions):
        result.setdefault(topic_id, []).append(index)
    return result
