"""Two brokers in one run: interleaved rounds, medians, the ratio, CPU and memory.

A workload is a function of a bootstrap address that returns how much it did (records, megabytes,
transactions). Rounds alternate between the brokers, so that whatever else the machine does hits
both; the first rounds warm both up and are not counted. A round begins when both are idle.

Both keep their logs in memory where the machine has a memory file system: the brokers are compared,
not the disk, which durability `os` would only reach later, in somebody else's round. For the same
reason a workload of many megabytes asks for memory beforehand: a virtual machine gets its pages
from the host on first touch, which costs more than the brokers do.

Each broker has a session of its own, as a service or a container has: Linux shares the cores first
between sessions, then between a session's threads. In the session of the clients a broker of one
thread stands in a queue with fifty of theirs.
"""

import json
import mmap
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.process import SemelProcess

RESULTS = Path(__file__).parent / "results.jsonl"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
MEMORY_FILES = Path("/dev/shm")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
LOOK_SECONDS = 0.3
LONGEST_REST_SECONDS = 6.0
#: Of one core, below which brokers count as idle: what an idle Apache Kafka takes, and one tick.
IDLE_SHARE = 0.05


@dataclass
class Side:
    """One broker: where it listens and the process whose CPU and memory count."""

    name: str
    bootstrap: str
    pid: int

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def memory_mb(self) -> float:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE_BYTES / 1e6


@dataclass
class Measured:
    """The rounds of one workload on one side."""

    side: str
    unit: str
    per_second: list[float] = field(default_factory=list)
    cpu_per_unit: list[float] = field(default_factory=list)
    latencies_ms: list[float] = field(default_factory=list)
    memory_mb: float = 0.0

    @property
    def rate(self) -> float:
        return statistics.median(self.per_second)

    @property
    def cpu(self) -> float:
        return statistics.median(self.cpu_per_unit)

    def percentile_ms(self, percent: float) -> float:
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else 0.0


@dataclass
class Work:
    """What one round did; latencies only where each unit was timed."""

    amount: float
    latencies_ms: list[float] = field(default_factory=list)
    seconds: float | None = None  # where set-up inside the round must not count


Workload = Callable[[Side], Work]


@contextmanager
def in_memory() -> Iterator[None]:
    """Temporary directories made inside are in memory, if the machine can."""
    usual = tempfile.tempdir
    if os.access(MEMORY_FILES, os.W_OK):
        tempfile.tempdir = str(MEMORY_FILES)
    try:
        yield
    finally:
        tempfile.tempdir = usual


@contextmanager
def both_brokers(
    settings: dict[str, str] | None = None, kafkas: dict[str, str] | None = None
) -> Iterator[list[Side]]:
    """`kafkas` are settings of Apache Kafka alone."""
    with (
        in_memory(),
        ApacheKafka((settings or {}) | (kafkas or {}), heap="1g", own_session=True) as kafka,
        SemelProcess(settings, own_session=True) as semel,
    ):
        assert kafka.process is not None
        yield [
            Side("Semel", semel.bootstrap, semel.pid),
            Side("Apache Kafka", kafka.bootstrap, kafka.process.pid),
        ]


def touch_memory(megabytes: int) -> None:
    """Have the host give us this much, so that no broker pays for the first touch."""
    if megabytes:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0)
        mmap.mmap(-1, megabytes << 20, flags=flags).close()


def measure(
    sides: list[Side],
    workload: Workload,
    unit: str,
    rounds: int = 5,
    warm_up: int = 2,
    megabytes: int = 0,
) -> list[Measured]:
    measured = [Measured(side.name, unit) for side in sides]
    for number in range(warm_up + rounds):
        for side, result in zip(sides, measured, strict=True):
            touch_memory(megabytes)
            rest(sides)
            cpu, began = side.cpu_seconds(), time.perf_counter()
            work = workload(side)
            seconds = work.seconds or time.perf_counter() - began
            if number < warm_up:
                continue
            result.per_second.append(work.amount / seconds)
            result.cpu_per_unit.append((side.cpu_seconds() - cpu) / work.amount)
            result.latencies_ms.extend(work.latencies_ms)
    for side, result in zip(sides, measured, strict=True):
        result.memory_mb = side.memory_mb()
    return measured


def rest(sides: list[Side]) -> None:
    """Wait until no broker works off an earlier round: a JVM goes on compiling and collecting for a
    second or two, on cores that would be missing in the round of the other."""
    deadline = time.monotonic() + LONGEST_REST_SECONDS
    worked = True
    while worked and time.monotonic() < deadline:
        before = sum(side.cpu_seconds() for side in sides)
        time.sleep(LOOK_SECONDS)
        worked = sum(side.cpu_seconds() for side in sides) - before > IDLE_SHARE * LOOK_SECONDS


class Report:
    """Collects the comparisons of a run, prints them as one table and keeps a line per run."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.rows: list[tuple[str, list[Measured], float | None]] = []

    def add(self, name: str, measured: list[Measured], goal: float | None = None) -> None:
        self.rows.append((name, measured, goal))
        ours, theirs = measured
        print(f"  {name}: {ours.rate:,.0f} / {theirs.rate:,.0f} {ours.unit}/s", file=sys.stderr)

    def finish(self) -> None:
        self._print()
        self._store()

    def _print(self) -> None:
        table = Table(title=self.title)
        for heading in ("workload", "unit/s", "Semel", "Apache Kafka", "ratio", "goal",
                        "CPU per unit", "p99 ms", "memory MB"):  # fmt: skip
            table.add_column(heading, justify="left" if heading == "workload" else "right")
        for name, (ours, theirs), goal in self.rows:
            cpu = (
                f"{ours.cpu * 1e6:,.0f} / {theirs.cpu * 1e6:,.0f} µs ({ours.cpu / theirs.cpu:.2f}×)"
            )
            p99 = ""
            if ours.latencies_ms:
                p99 = f"{ours.percentile_ms(99):.1f} / {theirs.percentile_ms(99):.1f}"
            table.add_row(
                name, ours.unit, f"{ours.rate:,.1f}", f"{theirs.rate:,.1f}",
                f"{ours.rate / theirs.rate:.2f}×", f"≥ {goal}×" if goal else "", cpu, p99,
                f"{ours.memory_mb:,.0f} / {theirs.memory_mb:,.0f}",
            )  # fmt: skip
        console = Console(width=160, record=True)
        console.print(table)
        picture = console.export_svg(title=self.title)
        # Rich names fonts of another host: a picture of ours loads nothing, readers have a font.
        picture = re.sub(r"@font-face\s*{[^}]*}\s*", "", picture)
        RESULTS.with_name(f"{self.title.lower()}.svg").write_text(picture)

    def _store(self) -> None:
        line = {
            "title": self.title,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "python": platform.python_version(),
            "rows": [
                {
                    "name": name,
                    "goal": goal,
                    "sides": [asdict(m) | {"latencies_ms": []} for m in sides],
                }
                for name, sides, goal in self.rows
            ],
        }
        with RESULTS.open("a") as results:
            results.write(json.dumps(line) + "\n")
