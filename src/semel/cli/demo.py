"""`semel demo`: an exactly-once pipeline on Spark that is killed on purpose, and counted
afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

PARTITIONS = 4
BATCHES = 4
#: Where a driver dies, and at the how manieth time that it gets there.
FIRST_DEATH = ["before commit", 3]
SECOND_DEATH = ["after commit", 2]
#: What happens in each run, and where its driver dies.
RUNS: list[tuple[str, list[Any] | None]] = [
    ("a task is killed while it writes, then the driver before it commits", FIRST_DEATH),
    ("the driver is killed after a commit, before Spark has noted it", SECOND_DEATH),
    ("nobody is killed", None),
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--orders", type=int, default=100_000, help="how many (default: 100000)")


def run(arguments: argparse.Namespace) -> int:
    console = Console()
    if find_spec("pyspark") is None:
        console.print("The demo runs on Spark: pip install 'semel[spark]'")
        return 2
    with tempfile.TemporaryDirectory(prefix="semel-demo-") as directory:
        return Demo(console, arguments.orders, Path(directory)).run()


@dataclass
class Demo:
    console: Console
    orders: int
    directory: Path
    bootstrap: str = ""
    expected: dict[str, list[int]] = field(default_factory=dict)
    kills: int = 0
    tasks_killed: int = 0
    flagged: bool = False

    @property
    def flag(self) -> Path:
        """While it is there, the first task that sees it removes it and dies."""
        return self.directory / "kill-a-task"

    def run(self) -> int:
        from semel.broker.server import Broker

        began = time.monotonic()
        self._title("Semel: orders → Spark → two topics, each order counted exactly once")
        self._prepare()
        with Broker(self.directory / "broker") as broker:
            self.bootstrap = broker.bootstrap_servers
            self._step(f"broker up at {self.bootstrap} (this process, no JVM)")
            self._fill()
            for number, (words, die_at) in enumerate(RUNS, 1):
                self.console.print(f"\n[bold]Run {number}[/]: {words}")
                if not self._drive(die_at):
                    return 1
            good = self._show(Audit(self.bootstrap, self.orders))
        self.console.print(f"\n{time.monotonic() - began:.0f} s in all.")
        self._farewell()
        return 0 if good else 1

    def _prepare(self) -> None:
        """Java and the compiled kernels, before anything is timed."""
        from semel.spark.java import use_java
        from semel.wire.columnar import cache

        use_java()
        if not cache.is_complete():
            self._step("compiling kernels for this machine (once, some seconds)")
        import semel.spark.writer  # noqa: F401

    def _fill(self) -> None:
        from semel.client.administration.topics import NewTopic
        from semel.client.blocking import Admin, Producer
        from semel.spark.demo_job import ENRICHED, ORDERS, TOTALS

        admin: Any = Admin(self.bootstrap)
        with admin:
            admin.create_topics([NewTopic(name, PARTITIONS) for name in (ORDERS, ENRICHED, TOTALS)])
        # Closing a producer sends what it still holds.
        with Producer(self.bootstrap) as producer:
            producer.send_many(ORDERS, self._make_orders())
        self._step(f"{self.orders:,} orders in the topic {ORDERS!r}")

    def _make_orders(self) -> Iterator[tuple[bytes, bytes]]:
        from semel.spark.demo_job import CUSTOMERS, country_of

        for number in range(self.orders):
            customer, quantity, cents = number * 31 % CUSTOMERS, number % 5 + 1, number % 97 + 100
            order = {
                "order": number, "customer": customer, "quantity": quantity, "cents": cents
            }  # fmt: skip
            count_and_cents = self.expected.setdefault(country_of(customer), [0, 0])
            count_and_cents[0] += 1
            count_and_cents[1] += quantity * cents
            yield str(number).encode(), json.dumps(order).encode()

    def _drive(self, die_at: list[Any] | None) -> bool:
        plan = {
            "bootstrap": self.bootstrap,
            "directory": str(self.directory),
            "rows_per_batch": self.orders // BATCHES,
            "die_at": die_at,
        }
        if die_at == FIRST_DEATH:
            self.flag.touch()
            self.flagged = True
        log = self.directory / "driver.log"
        with log.open("w") as errors:
            driver = subprocess.Popen(
                [sys.executable, "-m", "semel.spark.demo_job", json.dumps(plan)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
            try:
                assert driver.stdout is not None
                for line in driver.stdout:
                    self._tell(line)
                code = driver.wait()
            finally:
                _end_group(driver)
        if code == (0 if die_at is None else -signal.SIGKILL):
            return True
        self.console.print(f"[red]the driver ended with {code}[/]:\n{log.read_text()[-3000:]}")
        return False

    def _tell(self, line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            return
        if event["event"] == "spark":
            self._step(f"Spark {event['version']} is up")
        elif event["event"] == "dying":
            self.kills += 1
            self.console.print(f"  [red]✗ SIGKILL[/] the driver, {event['point']}")
        elif event["event"] == "batch":
            self._tell_batch(event)

    def _tell_batch(self, event: dict[str, Any]) -> None:
        name = f"{event['query']:<6} batch {event['batch']}"
        if self.flag.exists() != self.flagged:
            self.flagged = False
            self.tasks_killed += 1
            self.console.print("  [red]✗ SIGKILL[/] the worker of a task of enrich")
        if event["retries"]:
            self.console.print(f"  [yellow]↻ {name}: aborted, and run again as a whole")
        if event["skipped"]:
            self.console.print(f"  ✓ {name}  was committed before the crash: not written again")
        else:
            self.console.print(f"  ✓ {name}  {event['rows']:>7,} rows committed")

    def _show(self, audit: Audit) -> bool:
        from semel.spark.demo_job import ENRICHED

        table = Table(title="\nCounted afterwards, from the topics", title_justify="left")
        for column in ("", "expected", "found"):
            table.add_column(column, justify="right" if column else "left")
        table.add_column("")
        found, lost, doubled = audit.enriched()
        rows = [
            ("orders enriched", f"{self.orders:,}", f"{found:,}"),
            ("orders lost", "0", f"{lost:,}"),
            ("orders doubled", "0", f"{doubled:,}"),
        ]
        totals = audit.totals()
        for country, expected in sorted(self.expected.items()):
            got = totals.get(country, (0, 0))
            rows.append((f"{country}: orders, cents", _pair(*expected), _pair(*got)))
        for name, wanted, got_text in rows:
            good = "[green]✓[/]" if wanted == got_text else "[red]✗[/]"
            table.add_row(name, wanted, got_text, good)
        self.console.print(table)
        written = audit.written(ENRICHED)
        self.console.print(
            f"{self.kills} drivers and {self.tasks_killed} task were killed. {written:,} rows were"
            f" written to {ENRICHED!r}, {written - found:,} of them by attempts that did not count;"
            " readers of committed data never see those."
        )
        return all(wanted == got_text for _, wanted, got_text in rows)

    def _farewell(self) -> None:
        self._title("Try next")
        for line in (
            "semel serve        a broker on port 9092 for any Kafka client",
            "examples/          small programs that use it, from Python and Spark",
            "docs/              how it works, and why",
        ):
            self.console.print("  " + line, highlight=False)

    def _title(self, words: str) -> None:
        self.console.rule(f"[bold]{words}", align="left")

    def _step(self, words: str) -> None:
        self.console.print(f"  • {words}", highlight=False)


class Audit:
    """Reads the output topics from the beginning, without Spark."""

    def __init__(self, bootstrap: str, orders: int) -> None:
        self._bootstrap = bootstrap
        self._orders = orders

    def enriched(self) -> tuple[int, int, int]:
        """(orders found, lost, doubled)"""
        from semel.spark.demo_job import ENRICHED

        seen = Counter(row["order"] for row in self._values(ENRICHED))
        lost = sum(1 for number in range(self._orders) if number not in seen)
        return len(seen), lost, sum(seen.values()) - len(seen)

    def totals(self) -> dict[str, tuple[int, int]]:
        """The last total of each country: a key's records are in one partition, in order."""
        from semel.spark.demo_job import TOTALS

        rows = self._values(TOTALS)
        return {row["country"]: (row["orders"], row["cents"]) for row in rows}

    def written(self, topic: str) -> int:
        return sum(1 for _ in self._values(topic, "read_uncommitted"))

    def _values(self, topic: str, isolation: str = "read_committed") -> Iterator[dict[str, Any]]:
        from semel.spark.source import BatchReader, Work
        from semel.spark.source_options import SourceOptions

        options = SourceOptions.of(
            {
                "kafka.bootstrap.servers": self._bootstrap,
                "subscribe": topic,
                "isolation": isolation,
            }
        )
        reader = BatchReader(options)
        for work in reader.partitions():
            assert isinstance(work, Work)
            for batch in reader.read(work):
                yield from (json.loads(value) for value in batch.column("value").to_pylist())


def _pair(count: int, cents: int) -> str:
    return f"{count:,}  {cents:,}"


def _end_group(driver: subprocess.Popen[str]) -> None:
    """The JVM notices the death of its driver by itself; nothing is left to chance."""
    with suppress(ProcessLookupError):
        os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
