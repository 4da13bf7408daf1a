"""ConsumerGroupHeartbeat: joining, being led to the target, leaving, falling silent (KIP-848)."""

from dataclasses import replace

import pytest
from tests.support.groups.bench import GroupBench, topic_id

from semel.core.groups.commands import OffsetCommit, OffsetFetch, OffsetToCommit, SettingsChanged
from semel.core.groups.consumer.group import ConsumerGroup, ConsumerMember
from semel.core.groups.draft import rebalance_key
from semel.core.groups.records import CurrentAssignmentDeleted, TimerSet
from semel.core.groups.settings import GroupSettings
from semel.core.groups.states import ConsumerState, MemberState
from semel.core.groups.timers import TimerDeadline
from semel.wire.errors import ErrorCode

NONE = ErrorCode.NONE


def owned(bench, member="a"):
    return {
        bench.topics.name_of(topic): sorted(partitions)
        for topic, partitions in bench.consumer().members[member].assigned.items()
    }


def steady(bench, member="a"):
    """One heartbeat of a member that does what it is told."""
    known = bench.consumer().members[member]
    return bench.beat(member, known.epoch, owned=owned(bench, member))


def settle(bench, *members):
    for _ in range(4):
        for member in members:
            steady(bench, member)
    assert bench.consumer().state is ConsumerState.STABLE


# Joining


def test_the_first_member_gets_everything_at_once(bench):
    reply = bench.beat("a")

    assert reply.error is NONE
    assert reply.member_epoch == 2
    assert bench.names(reply.assignment) == {"t": [0, 1, 2, 3]}
    assert reply.heartbeat_interval_ms == 5_000
    assert bench.consumer().state is ConsumerState.STABLE


def test_those_who_introduce_themselves_first_share_one_target(bench):
    for member in "abc":
        bench.beat(member, only_introduces=True)
    assert bench.consumer().epoch == 4
    assert bench.consumer().target == {}
    replies = [bench.beat(member) for member in "abc"]

    assert {reply.member_epoch for reply in replies} == {4}
    given = [p for reply in replies for p in bench.names(reply.assignment)["t"]]
    assert sorted(given) == [0, 1, 2, 3]
    assert bench.consumer().state is ConsumerState.STABLE


def test_an_introduction_is_refused_as_the_heartbeat_would_be():
    bench = GroupBench(GroupSettings(consumer_max_size=1), t=4)
    bench.beat("a")
    assert bench.beat("b", only_introduces=True).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.beat("b").error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_an_old_client_is_given_a_member_id(bench):
    assert bench.beat("", fresh_member_id="fresh").member_id == "fresh"


def test_a_quiet_heartbeat_writes_nothing_and_tells_nothing(bench):
    epoch = bench.beat("a").member_epoch
    written = len(bench.log)
    reply = bench.beat("a", epoch)
    assert (reply.error, reply.member_epoch, reply.assignment) == (NONE, epoch, None)
    assert len(bench.log) == written


def test_a_full_request_hears_its_assignment_again(bench):
    epoch = bench.beat("a").member_epoch
    reply = bench.beat("a", epoch, topics=["t"], owned={}, rebalance_timeout_ms=60_000)
    assert bench.names(reply.assignment) == {"t": [0, 1, 2, 3]}


def test_an_unknown_group_or_member_is_refused(bench):
    assert bench.beat("a", 3).error is ErrorCode.GROUP_ID_NOT_FOUND
    bench.beat("a")
    assert bench.beat("b", 3).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_turns_newcomers_away():
    bench = GroupBench(GroupSettings(consumer_max_size=1), t=1)
    bench.beat("a")
    assert bench.beat("b").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.beat("a").error is NONE


def test_a_topic_that_does_not_exist_yet_is_assigned_once_it_does(bench):
    reply = bench.beat("a", topics=["u"])
    assert reply.assignment == {}
    bench.set_topics(t=4, u=2)
    reply = bench.beat("a", reply.member_epoch)
    assert bench.names(reply.assignment) == {"u": [0, 1]}


def test_new_partitions_are_handed_out(bench):
    epoch = bench.beat("a").member_epoch
    bench.set_topics(t=5)
    assert bench.names(bench.beat("a", epoch).assignment) == {"t": [0, 1, 2, 3, 4]}


def test_other_topics_coming_and_going_disturb_nobody(bench):
    epoch = bench.beat("a").member_epoch
    written = len(bench.log)
    bench.set_topics(t=4, other=9)
    assert bench.beat("a", epoch).member_epoch == epoch
    assert len(bench.log) == written


# Being led to the target


def test_a_second_member_waits_until_the_first_lets_go(bench):
    first = bench.beat("a").member_epoch
    waiting = bench.beat("b")
    assert waiting.assignment == {}
    assert waiting.heartbeat_interval_ms == 250, "it is asked to come back soon"

    told = bench.beat("a", first, owned={"t": [0, 1, 2, 3]})
    keeps = bench.names(told.assignment)
    assert len(keeps["t"]) == 2
    assert told.member_epoch == first, "it stays in its epoch until it has let go"
    assert bench.beat("b", waiting.member_epoch).assignment is None

    done = bench.beat("a", first, owned=keeps)
    assert done.member_epoch == waiting.member_epoch
    got = bench.names(bench.beat("b", waiting.member_epoch).assignment)
    assert sorted(got["t"] + keeps["t"]) == [0, 1, 2, 3]
    assert bench.consumer().state is ConsumerState.STABLE


def test_nobody_gets_a_partition_that_another_still_holds(bench):
    first = bench.beat("a").member_epoch
    bench.beat("b")
    bench.beat("a", first, owned={"t": [0, 1, 2, 3]})
    for _ in range(3):
        reply = bench.beat("b", bench.consumer().members["b"].epoch)
        assert not reply.assignment


def test_a_member_that_does_not_let_go_in_time_is_fenced(bench):
    first = bench.beat("a", rebalance_timeout_ms=10_000).member_epoch
    bench.beat("b")
    bench.beat("a", first, owned={"t": [0, 1, 2, 3]})
    for _ in range(2):
        bench.advance(5_000)
        bench.beat("a", first) if "a" in bench.consumer().members else None
    assert set(bench.consumer().members) == {"b"}
    steady(bench, "b")
    assert owned(bench, "b") == {"t": [0, 1, 2, 3]}


def test_letting_go_in_time_stops_the_clock(bench):
    first = bench.beat("a", rebalance_timeout_ms=10_000).member_epoch
    bench.beat("b")
    keeps = bench.names(bench.beat("a", first, owned={"t": [0, 1, 2, 3]}).assignment)
    bench.advance(5_000)
    bench.beat("a", first, owned=keeps)
    bench.advance(10_000)
    assert "a" in bench.consumer().members


def test_a_member_that_leaves_frees_its_partitions_at_once(bench):
    bench.beat("a")
    bench.beat("b")
    settle(bench, "a", "b")
    assert bench.beat("a", -1).member_epoch == -1
    assert bench.names(steady(bench, "b").assignment) == {"t": [0, 1, 2, 3]}


def test_changing_ones_topics_gives_up_what_is_no_longer_wanted(bench):
    bench.set_topics(t=2, u=2)
    epoch = bench.beat("a", topics=["t", "u"]).member_epoch
    told = bench.beat("a", epoch, topics=["u"], owned={"t": [0, 1], "u": [0, 1]})
    assert bench.names(told.assignment) == {"u": [0, 1]}
    done = bench.beat("a", told.member_epoch, owned={"u": [0, 1]})
    assert done.member_epoch == bench.consumer().epoch
    assert bench.consumer().members["a"].state is MemberState.STABLE


def test_the_assignor_most_members_ask_for_is_used(bench):
    bench.set_topics(t=3, u=3)
    bench.beat("a", topics=["t", "u"], server_assignor="range")
    bench.beat("b", topics=["t", "u"], server_assignor="range")
    target = {m: bench.names(bench.consumer().target[m]) for m in ("a", "b")}
    assert target == {"a": {"t": [0, 1], "u": [0, 1]}, "b": {"t": [2], "u": [2]}}


# Epochs


def test_the_previous_epoch_is_taken_because_the_answer_may_have_been_lost(bench):
    first = bench.beat("a").member_epoch
    bench.set_topics(t=5)
    second = bench.beat("a", first).member_epoch
    assert second > first
    assert bench.beat("a", first, owned={"t": [0, 1]}).member_epoch == second


def test_the_previous_epoch_with_foreign_partitions_is_fenced(bench):
    first = bench.beat("a").member_epoch
    bench.set_topics(t=5)
    bench.beat("a", first)
    assert bench.beat("a", first).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.beat("a", first, owned={"t": [17]}).error is ErrorCode.FENCED_MEMBER_EPOCH


@pytest.mark.parametrize("difference", [1, -1])
def test_any_other_epoch_is_fenced(bench, difference):
    epoch = bench.beat("a").member_epoch
    bench.set_topics(t=5)
    epoch = bench.beat("a", epoch).member_epoch
    bench.set_topics(t=6)
    epoch = bench.beat("a", epoch).member_epoch
    wrong = epoch + 1 if difference == 1 else epoch - 2
    assert bench.beat("a", wrong, owned={}).error is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_fenced_member_may_join_again_under_its_id(bench):
    bench.beat("a")
    reply = bench.beat("a", 0)
    assert reply.error is NONE
    assert bench.names(reply.assignment) == {"t": [0, 1, 2, 3]}


# Silence and restarts


def test_a_silent_member_is_removed(bench):
    bench.beat("a")
    bench.beat("b")
    settle(bench, "a", "b")
    bench.advance(44_999)
    steady(bench, "b")
    bench.advance(1)
    assert set(bench.consumer().members) == {"b"}


def test_the_groups_own_session_timeout_counts(bench):
    bench.beat("a", session_timeout_ms=60_000)
    bench.advance(59_999)
    assert "a" in bench.consumer().members
    bench.advance(1)
    assert bench.consumer().is_empty


def test_after_a_restart_everything_is_as_before(bench):
    bench.beat("a")
    bench.beat("b")
    settle(bench, "a", "b")
    before = bench.consumer()
    bench.restart()
    after = bench.consumer()
    assert after.members == before.members
    assert after.target == before.target
    assert after.owner_epochs == before.owner_epochs
    written = len(bench.log)
    steady(bench, "a")
    assert len(bench.log) == written
    bench.advance(45_000)
    assert bench.consumer().is_empty


def test_a_restart_during_revocation_keeps_the_clock_running(bench):
    first = bench.beat("a", rebalance_timeout_ms=10_000).member_epoch
    bench.beat("b")
    bench.beat("a", first, owned={"t": [0, 1, 2, 3]})
    bench.restart()
    bench.advance(10_000)
    assert set(bench.consumer().members) == {"b"}


# Static members


def test_a_static_member_keeps_its_partitions_while_it_is_away(bench):
    bench.beat("a", instance_id="i")
    bench.beat("b")
    settle_static(bench)
    mine = owned(bench)
    assert bench.beat("a", -2, instance_id="i").member_epoch == -2
    steady(bench, "b")
    assert owned(bench, "b") != {"t": [0, 1, 2, 3]}

    back = bench.beat("a2", instance_id="i")
    assert bench.names(back.assignment) == mine
    assert set(bench.consumer().members) == {"a2", "b"}


def settle_static(bench):
    for _ in range(4):
        for member, known in list(bench.consumer().members.items()):
            bench.beat(
                member,
                known.epoch,
                owned=owned(bench, member),
                instance_id=known.instance_id,
            )


def test_a_static_member_that_stays_away_loses_its_place(bench):
    bench.beat("a", instance_id="i")
    bench.beat("a", -2, instance_id="i")
    bench.advance(45_000)
    assert bench.consumer().is_empty


def test_an_instance_id_in_use_is_not_released(bench):
    bench.beat("a", instance_id="i")
    assert bench.beat("a2", instance_id="i").error is ErrorCode.UNRELEASED_INSTANCE_ID


def test_the_former_self_of_a_static_member_is_fenced(bench):
    epoch = bench.beat("a", instance_id="i").member_epoch
    bench.beat("a", -2, instance_id="i")
    bench.beat("a2", instance_id="i")
    assert bench.beat("a", epoch, instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID
    assert bench.beat("a", -1, instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID
    assert bench.beat("x", -1, instance_id="j").error is ErrorCode.UNKNOWN_MEMBER_ID


# Offsets


def test_commits_carry_the_member_epoch(bench):
    epoch = bench.beat("a").member_epoch
    me = {"member_id": "a", "version": 9}
    assert bench.commit(5, generation=epoch, **me) is NONE
    assert bench.commit(6, generation=epoch + 1, **me) is ErrorCode.STALE_MEMBER_EPOCH
    assert bench.commit(6, generation=epoch, member_id="b") is ErrorCode.UNKNOWN_MEMBER_ID
    old = bench.commit(6, generation=epoch, member_id="a", version=8)
    assert old is ErrorCode.UNSUPPORTED_VERSION
    assert bench.offset() == 5


def test_a_late_commit_counts_for_partitions_that_were_the_members_then(bench):
    first = bench.beat("a").member_epoch
    bench.set_topics(t=5)
    bench.beat("a", first)

    def late(partition):
        offset = OffsetToCommit("t", partition, 5, topic_id=topic_id("t"))
        return bench.do(OffsetCommit("g", (offset,), "a", first)).errors[0]

    assert late(0) is NONE
    assert late(4) is ErrorCode.STALE_MEMBER_EPOCH, "it did not have this one in that epoch"


def test_what_a_member_gave_up_it_may_commit_for_until_its_epoch_ends(bench):
    """As in Kafka: asked to give up still more, it stays in its epoch, which is all that counts."""
    first = bench.beat("z", server_assignor="range").member_epoch
    bench.beat("y")
    assert steady(bench, "z").assignment == {topic_id("t"): [2, 3]}
    bench.beat("x")
    assert steady(bench, "z").assignment == {topic_id("t"): [3]}, "0 and 1 are free, 2 is not yet"
    steady(bench, "x")
    assert owned(bench, "x") == {"t": [0, 1]}

    member = bench.consumer().members["z"]
    assert (member.epoch, member.state) == (first, MemberState.UNREVOKED_PARTITIONS)
    late = {"member_id": "z", "generation": first}
    assert bench.commit(5, partition=0, **late) is NONE
    assert bench.txn_commit(7, 6, partition=0, **late) is NONE

    assert steady(bench, "z").member_epoch > first
    assert bench.commit(8, partition=0, **late) is ErrorCode.STALE_MEMBER_EPOCH
    assert bench.txn_commit(7, 9, partition=0, **late) is ErrorCode.ILLEGAL_GENERATION


def test_fetching_offsets_with_a_stale_epoch_is_refused(bench):
    epoch = bench.beat("a").member_epoch
    assert bench.do(OffsetFetch("g", (), "a", epoch)).error is NONE
    stale = bench.do(OffsetFetch("g", (), "a", epoch + 1))
    assert stale.error is ErrorCode.STALE_MEMBER_EPOCH
    assert bench.do(OffsetFetch("g", (), "b", epoch)).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.do(OffsetFetch("g", ())).error is NONE, "an administrator names no member"


def test_settings_that_change_are_followed(bench):
    bench.beat("a")
    changed = replace(bench.settings, consumer_heartbeat_interval_ms=9_000)
    bench.do(SettingsChanged(changed))
    assert steady(bench).heartbeat_interval_ms == 9_000


def test_a_static_member_that_leaves_in_the_middle_lets_go_of_what_it_had_to(bench):
    first = bench.beat("a", instance_id="i").member_epoch
    bench.beat("b")
    bench.beat("a", first, owned={"t": [0, 1, 2, 3]}, instance_id="i")
    assert bench.consumer().members["a"].state is MemberState.UNREVOKED_PARTITIONS
    bench.beat("a", -2, instance_id="i")
    steady(bench, "b")
    assert len(owned(bench, "b")["t"]) == 2


def test_a_static_member_that_returns_is_counted_once(bench):
    bench.beat("a", instance_id="i")
    bench.beat("a", -2, instance_id="i")
    bench.set_topics(t=6)
    back = bench.beat("a2", instance_id="i")
    assert bench.names(back.assignment) == {"t": [0, 1, 2, 3, 4, 5]}


def test_the_clock_of_an_epoch_that_is_over_fences_nobody(bench):
    epoch = bench.beat("a").member_epoch
    key, past = rebalance_key("g", "a"), TimerDeadline(bench.now_ms + 1, note=epoch - 1)
    bench.coordinator.apply(TimerSet(key, past))
    bench.advance(1)
    assert "a" in bench.consumer().members


def test_a_member_whose_assignment_is_deleted_holds_nothing(bench):
    bench.beat("a")
    bench.coordinator.apply(CurrentAssignmentDeleted("g", "a"))
    assert bench.consumer().owner_epochs == {}


def test_a_late_record_does_not_take_a_partition_from_its_new_owner():
    group, topic = ConsumerGroup("g"), topic_id("t")
    group.put(ConsumerMember("a", 5, assigned={topic: {0: 5}}))
    group.put(ConsumerMember("b", 6, assigned={topic: {0: 6}}))
    group.put(ConsumerMember("a", 7))
    assert group.owner_epoch(topic, 0) == 6
