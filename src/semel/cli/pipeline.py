"""`semel pipeline FILE`: run a pipeline from a TOML file, or from a Python file that has one.

    application = "shout"
    bootstrap = "localhost:9092"
    source = "words"
    sink = "shouted"
    transform = "SELECT key, upper(value) AS value FROM source"
    checkpoint = "checkpoints/shout"

A Python file has a `Pipeline` in a variable named `pipeline`.
"""

from __future__ import annotations

import argparse
import runpy
import sys
import time
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from semel.spark.pipeline import Pipeline, Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="a TOML file, or a Python file with `pipeline`")
    parser.add_argument("--master", help="Spark's master URL (default: this machine)")
    parser.add_argument("--bootstrap", help="the broker, if not the one in the file")
    parser.add_argument("--once", action="store_true", help="do all that is there now, then end")


def run(arguments: argparse.Namespace) -> int:
    try:
        pipeline = load(arguments.file)
    except (OSError, ValueError, ImportError) as problem:
        print(f"semel: {arguments.file}: {problem}", file=sys.stderr)
        return 2
    changes: dict[str, Any] = {
        name: value
        for name in ("master", "bootstrap")
        if (value := getattr(arguments, name)) is not None
    }
    report = Report(Console())
    trigger: dict[str, Any] = {"availableNow": True} if arguments.once else {}
    try:
        replace(pipeline, **changes).run(on_progress=report.add, **trigger)
    except KeyboardInterrupt:
        report.console.print("stopped; it goes on from here when started again")
    report.summary()
    return 0


def load(path: Path) -> Pipeline:
    """The pipeline that a file describes."""
    from semel.spark.pipeline import Pipeline

    if path.suffix == ".py":
        found = runpy.run_path(str(path)).get("pipeline")
        if not isinstance(found, Pipeline):
            raise ValueError("there is no Pipeline in a variable named `pipeline`")
        return found
    settings = tomllib.loads(path.read_text())
    unknown = set(settings) - {entry.name for entry in fields(Pipeline)}
    if unknown:
        raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}")
    try:
        return Pipeline(**settings)
    except TypeError as problem:
        raise ValueError(str(problem).replace("Pipeline.__init__() ", "")) from None


class Report:
    """A line for each batch that had rows, and a sum at the end."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._began = time.monotonic()
        self._batches = 0
        self._rows = 0

    def add(self, progress: Progress) -> None:
        self._batches += 1
        self._rows += progress.rows
        self.console.print(
            f"batch {progress.batch:>6}  {progress.rows:>10,} rows"
            f"  {progress.rows_per_second:>10,.0f} rows/s  lag {progress.lag:,}",
            highlight=False,
        )

    def summary(self) -> None:
        took = time.monotonic() - self._began
        self.console.print(
            f"{self._rows:,} rows in {self._batches:,} batches, {took:.1f} s", highlight=False
        )
