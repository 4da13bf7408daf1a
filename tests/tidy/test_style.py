"""Style a reader relies on: short functions, files that fit the head, nothing left undone."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FUNCTION_LINES = 70
FILE_LINES = 500
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b|NotImplementedError|mark\.(skip|xfail)\b")


def tracked(*patterns: str) -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [path for line in listing.stdout.splitlines() if (path := ROOT / line).is_file()]


SOURCES = tracked("src/*.py")


@pytest.fixture(scope="module", params=SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def source(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_a_module_says_what_it_is(source: Path) -> None:
    tree = ast.parse(source.read_text())
    assert not tree.body or ast.get_docstring(tree), "the first line should say what this module is"


def test_functions_are_short(source: Path) -> None:
    long = [
        f"{node.name} ({lines} lines)"
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        # The body counts: a kernel over a dozen arrays has a long signature and no choice.
        and (lines := (node.end_lineno or 0) - node.body[0].lineno + 1) > FUNCTION_LINES
    ]
    assert not long


def test_files_are_short(source: Path) -> None:
    lines = source.read_text().count("\n")
    assert lines <= FILE_LINES, f"{lines} lines: split by noun"


def test_nothing_is_left_unfinished(source: Path) -> None:
    found = [line for line in source.read_text().splitlines() if UNFINISHED.search(line)]
    assert not found


def test_nothing_names_this_machine() -> None:
    roots = {f"{ROOT.parent}/", f"{Path.home()}/"} - {"/"}
    wrong = {
        f"{path.relative_to(ROOT)}: {root}"
        for path in tracked()
        if path.stat().st_size < 2_000_000
        for root in roots
        if root in path.read_text(errors="ignore")
    }
    assert not wrong
