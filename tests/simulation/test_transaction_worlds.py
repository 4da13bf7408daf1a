"""Transactions in a hostile world, one seed per run.

`make sim N=20000`, or SEMEL_SEEDS=20000, plays more worlds; SEMEL_FIRST_SEED says where to begin. A
failure names its seed: `pytest -k "worlds and 117"` plays it again exactly.
"""

import os

import pytest
from tests.support.simulated.world import World

STEPS = 2_000
FIRST = int(os.environ.get("SEMEL_FIRST_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("SEMEL_SEEDS", "300")))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_world_breaks_a_transaction(seed):
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    world.settle()
    world.check()
