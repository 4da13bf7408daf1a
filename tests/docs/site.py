"""The site for tests: its generator, and a build of it."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from tests.support.markdown import ROOT

DOCS = ROOT / "docs"
# `make docs` has an environment of its own, without these: here they are hidden from the build.
HIDDEN = ("numba", "numpy", "pandas", "py4j", "pyarrow", "pyspark")
_HIDE = f"""
import importlib.metadata
import sys


class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {HIDDEN!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        return None


def version(name, known=importlib.metadata.version):
    if name in {HIDDEN!r}:
        raise importlib.metadata.PackageNotFoundError(name)
    return known(name)


sys.meta_path.insert(0, Hidden())
importlib.metadata.version = version
"""


@cache
def generator() -> ModuleType:
    """docs/generate, which is no part of the package."""
    if str(DOCS) not in sys.path:
        sys.path.insert(0, str(DOCS))
    import generate

    return generate


@cache
def generated_pages() -> dict[str, str]:
    """Path in the repository → text, of the pages that a build makes."""
    made: dict[str, str] = generator().pages(DOCS)
    return {f"docs/{name}.md": text for name, text in made.items()}


def build(where: Path) -> Path:
    """The built site. Warnings, of which a broken link is one, are errors."""
    source, built = where / "docs", where / "site"
    leave_out = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(DOCS, source, ignore=leave_out)
    (where / "benchmarks").mkdir()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("benchmarks/*")):
        if path.is_file():
            shutil.copy(path, where / path.relative_to(ROOT))
    (where / "hidden").mkdir()
    (where / "hidden" / "sitecustomize.py").write_text(_HIDE)
    path = os.pathsep.join([str(where / "hidden"), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", source, built],
        capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return built
