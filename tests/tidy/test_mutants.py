"""Every mutant (`make mutants`) can still be made: the text it changes is there."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
LISTS = [
    *sorted((ROOT / "tests" / "mutants").glob("*.py")),
    ROOT / "tests" / "spark" / "mutants.py",
]


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", LISTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_mutant_finds_the_text_that_it_changes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.delitem(sys.modules, "run", raising=False)
    source = ROOT / "src" if path.parent.name == "mutants" else ROOT / "src" / "semel"
    stale = [
        mutant.sin
        for mutant in load(path).MUTANTS
        for old, _ in ((mutant.old, mutant.new), *getattr(mutant, "also", ()))
        if old not in (source / mutant.file).read_text()
    ]
    assert not stale
