"""Voices from the past of a group: whatever a member once was may speak up again.

A ghost is what a member held itself for at one moment: its id, epoch and partitions. The member
has moved on since, or is dead, or somebody has taken its instance id; a process that was paused, or
a request that was long on its way, knows nothing of that. A coordinator tells ghosts from members.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tests.support.groups.bench import GroupBench, topic_id

from semel.core.groups.classic.group import ClassicGroup
from semel.core.groups.commands import Heartbeat, OffsetCommit, OffsetToCommit
from semel.core.groups.consumer.group import ConsumerGroup, ConsumerMember
from semel.core.groups.states import MemberState
from semel.wire.errors import ErrorCode

MOST_REMEMBERED = 40


class Ghost(NamedTuple):
    is_classic: bool
    member_id: str
    epoch: int
    instance_id: str | None
    owned: frozenset[int]


class Ghosts:
    """`world` is the one whose members they were."""

    def __init__(self, world: Any, topic: str) -> None:
        self.world = world
        self.topic = topic
        self._known: list[Ghost] = []
        self._given_up: set[tuple[str, int, int]] = set()  # member, its epoch, partition

    def hear(self, member_id: str, owned: Iterable[int]) -> None:
        """A member is about to say what it still has: not what it was asked for and let go of."""
        group = self.world.bench.group()
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if member is not None:
            asked_for = member.revoking.get(topic_id(self.topic), {}).keys()
            self._given_up |= {(member_id, member.epoch, p) for p in asked_for - set(owned)}

    def remember(self, ghost: Ghost) -> None:
        if ghost.owned and ghost not in self._known:
            self._known.append(ghost)
            del self._known[:-MOST_REMEMBERED]

    def speak(self) -> None:
        if not self._known:
            return
        dice = self.world.dice
        ghost, partition = dice.choice(self._likely() or self._all())
        offset = dice.randrange(1_000_000)
        roll = dice.random()
        if roll < 0.4:
            self._commit(ghost, partition, offset)
        elif roll < 0.7:
            self._txn_commit(ghost, partition, offset)
        elif ghost.member_id not in {actor.member_id for actor in self.world.actors}:
            # A living member's own heartbeats come in order: one connection carries them.
            self._beat(ghost)

    def _all(self) -> list[tuple[Ghost, int]]:
        return [(ghost, partition) for ghost in self._known for partition in sorted(ghost.owned)]

    def _likely(self) -> list[tuple[Ghost, int]]:
        """Half of the time only those that might be believed: their members are still there, or
        even hold the partition again, given to them anew since."""
        group, roll = self.world.bench.group(), self.world.dice.random()
        if group is None or roll < 0.5:
            return []
        near = [(ghost, p) for ghost, p in self._all() if ghost.member_id in group.members]
        if isinstance(group, ClassicGroup) or roll < 0.75:
            return near
        return [(ghost, p) for ghost, p in near if self._was_given_anew(ghost, group, p)] or near

    def _was_given_anew(self, ghost: Ghost, group: ConsumerGroup, partition: int) -> bool:
        given_in = group.members[ghost.member_id].given_in(topic_id(self.topic), partition)
        return given_in is not None and given_in > ghost.epoch

    def _commit(self, ghost: Ghost, partition: int, offset: int) -> None:
        wanted = OffsetToCommit(self.topic, partition, offset, topic_id=topic_id(self.topic))
        command = OffsetCommit("g", (wanted,), ghost.member_id, ghost.epoch, ghost.instance_id)
        if self.world.ask(command) and self.world.bench.last.reply.errors == (ErrorCode.NONE,):
            self.world.ledger.commit(partition, offset)
            self.check_commit(ghost, partition)

    def _txn_commit(self, ghost: Ghost, partition: int, offset: int) -> None:
        producer_id = self.world.dice.randrange(3)
        error = self.world.bench.txn_commit(
            producer_id, offset, self.topic, partition,
            member_id=ghost.member_id, generation=ghost.epoch, instance_id=ghost.instance_id,
        )  # fmt: skip
        if error is ErrorCode.NONE:
            self.world.ledger.hold(producer_id, partition, offset)
            self.check_commit(ghost, partition)

    def _beat(self, ghost: Ghost) -> None:
        bench: GroupBench = self.world.bench
        if ghost.is_classic:
            if self.world.ask(
                Heartbeat("g", ghost.epoch, ghost.member_id, ghost.instance_id)
            ) and bench.last.reply.error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
                self._check_identity(ghost)
            return
        group = bench.group()
        known = group.members.get(ghost.member_id) if isinstance(group, ConsumerGroup) else None
        self.hear(ghost.member_id, ghost.owned)
        reply = bench.beat(
            ghost.member_id,
            ghost.epoch,
            owned={self.topic: sorted(ghost.owned)},
            instance_id=ghost.instance_id,
        )
        if reply.error is ErrorCode.NONE:
            assert known is not None, f"{ghost} is nobody's past"
            assert ghost.epoch in (known.epoch, known.previous_epoch), f"{ghost} is over: {known}"

    def check_commit(self, ghost: Ghost, partition: int) -> None:
        """A commit was taken. Then it came from who it said, and speaks for nobody else."""
        group = self._check_identity(ghost)
        if isinstance(group, ClassicGroup):
            return
        member = group.members[ghost.member_id]
        given_in = member.given_in(topic_id(self.topic), partition)
        is_current = ghost.epoch == member.epoch
        assert is_current or (given_in is not None and given_in <= ghost.epoch <= member.epoch), (
            f"{ghost} speaks for {partition}, which {member} was given in {given_in}"
        )
        holders = [
            other.member_id
            for other in group.members.values()
            if other.given_in(topic_id(self.topic), partition) is not None
        ]
        assert holders in ([], [ghost.member_id]) or self._gave_up(member, partition), (
            f"{holders} hold what {ghost} commits"
        )

    def _gave_up(self, member: ConsumerMember, partition: int) -> bool:
        """Whether it said so itself and is kept in its epoch all the same, by yet more that it must
        give up. The epoch is all that such a commit is measured by (docs/group-states.md)."""
        is_kept = member.state is MemberState.UNREVOKED_PARTITIONS
        return is_kept and (member.member_id, member.epoch, partition) in self._given_up

    def _check_identity(self, ghost: Ghost) -> Any:
        group = self.world.bench.group()
        assert ghost.member_id in group.members, f"{ghost} is no member any more"
        if ghost.instance_id is not None:
            assert group.static_members.get(ghost.instance_id) == ghost.member_id, (
                f"another is {ghost.instance_id}, not {ghost}"
            )
        if isinstance(group, ClassicGroup):
            assert ghost.epoch == group.generation, f"{ghost}, but it is {group.generation}"
        return group
