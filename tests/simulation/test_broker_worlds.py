"""The whole broker in a hostile world, one seed per run: slow and failing disks, crashes, zombies.

SEMEL_SEEDS and SEMEL_FIRST_SEED as in the other worlds. A failure names its seed, and with
PYTHONHASHSEED=0 (sets are walked in the order of their hashes) the seed plays the same world again.
"""

import os

import pytest
from tests.support.simulated.broker_world import BrokerWorld

FIRST = int(os.environ.get("SEMEL_FIRST_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("SEMEL_SEEDS", "20")))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_world_breaks_the_broker(seed):
    BrokerWorld(seed).play()
