"""A broker, a Spark session, and an independent reader to count with."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.process import SemelProcess
from tests.support.line import Line

from semel import Broker
from semel.spark import ExactlyOnceSink, session

READ_COMMITTED, READ_UNCOMMITTED = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
_DRIVER = Path(__file__).with_name("crash_driver.py")


def pytest_collection_modifyitems(items):
    """Whichever test comes first waits for Spark to start: long, on a busy machine."""
    for item in items:
        if item.get_closest_marker("spark") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(600))


class World:
    """One broker, as the tests see it: by a client that this project did not write."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def topic(self, partitions: int = 4, copies: int = 1) -> str:
        name = f"topic-{uuid.uuid4().hex[:8]}"
        for future in self.admin.create_topics([NewTopic(name, partitions, copies)]).values():
            future.result()
        return name

    def producer(self, **settings) -> Producer:
        return Producer({"bootstrap.servers": self.bootstrap, "log_level": 0, **settings})

    def messages(self, *topics: str, isolation: str = "read_committed") -> list:
        """Everything in the topics, read to the end of every partition."""
        if isolation == "read_committed":
            self.wait_until_stable(*topics)
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "log_level": 0,
                "group.id": f"reader-{uuid.uuid4().hex}",
                "auto.offset.reset": "earliest",
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        with contextlib.closing(consumer):
            metadata = self.admin.list_topics(timeout=30).topics
            left = {(t, p) for t in topics for p in metadata[t].partitions}
            consumer.subscribe(list(topics))
            found = []
            while left:
                message = consumer.poll(30)
                assert message is not None, f"nothing more from {left}"
                if message.error():
                    left.discard((message.topic(), message.partition()))
                else:
                    found.append(message)
            return found

    def wait_until_stable(self, *topics: str) -> None:
        """A commit is answered before its markers are written: wait for the last of them."""
        metadata = self.admin.list_topics(timeout=30).topics
        places = [TopicPartition(t, p) for t in topics for p in metadata[t].partitions]
        for _ in range(600):
            if self._ends(places, READ_COMMITTED) == self._ends(places, READ_UNCOMMITTED):
                return
            threading.Event().wait(0.05)
        raise AssertionError(f"a transaction stays open over {topics}")

    def _ends(self, places, isolation) -> dict:
        latest = {place: OffsetSpec.latest() for place in places}
        found = self.admin.list_offsets(latest, isolation_level=isolation)
        return {place: future.result().offset for place, future in found.items()}

    def committed_offsets(self, group: str) -> dict:
        self.wait_until_stable("__consumer_offsets")
        asked = [ConsumerGroupTopicPartitions(group)]
        found = self.admin.list_consumer_group_offsets(asked)[group].result()
        return {(p.topic, p.partition): p.offset for p in found.topic_partitions}

    @contextlib.contextmanager
    def member(self, topic: str, group: str, protocol: str):
        """A consumer that has joined the group."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "group.protocol": protocol,
                "log_level": 0,
            }
        )
        with contextlib.closing(consumer):
            consumer.subscribe([topic])
            while not consumer.assignment():
                consumer.poll(0.1)
            yield

    def grow(self, topic: str, partitions: int) -> None:
        for future in self.admin.create_partitions([NewPartitions(topic, partitions)]).values():
            future.result()

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        place = TopicPartition(topic, partition, before)
        for future in self.admin.delete_records([place]).values():
            future.result()

    def values(self, *topics: str) -> Counter:
        return Counter(message.value().decode() for message in self.messages(*topics))


@pytest.fixture
def world():
    """A view of a broker that the test runs itself."""
    return World


# The matrix is one; which broker it is run against is its parameter.
BOTH = ["semel", pytest.param("apache", marks=pytest.mark.interop)]
# A transaction that times out is noticed at once instead of after ten seconds.
_SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}


@pytest.fixture(scope="session", params=BOTH)
def kafka(request):
    """Our broker; and with `-m interop` Apache's, which must not be told apart."""
    if request.param == "semel":
        with Broker(settings=_SETTINGS) as broker:
            yield World(broker.bootstrap_servers)
    else:
        with ApacheKafka(_SETTINGS) as broker:
            yield World(broker.bootstrap)


@pytest.fixture(params=BOTH)
def mortal(request):
    """A broker of the test's own, to be killed and started again."""
    with SemelProcess() if request.param == "semel" else ApacheKafka() as broker:
        yield broker


@pytest.fixture(params=BOTH)
def line(request):
    """A line that can lose things, to a broker of the test's own."""
    with Line() as made:
        kind = SemelProcess if request.param == "semel" else ApacheKafka
        with kind({**_SETTINGS, **made.settings}) as broker:
            made.connect(broker.port)
            yield made


@pytest.fixture(scope="session")
def spark():
    found = session(
        "tests",
        "local[2,3]",
        spark__ui__enabled=False,
        spark__sql__shuffle__partitions=2,
    )
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()


class Lines:
    """A directory of text files, one micro-batch each, whose rows are all different."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.directory.mkdir()
        self.rows: list[str] = []
        self._files = 0

    def add(self, count: int = 100, width: int = 0) -> list[str]:
        """Rows of a few kB fill their buffers, so that some are sent long before the last."""
        rows = [f"row-{len(self.rows) + i:06d}".ljust(width, ".") for i in range(count)]
        path = self.directory / f"{self._files:04d}.txt"
        path.write_text("".join(f"{row}\n" for row in rows))
        # Spark takes files by their time of change.
        os.utime(path, (1_700_000_000 + self._files, 1_700_000_000 + self._files))
        self.rows += rows
        self._files += 1
        return rows

    def stream(self, spark):
        reader = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1)
        return reader.text(str(self.directory)).selectExpr("value AS key", "value")


@pytest.fixture
def lines(tmp_path):
    return Lines(tmp_path / "input")


class Job:
    """A query from files into a topic that can be run, stopped and run again."""

    def __init__(self, kafka, lines, spark, directory):
        self.kafka, self.lines, self.spark = kafka, lines, spark
        self.topic = kafka.topic()
        self.application = f"app-{self.topic}"
        self.checkpoint = directory / "checkpoint"

    def sink(self, **settings):
        """`at` is called at every place in a batch's life, so that a test can strike there."""
        settings = {"topic": self.topic, "application": self.application, **settings}
        at = settings.pop("at", None)
        sink = ExactlyOnceSink(self.kafka.bootstrap, **settings)
        sink.committer.at = at or sink.committer.at
        return sink

    def run(self, rows=None, checkpoint=None, mode="append", sink=None, **settings):
        sink = sink or self.sink(**settings)
        rows = self.lines.stream(self.spark) if rows is None else rows
        writer = rows.writeStream.foreachBatch(sink).outputMode(mode).trigger(availableNow=True)
        where = str(checkpoint or self.checkpoint)
        writer.option("checkpointLocation", where).start().awaitTermination()
        return sink

    def forget_last_commit(self):
        commits = self.checkpoint / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        for name in (str(last), f".{last}.crc"):
            (commits / name).unlink(missing_ok=True)

    def assert_exactly_once(self):
        assert self.kafka.values(self.topic) == Counter(self.lines.rows)


@pytest.fixture
def new_job(lines, spark, tmp_path):
    """A job on a broker that the test brings."""
    return lambda kafka: Job(kafka, lines, spark, tmp_path)


@pytest.fixture
def job(kafka, new_job):
    return new_job(kafka)


# A driver lives for seconds: the optimising compiler and the parallel collector do not pay.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Driver:
    """A driver in a process of its own; nothing of it stays behind."""

    def __init__(self, **plan) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(_DRIVER), json.dumps(plan)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # A cluster's workers would otherwise run whatever `python3` they find.
            env={
                **os.environ,
                "JDK_JAVA_OPTIONS": _SHORT_LIVED,
                "PYSPARK_PYTHON": sys.executable,
            },
        )

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def finish(self) -> subprocess.CompletedProcess:
        output, _ = self.process.communicate(timeout=600)
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, output)

    def wait_until_stopped(self) -> None:
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), f"it ended with {status}:\n{self.process.stdout.read()}"

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)


@pytest.fixture
def driver():
    return Driver


@pytest.fixture
def run_driver():
    """Run a driver until it ends or dies."""

    def run(**plan) -> subprocess.CompletedProcess:
        with Driver(**plan) as running:
            return running.finish()

    return run


@pytest.fixture
def plan(kafka, new_plan):
    return new_plan(kafka)


@pytest.fixture
def new_plan(lines, tmp_path):
    """What a driver is told: the same job for every driver of a test."""

    def make(kafka) -> dict:
        topic = kafka.topic()
        return {
            "bootstrap": kafka.bootstrap,
            "topic": topic,
            "application": f"crash-{topic}",
            "input": str(lines.directory),
            "checkpoint": str(tmp_path / "checkpoint"),
            "scratch": str(tmp_path / "scratch"),
            # The smallest batches there are: a strike finds some of the rows written.
            "sink": {"batch_size": 1},
        }

    return make
