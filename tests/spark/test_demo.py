"""`semel demo`, as `make run` shows it."""

import pytest

from semel.cli.__main__ import main

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.xdist_group("spark")]


def test_the_demo_loses_and_doubles_nothing_and_says_what_to_try_next(capsys):
    assert main(["demo", "--orders", "40000"]) == 0
    screen = capsys.readouterr().out
    assert "2 drivers and" in screen
    assert "aborted, and run again as a whole" in screen
    assert "was committed before the crash" in screen
    assert "Try next" in screen
