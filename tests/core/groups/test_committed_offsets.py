"""OffsetCommit, OffsetFetch and OffsetDelete, decision by decision."""

import pytest
from tests.support.groups.bench import topic_id

from semel.core.groups.commands import (
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetToCommit,
    TxnOffsetCommit,
)
from semel.core.groups.topics import NO_TOPIC_ID, Topics
from semel.wire.errors import ErrorCode

NONE = ErrorCode.NONE


# Commit


def test_a_consumer_without_a_group_commits_into_a_simple_one(bench):
    assert bench.commit(5) is NONE
    assert bench.offset() == 5
    assert bench.classic().is_simple


def test_a_generation_without_a_group_is_refused(bench):
    assert bench.commit(5, generation=1, version=9) is ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.commit(5, generation=1, version=8) is ErrorCode.ILLEGAL_GENERATION
    assert bench.group() is None


def test_a_member_commits_in_its_generation_only(bench):
    leader, _ = bench.settle()
    me = {"member_id": leader.member_id, "generation": leader.generation}
    assert bench.commit(5, **me) is NONE
    stale = {**me, "generation": leader.generation - 1}
    assert bench.commit(6, **stale) is ErrorCode.ILLEGAL_GENERATION
    stranger = {**me, "member_id": "x"}
    assert bench.commit(6, **stranger) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.offset() == 5


def test_nobody_commits_past_the_members_of_a_live_group(bench):
    bench.settle()
    assert bench.commit(5) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.offset() == -1


def test_a_member_may_still_commit_while_a_rebalance_gathers(bench):
    leader, follower = bench.settle()
    bench.join(leader.member_id)
    reply = bench.commit(5, member_id=follower.member_id, generation=follower.generation)
    assert reply is NONE


def test_commits_wait_until_the_new_generation_is_assigned(bench):
    request = bench.join_at_once()
    bench.advance(0)
    joined = bench.joined(request)
    reply = bench.commit(5, member_id=joined.member_id, generation=joined.generation)
    assert reply is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_member_is_fenced_by_its_successor(bench):
    request = bench.join(instance_id="i")
    bench.advance(0)
    first = bench.joined(request)
    bench.sync(first, instance_id="i")
    bench.join(instance_id="i")
    reply = bench.commit(5, member_id=first.member_id, generation=first.generation, instance_id="i")
    assert reply is ErrorCode.FENCED_INSTANCE_ID


def test_a_commit_keeps_the_session_alive(bench):
    leader, _ = bench.settle(session_timeout_ms=6_000)
    bench.advance(5_000)
    bench.commit(1, member_id=leader.member_id, generation=leader.generation)
    bench.advance(5_000)
    assert leader.member_id in bench.classic().members


def test_too_much_metadata_is_refused_and_the_rest_is_kept(bench):
    assert bench.commit(5, metadata="x" * 4_096) is NONE
    assert bench.commit(6, metadata="x" * 4_097) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert bench.commit(7, metadata="\N{GRINNING FACE}" * 2_049) is (
        ErrorCode.OFFSET_METADATA_TOO_LARGE  # two units each in Java, where it is counted
    )
    assert bench.offset() == 5
    assert bench.commit(8, metadata="\N{GRINNING FACE}" * 2_048) is NONE


def test_a_heard_commit_survives_a_restart(bench):
    bench.commit(5, metadata="where I was")
    bench.restart()
    asked = ((("t", NO_TOPIC_ID, (0, 1))),)
    [(_, _, (known, unknown))] = bench.do(OffsetFetch("g", asked)).topics
    assert (known.offset, known.metadata) == (5, "where I was")
    assert (unknown.offset, unknown.leader_epoch, unknown.metadata) == (-1, -1, "")


# Fetch


def test_everything_is_fetched_if_no_topic_is_named(bench):
    bench.commit(5)
    bench.commit(6, partition=3)
    bench.commit(7, topic="u")
    reply = bench.do(OffsetFetch("g"))
    offsets = {(name, f.partition): f.offset for name, _, found in reply.topics for f in found}
    assert offsets == {("t", 0): 5, ("t", 3): 6, ("u", 0): 7}


def test_an_unknown_group_has_committed_nothing(bench):
    assert bench.do(OffsetFetch("nowhere")).topics == ()
    asked = (("t", NO_TOPIC_ID, (0,)),)
    assert bench.do(OffsetFetch("nowhere", asked)).topics[0][2][0].offset == -1


def test_offsets_of_a_topic_that_was_made_anew_are_not_taken_for_its_own(bench):
    bench.do(OffsetCommit("g", (OffsetToCommit("t", 0, 5, topic_id=topic_id("an older t")),)))
    asked = (("t", topic_id("t"), (0,)),)
    assert bench.do(OffsetFetch("g", asked)).topics[0][2][0].offset == -1
    by_name = (("t", NO_TOPIC_ID, (0,)),)
    assert bench.do(OffsetFetch("g", by_name)).topics[0][2][0].offset == 5


def test_offsets_of_topics_that_went_while_nobody_was_told_are_deleted_by_the_load(bench):
    bench.set_topics(t=4, u=4)
    known = [
        OffsetToCommit("t", 0, 5, topic_id=topic_id("t")),
        OffsetToCommit("t", 1, 5),  # by an old client: no id is kept
    ]
    gone = [
        OffsetToCommit("t", 2, 5, topic_id=topic_id("an older t")),
        OffsetToCommit("u", 0, 5, topic_id=topic_id("u")),
        OffsetToCommit("u", 1, 5),
    ]
    bench.do(OffsetCommit("g", (*known, *gone)))
    bench.do(TxnOffsetCommit("g", 7, 0, (OffsetToCommit("u", 2, 5, topic_id=topic_id("u")),)))
    bench.topics = Topics.of([bench.topics.by_name["t"]], version=9)
    bench.restart()
    bench.end(7, commit=True)
    [(name, _, offsets)] = bench.do(OffsetFetch("g")).topics
    assert (name, [offset.partition for offset in offsets]) == ("t", [0, 1])


def test_an_offset_of_a_transaction_keeps_the_id_of_its_topic(bench):
    offset = OffsetToCommit("t", 0, 5, topic_id=topic_id("an older t"))
    bench.do(TxnOffsetCommit("g", 7, 0, (offset,)))
    bench.end(7, commit=True)
    bench.restart()
    assert bench.offset() == -1


# Delete


def test_offsets_of_a_simple_group_are_deleted_for_good(bench):
    bench.commit(5)
    reply = bench.do(OffsetDelete("g", (("t", 0), ("t", 1))))
    assert reply.errors == (NONE, NONE)
    assert bench.offset() == -1
    bench.restart()
    assert bench.offset() == -1


def test_offsets_of_a_topic_in_use_are_kept(bench):
    leader, _ = bench.settle()
    bench.commit(5, member_id=leader.member_id, generation=leader.generation)
    bench.commit(6, topic="u", member_id=leader.member_id, generation=leader.generation)
    reply = bench.do(OffsetDelete("g", (("t", 0), ("u", 0))))
    assert reply.errors == (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, NONE)
    assert (bench.offset(), bench.offset("u")) == (5, -1)


def test_a_live_group_of_another_protocol_keeps_all_its_offsets(bench):
    bench.settle(protocol_type="connect", protocols=(("v1", b""),))
    assert bench.do(OffsetDelete("g", (("t", 0),))).error is ErrorCode.NON_EMPTY_GROUP


def test_no_group_no_offsets_to_delete(bench):
    assert bench.do(OffsetDelete("g", (("t", 0),))).error is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_deleted_topic_takes_its_offsets_along(bench):
    bench.set_topics(t=4, u=1)
    bench.commit(5)
    bench.commit(6, topic="u")
    bench.set_topics(u=1)
    assert (bench.offset(), bench.offset("u")) == (-1, 6)
    bench.restart()
    assert (bench.offset(), bench.offset("u")) == (-1, 6)


# Expiry

DAY_MS = 24 * 60 * 60 * 1000


def test_offsets_of_a_simple_group_expire_a_week_after_the_commit(bench):
    bench.commit(5)
    bench.advance(6 * DAY_MS)
    bench.commit(6, partition=1)
    bench.advance(DAY_MS + 600_000)
    assert (bench.offset(), bench.offset(partition=1)) == (-1, 6)
    bench.advance(7 * DAY_MS)
    assert bench.group() is None, "a group without offsets and members goes, too"
    assert bench.replayed().state.groups == {}


def test_offsets_of_a_group_that_had_members_expire_a_week_after_they_left(bench):
    [member] = bench.settle(1, session_timeout_ms=1_000_000)
    bench.commit(5, member_id=member.member_id, generation=member.generation)
    for _ in range(8 * 24 * 4):
        bench.advance(15 * 60 * 1000)
        bench.heartbeat(member.member_id, member.generation)
    bench.advance(1_000_000)  # gone silent
    bench.advance(6 * DAY_MS)
    assert bench.offset() == 5
    bench.advance(DAY_MS + 600_000)
    assert bench.offset() == -1


def test_offsets_of_topics_that_a_live_group_still_reads_never_expire(bench):
    [member] = bench.settle(1, session_timeout_ms=1_800_000)
    me = {"member_id": member.member_id, "generation": member.generation}
    bench.commit(5, **me)
    bench.commit(6, topic="u", **me)
    for _ in range(9 * 24 * 2):
        bench.advance(30 * 60 * 1000 - 1)
        bench.heartbeat(member.member_id, member.generation)
    assert (bench.offset(), bench.offset("u")) == (5, -1)


def test_an_old_client_may_set_its_own_retention(bench):
    bench.commit(5, retention_ms=DAY_MS, version=2)
    bench.restart()
    bench.advance(DAY_MS - 600_000)
    assert bench.offset() == 5
    bench.advance(1_200_000)
    assert bench.offset() == -1


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_of_an_open_transaction_do_not_expire(bench, commit):
    bench.commit(5)
    bench.txn_commit(7, 9)
    bench.advance(8 * DAY_MS)
    assert bench.offset() == 5
    bench.end(7, commit)
    assert bench.offset() == (9 if commit else 5)
