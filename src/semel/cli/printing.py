"""Answers for people as tables, for programs as JSON, one object a line."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any


def show(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, as_json: bool, title: str = ""
) -> None:
    if as_json:
        for row in rows:
            print(json.dumps(dict(zip(columns, row, strict=True)), default=str))
        return
    from rich.console import Console
    from rich.table import Table

    rows = list(rows)
    if not rows:
        Console(stderr=True, highlight=False).print("(nothing)")
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.replace("_", " "), no_wrap=column in ("topic", "group", "id"))
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    Console(highlight=False).print(table)


def show_one(facts: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts, default=str))
        return
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):<{width}}  {value}")


def moment(timestamp_ms: int | None) -> str | None:
    """A timestamp as people read it."""
    if timestamp_ms is None or timestamp_ms < 0:
        return None
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")


def duration(milliseconds: float) -> str:
    seconds = milliseconds / 1000
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
