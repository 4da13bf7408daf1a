"""SyncGroup, Heartbeat and LeaveGroup in every state of a classic group; members that go silent."""

import pytest

from semel.core.groups.commands import Heartbeat, LeaveGroup, SyncGroup
from semel.core.groups.states import ClassicState
from semel.wire.errors import ErrorCode


def completing(bench, members=2):
    """A group that waits for its leader's assignment; the leader first."""
    requests = [bench.join_at_once() for _ in range(members)]
    bench.advance(0)
    return sorted((bench.joined(r) for r in requests), key=lambda reply: not reply.members)


def preparing(bench):
    """A group of two that waits for its follower to rejoin."""
    leader, follower = bench.settle()
    bench.join(leader.member_id)
    assert bench.classic().state is ClassicState.PREPARING_REBALANCE
    return leader, follower


# SyncGroup


def test_everybody_hears_its_share_when_the_leader_has_spoken(bench):
    leader, follower = completing(bench)
    early = bench.sync(follower)
    assert early not in bench.answers
    late = bench.sync(leader)

    assert bench.synced(early).assignment == f"for {follower.member_id}".encode()
    assert bench.synced(late).assignment == f"for {leader.member_id}".encode()
    assert bench.synced(late).protocol_name == "range"
    assert bench.classic().state is ClassicState.STABLE


def test_the_assignment_is_written_before_anybody_hears_it(bench):
    leader, _ = completing(bench)
    written = len(bench.log)
    bench.sync(leader)
    assert len(bench.log) == written + 1
    assert bench.last.effects


def test_a_follower_that_comes_after_the_leader_is_answered_at_once(bench):
    leader, follower = completing(bench)
    bench.sync(leader)
    assert bench.sync(follower).assignment == f"for {follower.member_id}".encode()


def test_a_member_the_leader_forgot_gets_nothing(bench):
    leader, follower = completing(bench)
    bench.sync(leader, assignments=((leader.member_id, b"mine"),))
    assert bench.sync(follower).assignment == b""


def test_an_assignment_too_large_to_be_written_sends_everybody_back(bench):
    leader, follower = completing(bench)
    early = bench.sync(follower)
    written = len(bench.log)
    late = bench.sync(leader, assignments=((follower.member_id, b"x" * 1_048_588),))

    assert bench.synced(early).error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert bench.synced(late).error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert bench.classic().state is ClassicState.PREPARING_REBALANCE
    assert len(bench.log) == written

    requests = [bench.join(member.member_id) for member in (leader, follower)]
    again = [bench.joined(request) for request in requests]
    late = bench.sync(again[0])
    assert bench.synced(late).assignment == f"for {leader.member_id}".encode()


def test_an_assignment_for_a_stranger_is_ignored(bench):
    leader, follower = completing(bench)
    request = bench.sync(leader, assignments=(("stranger", b"x"), (leader.member_id, b"mine")))
    assert bench.synced(request).assignment == b"mine"
    assert set(bench.classic().members) == {leader.member_id, follower.member_id}


def test_sync_is_refused_for_who_does_not_belong(bench):
    leader, _ = completing(bench)
    stranger = SyncGroup("g", leader.generation, "stranger")
    assert bench.do(stranger).error is ErrorCode.UNKNOWN_MEMBER_ID
    late = SyncGroup("g", leader.generation - 1, leader.member_id)
    assert bench.do(late).error is ErrorCode.ILLEGAL_GENERATION
    assert bench.do(SyncGroup("nowhere")).error is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("field", ["protocol_type", "protocol_name"])
def test_sync_under_another_protocol_is_refused(bench, field):
    leader, _ = completing(bench)
    reply = bench.sync(leader, **{field: "other"})
    assert reply.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_sync_during_a_new_rebalance_sends_back_to_join(bench):
    _leader, follower = preparing(bench)
    assert bench.sync(follower).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_those_who_wait_for_an_assignment_are_sent_back_when_it_is_overtaken(bench):
    _leader, follower = completing(bench)
    waiting = bench.sync(follower)
    bench.join_at_once()

    assert bench.synced(waiting).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.classic().state is ClassicState.PREPARING_REBALANCE


def test_members_that_never_sync_are_removed(bench):
    leader, follower = completing(bench)
    bench.sync(leader)
    for _ in range(30):
        bench.advance(10_000)
        bench.do(Heartbeat("g", leader.generation, leader.member_id))
        bench.do(Heartbeat("g", follower.generation, follower.member_id))
    assert follower.member_id not in bench.classic().members


# Heartbeat


def test_heartbeats_keep_a_member_alive(bench):
    leader, follower = bench.settle(session_timeout_ms=6_000)
    for _ in range(5):
        bench.advance(5_000)
        for reply in (leader, follower):
            assert bench.heartbeat(reply.member_id, reply.generation).error is ErrorCode.NONE
    assert len(bench.classic().members) == 2


def test_heartbeats_tell_of_a_rebalance(bench):
    _leader, follower = preparing(bench)
    reply = bench.heartbeat(follower.member_id, follower.generation)
    assert reply.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_while_the_leader_assigns_are_fine(bench):
    _leader, follower = completing(bench)
    assert bench.heartbeat(follower.member_id, follower.generation).error is ErrorCode.NONE


def test_heartbeats_of_strangers_and_of_the_past_are_refused(bench):
    assert bench.heartbeat("x", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    leader, _ = bench.settle()
    assert bench.heartbeat("x", leader.generation).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat(leader.member_id, 0).error is ErrorCode.ILLEGAL_GENERATION


def test_a_silent_member_is_removed_and_the_others_rebalance(bench):
    leader, _follower = bench.settle(session_timeout_ms=6_000)
    bench.advance(5_999)
    bench.heartbeat(leader.member_id, leader.generation)
    bench.advance(1)

    assert set(bench.classic().members) == {leader.member_id}
    assert bench.classic().state is ClassicState.PREPARING_REBALANCE
    again = bench.join(leader.member_id)
    assert bench.joined(again).generation == leader.generation + 1


def test_a_member_that_waits_for_us_does_not_expire(bench):
    leader, follower = bench.settle(session_timeout_ms=6_000, rebalance_timeout_ms=60_000)
    waiting = bench.join(leader.member_id, session_timeout_ms=6_000, rebalance_timeout_ms=60_000)
    for _ in range(4):
        bench.advance(5_000)
        bench.heartbeat(follower.member_id, follower.generation)
    assert leader.member_id in bench.classic().members
    assert waiting not in bench.answers


def test_the_last_member_gone_empties_the_group_and_that_is_written(bench):
    bench.settle(1, session_timeout_ms=6_000)
    bench.advance(6_000)
    assert bench.classic().state is ClassicState.EMPTY
    assert bench.replayed().state.groups["g"].state is ClassicState.EMPTY


# LeaveGroup


def leave(bench, *members):
    return bench.do(LeaveGroup("g", members))


def test_leaving_starts_a_rebalance(bench):
    _leader, follower = bench.settle()
    reply = leave(bench, (follower.member_id, None))

    assert reply.members == ((follower.member_id, None, ErrorCode.NONE),)
    assert bench.classic().state is ClassicState.PREPARING_REBALANCE


def test_the_leader_leaving_hands_over_the_lead(bench):
    leader, follower = bench.settle()
    leave(bench, (leader.member_id, None))
    request = bench.join(follower.member_id)
    assert bench.joined(request).leader == follower.member_id


def test_all_leaving_empties_the_group(bench):
    leader, follower = bench.settle()
    leave(bench, (leader.member_id, None), (follower.member_id, None))
    assert bench.classic().state is ClassicState.EMPTY


def test_leaving_while_others_wait_lets_them_go_on(bench):
    leader, follower = bench.settle()
    waiting = bench.join(leader.member_id)
    leave(bench, (follower.member_id, None))
    assert bench.joined(waiting).generation == leader.generation + 1


def test_a_pending_member_may_leave(bench):
    bench.settle()
    pending = bench.join().member_id
    assert leave(bench, (pending, None)).members[0][2] is ErrorCode.NONE
    assert bench.classic().pending_members == set()
    assert bench.classic().state is ClassicState.PREPARING_REBALANCE


def test_strangers_cannot_leave(bench):
    assert leave(bench, ("x", None)).members[0][2] is ErrorCode.UNKNOWN_MEMBER_ID
    bench.settle()
    assert leave(bench, ("x", None), ("", "i")).members == (
        ("x", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", "i", ErrorCode.UNKNOWN_MEMBER_ID),
    )
    assert bench.classic().state is ClassicState.STABLE


def test_a_member_that_leaves_while_it_waits_is_told_that_it_is_unknown(bench):
    leader, _follower = bench.settle()
    waiting = bench.join(leader.member_id)
    leave(bench, (leader.member_id, None))
    assert bench.joined(waiting).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_after_a_restart_members_have_a_whole_session_to_come_back(bench):
    leader, _follower = bench.settle(session_timeout_ms=6_000)
    bench.advance(5_000)
    bench.restart()
    bench.advance(5_000)
    assert bench.heartbeat(leader.member_id, leader.generation).error is ErrorCode.NONE
    bench.advance(1_000)
    assert set(bench.classic().members) == {leader.member_id}


def test_an_overtaken_generation_leaves_no_assignment_behind(bench):
    leader, follower = bench.settle()
    bench.join(leader.member_id)
    bench.join(follower.member_id)
    assert bench.classic().state is ClassicState.COMPLETING_REBALANCE
    bench.join_at_once()
    assert {member.assignment for member in bench.classic().members.values()} == {b""}
