"""A classic group: its members agree on a leader, and the leader assigns the partitions.

A `ClassicGroup` in the coordinator's state is never touched. A decision works on a `copy()` and
hands it over in a record; members are immutable, so the copy is shallow. Most of a group lives in
memory only: what Kafka writes is its metadata at the end of a rebalance (`ClassicGroup.image`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from semel.core.groups.classic import embedded
from semel.core.groups.replies import JoinedMember, RequestRefused
from semel.core.groups.states import CLASSIC_MOVES, ClassicState
from semel.wire.errors import ErrorCode

CONSUMER_PROTOCOL = "consumer"
#: What a member costs in memory beside what it says.
MEMBER_BYTES = 600


class ClassicMember(NamedTuple):  # of all immutable things the one that changes fastest
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes = b""
    awaiting_join: int | None = None  # the id of the JoinGroup request that waits for an answer
    awaiting_sync: int | None = None
    is_new: bool = False  # has not been through a rebalance: its parked JoinGroup can expire

    @property
    def kept_bytes(self) -> int:
        """About what it costs to remember it: all but a little is what the client said."""
        said = len(self.member_id) + len(self.client_id) + len(self.assignment)
        return MEMBER_BYTES + said + sum(len(name) + len(data) for name, data in self.protocols)

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """A member that waits for us cannot send heartbeats; only a new one may time out."""
        return not self.is_new and not (self.awaiting_join is None and self.awaiting_sync is None)

    def metadata(self, protocol_name: str | None) -> bytes:
        return next((data for name, data in self.protocols if name == protocol_name), b"")

    def vote(self, candidates: set[str]) -> str:
        return next(name for name, _ in self.protocols if name in candidates)


@dataclass(frozen=True, slots=True)
class ClassicGroupMetadata:
    """What is written of a classic group: Kafka's GroupMetadataValue."""

    group_id: str
    protocol_type: str = ""
    generation: int = 0
    protocol_name: str | None = None
    leader: str | None = None
    state_since_ms: int = -1
    members: tuple[ClassicMember, ...] = ()


@dataclass(slots=True)
class ClassicGroup:
    group_id: str
    state: ClassicState = ClassicState.EMPTY
    state_since_ms: int | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    generation: int = 0
    leader: str | None = None
    members: dict[str, ClassicMember] = field(default_factory=dict)
    # Counted as members come and go, since every JoinGroup of a large group asks.
    awaiting_join_count: int = 0
    protocol_counts: dict[str, int] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)  # instance id -> member id
    pending_members: set[str] = field(default_factory=set)  # were given an id, are to come back
    pending_sync: set[str] = field(default_factory=set)
    new_member_added: bool = False  # while the initial delay runs: it may be extended
    initial_delay: tuple[int, int] | None = None  # (running delay, time left after it) in ms
    subscribed_topics: frozenset[str] | None = None
    kept_bytes: int = 0  # of members, also of those that have yet to come back with their id

    @staticmethod
    def from_metadata(metadata: ClassicGroupMetadata) -> "ClassicGroup":
        """The group as a restart finds it: stable or empty, nobody waiting."""
        group = ClassicGroup(
            metadata.group_id,
            ClassicState.STABLE if metadata.members else ClassicState.EMPTY,
            state_since_ms=None if metadata.state_since_ms == -1 else metadata.state_since_ms,
            protocol_type=metadata.protocol_type or None,
            protocol_name=metadata.protocol_name,
            generation=metadata.generation,
            leader=metadata.leader,
        )
        for member in metadata.members:
            group.put(member)
        group.subscribed_topics = group.compute_subscribed_topics()
        return group

    def image(self) -> ClassicGroupMetadata:
        return ClassicGroupMetadata(
            self.group_id,
            self.protocol_type or "",
            self.generation,
            self.protocol_name,
            self.leader,
            -1 if self.state_since_ms is None else self.state_since_ms,
            tuple(_as_written(member, self.protocol_name) for member in self.members.values()),
        )

    def copy(self) -> "ClassicGroup":
        """Field by field; its twin, `dataclasses.replace`, takes longer, once per request."""
        return ClassicGroup(
            self.group_id,
            self.state,
            self.state_since_ms,
            self.protocol_type,
            self.protocol_name,
            self.generation,
            self.leader,
            self.members.copy(),
            self.awaiting_join_count,
            self.protocol_counts.copy(),
            self.static_members.copy(),
            self.pending_members.copy(),
            self.pending_sync.copy(),
            self.new_member_added,
            self.initial_delay,
            self.subscribed_topics,
            self.kept_bytes,
        )

    # Questions

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def is_simple(self) -> bool:
        """Made only to hold the offsets of consumers that assign themselves."""
        return self.protocol_type is None and self.is_empty and not self.pending_members

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL

    @property
    def all_members_joined(self) -> bool:
        return not self.pending_members and self.awaiting_join_count == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def is_subscribed_to(self, topic: str) -> bool:
        """A consumer group whose subscriptions cannot be read is taken to want every topic."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def supports(self, protocol_type: str, protocols: Sequence[tuple[str, bytes]]) -> bool:
        if self.is_empty:
            return bool(protocol_type and protocols)
        common = self._common_protocols()
        return self.protocol_type == protocol_type and any(name in common for name, _ in protocols)

    def select_protocol(self) -> str:
        candidates = self._common_protocols()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def validate(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """ClassicGroup.validateMember: a static member is known by its instance id first."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID)
            if current != member_id:
                raise RequestRefused(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def joined_members(self) -> tuple[JoinedMember, ...]:
        return tuple(
            JoinedMember(member.member_id, member.instance_id, member.metadata(self.protocol_name))
            for member in self.members.values()
        )

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        # Most members of a group say the same.
        for metadata in {m.metadata(self.protocol_name) for m in self.members.values()}:
            subscription = embedded.read_topics(metadata)
            if subscription is None:
                return None
            topics.update(subscription)
        return frozenset(topics)

    # Changes, to a copy only

    def move_to(self, state: ClassicState, now_ms: int) -> None:
        assert state in CLASSIC_MOVES[self.state], f"{self.state} -> {state}"
        self.state, self.state_since_ms = state, now_ms

    def expect(self, member_id: str) -> None:
        """It was given this id, and is to come back with it."""
        self.pending_members.add(member_id)
        self.kept_bytes += MEMBER_BYTES + len(member_id)

    def _expect_no_more(self, member_id: str) -> None:
        if member_id in self.pending_members:
            self.pending_members.remove(member_id)
            self.kept_bytes -= MEMBER_BYTES + len(member_id)

    def put(self, member: ClassicMember) -> None:
        """Add or update. The first member ever becomes the leader."""
        self._count(self.members.get(member.member_id), member)
        self.members[member.member_id] = member
        self._expect_no_more(member.member_id)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        self._count(member, None)
        if member is not None and member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self._expect_no_more(member_id)
        self.pending_sync.discard(member_id)

    def replace_static(self, instance_id: str, new_member_id: str) -> ClassicMember:
        """The same member under a new id, in the old one's place. Nobody waits for it any more."""
        old_id = self.static_members[instance_id]
        old = self.members[old_id]
        new = old._replace(
            member_id=new_member_id, awaiting_join=None, awaiting_sync=None, is_new=False
        )
        self._count(old, new)
        self.members = {
            new.member_id if member_id == old_id else member_id: (
                new if member_id == old_id else member
            )
            for member_id, member in self.members.items()
        }
        self.static_members[instance_id] = new_member_id
        if self.leader == old_id:
            self.leader = new_member_id
        return new

    def elect_joined_leader(self) -> bool:
        """Whether the leader has joined; if it has not, the first member that has takes over."""
        if self.leader is None:
            return False
        if self.members[self.leader].awaiting_join is not None:
            return True
        joined = (m.member_id for m in self.members.values() if m.awaiting_join is not None)
        successor = next(joined, None)
        if successor is not None:
            self.leader = successor
        return successor is not None

    def begin_generation(self, now_ms: int) -> None:
        self.generation += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self.compute_subscribed_topics()
        has_members = bool(self.members)
        self.move_to(
            ClassicState.COMPLETING_REBALANCE if has_members else ClassicState.EMPTY, now_ms
        )
        self.pending_sync.clear()

    def _count(self, old: ClassicMember | None, new: ClassicMember | None) -> None:
        self.kept_bytes += 0 if new is None else new.kept_bytes
        self.kept_bytes -= 0 if old is None else old.kept_bytes
        if old is not None and old.awaiting_join is not None:
            self.awaiting_join_count -= 1
        if new is not None and new.awaiting_join is not None:
            self.awaiting_join_count += 1
        if old is not None and new is not None and old.protocols == new.protocols:
            return
        counts = self.protocol_counts
        for name in _protocol_names(old):
            counts[name] -= 1
        for name in _protocol_names(new):
            counts[name] = counts.get(name, 0) + 1

    def _common_protocols(self) -> set[str]:
        """What every member speaks."""
        size = len(self.members)
        return {name for name, count in self.protocol_counts.items() if count == size}


def _protocol_names(member: ClassicMember | None) -> set[str]:
    return set() if member is None else {name for name, _ in member.protocols}


def _as_written(member: ClassicMember, protocol_name: str | None) -> ClassicMember:
    """Only the chosen protocol's metadata is written, and of course nobody waits on disk."""
    return member._replace(
        protocols=((protocol_name or "", member.metadata(protocol_name)),),
        awaiting_join=None,
        awaiting_sync=None,
        is_new=False,
    )
