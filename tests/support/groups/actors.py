"""Simulated members of groups that misbehave on purpose, and the ledger that watches them.

Each actor does one small thing when it is its turn and believes only what it has heard. They join,
stall past their session, die without a word, come back under the same instance id, commit late, and
commit inside transactions that then abort; and what they once were speaks up again (`Ghosts`).
Everything is driven by one seed.
"""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

from tests.support.groups.bench import GroupBench, topic_id
from tests.support.groups.ghosts import Ghost, Ghosts
from tests.support.groups.subscriptions import write_subscription

from semel.core.groups.classic import embedded
from semel.core.groups.classic.group import ClassicGroup
from semel.core.groups.commands import Heartbeat, LeaveGroup, OffsetCommit, OffsetToCommit
from semel.core.groups.consumer.group import LEAVE_STATIC_EPOCH, ConsumerGroup
from semel.core.groups.replies import HeartbeatReply, JoinReply, SyncReply
from semel.core.groups.settings import GroupSettings
from semel.core.groups.states import ClassicState, ConsumerState
from semel.wire.errors import ErrorCode

NONE = ErrorCode.NONE
TOPIC, PARTITIONS = "t", 5
SESSION_MS, REBALANCE_MS = 10_000, 20_000


class Ledger:
    """What must be true of offsets: kept beside the coordinator, by simpler means."""

    def __init__(self) -> None:
        self.order = 0
        self.committed: dict[int, tuple[int, int]] = {}  # partition -> (order, offset)
        self.pending: dict[int, dict[int, tuple[int, int]]] = {}  # producer -> the same

    def commit(self, partition: int, offset: int) -> None:
        self.order += 1
        self.committed[partition] = (self.order, offset)

    def hold(self, producer_id: int, partition: int, offset: int) -> None:
        self.order += 1
        self.pending.setdefault(producer_id, {})[partition] = (self.order, offset)

    def end(self, producer_id: int, commit: bool) -> None:
        for partition, entry in self.pending.pop(producer_id, {}).items():
            if commit and entry > self.committed.get(partition, (0, 0)):
                self.committed[partition] = entry

    def is_stable(self, partition: int) -> bool:
        """No open transaction may still change it."""
        return not any(partition in held for held in self.pending.values())

    def expected(self, partition: int) -> int:
        return self.committed.get(partition, (0, -1))[1]


class Actor:
    """What members of both kinds have in common."""

    def __init__(self, world: Any, name: str, instance_id: str | None) -> None:
        self.world = world
        self.bench: GroupBench = world.bench
        self.dice: random.Random = world.dice
        self.name = name
        self.instance_id = instance_id
        self.owned: set[int] = set()
        self.epoch = 0
        self.member_id = ""
        self.sleeps_until_ms = 0
        self.next_beat_ms = 0
        self.is_stubborn = False  # a chance is given to it once; then it behaves

    @property
    def is_awake(self) -> bool:
        return self.bench.now_ms >= self.sleeps_until_ms

    def step(self) -> None:
        raise AssertionError("an actor acts")

    def forget(self) -> None:
        """The coordinator is gone: whatever was asked will not be answered."""

    def commit(self) -> None:
        if not self.owned:
            return
        partition = self.dice.choice(sorted(self.owned))
        offset = self.dice.randrange(1_000_000)
        wanted = OffsetToCommit(TOPIC, partition, offset, topic_id=topic_id(TOPIC))
        command = OffsetCommit("g", (wanted,), self.member_id, self.epoch, self.instance_id)
        if self.world.ask(command) and self.bench.last.reply.errors == (NONE,):
            self.world.ledger.commit(partition, offset)
            self.world.ghosts.check_commit(self.ghost(), partition)

    def txn_commit(self) -> None:
        """Commit inside a transaction that somebody will end, either way, some day."""
        if not self.owned:
            return
        partition, producer_id = self.dice.choice(sorted(self.owned)), self.dice.randrange(3)
        offset = self.dice.randrange(1_000_000)
        error = self.bench.txn_commit(
            producer_id, offset, TOPIC, partition,
            member_id=self.member_id, generation=self.epoch, instance_id=self.instance_id,
        )  # fmt: skip
        if error is NONE:
            self.world.ledger.hold(producer_id, partition, offset)
            self.world.ghosts.check_commit(self.ghost(), partition)

    def turns_stubborn(self) -> bool:
        """Whether it does not do what it should, from now until it is thrown out."""
        was_stubborn, self.is_stubborn = self.is_stubborn, False
        return was_stubborn or (not self.world.is_calm and self.dice.random() < 0.05)

    def ghost(self) -> Ghost:
        """What it holds itself for just now."""
        is_classic = isinstance(self, ClassicActor)
        owned = frozenset(self.owned)
        return Ghost(is_classic, self.member_id, self.epoch, self.instance_id, owned)


class ClassicActor(Actor):
    def __init__(self, world: Any, name: str, instance_id: str | None) -> None:
        super().__init__(world, name, instance_id)
        self.waits_for: int | None = None
        self.joined: JoinReply | None = None
        self.dawdles = False  # lives, but never asks for its assignment

    def step(self) -> None:
        if self.waits_for is not None:
            self._hear()
        elif self.joined is None:
            self._join()
        elif not self.owned and self.epoch == 0:
            self._dawdle() if self.dawdles else self._sync()
        elif self.bench.now_ms >= self.next_beat_ms:
            self._beat()
        elif self.dice.random() < 0.3:
            self.txn_commit()
        else:
            self.commit()

    def forget(self) -> None:
        self.waits_for = None
        if self.epoch == 0:
            self.joined = None

    def leave(self) -> None:
        if self.member_id:
            self.world.ask(LeaveGroup("g", ((self.member_id, self.instance_id),)))
        self._reset()

    def _reset(self) -> None:
        self.owned, self.epoch, self.joined, self.waits_for = set(), 0, None, None
        self.member_id = ""

    def _join(self) -> None:
        owned = {TOPIC: sorted(self.owned)} if self.owned else {}
        self.world.ghosts.hear(self.member_id, self.owned)
        self.owned, self.epoch = set(), 0
        reply = self.bench.join(
            self.member_id,
            instance_id=self.instance_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocols=(("range", write_subscription([TOPIC], owned)),),
            version=9,
            fresh_member_id=self.world.fresh_id(self.instance_id or self.name),
        )
        if isinstance(reply, int):
            self.waits_for = reply
        else:
            self._take_join(reply)

    def _hear(self) -> None:
        assert self.waits_for is not None
        answer = self.bench.answers.pop(self.waits_for, None)
        if answer is None:
            return
        self.waits_for = None
        if isinstance(answer, JoinReply):
            self._take_join(answer)
        else:
            self._take_sync(answer)

    def _take_join(self, reply: JoinReply) -> None:
        match reply.error:
            case ErrorCode.NONE:
                self.joined, self.member_id = reply, reply.member_id
                self.dawdles = self.turns_stubborn()
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = reply.member_id
            case ErrorCode.REBALANCE_IN_PROGRESS:
                pass
            case _:
                self._reset()

    def _sync(self) -> None:
        """The leader deals the partitions out like cards."""
        assert self.joined is not None
        members = [m.member_id for m in self.joined.members]
        hands = {
            m: {TOPIC: list(range(PARTITIONS))[i :: len(members)]} for i, m in enumerate(members)
        }
        assignments = tuple((m, embedded.write_assignment(hand, 1)) for m, hand in hands.items())
        if self.joined.skip_assignment:
            assignments = ()
        reply = self.bench.sync(self.joined, instance_id=self.instance_id, assignments=assignments)
        if isinstance(reply, int):
            self.waits_for = reply
        else:
            self._take_sync(reply)

    def _take_sync(self, reply: SyncReply) -> None:
        if reply.error is not NONE:
            self._fail(reply.error)
            return
        assert self.joined is not None
        self.epoch = self.joined.generation
        self.owned = set()
        if reply.assignment:
            for topic in embedded.read_assignment(reply.assignment).assigned_partitions:
                self.owned |= set(topic.partitions)
        self.next_beat_ms = self.bench.now_ms + 3_000
        self.world.note_owner(self)

    def _dawdle(self) -> None:
        assert self.joined is not None
        generation = self.joined.generation
        if self.bench.now_ms >= self.next_beat_ms and self.world.ask(
            Heartbeat("g", generation, self.member_id, self.instance_id)
        ):
            self.next_beat_ms = self.bench.now_ms + 3_000
            self._fail(self.bench.last.reply.error)

    def _beat(self) -> None:
        self.next_beat_ms = self.bench.now_ms + 3_000
        if self.world.ask(Heartbeat("g", self.epoch, self.member_id, self.instance_id)):
            self._fail(self.bench.last.reply.error)

    def _fail(self, error: ErrorCode) -> None:
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.joined = None  # join again, with the partitions it has
        elif error is not NONE:
            self._reset()


class ConsumerActor(Actor):
    """Owns nothing before it is told so, and lets go before it reports that it has."""

    def __init__(self, world: Any, name: str, instance_id: str | None) -> None:
        super().__init__(world, name, instance_id)
        self.member_id = world.fresh_id(name)
        self.tells_all = True  # as clients do when they join, and after an answer was lost
        self.clings = False  # goes on with what it was told to give up, until it is thrown out
        self.topics = [TOPIC]

    def step(self) -> None:
        if self.epoch <= 0 or self.bench.now_ms >= self.next_beat_ms:
            self._beat()
        elif self.dice.random() < 0.3:
            self.txn_commit()
        else:
            self.commit()

    def leave(self) -> None:
        if self.epoch > 0:
            is_static = self.instance_id is not None and self.dice.random() < 0.5
            self.bench.beat(self.member_id, -2 if is_static else -1, instance_id=self.instance_id)
        self._reset()

    def _reset(self) -> None:
        self.owned, self.epoch, self.clings = set(), 0, False
        self.member_id = self.world.fresh_id(self.name)

    def _beat(self) -> None:
        if self.epoch == 0:
            self.owned, self.tells_all = set(), True
            if self.instance_id is None and self.dice.random() < 0.5:
                self._say(only_introduces=True)  # it came with others
        if self.world.is_calm or (self.world.is_fickle and self.dice.random() < 0.1):
            wanted = [TOPIC] if self.world.is_calm else self.dice.choice([[TOPIC], ["other"]])
            self.topics, self.tells_all = wanted, self.tells_all or wanted != self.topics
        holder = self._holder() if self.epoch == 0 else None
        reply = self._say()
        assert holder is None or reply.error is not NONE, f"{holder} still is {self.instance_id}"
        self.tells_all = self.world.loses_answer()
        if self.tells_all:
            return
        if reply.error is not NONE:
            self.owned, self.epoch, self.clings = set(), 0, False
            if reply.error is ErrorCode.FENCED_INSTANCE_ID:
                self._reset()
            self.next_beat_ms = self.bench.now_ms + 1_000
            return
        self.epoch = reply.member_epoch
        self.next_beat_ms = self.bench.now_ms + reply.heartbeat_interval_ms
        if reply.assignment is not None:
            self._reconcile(reply.assignment)

    def _holder(self) -> str | None:
        """Another that has its instance id, and has not said that it goes."""
        group = self.bench.group()
        known = group.static_member(self.instance_id) if isinstance(group, ConsumerGroup) else None
        if known is None or known.member_id == self.member_id or known.classic is not None:
            return None
        return None if known.epoch == LEAVE_STATIC_EPOCH else str(known.member_id)

    def _say(self, **fields: Any) -> HeartbeatReply:
        self.world.ghosts.hear(self.member_id, self.owned)
        return self.bench.beat(
            self.member_id,
            self.epoch,
            self.topics if self.tells_all else None,
            {TOPIC: sorted(self.owned)} if self.owned else {},
            instance_id=self.instance_id,
            rebalance_timeout_ms=REBALANCE_MS if self.tells_all else -1,
            **fields,
        )

    def _reconcile(self, assignment: dict[UUID, list[int]]) -> None:
        told = set(assignment.get(topic_id(TOPIC), []))
        if self.owned - told:
            self.clings = self.clings or self.turns_stubborn()
            if self.clings:
                return
            self.owned &= told
            self.next_beat_ms = self.bench.now_ms  # say at once that it has let go
        else:
            self.owned = told
        self.world.note_owner(self)


def _is_overtaken(actor: Actor, group: ConsumerGroup) -> bool:
    """The group turned classic and back before this classic member heard of it: its generation is
    over. It reads on until its next heartbeat, but cannot commit (docs/group-states.md)."""
    return isinstance(actor, ClassicActor) and actor.epoch < group.members[actor.member_id].epoch


class GroupWorld:
    """A group, its members, and the rules nobody may break."""

    def __init__(self, seed: int, kinds: str) -> None:
        self.dice = random.Random(seed)
        # Every second world has time between assignments, as brokers do by default, and members
        # that change their subscription.
        self.is_fickle = seed % 2 == 1
        settings = GroupSettings(0, consumer_assignment_interval_ms=250 * self.is_fickle)
        self.bench = GroupBench(settings, t=PARTITIONS)
        self.ledger = Ledger()
        self.ghosts = Ghosts(self, TOPIC)
        self.kinds = kinds
        self.owners: dict[tuple[str, int, int], str] = {}
        self.is_calm = False
        self._serial = 0
        self.actors: list[Any] = [self._new_actor(number) for number in range(4)]

    def fresh_id(self, name: str) -> str:
        self._serial += 1
        return f"{name}-{self._serial}"

    def loses_answer(self) -> bool:
        """Sometimes an answer does not arrive, and the member asks again."""
        return not self.is_calm and self.dice.random() < 0.05

    def ask(self, command: Any) -> bool:
        """Submit; False if the coordinator died before anything of it was durable."""
        length = len(self.bench.log)
        self.bench.do(command)
        if not self.is_calm and self.dice.random() < 0.02:
            del self.bench.log[length:]
            self.crash()
            return False
        return True

    def crash(self) -> None:
        self.bench.restart()
        self.bench.answers.clear()
        for actor in self.actors:
            actor.forget()

    def _heard(self) -> Any:
        """What members of a settled group rely on."""
        group = self.bench.group()
        if isinstance(group, ConsumerGroup):
            return group.epoch, group.assignment_epoch, group.target, group.members
        if group is None or group.state is not ClassicState.STABLE:
            return None
        assignments = {m.member_id: m.assignment for m in group.members.values()}
        return group.generation, group.leader, assignments, group.static_members

    # The rules

    def note_owner(self, actor: Actor) -> None:
        """A partition has one owner per epoch, and an epoch of a group means one thing."""
        self.ghosts.remember(actor.ghost())
        for partition in actor.owned:
            key = (type(actor).__name__, actor.epoch, partition)
            owner = self.owners.setdefault(key, actor.member_id)
            is_successor = actor.instance_id is not None and owner != actor.member_id
            assert owner == actor.member_id or is_successor, f"{key}: {owner}, {actor.member_id}"
        self._check_beliefs(actor)

    def _check_beliefs(self, actor: Actor) -> None:
        """In a consumer group nobody is given what a member goes on with: it must let go first."""
        group = self.bench.group()
        if not isinstance(group, ConsumerGroup):
            return
        for other in self.actors:
            if other is not actor and other.epoch > 0 and other.member_id in group.members:
                both = actor.owned & other.owned
                assert not both or _is_overtaken(other, group), (
                    f"{actor.ghost()} was given {both} of {other.ghost()}"
                )

    def check_offsets(self) -> None:
        for partition in range(PARTITIONS):
            assert self.bench.offset(TOPIC, partition) == self.ledger.expected(partition)
            assert self.bench.is_stable(TOPIC, partition) == self.ledger.is_stable(partition)

    def check_single_holder(self) -> None:
        group = self.bench.group()
        if group is None or isinstance(group, ClassicGroup):
            return
        held = [
            partition
            for member in group.members.values()
            for owned in (member.assigned, member.revoking)
            for partitions in owned.values()
            for partition in partitions
        ]
        assert len(held) == len(set(held)), "two members hold one partition"

    # Time

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self._event()
            if (group := self.bench.group()) is None or group.is_empty:
                self.owners.clear()  # as in Kafka, an empty group that changes its kind counts anew
            self.check_offsets()
            self.check_single_holder()
        self._calm_down()

    def _event(self) -> None:
        actor = self.dice.choice(self.actors)
        roll = self.dice.random()
        if roll < 0.62:
            if actor.is_awake:
                actor.step()
        elif roll < 0.70:
            self.ghosts.speak()
        elif roll < 0.85:
            self.bench.advance(self.dice.choice([10, 500, 3_000]))
        elif roll < 0.90:  # a pause, maybe longer than its session
            actor.sleeps_until_ms = self.bench.now_ms + self.dice.choice([2_000, 15_000, 60_000])
        elif roll < 0.92:
            actor.leave()
        elif roll < 0.94:  # dies without a word; somebody else starts in its place
            number = self.actors.index(actor)
            self.actors[number] = self._new_actor(number)
        elif roll < 0.95:
            before = self._heard()
            self.crash()
            assert before in (None, self._heard()), "what was heard is gone after a reload"
        else:
            producer_id, commit = self.dice.randrange(3), self.dice.random() < 0.5
            self.bench.end(producer_id, commit)
            self.ledger.end(producer_id, commit)

    def _new_actor(self, number: int) -> Actor:
        kind = self.kinds if self.kinds != "mixed" else self.dice.choice(["classic", "consumer"])
        instance_id = f"i{number}" if number % 2 and self.dice.random() < 0.7 else None
        actor = ClassicActor if kind == "classic" else ConsumerActor
        return actor(self, f"{kind}{number}", instance_id)

    def _calm_down(self) -> None:
        """Without new trouble the group must settle: every partition with exactly one member."""
        self.is_calm = True
        for actor in self.actors:
            actor.sleeps_until_ms = 0
            actor.is_stubborn = actor is not self.actors[0]
        self.actors[0].leave()  # and comes again: one last rebalance, which the others hold up
        for _ in range(400):
            for actor in self.actors:
                actor.step()
            self.bench.advance(500)
            self.check_single_holder()
        self.check_offsets()
        owned = sorted(partition for actor in self.actors for partition in actor.owned)
        assert owned == list(range(PARTITIONS)), f"owned in the end: {owned}"
        state = self.bench.group().state
        assert state in (ClassicState.STABLE, ConsumerState.STABLE), state
