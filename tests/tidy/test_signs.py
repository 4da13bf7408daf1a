"""Signs are true: what docstrings and pages name is there, and handlers ask for what they say."""

import ast
import re
from pathlib import Path

import pytest
from tests.support.markdown import ROOT, pages

from semel.wire.messages import ADVERTISED

SOURCE = ROOT / "src" / "semel"
HANDLERS = sorted(SOURCE.glob("broker/api/k*.py"))
ROOMS = (
    *("core", "broker", "client", "wire", "store", "net", "spark", "columnar", "cli", "demo"),
    *("tests", "docs", "src", "benchmarks", "examples", "tools"),
)
_PATH = re.compile(rf"(?<![\w/.-])((?:{'|'.join(ROOMS)})/[\w/.*-]*[\w*])")
_ACCESS = re.compile(r'may\(\s*"([A-Z_]+)",\s*"([A-Z_]+)"')
_VERSIONS = re.compile(r"[Vv]ersions? (\d+)(?:-(\d+))?")


def is_there(path: str) -> bool:
    """A file or folder of the repository or the package, with or without .py, or a name in it."""
    places = [path, path.rpartition(".")[0]] if "." in path else [path]
    return any(
        any(root.glob(f"{place}{suffix}"))
        for root in (ROOT, SOURCE, ROOT / "src")
        for place in places
        if place
        for suffix in ("", ".py")
    )


@pytest.mark.parametrize(
    "file",
    [*sorted(SOURCE.rglob("*.py")), *sorted(ROOT.glob("benchmarks/*.py")), *pages()],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_a_path_that_is_named_is_there(file: Path) -> None:
    named = set(_PATH.findall(file.read_text()))
    assert not {path for path in named if not is_there(path)}


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda path: path.stem)
def test_a_handler_says_who_may_and_which_versions(handler: Path) -> None:
    code = handler.read_text()
    words = ast.get_docstring(ast.parse(code)) or ""
    who = words.partition("Answers")[0].replace("_", "").lower()
    asked = set(_ACCESS.findall(code))
    unsaid = {
        (operation, resource)
        for operation, resource in asked
        if operation.replace("_", "").lower() not in who
        or resource.replace("_", "").lower() not in who
    }
    assert not unsaid
    key = int(handler.stem[1:3])
    spoken = ADVERTISED[key]
    said = _VERSIONS.search(words)
    assert said is not None
    first, last = int(said[1]), int(said[2] or said[1])
    assert last == spoken[-1]
    assert first == (3 if key == 0 else spoken[0])  # Produce 0-2 are told, and refused


def test_every_folder_and_module_says_what_it_is() -> None:
    modules = sorted(SOURCE.rglob("*.py"))
    assert [path for path in modules if not ast.get_docstring(ast.parse(path.read_text()))] == []
