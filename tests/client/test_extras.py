"""An extra that is not installed is named, and how to get it; a mistake of ours is not hidden."""

import subprocess
import sys

import pytest

from semel.extras import needs_extra

TABLES = """
import asyncio, semel
async def main():
    async with semel.Broker() as broker, semel.{client}(broker.bootstrap_servers) as client:
        await client.{call}
asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("missing", "program", "words"),
    [
        ("pyspark", "from semel.spark import Pipeline",
         'semel.spark.Pipeline needs pyspark, which is not installed: pip install "semel[spark]"'),
        ("pyarrow", "from semel.spark import write", 'pip install "semel[spark]"'),
        ("pyarrow", TABLES.format(client="Producer", call="send_table('t', {})"),
         'send_table needs pyarrow, which is not installed: pip install "semel[arrow]"'),
        ("pyarrow", TABLES.format(client="Consumer", call="poll_table()"),
         'poll_table needs pyarrow, which is not installed: pip install "semel[arrow]"'),
    ],
)  # fmt: skip
def test_an_extra_that_is_missing_is_named(missing: str, program: str, words: str) -> None:
    without = f"import sys; sys.modules[{missing!r}] = None\n{program}"
    run = subprocess.run(
        [sys.executable, "-c", without], capture_output=True, text=True, check=False, timeout=60
    )
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert words in last


def test_a_module_of_ours_that_is_missing_is_not_explained_away() -> None:
    with pytest.raises(ModuleNotFoundError, match="No module"), needs_extra("arrow", "this"):
        import semel.nothing  # noqa: F401
