"""`semel demo`: an exactly-once pipeline on Spark that is killed on purpose, and counted
afterwards.

Beside it, if its jar can be had, runs the same enrichment through Spark's usual Kafka sink, which
is killed in the same way and counted in the same way.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from semel.demo.audit import Audit

PARTITIONS = 4
BATCHES = 4
#: Where a driver is killed, and which time: the third time it gets there, for example.
FIRST_DEATH = ["before commit", 3]
SECOND_DEATH = ["after commit", 2]
#: A driver that fails by itself (a machine too busy for Spark's patience) is started again, as any
#: supervisor would do; nothing is lost or doubled by that either.
ATTEMPTS = 3
#: What happens in each run, and where its driver dies.
RUNS: list[tuple[str, list[Any] | None]] = [
    ("a task is killed while it writes, then the driver before it commits", FIRST_DEATH),
    ("the driver is killed after a commit, before Spark has noted it", SECOND_DEATH),
    ("nobody is killed", None),
]
NEXT_STEPS = (
    ("semel serve", "a broker for any Kafka client"),
    ("semel pipeline run examples/shout.toml", "topics in, SQL, topics out"),
    ("examples/", "small programs that use it"),
    ("make test", "the proof, crash by crash"),
    ("README.md, ARCHITECTURE.md", "how it is used, and how it works"),
)


def show(orders: int, *, compare: bool) -> bool:
    """Run it; whether everything was counted exactly once."""
    with tempfile.TemporaryDirectory(prefix="semel-demo-") as directory:
        return Demo(Console(), orders, Path(directory), compare).run()


@dataclass
class Demo:
    console: Console
    orders: int
    directory: Path
    compare: bool = True
    bootstrap_servers: str = ""
    jars: list[Path] = field(default_factory=list)
    expected: dict[str, list[int]] = field(default_factory=dict)
    kills: int = 0
    tasks_killed: int = 0
    began: float = field(default_factory=time.monotonic)
    #: Files by the name of a query: the first task that sees its file removes it and dies.
    flags: dict[str, Path] = field(default_factory=dict)

    def run(self) -> bool:
        from semel.broker.server import Broker

        self._title("Semel: orders → Spark → two topics, each order counted exactly once")
        self._prepare()
        with Broker(self.directory / "broker") as broker:
            self.bootstrap_servers = broker.bootstrap_servers
            self._step(f"broker up at {self.bootstrap_servers} (this process, no JVM)")
            self._fill()
            for number, (words, die_at) in enumerate(RUNS, 1):
                self.console.print(f"\n[bold]Run {number} of {len(RUNS)}[/]: {words}")
                if not any(self._drive(die_at) for _ in range(ATTEMPTS)):
                    return False
            good = self._show(Audit(self.bootstrap_servers, self.orders))
        self.console.print(f"\n{time.monotonic() - self.began:.0f} s in all.")
        self._print_next_steps()
        return good

    def _prepare(self) -> None:
        """Java, the compiled kernels and the connector, before anything is timed."""
        from semel.columnar import cache
        from semel.spark.sessions.java import use_java

        use_java()
        if not cache.is_complete():
            self._step("compiling kernels for this machine (only the first time, some seconds)")
        with self.console.status("loading kernels"):
            import semel.spark.sink.writer  # noqa: F401
        if self.compare:
            self._find_connector()

    def _find_connector(self) -> None:
        from semel.demo.spark_connector import cached_jars, connector_jars

        if cached_jars() is None:
            self._step("fetching Spark's usual Kafka connector, to compare with (only once)")
        with self.console.status("fetching"):
            self.jars = connector_jars(timeout_s=60) or []
        if not self.jars:
            self._step("it cannot be had here: its column is left out")

    def _fill(self) -> None:
        from semel.client.admin.topics import NewTopic
        from semel.client.blocking import Admin, Producer
        from semel.demo.job import ENRICHED, ORDERS, TOTALS, USUAL

        topics = [ORDERS, ENRICHED, TOTALS, *([USUAL] if self.jars else [])]
        with Admin(self.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(name, PARTITIONS) for name in topics])
        # Closing a producer sends what it still holds.
        with Producer(self.bootstrap_servers) as producer:
            producer.send_many(ORDERS, self._make_orders())
        self._step(f"{self.orders:,} orders in the topic {ORDERS!r}")

    def _make_orders(self) -> Iterator[tuple[bytes, bytes]]:
        from semel.demo.job import CUSTOMERS, country_of

        for number in range(self.orders):
            customer, quantity, cents = number * 31 % CUSTOMERS, number % 5 + 1, number % 97 + 100
            order = {
                "order": number, "customer": customer, "quantity": quantity, "cents": cents
            }  # fmt: skip
            count_and_cents = self.expected.setdefault(country_of(customer), [0, 0])
            count_and_cents[0] += 1
            count_and_cents[1] += quantity * cents
            yield json.dumps(order).encode(), str(number).encode()

    def _drive(self, die_at: list[Any] | None) -> bool:
        plan = {
            "bootstrap_servers": self.bootstrap_servers,
            "directory": str(self.directory),
            "rows_per_batch": self.orders // BATCHES,
            "die_at": die_at,
            "jars": [str(jar) for jar in self.jars],
        }
        if die_at == FIRST_DEATH:
            self._raise_flags()
        log = self.directory / "driver.log"
        with log.open("w") as errors:
            driver = subprocess.Popen(
                [sys.executable, "-m", "semel.demo.job", json.dumps(plan)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
            try:
                with self.console.status("Spark is at work"):
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

    def _raise_flags(self) -> None:
        from semel.demo.job import flag_of

        for query in ("enrich", *(["usual"] if self.jars else [])):
            self.flags[query] = flag_of(self.directory, query)
            self.flags[query].touch()

    def _tell(self, line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            return
        self._tell_killed_tasks()
        if event["event"] == "spark":
            self._step(f"Spark {event['version']} is up")
        elif event["event"] == "dying":
            self.kills += 1
            self._line(f"[red]✗ SIGKILL[/] the driver, {event['point']}")
        elif event["event"] == "batch":
            self._tell_batch(event)

    def _tell_killed_tasks(self) -> None:
        for query, flag in list(self.flags.items()):
            if not flag.exists():
                del self.flags[query]
                self.tasks_killed += 1
                self._line(f"[red]✗ SIGKILL[/] the worker of a task of {query}")

    def _tell_batch(self, event: dict[str, Any]) -> None:
        name = f"{event['query']:<6} batch {event['batch']}"
        if event["query"] == "usual":
            self._line(f"[dim]· {name}  {event['rows']:>7,} rows through Spark's usual sink")
            return
        if event["retries"]:
            self._line(f"[yellow]↻ {name}: aborted, and run again as a whole")
        if event["skipped"]:
            self._line(f"✓ {name}  was committed before the crash: not written again")
        else:
            self._line(f"✓ {name}  {event['rows']:>7,} rows committed")

    def _show(self, audit: Audit) -> bool:
        from semel.demo.job import ENRICHED, USUAL

        table = Table(
            title="\nCounted afterwards, from the topics (countries: orders, cents)",
            title_justify="left",
        )
        columns = ["", "expected", "Semel", "", *(["Spark's own", ""] if self.jars else [])]
        for column in columns:
            table.add_column(column, justify="right" if column else "left")
        ours = audit.count(ENRICHED)
        usual = audit.count(USUAL) if self.jars else None
        rows = [
            ("orders enriched", self.orders, ours.found, usual and usual.found),
            ("orders lost", 0, ours.lost, usual and usual.lost),
            ("orders doubled", 0, ours.doubled, usual and usual.doubled),
        ]
        for name, wanted, found, other in rows:
            beside = [f"{other:,}", _mark(other == wanted)] if usual else []
            table.add_row(name, f"{wanted:,}", f"{found:,}", _mark(found == wanted), *beside)
        good = all(found == wanted for _, wanted, found, _ in rows)
        totals = audit.totals()
        for country, expected in sorted(self.expected.items()):
            got = totals.get(country, (0, 0))
            right = tuple(expected) == got
            good = good and right
            table.add_row(country, _pair(*expected), _pair(*got), _mark(right))
        self.console.print(table)
        written = audit.written(ENRICHED)
        self.console.print(
            f"{self.kills} drivers and {self.tasks_killed} tasks were killed. {written:,} rows were"
            f" written to {ENRICHED!r}, {written - ours.found:,} of them by attempts that did not"
            " count; readers of committed data never see those."
        )
        return good

    def _print_next_steps(self) -> None:
        self._title("Try next")
        for command, words in NEXT_STEPS:
            self.console.print(f"  {command:<40} {words}", highlight=False)

    def _title(self, words: str) -> None:
        self.console.rule(f"[bold]{words}", align="left")

    def _step(self, words: str) -> None:
        self._line(f"• {words}")

    def _line(self, words: str) -> None:
        """With the seconds since the beginning, so that one sees it move."""
        self.console.print(f"{time.monotonic() - self.began:4.0f} s  {words}", highlight=False)


def _mark(good: bool) -> str:
    return "[green]✓[/]" if good else "[red]✗[/]"


def _pair(count: int, cents: int) -> str:
    return f"{count:,}  {cents:,}"


def _end_group(driver: subprocess.Popen[str]) -> None:
    """The JVM notices the death of its driver by itself; this makes sure of it."""
    with suppress(ProcessLookupError):
        os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
