"""Replaying the log rebuilds what was written, after every single decision."""

import random

import pytest
from tests.support.groups.bench import GroupBench

from semel.core.groups.classic.group import ClassicGroup
from semel.core.groups.commands import DeleteGroup, LeaveGroup, OffsetDelete
from semel.core.groups.consumer.group import ConsumerGroup
from semel.core.groups.records import ClassicGroupChanged, ClassicGroupDeleted, ConsumerGroupDeleted
from semel.core.groups.replies import JoinReply


def written_state(coordinator, written):
    """Everything a restart must bring back; of classic groups, what was last written."""
    state = coordinator.state
    classic = {
        group_id: written.get(group_id)
        for group_id, group in state.groups.items()
        if isinstance(group, ClassicGroup)
    }
    consumer = {
        group_id: (g.epoch, g.assignment_epoch, g.members, g.target, g.regexes, g.owner_epochs)
        for group_id, g in state.groups.items()
        if isinstance(g, ConsumerGroup)
    }
    offsets = {
        (group_id, topic, partition): offset
        for group_id in state.offsets.groups()
        for topic, partitions in state.offsets.of_group(group_id).items()
        for partition, offset in partitions.items()
    }
    return classic, consumer, offsets, state.offsets.pending


def images(coordinator, has_image):
    return {
        group_id: group.image()
        for group_id, group in coordinator.state.groups.items()
        if isinstance(group, ClassicGroup) and group_id in has_image
    }


class Watched(GroupBench):
    """Compares itself with its own log after every decision."""

    def __init__(self, **topics):
        self.written = {}
        self.compared = 0
        super().__init__(**topics)

    def do(self, command):
        reply = super().do(command)
        for record in self.last.records:
            match record:
                case ClassicGroupChanged(group, written) if written is not None:
                    self.written[group.group_id] = written
                case ClassicGroupDeleted(group_id) | ConsumerGroupDeleted(group_id):
                    self.written.pop(group_id, None)
        self.compare()
        return reply

    def end(self, producer_id, commit):
        super().end(producer_id, commit)
        self.compare()

    def compare(self):
        replayed = self.replayed()
        replayed_images = images(replayed, self.written)
        assert written_state(self.coordinator, self.written) == written_state(
            replayed, replayed_images
        )
        self.compared += 1


def random_walk(bench, seed, steps):
    dice = random.Random(seed)
    groups, members = ["g", "h"], ["a", "b", "c"]
    for _ in range(steps):
        group_id, member = dice.choice(groups), dice.choice(members)
        known = bench.group(group_id)
        match dice.randrange(12):
            case 0 | 1:
                bench.beat(member, group_id=group_id)
            case 2 | 3 if isinstance(known, ConsumerGroup) and member in known.members:
                epoch = known.members[member].epoch
                bench.beat(member, epoch, owned={}, group_id=group_id)
            case 4:
                bench.beat(member, -1, group_id=group_id)
            case 5:
                reply = bench.join(group_id=group_id, version=3)
                if isinstance(reply, JoinReply) and not reply.error:
                    bench.sync(reply, group_id)
            case 6:
                for request, answer in list(bench.answers.items()):
                    if isinstance(answer, JoinReply) and not answer.error:
                        bench.sync(answer, group_id)
                    del bench.answers[request]
            case 7:
                bench.commit(dice.randrange(99), partition=dice.randrange(4), group_id=group_id)
            case 8:
                bench.txn_commit(
                    dice.randrange(3), dice.randrange(99), partition=dice.randrange(4),
                    group_id=group_id,
                )  # fmt: skip
            case 9:
                bench.end(dice.randrange(3), dice.random() < 0.5)
            case 10:
                bench.do(OffsetDelete(group_id, (("t", dice.randrange(4)),)))
                bench.do(DeleteGroup(group_id))
                if isinstance(known, ClassicGroup):
                    bench.do(LeaveGroup(group_id, tuple((m, None) for m in known.members)))
            case 11:
                bench.advance(dice.choice([0, 1_000, 50_000]))


@pytest.mark.parametrize("seed", range(12))
def test_after_every_decision_the_log_tells_the_same_story(seed):
    bench = Watched(t=4)
    random_walk(bench, seed, 120)
    assert bench.compared > 100


def test_every_prefix_of_a_log_can_be_replayed():
    bench = GroupBench(t=4)
    random_walk(bench, 99, 300)
    assert len(bench.log) > 100
    for length in range(len(bench.log)):
        coordinator = bench.replayed(length)
        for group in coordinator.state.groups.values():
            assert group.group_id in ("g", "h")
