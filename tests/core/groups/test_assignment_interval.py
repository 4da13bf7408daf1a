"""Time between assignments of a consumer group: who waits, for how long, and who does not."""

import pytest
from tests.support.groups.bench import GroupBench
from tests.support.groups.subscriptions import write_subscription

from semel.core.groups.settings import GroupSettings
from semel.core.groups.states import ConsumerState, MemberState

EVERYTHING = {"t": [0, 1, 2, 3]}
USUAL_MS = 5_000


@pytest.fixture
def bench():
    settings = GroupSettings(initial_rebalance_delay_ms=0, consumer_assignment_interval_ms=250)
    return GroupBench(settings, t=4, u=2)


def test_the_first_member_does_not_wait(bench):
    reply = bench.beat("a")
    assert bench.names(reply.assignment) == EVERYTHING
    assert reply.heartbeat_interval_ms == USUAL_MS


def test_who_comes_between_two_assignments_is_asked_back_when_the_next_one_is_due(bench):
    bench.beat("a")
    bench.advance(100)
    reply = bench.beat("b")
    assert (reply.assignment, reply.heartbeat_interval_ms) == ({}, 150)
    assert bench.consumer().state is ConsumerState.ASSIGNING
    bench.advance(149)
    reply = bench.beat("b", reply.member_epoch, owned={})
    assert reply.heartbeat_interval_ms == 1
    bench.advance(1)
    bench.beat("b", reply.member_epoch, owned={})
    assert bench.consumer().assignment_epoch == bench.consumer().epoch


def test_after_a_quiet_time_nobody_waits(bench):
    bench.beat("a")
    bench.advance(250)
    bench.beat("b")
    assert bench.consumer().assignment_epoch == bench.consumer().epoch


def test_a_new_subscription_takes_nothing_away_before_the_next_heartbeat(bench):
    """librdkafka's consumers do not survive an `unsubscribe` while they give up partitions; so an
    application may change its mind until then."""
    epoch = bench.beat("a").member_epoch
    bench.advance(USUAL_MS)
    told = bench.beat("a", epoch, topics=["u"])
    assert told.assignment is None
    assert (told.member_epoch, told.heartbeat_interval_ms) == (epoch, 250)
    assert bench.consumer().members["a"].state is MemberState.STABLE

    bench.advance(250)
    told = bench.beat("a", epoch, owned=EVERYTHING)
    assert (told.member_epoch, bench.names(told.assignment)) == (epoch, {})
    told = bench.beat("a", epoch, owned={})
    assert bench.names(told.assignment) == {"u": [0, 1]}
    assert told.heartbeat_interval_ms == USUAL_MS
    assert bench.consumer().state is ConsumerState.STABLE


def test_a_subscription_that_changes_back_in_time_costs_no_partition(bench):
    epoch = bench.beat("a").member_epoch
    bench.advance(USUAL_MS)
    bench.beat("a", epoch, topics=["u"])
    bench.advance(100)
    bench.beat("a", epoch, topics=["t"])
    for _ in range(3):
        bench.advance(250)
        reply = bench.beat("a", bench.consumer().members["a"].epoch, owned=EVERYTHING)
        assert bench.names(reply.assignment) in (None, EVERYTHING)
    assert bench.consumer().state is ConsumerState.STABLE


def test_who_leaves_instead_is_gone_at_once(bench):
    epoch = bench.beat("a").member_epoch
    bench.beat("a", epoch, topics=["u"])
    bench.beat("a", -1)
    assert bench.consumer().members == {}


def test_who_has_nothing_to_lose_gets_what_it_asks_for_at_once(bench):
    epoch = bench.beat("a", topics=["nothing"]).member_epoch
    bench.advance(250)
    told = bench.beat("a", epoch, topics=["t"], owned={})
    assert bench.names(told.assignment) == EVERYTHING


def test_who_joins_again_with_another_subscription_does_not_keep_the_old_partitions(bench):
    bench.beat("a")
    bench.advance(250)
    told = bench.beat("a", 0, topics=["u"])
    assert bench.names(told.assignment) == {"u": [0, 1]}


def test_a_group_may_have_an_interval_of_its_own(bench):
    bench.beat("a", assignment_interval_ms=0)
    bench.beat("b", assignment_interval_ms=0)
    assert bench.consumer().assignment_epoch == bench.consumer().epoch
    told = bench.beat("c", assignment_interval_ms=1_000)
    assert told.heartbeat_interval_ms == 1_000


def test_classic_members_do_not_wait(bench):
    """They would not be told when to ask again."""
    bench.beat("a")
    protocols = (("range", write_subscription(["t"])),)
    bench.join(version=3, protocols=protocols)
    assert bench.consumer().assignment_epoch == bench.consumer().epoch
