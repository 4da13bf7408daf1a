"""Spark benchmarks: interleaved rounds, medians, and the CPU time of everything that took part."""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.process import SemelProcess

from benchmarks.side_by_side import RESULTS, TICKS_PER_SECOND, in_memory, touch_memory
from benchmarks.spark_jars import benchmark_session


@dataclass
class Rounds:
    """What one contestant took, round by round."""

    name: str
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def cpu(self) -> float:
        return statistics.median(self.cpu_seconds)


@dataclass
class Stage:
    """A Spark, a broker, and whether Spark's own connector is there to compare with."""

    spark: Any
    bootstrap: str
    compares: bool


@contextmanager
def stage(broker: str = "semel", small_rows: bool = False) -> Iterator[Stage]:
    with in_memory(), SemelProcess() if broker == "semel" else ApacheKafka(heap="1g") as found:
        spark, compares = benchmark_session(small_rows)
        try:
            yield Stage(spark, found.bootstrap, compares)
        finally:
            spark.stop()


def interleave(
    contestants: dict[str, Callable[[], None]], rounds: int, megabytes: int = 0
) -> dict[str, Rounds]:
    """The first round warms up. Rounds alternate, so that other load hits everybody."""
    measured = {name: Rounds(name) for name in contestants}
    for number in range(rounds + 1):
        for name, run in contestants.items():
            touch_memory(megabytes)
            cpu, began = cpu_seconds(), time.perf_counter()
            run()
            took = time.perf_counter() - began
            if number:
                measured[name].seconds.append(took)
                measured[name].cpu_seconds.append(cpu_seconds() - cpu)
    return measured


def cpu_seconds() -> float:
    """Of this process and all below it: driver, JVM, Python workers and broker."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            # Its own, and that of children it has waited for.
            ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    return sum(ticks[pid] for pid in ticks if _is_ours(pid, parents)) / TICKS_PER_SECOND


def _is_ours(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        if pid == os.getpid():
            return True
        pid = parents[pid]
    return False


class Report:
    """One table, one picture of it and one line in the results."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.rows: list[dict[str, Any]] = []

    def add(
        self, name: str, rows: int, measured: dict[str, Rounds], goal: float | None = None
    ) -> None:
        ours = measured["semel"]
        theirs = measured.get("spark")
        row: dict[str, Any] = {
            "name": name,
            "rows": rows,
            "goal": goal,
            "rows_per_second": {n: round(rows / r.median) for n, r in measured.items()},
            "cpu_us_per_row": {n: round(r.cpu / rows * 1e6, 3) for n, r in measured.items()},
            "seconds": {n: [round(s, 3) for s in r.seconds] for n, r in measured.items()},
        }
        if theirs is not None:
            row["times"] = round(theirs.median / ours.median, 2)
            row["times_cpu"] = round(theirs.cpu / ours.cpu, 2)
        self.rows.append(row)
        print(json.dumps(row), flush=True)

    def finish(self) -> None:
        table = Table(title=self.title)
        for heading in (
            "",
            "Semel rows/s",
            "Spark's own",
            "ratio",
            "goal",
            "CPU µs/row",
            "CPU ratio",
        ):
            table.add_column(heading, justify="right" if heading else "left")
        for row in self.rows:
            speed, cpu = row["rows_per_second"], row["cpu_us_per_row"]
            table.add_row(
                row["name"],
                f"{speed['semel']:,}",
                f"{speed['spark']:,}" if "spark" in speed else "",
                f"{row['times']}×" if "times" in row else "",
                f"≥ {row['goal']}×" if row["goal"] else "",
                " / ".join(f"{value:.2f}" for value in cpu.values()),
                f"{row['times_cpu']}×" if "times_cpu" in row else "",
            )
        console = Console(width=130, record=True)
        console.print(table)
        name = self.title.lower().replace(" ", "-")
        console.save_svg(str(RESULTS.with_name(f"{name}.svg")), title=self.title)
        line = {
            "title": self.title,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "python": platform.python_version(),
            "rows": self.rows,
        }
        with RESULTS.open("a") as results:
            results.write(json.dumps(line) + "\n")
