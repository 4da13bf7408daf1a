"""Groups that consume, transform and produce while their members are killed: each record once."""

import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.support.brokers.apache_kafka import ApacheKafka, kafka_tool
from tests.support.brokers.process import SemelProcess

pytestmark = pytest.mark.interop

PARTITIONS = 4
PATIENCE_S = 60
COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
OURS = [sys.executable, str(Path(__file__).parent / "our_member.py")]
Broker = SemelProcess | ApacheKafka
# The broker forgets a killed member after seconds instead of Kafka's 45.
IMPATIENT = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}


@pytest.fixture(scope="module")
def impatient(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Semel, unless a test asks for Apache Kafka too."""
    kind = getattr(request, "param", SemelProcess)
    with kind(IMPATIENT) as broker:
        yield broker


@pytest.mark.parametrize(
    "mode", [(), ("--group-mode", "--use-group-metadata")], ids=["assigned", "subscribed"]
)
def test_kafkas_transactional_message_copier_copies_exactly_once(
    impatient: Broker, mode: tuple[str, ...]
) -> None:
    source, target = make_topics(impatient, partitions=1)
    load = Load(impatient, source)
    load.produce(500)
    kafka_tool(
        COPIER, "--broker-list", impatient.bootstrap, "--input-topic", source,
        "--input-partition", "0", "--output-topic", target, "--transaction-size", "25",
        "--consumer-group", f"g-{uuid.uuid4()}", "--transactional-id", f"id-{uuid.uuid4()}",
        "--enable-random-aborts", *mode,
    )  # fmt: skip
    assert read_committed(impatient, target) == load.each_once()


@pytest.mark.parametrize(
    "kinds",
    [
        ("java classic", "java classic"),
        ("java consumer", "java consumer"),
        ("franz", "franz"),
        ("java classic", "java consumer", "franz"),
    ],
    ids=" + ".join,
)
def test_members_killed_one_after_another_under_load_copy_exactly_once(
    impatient: Broker,
    start_member: Callable[..., "Member"],
    kinds: tuple[str, ...],
) -> None:
    copy_while_members_are_killed(impatient, start_member, kinds)


@pytest.mark.parametrize("impatient", [SemelProcess, ApacheKafka], indirect=True)
@pytest.mark.parametrize(
    "kinds",
    [
        ("ours consumer", "java consumer", "ours consumer"),
        ("ours classic", "java classic", "ours consumer"),
    ],
    ids=" + ".join,
)
def test_our_members_among_javas_copy_exactly_once(
    impatient: Broker, start_member: Callable[..., "Member"], kinds: tuple[str, ...]
) -> None:
    copy_while_members_are_killed(impatient, start_member, kinds)


def copy_while_members_are_killed(
    impatient: Broker, start_member: Callable[..., "Member"], kinds: tuple[str, ...]
) -> None:
    source, target = make_topics(impatient)
    group = f"g-{uuid.uuid4()}"
    load = Load(impatient, source)
    with ExitStack() as alive:
        members = [
            alive.enter_context(start_member(kind, source, target, group, f"{group}-{number}"))
            for number, kind in enumerate(kinds)
        ]
        with load:
            for member in members:
                member.wait_for_commit()
            for member in members:
                member.kill()
                member.start()
                member.wait_for_commit()
        wait_until_copied(impatient, target, load.count)
    assert read_committed(impatient, target) == load.each_once()


class Member:
    """A process that copies in transactions and says so; `start` again after every `kill`."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        self._said: list[str] = []
        self._has_committed = threading.Event()

    def __enter__(self) -> "Member":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._has_committed = threading.Event()
        self._listener = threading.Thread(
            target=self._listen, args=(self._process, self._has_committed), daemon=True
        )
        self._listener.start()

    def kill(self) -> None:
        assert self._process is not None
        assert self._process.poll() is None, f"the member gave up:\n{''.join(self._said[-60:])}"
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._listener.join()

    def wait_for_commit(self) -> None:
        assert self._has_committed.wait(PATIENCE_S), f"no commit:\n{''.join(self._said[-60:])}"

    def _listen(self, process: subprocess.Popen[str], has_committed: threading.Event) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self._said.append(line)
                if line.strip() == "committed":
                    has_committed.set()


@pytest.fixture
def start_member(impatient: Broker, request: pytest.FixtureRequest) -> Callable[..., Member]:
    def make(kind: str, source: str, target: str, group: str, transactional_id: str) -> Member:
        language, _, protocol = kind.partition(" ")
        program = OURS if language == "ours" else request.getfixturevalue(f"{language}_program")
        where = [impatient.bootstrap, source, target, group, transactional_id]
        return Member([*program, "member", *where, *([protocol] if protocol else [])])

    return make


class Load:
    """Fills a topic with keys 0, 1, 2, …; as a context, steadily in the background."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 1})
        self._topic = topic
        self._is_over = threading.Event()
        self.count = 0

    def __enter__(self) -> "Load":
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def produce(self, records: int) -> None:
        for key in range(self.count, self.count + records):
            self._producer.produce(self._topic, b"x" * 100, str(key).encode())
        assert self._producer.flush(PATIENCE_S) == 0
        self.count += records

    def each_once(self) -> Counter[bytes]:
        return Counter(str(key).encode() for key in range(self.count))

    def _run(self) -> None:
        while not self._is_over.wait(0.02):
            self.produce(5)


def make_topics(broker: Broker, partitions: int = PARTITIONS) -> tuple[str, str]:
    source, target = (f"{name}-{uuid.uuid4().hex[:12]}" for name in ("in", "out"))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    wanted = [NewTopic(name, partitions, 1) for name in (source, target)]
    for made in admin.create_topics(wanted).values():
        made.result(PATIENCE_S)
    return source, target


def wait_until_copied(broker: Broker, topic: str, count: int) -> None:
    """Until `count` different keys are there; what is there twice shows in the end."""
    seen: set[bytes | None] = set()
    deadline = time.monotonic() + PATIENCE_S
    consumer = committed_reader(broker, topic)
    while len(seen) < count:
        assert time.monotonic() < deadline, f"{len(seen)} of {count} were copied"
        seen.update(message.key() for message in consumer.consume(500, 0.2) if not message.error())
    consumer.close()


def read_committed(broker: Broker, topic: str) -> Counter[bytes | None]:
    """How often each key is there, read up to the end of every partition."""
    keys: Counter[bytes | None] = Counter()
    consumer = committed_reader(broker, topic)
    unread = len(consumer.assignment())
    while unread:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "the end of a partition never came"
        if (error := message.error()) is None:
            keys[message.key()] += 1
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            unread -= 1
    consumer.close()
    return keys


def committed_reader(broker: Broker, topic: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"reader-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    partitions = consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    return consumer
