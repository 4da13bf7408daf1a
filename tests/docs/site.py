"""The site for tests: its generator, and a build of it."""

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from tests.support.markdown import ROOT

DOCS = ROOT / "docs"


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
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", source, built],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return built
