"""Requests drawn by seed, in any order, to Apache Kafka 4.3.1 and to Semel: every answer compared.

The scripted sequences ask what somebody thought of. Here several sessions of one transactional id,
old and new, right and wrong, say whatever comes to their minds, in both protocols at once. A wish
depends on nothing but the seed and the answers so far, so as long as the brokers agree they are
asked the same. What Semel does otherwise on purpose (docs/differences.md) is not asked.

IMPROVISED=1000 plays that many conversations, IMPROVISED_FROM says where to begin.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.process import SemelProcess
from tests.support.conversations.conversation import Conversation, Session

from semel.wire.errors import ErrorCode

pytestmark = pytest.mark.interop

FIRST = int(os.environ.get("IMPROVISED_FROM", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("IMPROVISED", "60")))
THROUGH_A_KILL = [1_000_000 + seed for seed in SEEDS[::3]]
PUT_OFF_SECONDS = 0.5
"""That a transaction is complete may be written late; a kill before that repeats its markers."""
STEPS = 25
PARTITIONS = 3
SETTINGS: dict[str, str] = {}
*INSIDE, OUTSIDE = range(PARTITIONS)
UNKNOWN_PARTITION = 7
VERSION_2 = 5  # of EndTxn


class Improviser:
    """Speaks for every session that the transactional id ever had."""

    def __init__(self, conversation: Conversation, seed: int, with_operator: bool = True) -> None:
        self.c = conversation
        self.dice = random.Random(seed)
        self.sessions = [conversation.init()]
        self.ended_by_version_1 = False
        self.wishes: list[tuple[Callable[[], None], int]] = [
            (self.produce, 8),
            (self.add, 5),
            (self.end, 5),
            (self.begin_anew, 2),
            (self.begin_anew_by_name, 2),
            (self.produce_out_of_order, 1),
            (self.produce_again, 1),
            (self.produce_outside, 1),
            (self.add_as_broker, 1),
            (self.add_offsets, 1),
            (self.commit_offset, 2),
            (self.look_around, 1),
        ]
        if with_operator:
            self.wishes.append((self.write_marker, 1))

    def talk(self, steps: int = STEPS) -> None:
        wishes, weights = zip(*self.wishes, strict=True)
        for wish in self.dice.choices(wishes, weights, k=steps):
            wish()
            if not self.c.settles():
                break
        self.c.look()
        self.c.committed()

    # Who speaks

    @property
    def newest(self) -> Session:
        return self.sessions[-1]

    def somebody(self) -> Session:
        """Mostly who may; sometimes one of the past, or one that there never was."""
        chance = self.dice.random()
        if chance < 0.8:
            return self.newest
        if chance < 0.93:
            return self.dice.choice(self.sessions)
        return self.newest.older() if self.newest.epoch and chance < 0.97 else self.newest.newer()

    def met(self, session: Session) -> None:
        if session.producer_id >= 0 and session not in self.sessions:
            self.sessions.append(session)

    # What is said

    def begin_anew(self) -> None:
        self.met(self.c.init(version=self.dice.choice([1, 4, 5])))

    def begin_anew_by_name(self) -> None:
        who = self.somebody()
        is_outdated = who != self.newest
        if is_outdated and self.c.describe() == "Ongoing":
            return  # Kafka lets a zombie end its heir's transaction
        self.met(self.c.init(expected=who, version=self.dice.choice([3, 4, 5])))

    def add(self) -> None:
        partitions = self.dice.sample(range(PARTITIONS), self.dice.randint(1, PARTITIONS))
        if self.dice.random() < 0.05:
            partitions.append(UNKNOWN_PARTITION)
        self.c.add(self.somebody(), partitions, version=self.dice.randint(0, 3))

    def add_as_broker(self) -> None:
        partitions = self.dice.sample(range(PARTITIONS), 2)
        self.c.add_batched(self.somebody(), partitions, verify_only=self.dice.random() < 0.7)

    def produce(self) -> None:
        partition, count = self.dice.randrange(PARTITIONS), self.dice.randint(1, 3)
        self.c.produce(
            self.somebody(), partition, count=count, version=self.dice.choice([8, 10, 11, 12])
        )

    def produce_out_of_order(self) -> None:
        partition, sequence = self.dice.choice(INSIDE), self.dice.randrange(6)
        version = self.dice.choice([10, 11, 12])
        self.c.produce(self.somebody(), partition, sequence, version=version)

    def produce_again(self) -> None:
        """The answer was lost, or so its sender thinks."""
        partition, version = self.dice.choice(INSIDE), self.dice.choice([11, 12])
        for _ in range(2):
            self.c.produce(self.newest, partition, sequence=0, version=version)

    def produce_outside(self) -> None:
        """Repeated inside a transaction, such a batch confuses Kafka, which waits for more: its
        verification of it stays open. So there is a partition for these."""
        self.c.produce(self.somebody(), OUTSIDE, version=12, transactional=False)

    def end(self) -> None:
        who, version = self.somebody(), self.dice.choice([1, 3, 4, 5, 5])
        commit = self.dice.random() < 0.6
        if version == VERSION_2 and who != self.newest and self.ended_by_version_1:
            return  # Kafka may take it for a retry, and hand a zombie its heir's epoch
        after = self.c.end(who, commit, version)
        if self.c.last_error == ErrorCode.NONE:
            self.ended_by_version_1 = version < VERSION_2
            self.met(after)

    def add_offsets(self) -> None:
        self.c.add_offsets(self.somebody(), version=self.dice.randint(0, 3))

    def commit_offset(self) -> None:
        who, offset = self.somebody(), self.dice.randrange(100)
        self.c.commit_offset(who, offset, version=self.dice.choice([2, 3, 4, 5]))

    def write_marker(self) -> None:
        """An operator's, as for a hanging transaction."""
        version = self.dice.choice([1, 2])
        self.c.write_marker(
            self.somebody(),
            commit=False,
            coordinator_epoch=self.dice.choice([-1, 0, 0, 1]),
            partition=self.dice.choice([0, 1, 2, UNKNOWN_PARTITION]),
            version=version,
            transaction_version=self.dice.choice([0, 1, 2]) if version > 1 else 0,
        )

    def look_around(self) -> None:
        self.c.describe()
        self.c.list_states()
        self.c.producers(self.dice.randrange(PARTITIONS))
        self.c.committed()


@pytest.fixture(scope="module")
def semels() -> Iterator[list[SemelProcess]]:
    """One of each durability: what is parked until the device has it must be answered alike."""
    with SemelProcess({"durability": "os"}) as quick, SemelProcess({"durability": "fsync"}) as safe:
        yield [quick, safe]


def improvised(bootstrap: str, seed: int) -> list[str]:
    with closing(Conversation(bootstrap, PARTITIONS)) as conversation:
        Improviser(conversation, seed).talk()
        return conversation.transcript


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", SEEDS)
def test_semel_answers_as_apache_kafka_does(
    kafka: ApacheKafka, semels: list[SemelProcess], seed: int
) -> None:
    semel = semels[seed % len(semels)]
    assert improvised(semel.bootstrap, seed) == improvised(kafka.bootstrap, seed)


def improvised_through_a_kill(broker: ApacheKafka | SemelProcess) -> list[list[str]]:
    """Many conversations, in the middle of which the broker dies and comes back. Without operators:
    their coordinator epochs would tell how often a broker has started."""
    talks = [Improviser(Conversation(broker.bootstrap), seed, False) for seed in THROUGH_A_KILL]
    for talk in talks:
        talk.talk(STEPS // 2)
    time.sleep(PUT_OFF_SECONDS)
    broker.kill()
    broker.start()
    for talk in talks:
        talk.c.reconnect()
        talk.talk(STEPS // 2)
        talk.c.close()
    return [talk.c.transcript for talk in talks]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("durability", [0, 1], ids=["os", "fsync"])
def test_a_kill_changes_no_answer(
    kafka: ApacheKafka, semels: list[SemelProcess], durability: int
) -> None:
    ours, theirs = improvised_through_a_kill(semels[durability]), improvised_through_a_kill(kafka)
    for seed, mine, kafkas in zip(THROUGH_A_KILL, ours, theirs, strict=True):
        assert mine == kafkas, f"seed {seed}"
