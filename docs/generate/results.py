"""The newest results of the benchmarks as bars: what a picture of a table is on the site.

A code host shows `![Transactions](../benchmarks/transactions.svg)` as the picture that the
benchmark made. On the site it becomes a figure made from `benchmarks/results.jsonl`, which a phone
can show and a reader can copy from.
"""

import json
import math
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results.jsonl"
#: The longest bar stands for this ratio; it grows by factors.
LONGEST = 20.0
_PICTURE = re.compile(r"^!\[(\w+)\]\([./]*benchmarks/(\w+)\.svg\)$", re.MULTILINE)


def newest(title: str) -> dict[str, Any] | None:
    """The last run of that title."""
    runs = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    return next((run for run in reversed(runs) if run["title"] == title), None)


def with_results(text: str) -> str:
    """Pictures of tables replaced by the directive that shows the same as bars."""

    def figure(found: re.Match[str]) -> str:
        title = found[1]
        is_table = title.lower() == found[2] and newest(title) is not None
        return f"```{{results}} {title}\n```" if is_table else found[0]

    return _PICTURE.sub(figure, text)


class Results(Directive):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        run = newest(self.arguments[0])
        assert run is not None, f"no results of {self.arguments[0]}"
        return [nodes.raw("", "".join(_figure(run)), format="html")]


_HEAD = ("workload", "ratio", "Semel", "Apache Kafka", "broker CPU", "memory")
_CAPTION = (
    "Measured on {date} with Python {python}. The ratio says how much more Semel does per second;"
    " its bar grows by factors, and is red below 1. CPU and memory are Semel’s as a share of Apache"
    " Kafka’s."
)


def _figure(run: dict[str, Any]) -> Iterator[str]:
    head = "".join(f"<th>{name}</th>" for name in _HEAD)
    yield f'<figure class="results"><table><thead><tr>{head}</tr></thead><tbody>'
    yield from map(_row, run["rows"])
    caption = _CAPTION.format(date=run["at"][:10], python=run["python"])
    yield f"</tbody></table><figcaption>{escape(caption)}</figcaption></figure>"


def _row(row: dict[str, Any]) -> str:
    ours, theirs = row["sides"]
    ratio = median(ours["per_second"]) / median(theirs["per_second"])
    cpu = median(ours["cpu_per_unit"]) / median(theirs["cpu_per_unit"])
    memory = ours["memory_mb"] / theirs["memory_mb"]
    cells = [
        f"{_amount(ours)} {escape(ours['unit'])}/s",
        f"{_amount(theirs)} {escape(theirs['unit'])}/s",
        f"{cpu:.0%}",
        f"{memory:.0%}",
    ]
    rest = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr><th scope="row">{escape(row["name"])}</th><td>{_bar(ratio)}</td>{rest}</tr>'


def _bar(ratio: float) -> str:
    share = min(1.0, abs(math.log(ratio)) / math.log(LONGEST))
    kind = "more" if ratio >= 1 else "less"
    bar = f'<span class="bar {kind}" style="width: {share * 5:.2f}rem"></span>'
    shown = f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
    return f'<span class="ratio">{shown}×</span> {bar}'


def _amount(side: dict[str, Any]) -> str:
    rate = median(side["per_second"])
    return f"{rate:,.0f}" if rate >= 20 else f"{rate:,.1f}"
