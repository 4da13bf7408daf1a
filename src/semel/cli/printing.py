"""Answers for people as tables, for programs as JSON, one object a line.

JSON carries plain values: numbers as numbers (milliseconds as `…_ms`), lists as lists. How a column
looks to people (`3 s` for `open_for_ms`) is said by `looks`.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

# What goes into a file or another program is not cut to a screen's width.
_UNLIMITED = 100_000

Looks = Mapping[str, Callable[[Any], str]]


def show(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    as_json: bool,
    title: str = "",
    looks: Looks | None = None,
) -> None:
    if as_json:
        for row in rows:
            print(json.dumps(dict(zip(columns, row, strict=True)), default=str))
        return
    from rich.console import Console
    from rich.table import Table

    rows = list(rows)
    if title:
        print(title, flush=True)
    if not rows:
        print("(nothing)", file=sys.stderr)
        return
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(_heading(column), no_wrap=column in ("topic", "group", "id"))
    for row in rows:
        cells = zip(columns, row, strict=True)
        table.add_row(*(_cell(column, value, looks or {}) for column, value in cells))
    width = None if sys.stdout.isatty() else _UNLIMITED
    console = Console(highlight=False, markup=False, width=width)
    # Rich itself would end the process where nobody reads its output any more.
    with console.capture() as captured:
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def show_one(facts: Mapping[str, Any], *, as_json: bool, looks: Looks | None = None) -> None:
    if as_json:
        print(json.dumps(facts, default=str))
        return
    width = max((len(_heading(name)) for name in facts), default=0)
    for name, value in facts.items():
        print(f"{_heading(name):<{width}}  {_cell(name, value, looks or {})}".rstrip())


def _heading(column: str) -> str:
    return column.removesuffix("_ms").replace("_", " ")


def _cell(column: str, value: Any, looks: Looks) -> str:
    if value is None:
        return ""
    if column in looks:
        return looks[column](value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def moment(timestamp_ms: int) -> str:
    """A timestamp as people read it."""
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")


def duration(milliseconds: float) -> str:
    seconds = milliseconds / 1000
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
