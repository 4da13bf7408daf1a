"""Callers that make mistakes, against the real client and the real broker; one seed per run.

SEMEL_SEEDS and SEMEL_FIRST_SEED as in the other worlds; PYTHONHASHSEED=0 plays a seed again.
"""

import os

import pytest
from tests.support.simulated.caller_world import CallerWorld

FIRST = int(os.environ.get("SEMEL_FIRST_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("SEMEL_SEEDS", "20")))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_not_accepted_leaves_no_trace_and_what_was_is_written_once(seed: int) -> None:
    CallerWorld(seed).play()


def test_callers_are_careless_enough() -> None:
    mistakes: dict[str, int] = {}
    outcomes: dict[str, int] = {}
    for seed in range(6):
        world = CallerWorld(seed)
        world.play()
        for what, count in world.notes.mistakes.items():
            mistakes[what] = mistakes.get(what, 0) + count
        for attempt in world.notes.attempts:
            outcomes[attempt.outcome] = outcomes.get(attempt.outcome, 0) + 1
    assert len(mistakes) == 14, mistakes
    assert min(mistakes.values()) > 5
    assert outcomes["committed"] > 100
    assert outcomes["aborted"] > 50
    assert outcomes["unknown"] > 3
