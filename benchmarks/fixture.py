"""The fixture `kafka`: how soon a test has a broker, and what 200 tests with one each take.

    python -m benchmarks fixture     beside Apache Kafka, where there is a Java to run it

A test has its broker when a first record is acknowledged, by librdkafka. In a new process, that
includes loading the broker. Goals: 100 ms, and a minute for 200 tests on two cores.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 9
TESTS = 200
#: Both clocks around the same lines: CPU time does not depend on what else the machine does.
ONE = """
import sys, time
from confluent_kafka import Producer

def acknowledged(address):
    told = []
    producer = Producer({"bootstrap.servers": address})
    producer.produce("orders", b"one", on_delivery=lambda *each: told.append(each))
    producer.flush(10)
    assert told[0][0] is None

def measure():
    began, cpu = time.perf_counter(), time.process_time()
    from semel.testing import Kafka
    with Kafka() as kafka:
        kafka.produce("orders", b"one")
        own = time.perf_counter() - began
        acknowledged(kafka.bootstrap_servers)
        return own, time.perf_counter() - began, time.process_time() - cpu

for _ in range(int(sys.argv[1])):
    print(*measure())
"""
MANY = f"""
import pytest
from confluent_kafka import Producer

@pytest.mark.parametrize("number", range({TESTS}))
def test_with_a_broker_of_its_own(kafka, number):
    producer = Producer({{"bootstrap.servers": kafka.bootstrap_servers}})
    producer.produce("orders", str(number).encode())
    producer.flush(10)
    assert [record.value for record in kafka.committed("orders")] == [str(number).encode()]
"""


def run() -> None:
    measure(1)  # writes what Python compiles, as an installed package has it
    show("first in a process", [measure(1)[0] for _ in range(RUNS)])
    show("any later one", measure(RUNS + 1)[1:])
    seconds = many()
    print(f"{TESTS} tests, a broker each: {seconds:.1f} s, {1000 * seconds / TESTS:.0f} ms a test")
    if shutil.which("java"):
        print(f"Apache Kafka, to its first record: {apache_kafka():.1f} s")


def measure(times: int) -> list[tuple[float, ...]]:
    done = subprocess.run(
        [sys.executable, "-c", ONE, str(times)],
        capture_output=True, text=True, check=True, env=compiled(),
    )  # fmt: skip
    return [tuple(map(float, line.split())) for line in done.stdout.splitlines()]


def compiled() -> dict[str, str]:
    """An environment in which Python compiles a module once."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir(), "semel-compiled"))}


def show(name: str, results: list[tuple[float, ...]]) -> None:
    own, client, cpu = (1000 * statistics.median(column) for column in zip(*results, strict=True))
    print(
        f"{name:20} {own:6.0f} ms to kafka.produce, {client:6.0f} ms to librdkafka's first "
        f"record, {cpu:6.0f} ms CPU"
    )


def many() -> float:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "test_many.py").write_text(MANY)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "semel.testing.plugin"]
        began = time.perf_counter()
        subprocess.run(
            [*command, "-p", "no:cacheprovider", "--rootdir", directory, directory],
            check=True, cwd=directory, stdout=subprocess.DEVNULL, env=compiled(),
        )  # fmt: skip
        return time.perf_counter() - began


def apache_kafka() -> float:
    from confluent_kafka import Producer
    from tests.support.brokers.apache_kafka import ApacheKafka

    began = time.perf_counter()
    with ApacheKafka() as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap})
        producer.produce("orders", b"one")
        assert producer.flush(60) == 0
        return time.perf_counter() - began
