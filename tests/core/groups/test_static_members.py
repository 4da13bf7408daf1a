"""Static members of classic groups (KIP-345): back under their instance id, no rebalance."""

import pytest
from tests.support.groups.subscriptions import write_subscription

from semel.core.groups.commands import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from semel.core.groups.replies import LATER
from semel.core.groups.states import ClassicState
from semel.wire.errors import ErrorCode


@pytest.fixture
def pair(bench):
    """A stable group of static members `i1` (the leader) and `i2`."""
    requests = [bench.join(instance_id="i1"), bench.join(instance_id="i2")]
    bench.advance(0)
    one, two = (bench.joined(request) for request in requests)
    bench.sync(two, instance_id="i2")
    bench.sync(one, instance_id="i1")
    return one, two


def test_coming_back_takes_over_the_assignment_without_a_rebalance(bench, pair):
    _, two = pair
    back = bench.join(instance_id="i2")

    assert back.error is ErrorCode.NONE
    assert back.member_id != two.member_id
    assert back.generation == two.generation
    assert bench.classic().state is ClassicState.STABLE
    assert bench.sync(back, instance_id="i2").assignment == f"for {two.member_id}".encode()


def test_the_change_of_id_survives_a_restart(bench, pair):
    back = bench.join(instance_id="i2")
    bench.restart()
    assert bench.do(Heartbeat("g", back.generation, back.member_id, "i2")).error is ErrorCode.NONE


def test_the_former_self_is_fenced(bench, pair):
    _, two = pair
    bench.join(instance_id="i2")
    old = two.member_id
    heartbeat = bench.do(Heartbeat("g", two.generation, old, "i2"))
    assert heartbeat.error is ErrorCode.FENCED_INSTANCE_ID
    sync = bench.do(SyncGroup("g", two.generation, old, "i2"))
    assert sync.error is ErrorCode.FENCED_INSTANCE_ID
    assert bench.join(old, instance_id="i2").error is ErrorCode.FENCED_INSTANCE_ID
    leave = bench.do(LeaveGroup("g", ((old, "i2"),)))
    assert leave.members[0][2] is ErrorCode.FENCED_INSTANCE_ID


def test_a_returning_leader_is_told_to_skip_the_assignment(bench, pair):
    back = bench.join(instance_id="i1", version=9)
    assert back.leader == back.member_id
    assert back.skip_assignment
    assert len(back.members) == 2


def test_an_older_returning_leader_is_told_that_its_former_self_leads(bench, pair):
    one, _ = pair
    back = bench.join(instance_id="i1", version=8)
    assert back.leader == one.member_id
    assert back.members == ()
    assert not back.skip_assignment


def test_coming_back_with_another_protocol_rebalances(bench, pair):
    other = (("sticky", write_subscription(["t"])),)
    refused = bench.join(instance_id="i2", protocols=other)
    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_coming_back_while_the_leader_assigns_starts_over(bench, pair):
    one, two = pair
    bench.join(one.member_id, instance_id="i1")
    bench.join(two.member_id, instance_id="i2")
    assert bench.classic().state is ClassicState.COMPLETING_REBALANCE
    back = bench.join(instance_id="i2")
    assert bench.classic().state is ClassicState.PREPARING_REBALANCE
    bench.join(one.member_id, instance_id="i1")
    assert bench.joined(back).error is ErrorCode.NONE


def test_a_waiting_join_of_the_former_self_is_fenced_at_once(bench, pair):
    _one, two = pair
    bench.join_at_once()
    waiting = bench.join(two.member_id, instance_id="i2")
    bench.join(instance_id="i2")
    assert bench.joined(waiting).error is ErrorCode.FENCED_INSTANCE_ID


def test_a_waiting_sync_of_the_former_self_is_fenced_at_once(bench, pair):
    one, two = pair
    bench.join(one.member_id, instance_id="i1")
    request = bench.join(two.member_id, instance_id="i2")
    waiting = bench.sync(bench.joined(request), instance_id="i2")
    bench.join(instance_id="i2")
    assert bench.synced(waiting).error is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_misses_a_rebalance_keeps_its_place(bench, pair):
    one, two = pair
    newcomer = bench.join_at_once(rebalance_timeout_ms=10_000)
    for _ in range(40):
        bench.advance(10_000)
        bench.do(Heartbeat("g", two.generation, two.member_id, "i2"))
        if newcomer in bench.answers:
            break
        if bench.classic().members[one.member_id].awaiting_join is None:
            bench.join(one.member_id, instance_id="i1")
    assert "i2" in bench.classic().static_members


def test_when_no_static_member_rejoins_the_group_waits_for_their_sessions(bench):
    request = bench.join(instance_id="i1", session_timeout_ms=30_000, rebalance_timeout_ms=5_000)
    bench.advance(0)
    one = bench.joined(request)
    bench.sync(one, instance_id="i1")
    dynamic = bench.join_at_once(rebalance_timeout_ms=5_000)
    member_id = next(m for m in bench.classic().members if m != one.member_id)
    bench.do(LeaveGroup("g", ((member_id, None),)))
    assert bench.joined(dynamic).error is ErrorCode.UNKNOWN_MEMBER_ID
    bench.advance(5_000)
    assert bench.classic().state is ClassicState.PREPARING_REBALANCE
    bench.advance(30_000)
    assert bench.classic().state is ClassicState.EMPTY


def test_an_administrator_removes_a_static_member_by_its_instance_id(bench, pair):
    reply = bench.do(LeaveGroup("g", (("", "i2"),)))
    assert reply.members == (("", "i2", ErrorCode.NONE),)
    assert "i2" not in bench.classic().static_members


def test_an_unknown_instance_with_a_member_id_is_refused(bench, pair):
    one, _ = pair
    command = JoinGroup(
        "g", one.member_id, "i9", protocols=bench.classic().members[one.member_id].protocols
    )
    assert bench.do(command).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.last.reply is not LATER
