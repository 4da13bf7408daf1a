"""Writes the files that are made from others: `python -m tools.generate`, or `make generated`."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tools.blocking import CLIENTS, blocking_module
from tools.keywords import keywords_module, sink_keywords_module

ROOT = Path(__file__).parents[1]
_CLIENT = "src/semel/client"


def formatted(path: str, code: str) -> str:
    """As `make format` would leave it."""
    for words in (["check", "--fix", "--select", "I,F401"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *words, "--quiet", "--stdin-filename", path]
        done = subprocess.run(
            [*ruff, "-"], input=code, capture_output=True, text=True, check=True, cwd=ROOT
        )
        code = done.stdout
    return code


#: Path → what makes the text that belongs there.
MADE: dict[str, Callable[[], str]] = {
    f"{_CLIENT}/settings/keywords.py": keywords_module,
    "src/semel/spark/sink/keywords.py": sink_keywords_module,
    **{f"{_CLIENT}/blocking/{noun}.py": partial(blocking_module, noun) for noun in CLIENTS},
}


def made(path: str) -> str:
    """The text that belongs there."""
    text = MADE[path]()
    return formatted(path, text) if path.endswith(".py") else text


def main() -> None:
    for path in MADE:
        (ROOT / path).write_text(made(path))
        print(path)


if __name__ == "__main__":
    main()
