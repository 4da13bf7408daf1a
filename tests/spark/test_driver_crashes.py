"""The driver is killed at every dangerous place; the next one loses and doubles nothing."""

import signal
from collections import Counter

import pytest

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("spark"),
]

# The place in a batch's life, the batch, and at which coming by (a batch has many grants).
PLACES = [
    ["before fence", 0, 1],
    ["after fence", 0, 1],
    ["grant", 1, 3],
    ["before commit", 2, 1],
    ["after commit", 3, 1],
]
# Every place again, in the first batch of a driver and in a later one.
MORE_PLACES = [
    ["before job", 0, 1],
    ["grant", 0, 1],
    ["grant", 1, 2],
    ["before ledger", 1, 1],
    ["before commit", 1, 1],
    ["after commit", 1, 1],
    ["after commit", 2, 1],
    # That batch is committed: the next driver comes with it again.
    ["before fence", 2, 1],
    ["after fence", 2, 1],
]


@pytest.mark.parametrize(
    "places", [PLACES, pytest.param(MORE_PLACES, marks=pytest.mark.soak)], ids=["quick", "more"]
)
def test_a_driver_killed_anywhere_is_succeeded_exactly_once(kafka, lines, run_driver, plan, places):
    for _ in range(5):
        lines.add(200, width=4000)
    for place in places:
        died = run_driver(**plan, strike="die", strike_at=place)
        assert died.returncode == -signal.SIGKILL, f"{place} was never reached:\n{died.stdout}"
    survived = run_driver(**plan)
    assert survived.returncode == 0, survived.stdout
    assert kafka.values(plan["topic"]) == Counter(lines.rows)
    # There was something to hide: rows of transactions that their drivers did not live to commit.
    written = kafka.messages(plan["topic"], isolation="read_uncommitted")
    assert len(written) > len(lines.rows)


@pytest.mark.soak
@pytest.mark.parametrize("place", ["grant", "before commit", "after commit"])
def test_a_driver_that_wakes_up_after_its_successor_is_told_so(
    kafka, lines, driver, run_driver, plan, place
):
    """Two drivers on one checkpoint: the first is paused as by a frozen machine."""
    for _ in range(3):
        lines.add(200)
    with driver(**plan, strike="stop", strike_at=[place, 1, 1]) as sleeper:
        sleeper.wait_until_stopped()
        successor = run_driver(**plan)
        assert successor.returncode == 0, successor.stdout
        assert kafka.values(plan["topic"]) == Counter(lines.rows)
        sleeper.go_on()
        woken = sleeper.finish()
    assert woken.returncode == 1
    if place != "after commit":
        assert "another driver has taken over" in woken.stdout, woken.stdout
    assert kafka.values(plan["topic"]) == Counter(lines.rows)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("strike", "evidence"),
    [("delete shuffle", "FetchFailed"), ("kill executor", "SparkListenerExecutorRemoved")],
)
def test_executors_and_shuffle_files_may_vanish_under_a_batch(
    kafka, lines, run_driver, plan, strike, evidence, tmp_path
):
    for _ in range(3):
        lines.add(1200, width=4000)
    events = tmp_path / "events"
    events.mkdir()
    done = run_driver(
        **plan,
        master="local-cluster[2,1,1024]",
        tasks=6,
        strike=strike,
        strike_at=["grant", 1, 2],
        events=str(events),
    )
    assert done.returncode == 0, done.stdout
    assert kafka.values(plan["topic"]) == Counter(lines.rows)
    assert "committed 3600 rows" in done.stdout
    told = "".join(path.read_text() for path in events.rglob("*") if path.is_file())
    assert evidence in told
