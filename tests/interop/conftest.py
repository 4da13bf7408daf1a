"""The clients and tools that others wrote, and the brokers they are pointed at."""

import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from semel.testing.apache_kafka import ApacheKafka, kafka_classpath, kafka_tool
from semel.testing.process import SemelProcess

HERE = Path(__file__).parent
CLIENT_TIMEOUT_S = 90

Client = Callable[..., None]


@pytest.fixture(scope="session")
def semel() -> Iterator[SemelProcess]:
    with SemelProcess({"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker


@pytest.fixture(scope="session")
def apache_kafka() -> Iterator[ApacheKafka]:
    with ApacheKafka() as kafka:
        yield kafka


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
def franz(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """The franz-go program, built once."""
    go = shutil.which("go")
    assert go, "interop tests need Go"
    binary = tmp_path_factory.mktemp("franz") / "franz"
    subprocess.run([go, "build", "-o", binary, "."], cwd=HERE / "franz", check=True)
    return lambda *arguments: _run([str(binary), *arguments])


@pytest.fixture(scope="session")
def java_client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """The Java program, compiled once."""
    classes = tmp_path_factory.mktemp("classes")
    source = HERE / "java" / "Clients.java"
    subprocess.run(
        ["javac", "-cp", kafka_classpath(), "-d", classes, source], check=True, capture_output=True
    )
    command = ["java", "-Xmx256m", "-cp", f"{kafka_classpath()}:{classes}", "Clients"]
    return lambda *arguments: _run([*command, *arguments])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=CLIENT_TIMEOUT_S)
    assert done.stdout.strip().endswith("ok"), f"{done.stdout}\n{done.stderr[-3000:]}"
