"""Groups under misbehaving members, by seed: one owner, no lost commit, no leak from an abort.

A seed that fails is a bug report: run `pytest -k "crowd and classic-17"` to see it again.
"""

import os

import pytest
from tests.support.groups.actors import GroupWorld

KINDS = ["classic", "consumer", "mixed"]
LONG_SEEDS = range(1_000, 1_000 + int(os.environ.get("SEMEL_SEEDS", "400")))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kinds", KINDS)
def test_a_crowd_keeps_the_rules_and_settles_in_the_end(kinds, seed):
    GroupWorld(seed, kinds).run(400)


@pytest.mark.soak
@pytest.mark.parametrize("seed", LONG_SEEDS)
@pytest.mark.parametrize("kinds", KINDS)
def test_a_crowd_keeps_the_rules_for_longer(kinds, seed):
    GroupWorld(seed, kinds).run(1_000)
