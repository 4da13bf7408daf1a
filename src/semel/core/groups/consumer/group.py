"""A consumer group (KIP-848): the broker assigns, and leads each member there step by step.

Three epochs tell how far things are: the *group epoch* grows with every change of membership,
subscription or topics; the *assignment epoch* is the group epoch for which a target was computed;
a *member epoch* is the assignment epoch the member has reached. All of it is written to the log,
piece by piece; `apply` is the only way a group changes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from semel.core.groups.states import ConsumerState, MemberState

LEAVE_EPOCH = -1  # the member leaves for good
LEAVE_STATIC_EPOCH = -2  # a static member leaves, and will be back under its instance id

#: What a member, and a name that it subscribes to, cost in memory beside the text.
MEMBER_BYTES, NAME_BYTES = 1_000, 120

Assignment = dict[UUID, frozenset[int]]
Owned = dict[UUID, dict[int, int]]  # topic id -> partition -> the epoch it was given to the member
NOTHING: Owned = {}


@dataclass(frozen=True, slots=True)
class ClassicMetadata:
    """Of a member that speaks the classic protocol inside a consumer group."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class ConsumerMember(NamedTuple):
    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = ""
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None
    assigned: Owned = NOTHING
    revoking: Owned = NOTHING  # to be given up before the next epoch

    @property
    def kept_bytes(self) -> int:
        """About what it costs to remember it: all but a little is what the client said."""
        said = len(self.member_id) + len(self.client_id) + len(self.topic_regex or "")
        names = sum(map(len, self.topic_names)) + NAME_BYTES * len(self.topic_names)
        protocols = () if self.classic is None else self.classic.protocols
        return MEMBER_BYTES + said + names + sum(len(name) + len(data) for name, data in protocols)

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch

    def given_in(self, topic_id: UUID, partition: int) -> int | None:
        """The epoch in which this partition became the member's, if it is."""
        given = self.assigned.get(topic_id, {}).get(partition)
        return self.revoking.get(topic_id, {}).get(partition) if given is None else given


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    topics: frozenset[str]
    topics_version: int
    resolved_ms: int


@dataclass(slots=True)
class ConsumerGroup:
    group_id: str
    epoch: int = 1  # so that an epoch of 1 is never handed out: 0 and below mean other things
    metadata_hash: int = 0
    assignment_epoch: int = 1
    assignment_ms: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    target: dict[str, Assignment] = field(default_factory=dict)
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    owner_epochs: Owned = field(default_factory=dict)  # the epochs of those who hold them now
    regex_members: int = 0  # how many subscribe by expression
    kept_bytes: int = 0  # of members
    # memory only: the topics the metadata hash was last compared to
    checked_topics_version: int = -1

    # Questions

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state(self) -> ConsumerState:
        if not self.members:
            return ConsumerState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerState.ASSIGNING
        if all(m.is_reconciled_to(self.assignment_epoch) for m in self.members.values()):
            return ConsumerState.STABLE
        return ConsumerState.RECONCILING

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def target_of(self, member_id: str, instance_id: str | None = None) -> Assignment:
        """A static member that comes back under a new id has the target of its old id."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, member_id)
        return self.target.get(member_id, {})

    def owner_epoch(self, topic_id: UUID, partition: int) -> int:
        """The epoch of the member that holds the partition now; -1 if nobody does."""
        return self.owner_epochs.get(topic_id, {}).get(partition, -1)

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in m.topic_names for m in self.members.values()) or any(
            topic in regex.topics for regex in self.regexes.values()
        )

    def subscribers_of(self, regex: str) -> int:
        return sum(member.topic_regex == regex for member in self.members.values())

    def subscribed_regexes(self) -> set[str]:
        return {member.topic_regex for member in self.members.values() if member.topic_regex}

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """By name and by expression; one that is not resolved yet matches nothing."""
        regex = self.regexes.get(member.topic_regex) if member.topic_regex else None
        return member.topic_names if regex is None else member.topic_names | regex.topics

    def waits_for_partitions(self, member: ConsumerMember) -> bool:
        """Whether something of the member's target is still held by somebody else."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        return any(
            self.owner_epoch(topic_id, partition) != -1
            for topic_id, partitions in self.target.get(member.member_id, {}).items()
            for partition in partitions
            if partition not in member.assigned.get(topic_id, {})
        )

    def preferred_assignor(self, members: Iterable[ConsumerMember]) -> str | None:
        votes = [m.server_assignor for m in members if m.server_assignor is not None]
        return Counter(votes).most_common(1)[0][0] if votes else None

    def classic_members(self) -> list[ConsumerMember]:
        return [member for member in self.members.values() if member.classic is not None]

    def supports_classic(self, protocol_type: str, names: set[str]) -> bool:
        if protocol_type != "consumer":
            return False
        if self.is_empty:
            return bool(names)
        classic = self.classic_members()
        counts = Counter(
            name for m in classic if m.classic is not None for name, _ in m.classic.protocols
        )
        return any(counts[name] == len(classic) for name in names)

    # Changes: called by `apply` only

    def put(self, member: ConsumerMember) -> None:
        known = self.members.get(member.member_id)
        if known is not None:
            self._release_partitions(known)
            self.regex_members -= bool(known.topic_regex)
            self.kept_bytes -= known.kept_bytes
        self.members[member.member_id] = member
        self.regex_members += bool(member.topic_regex)
        self.kept_bytes += member.kept_bytes
        for topic_id, partitions in _held(member):
            owners = self.owner_epochs.setdefault(topic_id, {})
            owners.update(dict.fromkeys(partitions, member.epoch))
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._release_partitions(member)
        self.regex_members -= bool(member.topic_regex)
        self.kept_bytes -= member.kept_bytes
        if self.static_members.get(member.instance_id or "") == member_id:
            del self.static_members[member.instance_id or ""]

    def _release_partitions(self, member: ConsumerMember) -> None:
        """Only what is really its own: a static member's successor may already hold the rest."""
        for topic_id, partitions in _held(member):
            owners = self.owner_epochs.get(topic_id, {})
            for partition in partitions:
                if owners.get(partition) == member.epoch:
                    del owners[partition]
            if not owners:
                self.owner_epochs.pop(topic_id, None)


def _held(member: ConsumerMember) -> Iterator[tuple[UUID, dict[int, int]]]:
    yield from member.assigned.items()
    yield from member.revoking.items()
