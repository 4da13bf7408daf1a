"""Replay: whatever a prefix of the log led to, that prefix alone rebuilds."""

import random
from itertools import count

import pytest

from semel.core.transactions import records
from semel.core.transactions.commands import (
    AbortTimedOut,
    AddPartitions,
    EndTxn,
    ForgetIdle,
    InitProducerId,
    MarkersWritten,
)
from semel.core.transactions.coordinator import Coordinator
from semel.core.transactions.rules import Rules

IDS = ("a", "b", "c")


def random_history(seed, steps=300):
    """The log of a random run, and what the coordinator knew after each of its records."""
    dice = random.Random(seed)
    coordinator = Coordinator(count(100).__next__, Rules(id_expiration_ms=40_000, two_phase=True))
    log, known, now_ms = [], [{}], 0
    for _ in range(steps):
        now_ms += dice.randrange(2_000)
        for record in coordinator.decide(random_command(dice, coordinator), now_ms).records:
            coordinator.apply(record)
            log.append(records.encode(record)[:2])
            known.append(as_loaded(coordinator))
    return log, known


def random_command(dice, coordinator):
    name = dice.choice(IDS)
    txn = coordinator.transactions.get(name)
    holder = txn.owner if txn else (1, 0)
    version = dice.choice((0, 2))
    partition = frozenset({("t", dice.randrange(4))})
    two_phase = dice.random() < 0.2
    return dice.choice(
        (
            InitProducerId(
                name,
                9_000,
                enable_two_phase=two_phase,
                keep_prepared=two_phase and dice.random() < 0.5,
            ),
            InitProducerId(name, 9_000, *holder),
            AddPartitions(name, *holder, partition, version),
            AddPartitions(name, *holder, partition, version),
            EndTxn(name, *holder, dice.random() < 0.5, version),
            MarkersWritten(txn) if txn and txn.prepared else ForgetIdle(),
            AbortTimedOut(),
            ForgetIdle(),
        )
    )


def as_loaded(coordinator):
    """What the format has no room for is not compared."""
    return {
        name: txn._replace(last_epoch=-1, cause=None)
        for name, txn in coordinator.transactions.items()
    }


@pytest.mark.parametrize("seed", range(20))
def test_every_prefix_of_the_log_rebuilds_what_was_known_then(seed):
    log, known = random_history(seed)
    assert len(log) > 20
    coordinator = Coordinator(count(1).__next__)
    for index, (key, value) in enumerate(log):
        assert as_loaded(coordinator) == known[index]
        coordinator.apply(records.decode(key, value))
    assert as_loaded(coordinator) == known[-1]


@pytest.mark.parametrize("seed", range(20))
def test_a_compacted_log_rebuilds_the_same_and_owes_the_same_markers(seed):
    log, known = random_history(seed)
    whole, compacted = Coordinator(count(1).__next__), Coordinator(count(1).__next__)
    for key, value in log:
        whole.apply(records.decode(key, value))
    last = {key: index for index, (key, _) in enumerate(log)}
    for index, (key, value) in enumerate(log):
        if last[key] == index:
            compacted.apply(records.decode(key, value))
    assert compacted.transactions == whole.transactions
    assert compacted.open_ids == whole.open_ids
    owed = [[order.prepared for order in loaded.resume()] for loaded in (compacted, whole)]
    assert sorted(owed[0]) == sorted(owed[1])
    assert as_loaded(whole) == known[-1]
