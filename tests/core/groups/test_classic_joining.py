"""JoinGroup in every state of a classic group, decision by decision."""

from dataclasses import replace

import pytest
from tests.support.groups.bench import GroupBench
from tests.support.groups.subscriptions import write_subscription

from semel.core.groups.classic.joining import NEWCOMER_PATIENCE_MS
from semel.core.groups.settings import GroupSettings
from semel.core.groups.states import ClassicState
from semel.wire.errors import ErrorCode

OTHER_TOPICS = (("range", write_subscription(["u"])),)
NO_DELAY = GroupSettings(initial_rebalance_delay_ms=0)


def test_a_newcomer_is_given_a_member_id_first(bench):
    reply = bench.join()

    assert reply.error is ErrorCode.MEMBER_ID_REQUIRED
    assert reply.member_id == "m1"
    assert bench.classic().pending_members == {"m1"}


def test_a_new_group_is_written_empty_at_once(bench):
    bench.join()

    assert len(bench.log) == 1
    assert bench.replayed().state.groups["g"].state is ClassicState.EMPTY


def test_a_member_that_never_comes_back_with_its_id_is_forgotten(bench):
    bench.join(session_timeout_ms=6_000)
    bench.advance(6_000)
    assert bench.classic().pending_members == set()


def test_coming_back_with_the_id_makes_a_member_and_the_first_is_the_leader(bench):
    member_id = bench.join().member_id
    request = bench.join(member_id)
    bench.advance(0)

    reply = bench.joined(request)
    assert reply.error is ErrorCode.NONE
    assert (reply.generation, reply.leader, reply.protocol_name) == (1, member_id, "range")
    assert [member.member_id for member in reply.members] == [member_id]
    assert bench.classic().state is ClassicState.COMPLETING_REBALANCE


def test_old_clients_and_static_members_need_no_second_request(bench):
    assert isinstance(bench.join(version=3), int)
    assert isinstance(bench.join(instance_id="i", version=9), int)


def test_an_unknown_member_id_is_refused_even_where_there_is_no_group(bench):
    assert bench.join("stranger").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.group() is None
    bench.settle()
    assert bench.join("stranger").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_protocol_nobody_else_speaks_is_refused(bench):
    bench.settle()
    other = bench.join(protocols=(("sticky", b""),), version=3)
    assert other.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.join(protocol_type="connect", version=3).error is (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    assert bench.classic().state is ClassicState.STABLE


def test_no_protocol_at_all_is_refused(bench):
    assert bench.join(protocols=()).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.join(protocol_type="").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_protocol_all_members_speak_is_chosen_by_vote():
    bench = GroupBench(NO_DELAY)
    bench.join_at_once(protocols=(("a", b"1"), ("b", b"2")))
    bench.join_at_once(protocols=(("b", b"3"), ("c", b"4"), ("a", b"5")))
    last = bench.join_at_once(protocols=(("b", b"6"), ("a", b"7")))
    bench.advance(0)
    assert bench.joined(last).protocol_name == "b"


def test_the_first_rebalance_of_a_group_waits_for_more_members():
    bench = GroupBench(GroupSettings(initial_rebalance_delay_ms=3_000))
    first = bench.join_at_once()
    bench.advance(2_000)
    second = bench.join_at_once()
    bench.advance(1_000)  # extended, because somebody came
    assert bench.answers == {}
    bench.advance(3_000)

    assert len(bench.joined(first).members) == 2
    assert bench.joined(second).generation == 1


def test_a_new_group_that_does_not_wait_begins_with_those_it_just_gave_an_id():
    bench = GroupBench(NO_DELAY)
    ids = [bench.join().member_id for _ in range(3)]
    requests = [bench.join(ids[0])]
    bench.advance(0)
    requests.append(bench.join(ids[1]))
    assert bench.answers == {}
    requests.append(bench.join(ids[2]))

    assert {bench.joined(request).generation for request in requests} == {1}
    assert len(bench.joined(requests[0]).members) == 3


def test_a_new_group_does_not_wait_long_for_one_that_stays_away():
    bench = GroupBench(NO_DELAY)
    bench.join()
    request = bench.join_at_once()
    bench.advance(NEWCOMER_PATIENCE_MS - 1)
    assert bench.answers == {}
    bench.advance(1)
    assert len(bench.joined(request).members) == 1


def test_the_initial_delay_ends_with_the_rebalance_timeout_at_the_latest():
    bench = GroupBench(GroupSettings(initial_rebalance_delay_ms=3_000))
    first = bench.join_at_once(rebalance_timeout_ms=7_000)
    for _ in range(7):
        bench.advance(1_000)
        bench.join_at_once(rebalance_timeout_ms=7_000)
    assert first in bench.answers


def test_a_newcomer_to_a_stable_group_sends_everybody_back_to_join(bench):
    leader, follower = bench.settle()
    newcomer = bench.join_at_once()

    assert bench.classic().state is ClassicState.PREPARING_REBALANCE
    assert newcomer not in bench.answers
    again = [bench.join(leader.member_id), bench.join(follower.member_id)]
    assert {bench.joined(r).generation for r in [*again, newcomer]} == {leader.generation + 1}


def test_a_rebalance_waits_for_who_was_given_an_id(bench):
    leader, follower = bench.settle()
    newcomer = bench.join()
    assert newcomer.error is ErrorCode.MEMBER_ID_REQUIRED
    requests = [bench.join(member.member_id) for member in (leader, follower)]
    assert not bench.answers.keys() & set(requests)

    bench.join(newcomer.member_id)
    assert len(bench.joined(requests[0]).members) == 3


def test_those_who_do_not_rejoin_in_time_are_left_behind(bench):
    leader, follower = bench.settle(rebalance_timeout_ms=10_000)
    newcomer = bench.join_at_once(rebalance_timeout_ms=10_000)
    bench.join(leader.member_id, rebalance_timeout_ms=10_000)
    bench.advance(10_000)

    assert bench.joined(newcomer).error is ErrorCode.NONE
    assert follower.member_id not in bench.classic().members


def test_a_leader_that_does_not_rejoin_is_replaced(bench):
    _leader, follower = bench.settle(rebalance_timeout_ms=10_000)
    bench.join_at_once(rebalance_timeout_ms=10_000)
    bench.join(follower.member_id, rebalance_timeout_ms=10_000)
    bench.advance(10_000)
    assert bench.classic().leader == follower.member_id


def test_a_follower_that_asks_again_in_a_stable_group_hears_the_generation(bench):
    _leader, follower = bench.settle()
    reply = bench.join(follower.member_id)

    assert reply.generation == follower.generation
    assert reply.members == ()
    assert bench.last.records[-1].written is None
    assert bench.classic().state is ClassicState.STABLE


def test_a_follower_with_new_topics_starts_a_rebalance(bench):
    _, follower = bench.settle()
    assert isinstance(bench.join(follower.member_id, protocols=OTHER_TOPICS), int)
    assert bench.classic().state is ClassicState.PREPARING_REBALANCE


def test_the_leader_may_ask_for_a_rebalance_at_any_time(bench):
    leader, _ = bench.settle()
    assert isinstance(bench.join(leader.member_id), int)
    assert bench.classic().state is ClassicState.PREPARING_REBALANCE


def test_a_lost_answer_is_given_again_while_the_leader_assigns(bench):
    request = bench.join_at_once()
    bench.advance(0)
    first = bench.joined(request)
    assert bench.join(first.member_id) == first


def test_new_metadata_while_the_leader_assigns_starts_over(bench):
    request = bench.join_at_once()
    bench.advance(0)
    member_id = bench.joined(request).member_id
    again = bench.join(member_id, protocols=OTHER_TOPICS)
    assert bench.joined(again).generation == 2


def test_a_join_sent_twice_is_answered_once_and_the_first_is_let_go(bench):
    leader, follower = bench.settle()
    newcomer = bench.join_at_once()
    first = bench.join(leader.member_id)
    second = bench.join(leader.member_id)
    bench.join(follower.member_id)

    assert bench.joined(first).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.joined(second).error is ErrorCode.NONE
    assert bench.joined(newcomer).error is ErrorCode.NONE


def test_a_new_member_whose_join_is_parked_too_long_is_dropped():
    settings = replace(NO_DELAY, new_member_join_timeout_ms=20_000)
    bench = GroupBench(settings)
    _leader, _ = bench.settle(rebalance_timeout_ms=60_000, session_timeout_ms=50_000)
    newcomer = bench.join_at_once(rebalance_timeout_ms=60_000)
    bench.advance(20_000)

    assert bench.joined(newcomer).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert len(bench.classic().members) == 2


@pytest.mark.parametrize("state", ["stable", "preparing"])
def test_a_full_group_turns_newcomers_away(state):
    bench = GroupBench(replace(NO_DELAY, max_size=2))
    leader, follower = bench.settle()
    if state == "preparing":
        bench.join(leader.member_id)
        bench.heartbeat(follower.member_id, follower.generation)
        assert bench.classic().state is ClassicState.PREPARING_REBALANCE
        bench.join(follower.member_id)
    reply = bench.join(version=3)
    assert reply.error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_group_that_is_over_a_lowered_limit_sheds_its_last_to_rejoin():
    bench = GroupBench(NO_DELAY)
    replies = bench.settle(3)
    bench.settings = replace(NO_DELAY, max_size=2)
    bench.restart()
    assert bench.classic().state is ClassicState.PREPARING_REBALANCE

    bench.join(replies[0].member_id)
    bench.join(replies[1].member_id)
    assert bench.join(replies[2].member_id).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert len(bench.classic().members) == 2


def test_a_group_whose_members_are_all_gone_can_be_joined_again(bench):
    bench.settle(session_timeout_ms=6_000)
    bench.advance(6_000)
    assert bench.classic().state is ClassicState.EMPTY
    generation = bench.classic().generation
    [again] = bench.settle(1)
    assert again.generation == generation + 1
