"""Offsets inside transactions: nothing moves before the marker, and an abort moves nothing."""

import pytest

from semel.core.groups.commands import DeleteGroup, OffsetDelete, OffsetFetch
from semel.core.groups.topics import NO_TOPIC_ID
from semel.wire.errors import ErrorCode

NONE = ErrorCode.NONE
T0 = (("t", NO_TOPIC_ID, (0,)),)


def test_a_pending_offset_does_not_count_until_its_transaction_commits(bench):
    bench.commit(5)
    assert bench.txn_commit(7, 9) is NONE
    assert bench.offset() == 5
    bench.end(7, commit=True)
    assert bench.offset() == 9


def test_an_aborted_transaction_moves_no_offset(bench):
    bench.commit(5)
    bench.txn_commit(7, 9)
    bench.end(7, commit=False)
    assert bench.offset() == 5


def test_whoever_wants_stable_offsets_is_asked_to_wait(bench):
    bench.txn_commit(7, 9)
    [(_, _, (unstable,))] = bench.do(OffsetFetch("g", T0, require_stable=True)).topics
    assert unstable.error is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert unstable.offset == -1
    assert bench.do(OffsetFetch("g", T0)).topics[0][2][0].error is NONE
    bench.end(7, commit=False)
    assert bench.do(OffsetFetch("g", T0, require_stable=True)).topics[0][2][0].error is NONE


def test_everything_asked_stably_tells_of_pending_offsets_too(bench):
    bench.commit(5)
    bench.txn_commit(7, 9)
    [(_, _, (unstable,))] = bench.do(OffsetFetch("g", require_stable=True)).topics
    assert unstable.error is ErrorCode.UNSTABLE_OFFSET_COMMIT


def test_the_later_record_wins_not_the_later_marker(bench):
    bench.txn_commit(7, 9)
    bench.commit(20)
    bench.end(7, commit=True)
    assert bench.offset() == 20
    bench.restart()
    assert bench.offset() == 20


def test_two_transactions_over_one_partition_keep_their_own(bench):
    bench.txn_commit(7, 9)
    bench.txn_commit(8, 10)
    bench.end(7, commit=True)
    assert bench.offset() == 9
    bench.end(8, commit=False)
    assert bench.offset() == 9


def test_a_repeated_marker_is_harmless(bench):
    bench.txn_commit(7, 9)
    bench.end(7, commit=True)
    bench.commit(12)
    bench.end(7, commit=True)
    assert bench.offset() == 12


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("restart_before_marker", [True, False])
def test_pending_offsets_survive_a_restart(bench, commit, restart_before_marker):
    bench.commit(5)
    bench.txn_commit(7, 9)
    if restart_before_marker:
        bench.restart()
        assert bench.offset() == 5
    bench.end(7, commit)
    bench.restart()
    assert bench.offset() == (9 if commit else 5)


def test_deleting_an_offset_deletes_the_pending_one_as_well(bench):
    bench.commit(5)
    bench.txn_commit(7, 9)
    bench.do(OffsetDelete("g", (("t", 0),)))
    bench.end(7, commit=True)
    assert bench.offset() == -1


def test_a_deleted_group_takes_pending_offsets_along(bench):
    bench.txn_commit(7, 9)
    bench.txn_commit(7, 4, group_id="other")
    bench.do(DeleteGroup("g"))
    bench.end(7, commit=True)
    assert bench.group() is None
    assert bench.offset() == -1
    assert bench.offset(group_id="other") == 4


# KIP-447: the group fences too


def test_a_departed_member_cannot_commit_in_a_transaction(bench):
    leader, _ = bench.settle()
    gone = bench.txn_commit(7, 9, member_id="gone", generation=leader.generation)
    assert gone is ErrorCode.UNKNOWN_MEMBER_ID
    stale = bench.txn_commit(7, 9, member_id=leader.member_id, generation=1_000)
    assert stale is ErrorCode.ILLEGAL_GENERATION
    assert bench.coordinator.state.offsets.pending == {}


def test_a_generation_without_a_group_is_illegal(bench):
    assert bench.txn_commit(7, 9, generation=3, member_id="m") is ErrorCode.ILLEGAL_GENERATION


def test_a_static_member_that_was_replaced_is_fenced(bench):
    request = bench.join(instance_id="i")
    bench.advance(0)
    old = bench.joined(request)
    bench.sync(old, instance_id="i")
    bench.join(instance_id="i")
    reply = bench.txn_commit(
        7, 9, member_id=old.member_id, generation=old.generation, instance_id="i"
    )
    assert reply is ErrorCode.FENCED_INSTANCE_ID


def test_old_producers_that_name_no_member_are_let_through(bench):
    bench.settle()
    assert bench.txn_commit(7, 9) is NONE


def test_the_state_of_the_group_does_not_matter_only_the_generation(bench):
    request = bench.join_at_once()
    bench.advance(0)
    joined = bench.joined(request)
    reply = bench.txn_commit(7, 9, member_id=joined.member_id, generation=joined.generation)
    assert reply is NONE


def test_in_a_consumer_group_a_stale_epoch_is_an_illegal_generation(bench):
    epoch = bench.beat("a").member_epoch
    assert bench.txn_commit(7, 9, member_id="a", generation=epoch) is NONE
    ahead = bench.txn_commit(7, 9, member_id="a", generation=epoch + 1)
    assert ahead is ErrorCode.ILLEGAL_GENERATION
    stranger = bench.txn_commit(7, 9, member_id="b", generation=epoch)
    assert stranger is ErrorCode.UNKNOWN_MEMBER_ID
