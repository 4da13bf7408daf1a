"""Writes the files that are made from others: `python -m tools.generate`, or `make generated`."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tools.keywords import keywords_module

ROOT = Path(__file__).parents[1]
_CLIENT = "src/semel/client"

#: Path → the text that belongs there.
MADE: dict[str, Callable[[], str]] = {
    f"{_CLIENT}/settings/keywords.py": lambda: formatted(keywords_module()),
}


def formatted(code: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "made.py", "-"]
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout


def main() -> None:
    for path, make in MADE.items():
        (ROOT / path).write_text(make())
        print(path)


if __name__ == "__main__":
    main()
