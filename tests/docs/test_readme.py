"""Every Python snippet of the README runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


def marked(snippet: str) -> object:
    needs_spark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
    return pytest.param(snippet, marks=needs_spark if "semel.spark" in snippet else [])


@pytest.mark.slow
@pytest.mark.parametrize(
    "snippet", [marked(s) for s in SNIPPETS], ids=["broker", "transact", "spark"]
)
def test_a_snippet_runs(snippet: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", snippet], cwd=tmp_path, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stderr
