"""Our members of consumer groups against the real coordinator, over a line that loses; by seed.

Each member reads on from what is committed and commits what it read. However heartbeats are lost,
members vanish and the coordinator starts again: no commit is accepted that would cover records
which another has committed already, and in the end every partition is read by one member.
"""

import os
import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.groups.bench import GroupBench

from semel.client.machines.consumer_membership import ConsumerMembership, MemberSettings, Phase
from semel.client.machines.subscription import Subscription
from semel.core.groups.commands import ConsumerGroupHeartbeat
from semel.wire.errors import ErrorCode
from semel.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

SEEDS = range(int(os.environ.get("SEMEL_SEEDS", "30")))
STEPS = 400
TOPICS = {"t": 4, "u": 2}
SUBSCRIPTIONS = [
    Subscription(frozenset({"t"})),
    Subscription(frozenset({"t", "u"})),
    Subscription(pattern="[tu]"),
]
Place = tuple[str, int]


class Member:
    """What `client.ConsumerGroup` and `client.Consumer` do with the core's decisions."""

    def __init__(self, world: "World", name: str, instance_id: str | None) -> None:
        self.world = world
        settings = MemberSettings("g", 60_000, instance_id)
        self.membership = ConsumerMembership(settings, name)
        self.membership.subscribe(world.dice.choice(SUBSCRIPTIONS))
        self.positions: dict[Place, tuple[int, int]] = {}  # where it began, where it is
        self.next_beat = 0
        self.is_waiting = False

    def beat(self) -> None:
        member, world = self.membership, self.world
        if self.is_waiting or member.phase not in (Phase.JOINING, Phase.MEMBER):
            return
        if member.has_news or world.bench.now_ms >= self.next_beat:
            self.is_waiting = True
            request = member.heartbeat()
            world.carry(lambda: world.serve(request), self._heard)

    def _heard(self, answer: ConsumerGroupHeartbeatResponse | None) -> None:
        self.is_waiting = False
        if answer is None:
            self.membership.lost()
            return
        self.membership.answered(answer)
        self.next_beat = self.world.bench.now_ms + self.membership.interval_ms

    def poll(self) -> None:
        member = self.membership
        if member.phase is Phase.EXPELLED:
            self.world.expulsions += 1
            self.positions.clear()
            member.dropped()
        plan = member.plan
        if plan.revoke:
            self.commit()
        for each in plan.revoke:
            self.positions.pop(self.world.place(each), None)
        member.gave_up(plan.revoke)
        for each in plan.take:
            place = self.world.place(each)
            self.positions[place] = (self.world.committed(place),) * 2
        member.took(plan.take)

    def read(self) -> None:
        for place, (began, position) in self.positions.items():
            self.positions[place] = began, position + self.world.dice.randint(0, 3)

    def commit(self) -> None:
        for place, (began, position) in self.positions.items():
            if position > began and self._commit(place, began, position):
                self.positions[place] = position, position

    def _commit(self, place: Place, began: int, position: int) -> bool:
        bench, who = self.world.bench, self.membership.metadata
        before = self.world.committed(place)
        code = bench.commit(position, *place, member_id=who.member_id, generation=who.generation_id)
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.membership.expelled()
        if code is ErrorCode.NONE:
            self.world.commits += 1
            assert before == began, f"{place}: {began}–{position} after {before}: twice"
        return bool(code is ErrorCode.NONE)


class World:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.loss = self.dice.choice([0.0, 0.1, 0.3])
        self.bench = GroupBench(**TOPICS)
        self.events: list[tuple[int, Callable[[], Any]]] = []
        self.members: list[Member] = []
        self.expulsions = self.commits = 0
        self._names = iter(range(10**6))
        self.add_member()

    def place(self, each: Any) -> Place:
        return str(self.bench.topics.name_of(each.topic_id)), each.partition

    def committed(self, place: Place) -> int:
        return max(self.bench.offset(*place), 0)

    def add_member(self) -> None:
        number = next(self._names)
        instance_id = f"i{number}" if self.dice.random() < 0.2 else None
        self.members.append(Member(self, f"m{number}", instance_id))

    def carry(self, serve: Callable[[], Any], hear: Callable[[Any], None]) -> None:
        """Served and answered; or lost on the way there, on the way back, or just very late."""
        fate, delay = self.dice.random(), self.dice.randint(0, 50)
        if fate >= self.loss:
            self.later(delay, lambda: self._serve_and_answer(serve, hear))
            return
        self.later(delay, lambda: hear(None))
        if fate < self.loss * 0.6:
            self.later(self.dice.choice([0, delay, delay + 3_000]), serve)

    def _serve_and_answer(self, serve: Callable[[], Any], hear: Callable[[Any], None]) -> None:
        answer = serve()
        self.later(self.dice.randint(0, 50), lambda: hear(answer))

    def later(self, delay: int, event: Callable[[], Any]) -> None:
        self.events.append((self.bench.now_ms + delay, event))

    def serve(self, said: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        names, owned = said.subscribed_topic_names, said.topic_partitions
        reply = self.bench.do(
            ConsumerGroupHeartbeat(
                said.group_id, said.member_id, said.member_epoch, said.instance_id,
                rebalance_timeout_ms=said.rebalance_timeout_ms,
                subscribed_topic_names=None if names is None else tuple(names),
                subscribed_topic_regex=said.subscribed_topic_regex,
                owned=None if owned is None
                else tuple((t.topic_id, tuple(t.partitions)) for t in owned),
            )
        )  # fmt: skip
        assignment = None
        if reply.assignment is not None:
            assignment = ConsumerGroupHeartbeatResponse.Assignment(
                topic_partitions=[
                    ConsumerGroupHeartbeatResponse.TopicPartitions(
                        topic_id=topic, partitions=partitions
                    )
                    for topic, partitions in reply.assignment.items()
                ]
            )
        return ConsumerGroupHeartbeatResponse(
            error_code=reply.error, member_id=reply.member_id, member_epoch=reply.member_epoch,
            heartbeat_interval_ms=reply.heartbeat_interval_ms, assignment=assignment,
        )  # fmt: skip

    def step(self) -> None:
        dice = self.dice
        self.bench.advance(dice.choice([0, 10, 100, 1_000]))
        if dice.random() < 0.005:
            self.bench.advance(50_000)  # longer than a session: who did not beat is expelled
        if dice.random() < 0.01:
            self.bench.restart()
        self._come_and_go()
        self._deliver()
        for member in self.members:
            for act in (member.beat, member.poll, member.read, member.commit):
                if dice.random() < 0.5:
                    act()

    def _come_and_go(self) -> None:
        dice = self.dice
        if len(self.members) < 4 and dice.random() < 0.03:
            self.add_member()
        if len(self.members) > 1 and dice.random() < 0.02:
            gone = self.members.pop(dice.randrange(len(self.members)))
            leave_request = gone.membership.leave_request()
            if leave_request is not None and dice.random() < 0.5:
                gone.commit()
                self.serve(leave_request)
        if dice.random() < 0.02:
            dice.choice(self.members).membership.subscribe(dice.choice(SUBSCRIPTIONS))

    def _deliver(self) -> None:
        due = [event for event in self.events if event[0] <= self.bench.now_ms]
        self.events = [event for event in self.events if event[0] > self.bench.now_ms]
        for _, event in sorted(due, key=lambda each: each[0]):
            event()

    def settle(self) -> None:
        """No more losses, nobody comes or goes: time enough for every ghost to be forgotten."""
        self.loss = 0.0
        for _ in range(400):
            self.bench.advance(400)
            self._deliver()
            for member in self.members:
                for act in (member.beat, member.poll, member.read, member.commit):
                    act()

    def check(self) -> None:
        read = [place for member in self.members for place in member.positions]
        wanted = {"t"}
        for member in self.members:
            subscription = member.membership._subscription
            wanted |= subscription.topics or set("tu")
        assert sorted(read) == sorted((t, p) for t in wanted for p in range(TOPICS[t]))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_record_is_committed_twice_and_every_partition_finds_its_reader(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    world.settle()
    world.check()


def test_the_members_lives_are_eventful() -> None:
    worlds = [World(seed) for seed in range(10)]
    for world in worlds:
        for _ in range(STEPS):
            world.step()
    assert sum(world.expulsions for world in worlds) > 20
    assert sum(world.commits for world in worlds) > 1_000
