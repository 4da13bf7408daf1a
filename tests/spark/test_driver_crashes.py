"""The driver is killed at every dangerous place; the next one loses and doubles nothing."""

import signal
from collections import Counter

import pytest

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("spark"),
]

PLACES = [
    ["before fence", 0],
    ["after fence", 0],
    ["grant", 1],
    ["before commit", 2],
    ["after commit", 3],
]


def test_a_driver_killed_anywhere_is_succeeded_exactly_once(kafka, lines, run_driver, tmp_path):
    topic = kafka.topic()
    for _ in range(5):
        lines.add(200)
    plan = {
        "bootstrap": kafka.bootstrap,
        "topic": topic,
        "application": f"crash-{topic}",
        "input": str(lines.directory),
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    for place in PLACES:
        died = run_driver(**plan, die_at=place)
        assert died.returncode == -signal.SIGKILL, f"{place} was never reached:\n{died.stdout}"
    survived = run_driver(**plan)
    assert survived.returncode == 0, survived.stdout
    assert kafka.values(topic) == Counter(lines.rows)
    # Batch 3 was committed by the driver that died right after it: it is not written again.
    assert "committed 200 rows" in survived.stdout
