"""ListTransactions and DescribeTransactions."""

import pytest

from semel.core.transactions.commands import AddPartitions, Describe, InitProducerId, List
from semel.core.transactions.states import TxnState
from semel.wire.errors import ErrorCode as E


@pytest.fixture
def several(new_case):
    """`open-1` since 1,000 ms, `open-2` since 3,000 ms, `idle`; now it is 5,000 ms."""
    case = new_case()
    for now_ms, name in ((1_000, "open-1"), (3_000, "open-2")):
        case.now_ms = now_ms
        reply = case.do(InitProducerId(name, 60_000)).reply
        case.do(AddPartitions(name, reply.producer_id, 0, frozenset({("t", 0)})))
    case.do(InitProducerId("idle", 60_000))
    case.now_ms = 5_000
    return case


def found(case, **filters):
    reply = case.do(List(**filters)).reply
    return sorted(txn.transactional_id for txn in reply.transactions)


def test_without_filters_everything_is_listed(several):
    assert found(several) == ["idle", "open-1", "open-2"]


def test_by_state(several):
    assert found(several, states=frozenset({TxnState.ONGOING})) == ["open-1", "open-2"]


def test_a_filter_of_only_unknown_states_finds_nothing(several):
    assert found(several, states=frozenset()) == []


def test_by_producer_id(several):
    assert found(several, producer_ids=frozenset({8})) == ["open-2"]


def test_by_duration_strictly(several):
    open_only = frozenset({TxnState.ONGOING})
    assert found(several, longer_than_ms=2_000, states=open_only) == ["open-1"]
    assert found(several, longer_than_ms=1_999, states=open_only) == ["open-1", "open-2"]


def test_by_a_pattern_for_the_whole_id(several):
    assert found(several, pattern="open-.*") == ["open-1", "open-2"]
    assert found(several, pattern="open") == []


def test_a_broken_pattern_is_named_as_such(several):
    assert several.do(List(pattern="(")).reply.error is E.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize("pattern", [r"(?=open).*", r"(o)\1", "o{1001}"])
def test_a_pattern_that_re2_does_not_know_is_refused(several, pattern):
    reply = several.do(List(pattern=pattern)).reply
    assert (reply.error, reply.transactions) == (E.INVALID_REGULAR_EXPRESSION, ())


def test_describing_one(several):
    reply = several.do(Describe("open-1")).reply
    assert reply.error is E.NONE
    assert reply.transactions[0].started_at_ms == 1_000


def test_describing_one_that_is_not_there(several):
    assert several.do(Describe("who?")).reply.error is E.TRANSACTIONAL_ID_NOT_FOUND
