"""Markdown that reads well in an editor too: lines of at most 100 columns."""

from pathlib import Path

import pytest
from tests.support.markdown import ROOT, pages

COLUMNS = 100


def long_lines(text: str) -> list[int]:
    """Numbers of the lines that could have been broken; tables and code cannot."""
    found, in_code = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        words = line.lstrip("-*:# 0123456789.").split()
        breakable = not in_code and not line.lstrip().startswith("|") and len(words) > 1
        if breakable and len(line) > COLUMNS:
            found.append(number)
    return found


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_lines_of_markdown_fit_100_columns(page: Path) -> None:
    assert not long_lines(page.read_text())


def test_a_long_line_is_found_unless_it_cannot_be_broken() -> None:
    long = "word " * 25
    assert long_lines(f"short\n{long}\n| {long} |\n```\n{long}\n```\n- {'x' * 120}\n") == [2]
