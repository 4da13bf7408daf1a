"""The clients and tools that others wrote, and the brokers they are pointed at."""

import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.brokers.apache_kafka import ApacheKafka, kafka_classpath, kafka_tool
from tests.support.brokers.process import SemelProcess

HERE = Path(__file__).parent
CLIENT_TIMEOUT_S = 90
# A program of a few seconds is done before the optimising compiler and the parallel collector pay.
SHORT_LIVED = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

Client = Callable[..., None]


@pytest.fixture(scope="session")
def semel() -> Iterator[SemelProcess]:
    with SemelProcess({"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker


@pytest.fixture(scope="session")
def apache_kafka() -> Iterator[ApacheKafka]:
    with ApacheKafka() as kafka:
        yield kafka


@pytest.fixture(scope="module")
def kafka(request: pytest.FixtureRequest) -> Iterator[ApacheKafka]:
    """Apache Kafka with the module's SETTINGS."""
    with ApacheKafka(request.module.SETTINGS) as broker:
        yield broker


@pytest.fixture(scope="module")
def alike(request: pytest.FixtureRequest) -> Iterator[SemelProcess]:
    """Semel with the same ones."""
    with SemelProcess(request.module.SETTINGS) as broker:
        yield broker


@pytest.fixture
def topic(semel: SemelProcess) -> Callable[..., str]:
    """Makes a topic of a fresh name on Semel, with Kafka's own tool's admin client in mind."""

    def make(partitions: int = 3) -> str:
        name = f"t-{uuid.uuid4().hex[:12]}"
        kafka_tool(
            "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", semel.bootstrap,
            "--create", "--topic", name, "--partitions", str(partitions),
        )  # fmt: skip
        return name

    return make


@pytest.fixture(scope="session")
def franz_program(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The franz-go program, built once: the command that runs it."""
    go = shutil.which("go")
    assert go, "interop tests need Go"
    binary = tmp_path_factory.mktemp("franz") / "franz"
    subprocess.run([go, "build", "-o", binary, "."], cwd=HERE / "franz", check=True)
    return [str(binary)]


@pytest.fixture(scope="session")
def java_program(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The Java program, compiled once: the command that runs it."""
    classes = tmp_path_factory.mktemp("classes")
    source = HERE / "java" / "Clients.java"
    subprocess.run(
        ["javac", "-cp", kafka_classpath(), "-d", classes, source], check=True, capture_output=True
    )
    return ["java", *SHORT_LIVED, "-cp", f"{kafka_classpath()}:{classes}", "Clients"]


@pytest.fixture(scope="session")
def franz(franz_program: list[str]) -> Client:
    return lambda *arguments: _run([*franz_program, *arguments])


@pytest.fixture(scope="session")
def java_client(java_program: list[str]) -> Client:
    return lambda *arguments: _run([*java_program, *arguments])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=CLIENT_TIMEOUT_S)
    assert done.stdout.strip().endswith("ok"), f"{done.stdout}\n{done.stderr[-3000:]}"
