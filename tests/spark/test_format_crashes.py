"""The format's driver and its commit process are killed; the next one loses and doubles nothing."""

import signal
from collections import Counter

import pytest

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("spark"),
]

PLACES = [["before commit", 0], ["after commit", 1]]
MORE_PLACES = [
    ["before fence", 0],
    ["after fence", 0],
    ["before sending", 0],
    ["sending", 1],
    ["before ledger", 1],
    ["before commit", 1],
    ["after commit", 1],
    # That batch is committed: the next driver comes with it again.
    ["after fence", 1],
    ["before ledger", 2],
]
STAGED = {"carryBytes": 1000, "kafka.batch.size": 20_000}


@pytest.fixture(
    params=[{}, pytest.param(STAGED, marks=pytest.mark.soak)], ids=["carried", "staged"]
)
def format_plan(request, plan):
    plan.pop("sink")
    return {**plan, "format": True, "options": request.param}


@pytest.mark.parametrize(
    "places", [PLACES, pytest.param(MORE_PLACES, marks=pytest.mark.soak)], ids=["quick", "more"]
)
def test_a_driver_killed_anywhere_is_succeeded_exactly_once(
    kafka, lines, run_driver, format_plan, places
):
    for _ in range(4):
        lines.add(100, width=1000)
    for place in places:
        died = run_driver(**format_plan, strike="die", strike_at=place)
        assert died.returncode == -signal.SIGKILL, f"{place} was never reached:\n{died.stdout}"
    survived = run_driver(**format_plan)
    assert survived.returncode == 0, survived.stdout
    assert kafka.values(format_plan["topic"]) == Counter(lines.rows)
    written = kafka.messages(format_plan["topic"], isolation="read_uncommitted")
    assert len(written) > len(lines.rows)


@pytest.mark.soak
@pytest.mark.parametrize("place", ["sending", "before commit", "after commit"])
def test_a_commit_process_that_dies_alone_fails_the_query_and_nothing_else(
    kafka, lines, run_driver, format_plan, place
):
    for _ in range(3):
        lines.add(100, width=1000)
    failed = run_driver(**format_plan, strike="kill commit", strike_at=[place, 1])
    assert failed.returncode == 1, failed.stdout
    survived = run_driver(**format_plan)
    assert survived.returncode == 0, survived.stdout
    assert kafka.values(format_plan["topic"]) == Counter(lines.rows)
