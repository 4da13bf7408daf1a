"""How soon a group reads, how soon a large one settles, commits per second, and copying.

Raw clients do the first three, so that no client's own pauses are measured; copying (consume,
transform, produce: 100 records and their offsets in each transaction) is librdkafka's. A goal of
"half the time" is one of twice the rate.

A large group settles as the brokers come, in either protocol, and with both told not to wait for
anybody. What users see is the former, and most of it is waiting (docs/differences.md): Apache Kafka
computes a consumer group's assignment at most once a second and holds up a new classic group for
3 s; Semel computes four times a second, asks those who wait to come back in time, and holds up
nobody.
"""

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.support.conversations.raw_client import RawClient

from benchmarks.raw_crowd import ClassicGroup, ConsumerGroup, Crowd
from benchmarks.raw_group import RawCommits, RawMember, new_group
from benchmarks.side_by_side import Report, Side, Work, Workload, both_brokers, measure

SMALL, LARGE, SOURCE, TARGET = "bench-small", "bench-large", "bench-source", "bench-target"
PARTITIONS = {SMALL: 10, LARGE: 500, SOURCE: 10, TARGET: 10}
BATCH = 100

T = TypeVar("T")
Kind = type[ClassicGroup] | type[ConsumerGroup]


# The default, which the fixture of the tests overrides.
KAFKAS_OWN = {"group.initial.rebalance.delay.ms": "3000"}
NO_WAITING = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}


def run(rounds: int = 5) -> None:
    report = Report("Groups")
    with both_brokers(kafkas=KAFKAS_OWN) as sides:
        for side in sides:
            make_topics(side)
        add_settling(report, sides, ConsumerGroup, "as it comes", groups=1, rounds=rounds)
        add_settling(report, sides, ClassicGroup, "as it comes", groups=1, rounds=rounds)
    with both_brokers(NO_WAITING) as sides:
        for side in sides:
            make_topics(side)
        add_settling(report, sides, ConsumerGroup, "no waiting", groups=10, rounds=rounds)
        add_settling(report, sides, ClassicGroup, "no waiting", groups=10, rounds=rounds)
        report.add(
            "JoinGroup to first record", measure(sides, first_record(50), "group", rounds), goal=2.0
        )
        report.add(
            "one commit at a time", measure(sides, commits(1, 1, 1000), "commit", rounds), goal=2.0
        )
        report.add(
            "commits, 4 clients × 20 in flight",
            measure(sides, commits(4, 20, 1000), "commit", rounds), goal=2.0,
        )  # fmt: skip
        report.add(
            "consume–transform–produce of 100",
            measure(sides, copying(20), "txn", rounds),
            goal=10.0,
        )
    report.finish()


def add_settling(
    report: Report, sides: list[Side], kind: Kind, how: str, groups: int, rounds: int
) -> None:
    measured = measure(sides, settling(kind, 50, groups), "group", rounds)
    report.add(f"50 members of 500 settle: {kind.PROTOCOL}, {how}", measured, goal=2.0)


def make_topics(side: Side) -> None:
    admin = AdminClient({"bootstrap.servers": side.bootstrap})
    wanted = [NewTopic(name, count, 1) for name, count in PARTITIONS.items()]
    for made in admin.create_topics(wanted).values():
        made.result()
    fill(side, SMALL, 1_000)


def fill(side: Side, topic: str, records: int) -> None:
    client = Producer({"bootstrap.servers": side.bootstrap})
    for number in range(records):
        client.produce(topic, b"x" * 100, partition=number % PARTITIONS[topic])
    client.flush()


def first_record(groups: int) -> Workload:
    connection = per_side(lambda side: RawClient(side.bootstrap))

    def work(side: Side) -> Work:
        latencies = []
        for _ in range(groups):
            member = RawMember(connection(side), new_group(connection(side)), SMALL)
            began = time.perf_counter()
            assert member.enter(PARTITIONS[SMALL])
            member.read_first_record()
            latencies.append((time.perf_counter() - began) * 1000)
            member.leave()
        return Work(groups, latencies, sum(latencies) / 1000)

    return work


def settling(kind: Kind, size: int, groups: int) -> Workload:
    """From the first member's request until everybody has its share of the partitions."""
    crowds = per_side(lambda side: Crowd(side.bootstrap, size))
    connection = per_side(lambda side: RawClient(side.bootstrap))

    def work(side: Side) -> Work:
        crowd, latencies = crowds(side), []
        for _ in range(groups):
            group = kind(new_group(connection(side)), LARGE, PARTITIONS[LARGE], size)
            latencies.append(crowd.settle(group.members) * 1000)
            assert group.owned() == list(range(PARTITIONS[LARGE]))
            crowd.tell(group.leave())
        return Work(groups, latencies, sum(latencies) / 1000)

    return work


def commits(clients: int, in_flight: int, count: int) -> Workload:
    connections = per_side(
        lambda side: [RawCommits(side.bootstrap, SMALL, in_flight) for _ in range(clients)]
    )

    def commit(client: RawCommits) -> list[float]:
        latencies = []
        for _ in range(count // in_flight):
            began = time.perf_counter()
            client.burst()
            latencies.append((time.perf_counter() - began) * 1000)
        return latencies

    def work(side: Side) -> Work:
        began = time.perf_counter()
        with ThreadPoolExecutor(clients) as pool:
            latencies = [one for some in pool.map(commit, connections(side)) for one in some]
        return Work(clients * count, latencies, time.perf_counter() - began)

    return work


def copying(transactions: int) -> Workload:
    clients = per_side(copier)

    def work(side: Side) -> Work:
        consumer, producer = clients(side)
        fill(side, SOURCE, transactions * BATCH)
        messages = consumer.consume(1, 30)  # joined and reading: what is measured is copying
        latencies = []
        for _ in range(transactions):
            began = time.perf_counter()
            while len(messages) < BATCH:
                messages += consumer.consume(BATCH - len(messages), 30)
            copy(consumer, producer, messages)
            latencies.append((time.perf_counter() - began) * 1000)
            messages = []
        return Work(transactions, latencies, sum(latencies) / 1000)

    return work


def copier(side: Side) -> tuple[Consumer, Producer]:
    consumer = Consumer(
        {
            "bootstrap.servers": side.bootstrap,
            "group.id": f"copy-{uuid.uuid4()}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([SOURCE])
    producer = Producer(
        {
            "bootstrap.servers": side.bootstrap,
            "transactional.id": f"copy-{uuid.uuid4()}",
            "linger.ms": 0,
        }
    )
    producer.init_transactions(30)
    return consumer, producer


def copy(consumer: Consumer, producer: Producer, messages: list) -> None:  # type: ignore[type-arg]
    producer.begin_transaction()
    for number, message in enumerate(messages):
        assert message.error() is None, message.error()
        producer.produce(TARGET, message.value(), partition=number % PARTITIONS[TARGET])
    positions = consumer.position(consumer.assignment())
    read = [position for position in positions if position.offset >= 0]
    producer.send_offsets_to_transaction(read, consumer.consumer_group_metadata(), 30)
    producer.commit_transaction(30)


def per_side(make: Callable[[Side], T]) -> Callable[[Side], T]:
    """One of a kind for each broker, made when first needed: the warm-up pays for it."""
    made: dict[str, T] = {}

    def get(side: Side) -> T:
        if side.name not in made:
            made[side.name] = make(side)
        return made[side.name]

    return get
