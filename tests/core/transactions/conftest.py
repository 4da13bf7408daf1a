"""A coordinator with its log, driven one command at a time, as the runtime drives it."""

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
from semel.core.transactions.states import MOVES

PAYMENTS, ORDERS = ("payments", 0), ("orders", 3)
ID = "etl"


class Case:
    """Times are in ms; fresh producer ids count from 7."""

    def __init__(self, rules: Rules | None = None, version: int = 0) -> None:
        self.rules = rules or Rules()
        self.version = version
        self.producer_ids = count(7)
        self.log = []
        self.now_ms = 1_000
        self.coordinator = self._new()

    def _new(self):
        return Coordinator(self.producer_ids.__next__, self.rules)

    def do(self, command):
        decision = self.coordinator.decide(command, self.now_ms)
        for record in decision.records:
            old = self.coordinator.transactions.get(record.transactional_id)
            assert old is None or record.state in MOVES[old.state]
            self.log.append(records.encode(record)[:2])
            self.coordinator.apply(record)
        return decision

    def reload(self):
        """As after a crash: only what the log's bytes hold is left."""
        self.coordinator = self._new()
        for key, value in self.log:
            self.coordinator.apply(records.decode(key, value))

    def init(self, producer_id=-1, epoch=-1, timeout_ms=60_000, **more):
        return self.do(InitProducerId(ID, timeout_ms, producer_id, epoch, **more))

    def add(self, *partitions, producer_id=7, epoch=0, version=None):
        version = self.version if version is None else version
        return self.do(AddPartitions(ID, producer_id, epoch, frozenset(partitions), version))

    def end(self, commit, producer_id=7, epoch=0, version=None):
        version = self.version if version is None else version
        return self.do(EndTxn(ID, producer_id, epoch, commit, version))

    def commit(self, **more):
        return self.end(True, **more)

    def abort(self, **more):
        return self.end(False, **more)

    def finish(self):
        """Every marker that is owed is written."""
        assert self.txn.prepared
        return self.do(MarkersWritten(self.txn))

    def pass_time(self, ms):
        self.now_ms += ms
        return self.do(AbortTimedOut())

    def forget(self, ms):
        self.now_ms += ms
        return self.do(ForgetIdle())

    def force(self, **changes):
        """Put the transaction where a test wants to begin."""
        record = self.txn._replace(**changes)
        self.log.append(records.encode(record)[:2])
        self.coordinator.transactions[ID] = record

    @property
    def txn(self):
        return self.coordinator.transactions[ID]

    @property
    def state(self):
        return self.txn.state

    @property
    def holds(self):
        """The producer id and epoch of the transaction."""
        return self.txn.producer_id, self.txn.epoch


@pytest.fixture
def case():
    """Nothing is known yet."""
    return Case()


@pytest.fixture
def new_case():
    return Case


@pytest.fixture
def empty():
    case = Case()
    case.init()
    return case


@pytest.fixture
def ongoing():
    """Version 1: producer 7, epoch 0, one partition."""
    case = Case()
    case.init()
    case.add(PAYMENTS)
    return case


@pytest.fixture
def ongoing_2():
    """The same under version 2."""
    case = Case(version=2)
    case.init()
    case.add(PAYMENTS)
    return case
