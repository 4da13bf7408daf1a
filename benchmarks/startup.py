"""Start-up: from process start to the first answered Metadata, in CPU and wall time, and idle memory.

    python benchmarks/startup.py            Semel
    python benchmarks/startup.py --kafka    Apache Kafka beside it (needs Java; see testing/apache_kafka)

CPU time is user and system of the whole process, from its birth. Goals: 0.3 s and 40 MB.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from semel.testing.ports import free_port
from semel.wire.frames import RequestHeader, decode_response, encode_request
from semel.wire.messages.metadata import MetadataRequest

RUNS = 5
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
QUESTION = encode_request(RequestHeader(3, 12, 1, "startup"), MetadataRequest(topics=[]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kafka", action="store_true", help="measure Apache Kafka, too")
    parser.add_argument("--runs", type=int, default=RUNS)
    arguments = parser.parse_args()
    show("Semel", [measure_semel() for _ in range(arguments.runs)])
    if arguments.kafka:
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
    from semel.testing.apache_kafka import ApacheKafka

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
    main()
