"""`semel pipeline run FILE`: a pipeline from a TOML file, or from a Python file that has one.

    application = "shout"
    bootstrap_servers = "localhost:9092"
    source = "words"
    sink = "shouted"
    transform = "SELECT key, upper(value) AS value FROM source"
    checkpoint = "checkpoints/shout"

In place of SQL, `function = "shout.py:shout"` names a Python function of a DataFrame; the file is
looked for beside this one. A Python file has a `Pipeline` in a variable named `pipeline`.
"""

from __future__ import annotations

import argparse
import runpy
import signal
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from rich.console import Console

from semel.cli.commands import Action, CommandTable, Option
from semel.cli.exits import CommandError, Exit, usage
from semel.errors import UsageError

if TYPE_CHECKING:
    from semel.spark.pipeline import Pipeline, Progress

#: More partitions than this are shown as a sum.
_SHOWN = 8
_STOPPING = (signal.SIGINT, signal.SIGTERM)


def run(arguments: argparse.Namespace) -> int:
    if find_spec("pyspark") is None:
        raise usage("pipelines run on Spark: pip install 'semel[spark]'")
    try:
        pipeline = load(arguments.file)
    except OSError as problem:
        # Perhaps not the file itself: one that it names.
        name = problem.filename or arguments.file
        raise usage(f"{name}: {problem.strerror or problem}") from None
    except (ValueError, ImportError, UsageError) as problem:
        raise usage(f"{arguments.file}: {problem}") from None
    changes: dict[str, Any] = {
        name: value
        for name in ("master", "bootstrap_servers")
        if (value := getattr(arguments, name)) is not None
    }
    return _run(replace(pipeline, **changes), arguments.once)


def _run(pipeline: Pipeline, once: bool) -> int:
    from semel.spark.pipeline import FAILURES
    from semel.spark.sink.committer import sentence

    report = Report(Console(soft_wrap=True))
    until = threading.Event()
    trigger: dict[str, Any] = {"availableNow": True} if once else {}
    try:
        spark = pipeline.session(quiet=True)
        report.began(pipeline, spark)
        with _stopped_by_signals(until):
            pipeline.run(spark, on_progress=report.add, until=until, **trigger)
    except KeyboardInterrupt:
        until.set()
    except FAILURES as problem:
        report.summary()
        raise CommandError(sentence(str(problem)) or repr(problem)) from None
    if until.is_set():
        report.say("stopped; it goes on from here when started again")
    report.summary()
    # Without an end of its own it is meant to be stopped.
    return Exit.INTERRUPTED if once and until.is_set() else Exit.DONE


@contextmanager
def _stopped_by_signals(until: threading.Event) -> Iterator[None]:
    """Ctrl-C, or what a service is stopped with, sets the event; the second time it interrupts."""

    def stop(number: int, frame: FrameType | None) -> None:
        if until.is_set():
            raise KeyboardInterrupt
        until.set()

    usual = {number: signal.signal(number, stop) for number in _STOPPING}
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


def load(path: Path) -> Pipeline:
    """The pipeline that a file describes."""
    from semel.spark.pipeline import Pipeline

    if path.suffix == ".py":
        found = runpy.run_path(str(path)).get("pipeline")
        if not isinstance(found, Pipeline):
            raise ValueError("there is no Pipeline in a variable named `pipeline`")
        return found
    settings = tomllib.loads(path.read_text())
    if "function" in settings:
        if "transform" in settings:
            raise ValueError("give `transform`, which is SQL, or `function`, not both")
        settings["transform"] = _function(path.parent, settings.pop("function"))
    unknown = set(settings) - {entry.name for entry in fields(Pipeline)}
    if unknown:
        raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}")
    try:
        return Pipeline(**settings)
    except TypeError as problem:
        raise ValueError(str(problem).replace("Pipeline.__init__() ", "")) from None


def _function(directory: Path, place: str) -> Callable[..., Any]:
    file, _, name = place.partition(":")
    found: Callable[..., Any] | None = runpy.run_path(str(directory / file)).get(name)
    if not callable(found):
        raise ValueError(f"there is no function {name!r} in {file}; write it as file.py:name")
    return found


class Report:
    """A line for each batch, and a sum at the end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._batches = 0
        self._rows = 0
        self._retries = 0
        self._last: Progress | None = None

    def say(self, words: str) -> None:
        self._console.print(words, highlight=False)

    def began(self, pipeline: Pipeline, spark: Any) -> None:
        out = pipeline.sink or "the topics named by the rows"
        self.say(
            f"{pipeline.application}: {_names(pipeline.source)} → {out}, exactly once;"
            f" Spark {spark.version} at {pipeline.master}. Ctrl-C stops it"
        )
        self._began = time.monotonic()

    def add(self, progress: Progress) -> None:
        self._batches += 1
        self._rows += progress.rows
        self._retries += progress.retries
        self._last = progress
        again = f"  run again {progress.retries}×" if progress.retries else ""
        self.say(
            f"batch {progress.batch:>5}  {progress.rows:>10,} rows"
            f"  {progress.rows_per_second:>9,.0f} rows/s  lag {progress.lag:>8,}"
            f"  committed {positions(progress.committed)}{again}"
        )

    def summary(self) -> None:
        took = time.monotonic() - self._began
        batches = f"{self._batches:,} {'batch' if self._batches == 1 else 'batches'}"
        self.say(
            f"\n{self._rows:,} rows in {batches}, {took:.1f} s ({self._rows / took:,.0f} rows/s);"
            f" {self._retries} attempts were aborted and run again"
        )
        if self._last is not None:
            self.say(f"committed {positions(self._last.committed)}; lag {self._last.lag:,}")


def positions(committed: Mapping[tuple[str, int], int]) -> str:
    """Offsets by topic: each partition's where they are few, else their sum."""
    by_topic: dict[str, dict[int, int]] = {}
    for (topic, partition), offset in sorted(committed.items()):
        by_topic.setdefault(topic, {})[partition] = offset
    words = []
    for topic, offsets in by_topic.items():
        each = " ".join(f"{partition}:{offset}" for partition, offset in offsets.items())
        total = f"{sum(offsets.values()):,} in {len(offsets)} partitions"
        words.append(f"{topic} {each if len(offsets) <= _SHOWN else total}")
    return ", ".join(words) or "no offsets of Kafka"


def _names(source: Any) -> str:
    if isinstance(source, str):
        return source
    return ", ".join(map(_names, source.values() if isinstance(source, Mapping) else source))


COMMAND = CommandTable(
    actions=(
        Action("run", "run a pipeline until it is stopped", run, (
            Option("file", "a TOML file, or a Python file with a variable `pipeline`",
                   parse=Path),
            Option("--master", "Spark's master URL, if not the one in the file", value="URL"),
            Option("--bootstrap-servers", "the brokers, if not those in the file",
                   value="HOST:PORT"),
            Option("--once", "do all that is there now, then end"),
        )),
    ),
    examples={"semel pipeline run examples/shout.toml": "topics in, SQL, topics out"},
)  # fmt: skip
