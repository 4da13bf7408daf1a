"""Start-up: from process start to the first answered Metadata, and the memory it takes.

    python -m benchmarks startup     beside Apache Kafka, where there is a Java to run it

CPU time is user and system of the whole process, from its birth. Goals: 0.3 s and 40 MB. The wall
time of Apache Kafka includes formatting its directory.
"""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.brokers.ports import free_port

from semel.wire.frames import RequestHeader, decode_response, encode_request
from semel.wire.messages.metadata import MetadataRequest

RUNS = 5
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
QUESTION = encode_request(RequestHeader(3, 12, 1, "startup"), MetadataRequest(topics=[]))


def run() -> None:
    show("Semel", [measure_semel() for _ in range(RUNS)])
    if shutil.which("java"):
        show("Apache Kafka", [measure_kafka()])


def measure_semel() -> tuple[float, float, float]:
    with tempfile.TemporaryDirectory() as data:
        port = free_port()
        command = [sys.executable, "-m", "semel", "serve", "--data", data, "--port", str(port)]
        began = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            try:
                return measure(process.pid, port, began)
            finally:
                process.terminate()


def measure_kafka() -> tuple[float, float, float]:
    from tests.support.brokers.apache_kafka import ApacheKafka

    began = time.monotonic()
    with ApacheKafka() as kafka:
        port = int(kafka.bootstrap.rpartition(":")[2])
        assert kafka.process is not None
        return measure(kafka.process.pid, port, began)


def measure(pid: int, port: int, began: float) -> tuple[float, float, float]:
    """CPU seconds, wall seconds and megabytes when the first Metadata is answered."""
    answer = ask_until_answered(port)
    wall = time.monotonic() - began
    _, metadata = decode_response(answer, 3, 12)
    assert metadata.brokers, "an answer without a broker is none"
    return cpu_seconds(pid), wall, resident_megabytes(pid)


def ask_until_answered(port: int) -> bytes:
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(QUESTION)
                stream = connection.makefile("rb")
                return stream.read(int.from_bytes(stream.read(4), "big"))
        except ConnectionError:
            time.sleep(0.005)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def resident_megabytes(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def show(name: str, results: list[tuple[float, float, float]]) -> None:
    cpu, wall, memory = (statistics.median(column) for column in zip(*results, strict=True))
    print(f"{name:14} {cpu:6.2f} s CPU  {wall:6.2f} s wall  {memory:6.1f} MB resident")


if __name__ == "__main__":
    run()
