"""Heartbeats and commits of consumers (KIP-848) drawn by seed, to Apache Kafka and to Semel.

As in `test_improvised_transactions`: members join, linger in old epochs, hold on to what they shall
give up, leave and come back, and commit inside and outside of transactions; as long as the brokers
agree they are asked the same, and every answer is compared. Partitions are dealt out by `range`, in
the order of the members' ids, so that both brokers deal them alike.

IMPROVISED and IMPROVISED_FROM as there.
"""

import os
import random
from collections.abc import Callable
from contextlib import closing

import pytest
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.process import SemelProcess
from tests.support.conversations.group_conversation import GroupConversation, Member

pytestmark = pytest.mark.interop

FIRST = int(os.environ.get("IMPROVISED_FROM", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("IMPROVISED", "60")))
STEPS = 30
PARTITIONS = 4
SETTINGS = {"group.consumer.assignment.interval.ms": "0", "group.consumer.max.size": "3"}
JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2


class Improviser:
    def __init__(self, conversation: GroupConversation, seed: int) -> None:
        self.c = conversation
        self.dice = random.Random(seed)
        static = "i" if self.dice.random() < 0.5 else None
        self.members = [
            conversation.member("x"),
            conversation.member("y"),
            conversation.member("z", static),
            conversation.member("w", static),
        ]
        for member in self.members:
            member.member_id = member.name
        self.session = conversation.transactions.init()
        self.wishes: list[tuple[Callable[[Member], None], int]] = [
            (self.beat, 10),
            (self.join, 6),
            (self.leave, 3),
            (self.keep, 2),
            (self.beat_in_another_epoch, 1),
            (self.say_little, 2),
            (self.subscribe, 2),
            (self.commit, 4),
            (self.commit_in_transaction, 3),
            (self.end_transaction, 2),
            (self.fetch, 1),
            (self.delete_offsets, 1),
            (self.look_around, 2),
        ]

    def talk(self) -> None:
        wishes, weights = zip(*self.wishes, strict=True)
        for wish in self.dice.choices(wishes, weights, k=STEPS):
            wish(self.dice.choice(self.members))
        self.c.describe_consumer()
        self.c.fetch(*range(PARTITIONS))

    # What members say

    def join(self, member: Member) -> None:
        member.heartbeat(JOINS, server_assignor="range")

    def beat(self, member: Member) -> None:
        member.heartbeat()

    def keep(self, member: Member) -> None:
        """Hears what it shall give up, and says that it still has it all."""
        owned = member.owned
        member.heartbeat()
        member.owned = owned
        member.heartbeat()

    def beat_in_another_epoch(self, member: Member) -> None:
        member.heartbeat(max(member.generation + self.dice.choice([-1, 1, 2]), 1))

    def say_little(self, member: Member) -> None:
        member.heartbeat(topic_partitions=None)

    def subscribe(self, member: Member) -> None:
        member.heartbeat(subscribed_topic_names=self.dice.choice([[self.c.topic], []]))

    def leave(self, member: Member) -> None:
        is_static = member.instance_id is not None
        member.heartbeat(self.dice.choice([LEAVES, LEAVES_FOR_A_WHILE] if is_static else [LEAVES]))
        member.owned = {}

    def commit(self, member: Member) -> None:
        partition, offset = self.dice.randrange(PARTITIONS), self.dice.randrange(100)
        member.commit(offset, partition, generation_id_or_member_epoch=self.epoch(member))

    def commit_in_transaction(self, member: Member) -> None:
        offset, epoch = self.dice.randrange(100), self.epoch(member)
        self.c.transactions.commit_offset(self.session, offset, 5, epoch, member.member_id)

    def end_transaction(self, member: Member) -> None:
        talk = self.c.transactions
        after = talk.end(self.session, commit=self.dice.random() < 0.7, version=5)
        talk.settles()
        self.session = talk.init() if talk.last_error else after

    def fetch(self, member: Member) -> None:
        epoch = self.epoch(member)
        self.c.fetch(*range(PARTITIONS), member_id=member.member_id, member_epoch=epoch)

    def delete_offsets(self, member: Member) -> None:
        self.c.delete_offsets(self.dice.randrange(PARTITIONS))

    def look_around(self, member: Member) -> None:
        self.c.describe_consumer()
        self.c.listed()

    def epoch(self, member: Member) -> int:
        """Mostly its own."""
        others = [member.generation - 1, member.generation + 1]
        return member.generation if self.dice.random() < 0.8 else self.dice.choice(others)


def improvised(bootstrap: str, seed: int) -> list[str]:
    with closing(GroupConversation(bootstrap)) as conversation:
        Improviser(conversation, seed).talk()
        return conversation.transcript


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", SEEDS)
def test_semel_answers_as_apache_kafka_does(
    kafka: ApacheKafka, alike: SemelProcess, seed: int
) -> None:
    assert improvised(alike.bootstrap, seed) == improvised(kafka.bootstrap, seed)
