"""`semel demo`, as `make run` shows it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from semel.cli.__main__ import main
from semel.cli.exits import Exit

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_demo_without_a_trace(tmp_path: Path, signal_number: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "semel", "demo", "--orders", "1000", "--alone"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    ) as running:  # fmt: skip
        assert running.stdout is not None
        assert any("Run 1 of 3" in line for line in running.stdout)
        running.send_signal(signal_number)
        _, errors = running.communicate()
    assert (running.returncode, errors) == (Exit.INTERRUPTED, "")
    assert not list(tmp_path.glob("semel-demo-*"))


@pytest.mark.soak
def test_the_demo_loses_and_doubles_nothing_and_says_what_to_try_next(capsys):
    assert main(["demo", "--orders", "40000"]) == 0
    screen = capsys.readouterr().out
    assert "2 drivers and" in screen
    assert "aborted, and run again as a whole" in screen
    assert "was committed before the crash" in screen
    assert "Try next" in screen
