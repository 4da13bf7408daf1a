"""A group changes its kind while it runs, and members of both kinds live in one group."""

from dataclasses import replace

import pytest
from tests.support.groups.bench import GroupBench
from tests.support.groups.subscriptions import write_subscription

from semel.core.groups.classic import embedded
from semel.core.groups.commands import Heartbeat, LeaveGroup, SyncGroup
from semel.core.groups.settings import GroupSettings
from semel.core.groups.states import ClassicState, ConsumerState
from semel.wire.errors import ErrorCode

NONE = ErrorCode.NONE
NO_DELAY = GroupSettings(initial_rebalance_delay_ms=0)


def assignment(**partitions):
    return embedded.write_assignment(partitions, 1)


@pytest.fixture
def classic(bench):
    """A stable classic group of one member that has all four partitions."""
    request = bench.join_at_once()
    bench.advance(0)
    joined = bench.joined(request)
    bench.sync(joined, assignments=((joined.member_id, assignment(t=[0, 1, 2, 3])),))
    return joined


def read(reply):
    found = embedded.read_assignment(reply.assignment)
    return {t.topic: t.partitions for t in found.assigned_partitions}


def rejoin(bench, member_id, *owned):
    protocols = (("range", write_subscription(["t"], {"t": list(owned)})),)
    return bench.join(member_id, protocols=protocols)


# Up


def test_the_first_consumer_member_turns_the_group_over(bench, classic):
    bench.commit(7, member_id=classic.member_id, generation=classic.generation)
    reply = bench.beat("new")

    assert reply.error is NONE
    group = bench.consumer()
    assert set(group.members) == {classic.member_id, "new"}
    assert group.members[classic.member_id].classic is not None
    assert bench.offset() == 7
    assert reply.assignment == {}, "the old member still has everything"


def test_a_member_that_misses_the_way_down_and_up_again_reads_on_but_cannot_commit(bench, classic):
    """As in Kafka: the group turns back with its target, which then counts as what members have."""
    bench.beat("new")
    bench.beat("new", -1)
    assert bench.beat("newer").assignment, "what the old member has not given up"

    mine = {"member_id": classic.member_id, "generation": classic.generation}
    assert bench.commit(5, **mine) is ErrorCode.ILLEGAL_GENERATION
    assert bench.txn_commit(7, 6, **mine) is ErrorCode.ILLEGAL_GENERATION
    beat = bench.heartbeat(classic.member_id, classic.generation)
    assert beat.error is ErrorCode.ILLEGAL_GENERATION, "it abandons all it has"


def test_the_group_is_of_the_new_kind_after_a_restart_too(bench, classic):
    bench.beat("new")
    before = bench.consumer()
    bench.restart()
    assert bench.consumer().members == before.members
    assert bench.consumer().target == before.target


def test_the_old_member_is_called_back_gives_up_and_goes_on(bench, classic):
    bench.beat("new")
    me = classic.member_id
    assert bench.heartbeat(me, classic.generation).error is ErrorCode.REBALANCE_IN_PROGRESS

    revoking = rejoin(bench, me, 0, 1, 2, 3)
    assert revoking.error is NONE
    kept = read(bench.sync(revoking))["t"]
    assert len(kept) == 2
    assert bench.heartbeat(me, revoking.generation).error is ErrorCode.REBALANCE_IN_PROGRESS

    done = rejoin(bench, me, *kept)
    assert read(bench.sync(done))["t"] == kept
    assert done.generation == bench.consumer().epoch
    assert bench.heartbeat(me, done.generation).error is NONE
    got = bench.names(bench.beat("new", bench.consumer().members["new"].epoch).assignment)
    assert sorted(got["t"] + kept) == [0, 1, 2, 3]
    assert bench.consumer().state is ConsumerState.STABLE


def test_those_who_wait_in_a_rebalance_are_sent_to_join_the_new_group(bench, classic):
    bench.join_at_once()
    waiting = bench.join(classic.member_id)
    late = bench.join_at_once()
    waiting = waiting if isinstance(waiting, int) else late
    bench.beat("new")
    assert bench.joined(late).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_classic_newcomer_joins_the_new_group_in_its_own_tongue(bench, classic):
    bench.beat("new")
    first = bench.join()
    assert first.error is ErrorCode.MEMBER_ID_REQUIRED
    joined = rejoin(bench, first.member_id)
    assert joined.error is NONE
    assert joined.generation == bench.consumer().epoch
    assert joined.members == (), "nobody of them leads: the broker assigns"
    assert bench.sync(joined).error is NONE


def test_a_group_in_the_middle_of_a_rebalance_is_assigned_anew(bench):
    """Found by a seed: the newcomer took a static member's place, so nothing seemed to change."""
    bench.join(instance_id="i")
    bench.join(instance_id="j")
    bench.advance(0)
    assert bench.classic().state is ClassicState.COMPLETING_REBALANCE
    reply = bench.beat("new", instance_id="i")
    assert reply.error is NONE
    targets = bench.consumer().target.values()
    assert sum(len(p) for target in targets for p in target.values()) == 4


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"consumer_migration_policy": "disabled"}, "disabled"),
        ({"consumer_max_size": 0}, "maximum size"),
    ],
)
def test_a_group_that_may_not_be_upgraded_says_why(change, reason):
    bench = GroupBench(replace(NO_DELAY, **change), t=4)
    bench.settle(1)
    reply = bench.beat("new")
    assert reply.error is ErrorCode.GROUP_ID_NOT_FOUND
    assert reason in reply.message
    assert bench.classic().state is ClassicState.STABLE


def test_groups_of_other_protocols_are_left_alone(bench):
    bench.settle(1, protocol_type="connect", protocols=(("v1", b"?"),))
    assert bench.beat("new").error is ErrorCode.GROUP_ID_NOT_FOUND


def test_garbage_in_the_embedded_protocol_stops_the_upgrade(bench):
    bench.settle(1, protocols=(("range", b"\x00"),))
    reply = bench.beat("new")
    assert reply.error is ErrorCode.GROUP_ID_NOT_FOUND
    assert "malformed" in reply.message


def test_an_empty_classic_group_simply_becomes_the_other_kind(bench):
    bench.commit(5)
    assert bench.names(bench.beat("a").assignment) == {"t": [0, 1, 2, 3]}
    assert bench.offset() == 5
    bench.restart()
    assert bench.offset() == 5
    assert bench.consumer().members


# Classic members inside


def test_a_classic_member_is_checked_like_any_other(bench, classic):
    bench.beat("new")
    me = classic.member_id
    assert bench.heartbeat(me, 99).error is ErrorCode.ILLEGAL_GENERATION
    assert bench.heartbeat("x", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat("new", 3).error is ErrorCode.UNKNOWN_MEMBER_ID, "it is of the other kind"
    sync = SyncGroup("g", classic.generation, me, protocol_name="other")
    assert bench.do(sync).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    late = bench.commit(5, member_id=me, generation=99)
    assert late is ErrorCode.ILLEGAL_GENERATION


def test_a_classic_member_that_does_not_come_back_when_called_is_fenced(bench):
    request = bench.join_at_once(rebalance_timeout_ms=20_000)
    bench.advance(0)
    joined = bench.joined(request)
    bench.sync(joined, assignments=((joined.member_id, assignment(t=[0, 1, 2, 3])),))
    bench.beat("new")
    for _ in range(4):
        bench.heartbeat(joined.member_id, joined.generation)
        bench.advance(5_000)
    assert joined.member_id not in bench.consumer().members


def test_a_classic_member_that_never_syncs_is_fenced(bench, classic):
    bench.beat("new")
    joined = rejoin(bench, classic.member_id, 0, 1, 2, 3)
    for _ in range(31):
        bench.advance(10_000)
        if bench.group() is None or classic.member_id not in bench.consumer().members:
            break
        bench.heartbeat(classic.member_id, joined.generation)
        bench.beat("new", bench.consumer().members["new"].epoch)
    assert classic.member_id not in bench.consumer().members


def test_another_protocol_type_cannot_join_a_consumer_group(bench, classic):
    bench.beat("new")
    reply = bench.join(protocol_type="connect", version=3)
    assert reply.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_garbage_from_a_classic_newcomer_is_refused(bench, classic):
    bench.beat("new")
    reply = bench.join(protocols=(("range", b"\xff"),), version=3)
    assert reply.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


# Down


def test_when_the_last_of_the_new_kind_leaves_the_group_turns_back(bench, classic):
    bench.beat("new")
    bench.beat("new", -1)

    group = bench.classic()
    assert set(group.members) == {classic.member_id}
    assert group.state is ClassicState.PREPARING_REBALANCE
    again = bench.join(classic.member_id)
    assert bench.joined(again).error is NONE
    bench.restart()
    assert isinstance(bench.classic(), type(group))


def test_the_same_when_it_falls_silent(bench, classic):
    bench.beat("new")
    for _ in range(5):
        bench.advance(10_000)
        if bench.heartbeat(classic.member_id, classic.generation).error is not NONE:
            continue
    assert set(bench.classic().members) == {classic.member_id}


def test_the_same_when_an_administrator_removes_it(bench, classic):
    bench.beat("new", instance_id="i")
    reply = bench.do(LeaveGroup("g", (("", "i"),)))
    assert reply.members == (("", "i", NONE),)
    assert set(bench.classic().members) == {classic.member_id}


def test_a_static_member_that_returns_in_the_old_tongue_turns_the_group_back(bench, classic):
    epoch = bench.beat("new", instance_id="i").member_epoch
    bench.beat("new", -2, instance_id="i")
    back = bench.join(instance_id="i")

    assert back.error is NONE
    assert set(bench.classic().members) == {classic.member_id, back.member_id}
    assert bench.classic().static_members == {"i": back.member_id}
    assert bench.do(Heartbeat("g", epoch, "new", "i")).error is ErrorCode.FENCED_INSTANCE_ID


def test_a_policy_may_forbid_turning_back():
    bench = GroupBench(replace(NO_DELAY, consumer_migration_policy="upgrade"), t=4)
    request = bench.join_at_once()
    bench.advance(0)
    bench.sync(bench.joined(request), assignments=())
    bench.beat("new")
    bench.beat("new", -1)
    assert bench.consumer().state is ConsumerState.ASSIGNING


def test_an_empty_consumer_group_becomes_classic_again(bench):
    epoch = bench.beat("a").member_epoch
    bench.commit(5, member_id="a", generation=epoch)
    bench.beat("a", -1)
    [joined] = bench.settle(1)
    assert joined.error is NONE
    assert bench.classic().state is ClassicState.STABLE
    assert bench.offset() == 5
    bench.restart()
    assert bench.classic().state is ClassicState.STABLE
    assert bench.offset() == 5
