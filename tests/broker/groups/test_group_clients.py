"""librdkafka (both protocols), aiokafka and kafka-python in groups: share, commit, resume."""

import asyncio
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import OffsetAndMetadata

from semel.broker.server import Broker
from semel.core.groups.consumer.group import ConsumerMember

PARTITIONS = 4
PROTOCOLS = ["classic", "consumer"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = {
        "num.partitions": PARTITIONS,
        "group.consumer.heartbeat.interval.ms": 300,
        "group.min.session.timeout.ms": 1000,
    }
    with Broker(data=tmp_path_factory.mktemp("data"), settings=settings) as broker:
        yield broker


@pytest.fixture(scope="module")
def servers(broker: Broker) -> str:
    return broker.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    name = f"in-{uuid.uuid4().hex[:8]}"
    producer = Producer({"bootstrap.servers": servers})
    for number in range(200):
        producer.produce(name, key=b"%d" % number, value=b"%d" % number)
    assert producer.flush(20) == 0
    return name


@pytest.fixture
def group() -> str:
    return f"g-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def consumer(servers: str) -> Iterator[Callable[..., Consumer]]:
    """Makes librdkafka consumers that are closed after the test."""
    made: list[Consumer] = []

    def make(group: str, protocol: str, **settings: object) -> Consumer:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        classic = {"session.timeout.ms": 3000, "heartbeat.interval.ms": 300}
        base = {
            "bootstrap.servers": servers,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **(classic if protocol == "classic" else {}),
        }
        made.append(Consumer(base | named))
        return made[-1]

    yield make
    for one in made:
        one.close()


def read(consumer: Consumer, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        for message in consumer.consume(count - len(found), timeout=1):
            assert message.error() is None, message.error()
            found.append(int(message.value()))
    return found


def owned(consumer: Consumer) -> list[int]:
    return sorted(place.partition for place in consumer.assignment())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_resumes_where_it_committed(consumer, topic, group, protocol):
    first = consumer(group, protocol)
    first.subscribe([topic])
    seen = read(first, 120)
    first.commit(asynchronous=False)
    first.close()
    second = consumer(group, protocol)
    second.subscribe([topic])
    assert sorted(seen + read(second, 80)) == list(range(200))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_two_members_share_and_the_one_that_stays_takes_over(consumer, topic, group, protocol):
    one, two = consumer(group, protocol), consumer(group, protocol)
    one.subscribe([topic])
    while len(owned(one)) < PARTITIONS:
        one.poll(0.1)
    two.subscribe([topic])
    while not (len(owned(one)) == len(owned(two)) == PARTITIONS // 2):
        one.poll(0.05)
        two.poll(0.05)
    assert sorted(owned(one) + owned(two)) == list(range(PARTITIONS))
    one.close()
    while len(owned(two)) < PARTITIONS:
        two.poll(0.1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_static_member_returns_without_a_rebalance_of_the_others(
    consumer, topic, group, protocol
):
    moves: list[str] = []
    stays = consumer(group, protocol)
    stays.subscribe([topic], on_revoke=lambda *_: moves.append("revoked"))
    leaves = consumer(group, protocol, group_instance_id="static")
    leaves.subscribe([topic])
    while not (len(owned(stays)) == len(owned(leaves)) == PARTITIONS // 2):
        stays.poll(0.05)
        leaves.poll(0.05)
    before, had = len(moves), owned(leaves)
    leaves.close()
    back = consumer(group, protocol, group_instance_id="static")
    back.subscribe([topic])
    while owned(back) != had:
        back.poll(0.05)
        stays.poll(0.05)
    assert len(moves) == before


def test_a_group_moves_from_classic_to_consumer_and_back_while_it_runs(consumer, topic, group):
    old = consumer(group, "classic", partition_assignment_strategy="cooperative-sticky")
    old.subscribe([topic])
    while len(owned(old)) < PARTITIONS:
        old.poll(0.1)
    new = consumer(group, "consumer")
    new.subscribe([topic])
    while not (len(owned(old)) == len(owned(new)) == PARTITIONS // 2):
        old.poll(0.05)
        new.poll(0.05)
    assert sorted(owned(old) + owned(new)) == list(range(PARTITIONS))
    new.close()
    while len(owned(old)) < PARTITIONS:
        old.poll(0.1)


def test_a_subscription_by_regular_expression_finds_new_topics(servers, consumer, group):
    prefix = f"r-{uuid.uuid4().hex[:8]}"
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(f"{prefix}-a", b"1")
    assert producer.flush(10) == 0
    member = consumer(group, "consumer", topic_metadata_refresh_interval_ms=500)
    member.subscribe([f"^{prefix}-.*"])
    assert read(member, 1) == [1]
    producer.produce(f"{prefix}-b", b"2")
    assert producer.flush(10) == 0
    assert read(member, 1) == [2]


def test_administrators_see_change_and_delete_groups(servers, consumer, topic, group):
    admin = AdminClient({"bootstrap.servers": servers})
    member = consumer(group, "classic")
    member.subscribe([topic])
    read(member, 200)
    member.commit(asynchronous=False)
    [described] = [f.result() for f in admin.describe_consumer_groups([group]).values()]
    assert described.state.name == "STABLE"
    assert len(described.members[0].assignment.topic_partitions) == PARTITIONS
    listed = {g.group_id: g for g in admin.list_consumer_groups().result().valid}
    assert listed[group].type.name == "CLASSIC"
    member.close()

    from confluent_kafka import ConsumerGroupTopicPartitions as Wanted

    reset = Wanted(group, [TopicPartition(topic, 0, 3)])
    admin.alter_consumer_group_offsets([reset])[group].result()
    [found] = [f.result() for f in admin.list_consumer_group_offsets([Wanted(group)]).values()]
    offsets = {place.partition: place.offset for place in found.topic_partitions}
    assert offsets[0] == 3
    assert sum(offsets.values()) > 3
    admin.delete_consumer_groups([group])[group].result()
    assert group not in {g.group_id for g in admin.list_consumer_groups().result().valid}


def test_kafka_python_shares_commits_and_resumes(servers, topic, group):
    def make() -> KafkaConsumer:
        return KafkaConsumer(
            topic, bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest",
            enable_auto_commit=False, max_poll_records=50, session_timeout_ms=6_000,
        )  # fmt: skip

    seen: Counter[int] = Counter()

    def take(consumer: KafkaConsumer, until: int) -> None:
        while seen.total() < until:
            for messages in consumer.poll(timeout_ms=500).values():
                seen.update(int(message.value) for message in messages)
            consumer.commit()

    first = make()
    take(first, 100)
    first.close()
    second = make()
    take(second, 200)
    second.close()
    assert seen == Counter(range(200))


async def test_aiokafka_shares_commits_and_resumes(servers, topic, group):
    seen: Counter[int] = Counter()

    async def take(until: int) -> None:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest",
            enable_auto_commit=False, session_timeout_ms=6_000, max_poll_records=50,
        )  # fmt: skip
        async with consumer:
            while seen.total() < until:
                for messages in (await consumer.getmany(timeout_ms=500)).values():
                    seen.update(int(message.value) for message in messages)
                await consumer.commit()

    await take(100)
    await take(200)
    assert seen == Counter(range(200))


# Offsets inside transactions


def written(consumer: Callable[..., Consumer], topic: str, count: int) -> list[int]:
    reader = consumer(f"check-{topic}", "classic", isolation_level="read_committed")
    reader.subscribe([topic])
    found = read(reader, count)
    assert reader.consume(10, timeout=0.5) == [], "nothing more than once"
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_librdkafka_consumes_transforms_and_produces_exactly_once(
    servers, consumer, topic, group, protocol
):
    """Every third transaction aborts, and its records are read again."""
    output = f"out-{topic}"
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"tx-{group}"})
    producer.init_transactions(10)
    source = consumer(group, protocol)
    source.subscribe([topic])
    done, round_ = 0, 0
    while done < 200:
        messages = source.consume(20, timeout=1)
        if not messages:
            continue
        round_ += 1
        producer.begin_transaction()
        for message in messages:
            producer.produce(output, b"%d" % (int(message.value()) * 2))
        positions = source.position(source.assignment())
        producer.send_offsets_to_transaction(positions, source.consumer_group_metadata(), 10)
        if round_ % 3 == 0:
            producer.abort_transaction(10)
            for place in source.committed(source.assignment()):
                source.seek(TopicPartition(topic, place.partition, max(place.offset, 0)))
        else:
            producer.commit_transaction(10)
            done += len(messages)
    assert sorted(written(consumer, output, 200)) == [number * 2 for number in range(200)]


async def test_aiokafka_consumes_transforms_and_produces_exactly_once(
    servers, consumer, topic, group
):
    output = f"out-{topic}"
    source = AIOKafkaConsumer(
        topic, bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest",
        enable_auto_commit=False, max_poll_records=40, isolation_level="read_committed",
    )  # fmt: skip
    producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=f"tx-{group}")
    done = 0
    async with source, producer:
        while done < 200:
            batch = await source.getmany(timeout_ms=500, max_records=40)
            if not batch:
                continue
            async with producer.transaction():
                offsets = {}
                for place, messages in batch.items():
                    for message in messages:
                        await producer.send(output, b"%d" % int(message.value))
                    offsets[place] = messages[-1].offset + 1
                    done += len(messages)
                await producer.send_offsets_to_transaction(offsets, group)
    found = await asyncio.to_thread(written, consumer, output, 200)
    assert sorted(found) == list(range(200))


def test_kafka_python_consumes_transforms_and_produces_exactly_once(
    servers, consumer, topic, group
):
    output = f"out-{topic}"
    source = KafkaConsumer(
        topic, bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest",
        enable_auto_commit=False, max_poll_records=40, isolation_level="read_committed",
    )  # fmt: skip
    producer = KafkaProducer(bootstrap_servers=servers, transactional_id=f"tx-{group}")
    producer.init_transactions()
    done = 0
    while done < 200:
        batch = source.poll(timeout_ms=500)
        if not batch:
            continue
        producer.begin_transaction()
        offsets = {}
        for place, messages in batch.items():
            for message in messages:
                producer.send(output, b"%d" % int(message.value))
            offsets[place] = OffsetAndMetadata(messages[-1].offset + 1, "", -1)
            done += len(messages)
        producer.send_offsets_to_transaction(offsets, source.group_metadata())
        producer.commit_transaction()
    source.close()
    producer.close()
    assert sorted(written(consumer, output, 200)) == list(range(200))


def test_a_member_that_was_replaced_cannot_commit_in_its_transaction(servers, consumer, group):
    """KIP-447: the zombie's offsets are refused, so its output can never be committed."""
    topic = f"in-{uuid.uuid4().hex[:8]}"
    seed = Producer({"bootstrap.servers": servers})
    seed.produce(topic, b"1")
    assert seed.flush(10) == 0
    zombie = consumer(group, "classic")
    zombie.subscribe([topic])
    assert read(zombie, 1) == [1]
    metadata, positions = zombie.consumer_group_metadata(), zombie.position(zombie.assignment())
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"tx-{group}"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(f"out-{topic}", b"1")
    zombie.close()
    successor = consumer(group, "classic")
    successor.subscribe([topic])
    assert read(successor, 1) == [1]
    with pytest.raises(KafkaException) as refused:
        producer.send_offsets_to_transaction(positions, metadata, 10)
    assert refused.value.args[0].txn_requires_abort()
    producer.abort_transaction(10)
    committed = successor.committed([TopicPartition(topic, 0)])
    assert committed[0].offset < 0


@pytest.mark.slow
def test_many_members_come_and_go_under_load_and_nothing_is_lost(servers, consumer, topic, group):
    """Members leave in the middle of their work; what they had not committed is read again."""
    stop, seen, lock = threading.Event(), set(), threading.Lock()

    def work(rounds: int, protocol: str) -> None:
        while rounds and not stop.is_set():
            member = consumer(group, protocol)
            member.subscribe([topic])
            for message in member.consume(30, timeout=2):
                if message.error() is None:
                    with lock:
                        seen.add(int(message.value()))
            # A rebalance may come in between: whoever has the partition then reads it again.
            with suppress(KafkaException):
                member.commit(asynchronous=False)
            member.close()
            rounds -= 1
            if len(seen) == 200:
                stop.set()

    threads = [threading.Thread(target=work, args=(30, "classic")) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == set(range(200))


class Fickle:
    """A librdkafka consumer whose application changes its mind, and what its broker knows."""

    def __init__(self, broker: Broker, member: Consumer, group: str) -> None:
        self.broker = broker
        self.member = member
        self.group = group

    def subscribe(self, *names: str) -> None:
        self.member.subscribe(
            [*names],
            on_assign=lambda it, new: it.incremental_assign(new),
            on_revoke=lambda it, gone: it.incremental_unassign(gone),
        )

    def poll_until_it_has(self, *topics: str) -> None:
        wanted = {(topic, partition) for topic in topics for partition in range(PARTITIONS)}
        while {(one.topic, one.partition) for one in self.member.assignment()} != wanted:
            message = self.member.poll(0.05)
            assert message is None or message.error() is None, message.error()

    def known(self) -> list[ConsumerMember]:
        group = self.broker.groups.shard_of(self.group).machine.state.groups.get(self.group)
        return list(group.members.values()) if group is not None else []

    def set_interval(self, milliseconds: int) -> None:
        configs = {"consumer.assignment.interval.ms": str(milliseconds)}
        self.broker.loop.call_soon_threadsafe(
            self.broker.catalog.configure, "group", self.group, configs
        )


@pytest.fixture
def fickle(broker: Broker, consumer: Callable[..., Consumer], group: str) -> Fickle:
    return Fickle(broker, consumer(group, "consumer"), group)


@pytest.fixture
def other(servers: str, topic: str) -> str:
    name = f"{topic}-other"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(20)
    return name


def test_librdkafka_survives_a_subscription_that_changes_and_then_ends(
    fickle: Fickle, topic: str, other: str
) -> None:
    """As in its own test 0045 `many_updates`: one that hears of partitions to give up in between
    leaves the group and never speaks again."""
    fickle.set_interval(15_000)  # however slow this machine is
    fickle.subscribe(topic, other)
    fickle.poll_until_it_has(topic, other)
    fickle.subscribe(other)
    while [one.topic_names for one in fickle.known()] != [{other}]:
        pass
    for _ in range(20):
        fickle.member.assignment()  # asks the thread that hears the broker: it has heard by now
    fickle.member.unsubscribe()
    fickle.subscribe(topic)
    fickle.set_interval(0)
    fickle.poll_until_it_has(topic)


def test_librdkafka_recovers_when_it_is_unsubscribed_while_it_gives_up_partitions(
    fickle: Fickle, topic: str, other: str
) -> None:
    """It then speaks as a member that it no longer is, and must not hear that this is invalid."""
    fickle.subscribe(topic, other)
    fickle.poll_until_it_has(topic, other)
    fickle.subscribe(other)
    while not any(one.revoking for one in fickle.known()):
        pass  # it is asked to give up half of what it has, and does so when it is polled next
    fickle.member.unsubscribe()
    while fickle.known():
        fickle.member.poll(0.05)
    fickle.subscribe(other)
    fickle.poll_until_it_has(other)
