"""The driver is killed at every dangerous place; the next one loses and doubles nothing."""

import signal
from collections import Counter

import pytest

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("spark"),
]

PLACES = [
    ["before fence", 0],
    ["after fence", 0],
    ["grant", 1],
    ["before commit", 2],
    ["after commit", 3],
]


@pytest.fixture
def plan(kafka, lines, tmp_path):
    topic = kafka.topic()
    return {
        "bootstrap": kafka.bootstrap,
        "topic": topic,
        "application": f"crash-{topic}",
        "input": str(lines.directory),
        "checkpoint": str(tmp_path / "checkpoint"),
        "scratch": str(tmp_path / "scratch"),
    }


def test_a_driver_killed_anywhere_is_succeeded_exactly_once(kafka, lines, run_driver, plan):
    for _ in range(5):
        lines.add(200)
    for place in PLACES:
        died = run_driver(**plan, strike="die", strike_at=place)
        assert died.returncode == -signal.SIGKILL, f"{place} was never reached:\n{died.stdout}"
    survived = run_driver(**plan)
    assert survived.returncode == 0, survived.stdout
    assert kafka.values(plan["topic"]) == Counter(lines.rows)
    # Batch 3 was committed by the driver that died right after it: it is not written again.
    assert "committed 200 rows" in survived.stdout


@pytest.mark.soak
@pytest.mark.parametrize("strike", ["delete shuffle", "kill executor"])
def test_executors_and_shuffle_files_may_vanish_under_a_batch(
    kafka, lines, run_driver, plan, strike
):
    for _ in range(3):
        lines.add(3000)
    done = run_driver(
        **plan,
        master="local-cluster[2,1,1024]",
        tasks=6,
        strike=strike,
        strike_at=["grant", 1],
        sink={"batch_bytes": 1},
    )
    assert done.returncode == 0, done.stdout
    assert kafka.values(plan["topic"]) == Counter(lines.rows)
    assert "committed 9000 rows" in done.stdout
