"""The same scripted requests about groups to Apache Kafka 4.3.1 and to Semel: answers compared."""

from collections.abc import Callable
from contextlib import closing
from uuid import UUID

import pytest
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.process import SemelProcess
from tests.support.conversations.group_conversation import GroupConversation

from semel.wire.messages.sync_group import SyncGroupRequest

pytestmark = pytest.mark.interop

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.max.size": "3",
    "group.consumer.max.size": "3",
}

Sequence = Callable[[GroupConversation], None]
SEQUENCES: list[Sequence] = []


def play(sequence: Sequence) -> Sequence:
    SEQUENCES.append(sequence)
    return sequence


# The classic protocol


@play
def a_lone_member_lives_and_leaves(c: GroupConversation) -> None:
    c.describe()
    c.listed()
    a = c.member("a")
    a.join()
    c.describe()
    a.beat()
    a.commit(1)
    a.sync()
    c.describe()
    c.listed()
    a.beat()
    a.commit(2)
    c.fetch(0, 1)
    a.leave()
    c.describe()
    c.listed(states_filter=["empty"])
    a.beat()
    a.commit(3)
    c.fetch(0)


@play
def every_version_of_join_has_its_shape(c: GroupConversation) -> None:
    for version in range(10):
        a = c.member(f"a{version}")
        a.join(version)
        a.sync(min(version, 5))
        a.leave(version=min(version, 5))


@play
def two_members_rebalance(c: GroupConversation) -> None:
    a, b = c.member("a"), c.member("b")
    a.join()
    a.sync()
    b.ask_to_join(version=3)
    while_it_waits(c, a)
    a.ask_to_join()
    a.hear_join()
    b.hear_join(version=3)
    b.ask_to_sync()
    a.sync()
    b.hear_sync()
    c.describe()
    b.leave()
    a.beat()
    a.ask_to_join()
    a.hear_join()
    a.sync()
    c.describe()


def while_it_waits(c: GroupConversation, member) -> None:
    """Until the other's join has arrived, heartbeats are fine; then they tell of the rebalance."""
    length = len(c.transcript)
    while True:
        member.beat()
        if "REBALANCE_IN_PROGRESS" in c.transcript[-1]:
            break
        del c.transcript[length:]
    member.commit(7)
    member.sync()
    c.describe()


@play
def strangers_and_the_past_are_refused(c: GroupConversation) -> None:
    a = c.member("a")
    a.beat()
    a.sync()
    a.leave("x")
    a.leave("x", version=2)
    stranger = c.member("s")
    stranger.member_id = "stranger"
    stranger.ask_to_join()
    stranger.hear_join()
    a.join()
    a.sync()
    a.beat(generation=99)
    a.beat(member_id="stranger")
    a.sync(generation_id=99)
    a.sync(protocol_name="other")
    a.sync(protocol_name=None)
    a.commit(1, generation_id_or_member_epoch=99)
    a.commit(1, member_id="stranger")
    c.admin_commit(1)
    stranger.ask_to_join()
    stranger.hear_join()
    stranger.leave()
    c.fetch(0)


@play
def protocols_must_agree(c: GroupConversation) -> None:
    from semel.wire.messages.join_group import JoinGroupRequest

    other = JoinGroupRequest.JoinGroupRequestProtocol(name="other", metadata=b"")
    a, b = c.member("a"), c.member("b")
    b.ask_to_join(protocols=[])
    b.hear_join()
    b.ask_to_join(protocol_type="")
    b.hear_join()
    c.describe()
    a.join()
    a.sync()
    b.ask_to_join(protocols=[other])
    b.hear_join()
    b.ask_to_join(protocol_type="connect")
    b.hear_join()
    b.ask_to_join(session_timeout_ms=1)
    b.hear_join()


@play
def a_full_group_turns_newcomers_away(c: GroupConversation) -> None:
    members = [c.member(name) for name in "abc"]
    members[0].join()
    members[0].sync()
    for member in members[1:]:
        member.ask_to_join(version=3)
    one_more = c.member("d")
    while_it_waits(c, members[0])
    members[0].ask_to_join()
    one = members[0]
    one.hear_join()
    for member in members[1:]:
        if member.member_id == "":
            member.hear_join(version=3)
    one_more.ask_to_join(version=3)
    one_more.hear_join(version=3)


@play
def static_members_return(c: GroupConversation) -> None:
    a, b = c.member("a", "i1"), c.member("b", "i2")
    a.join()
    a.sync()
    b.ask_to_join()
    while_it_waits(c, a)
    a.ask_to_join()
    a.hear_join()
    b.hear_join()
    b.ask_to_sync()
    a.sync()
    b.hear_sync()
    back = c.member("b2", "i2")
    back.join()
    back.sync()
    b.beat()
    b.commit(1)
    b.sync()
    b.ask_to_join()
    b.hear_join()
    b.leave()
    leader = c.member("a2", "i1")
    leader.join()
    older = c.member("a3", "i1")
    older.join(version=8)
    admin = c.member("admin", "i2")
    admin.leave("")
    admin.leave("")
    c.describe()


# Offsets


@play
def a_simple_group_commits_and_forgets(c: GroupConversation) -> None:
    c.fetch(0)
    c.fetch()
    c.admin_commit(5, metadata="where I was")
    for version in range(2, 11):
        c.admin_commit(version, 1, version=version)
    c.admin_commit(1, 99)
    c.admin_commit(1, topic="no-such-topic")
    c.admin_commit(1, metadata="x" * 4097)
    c.fetch(0, 1, 2)
    c.fetch()
    c.fetch(0, 1, version=10)
    c.describe()
    c.listed()
    c.listed(types_filter=["Classic"])
    c.listed(types_filter=["consumer"])
    c.delete_offsets(0, 2, 99)
    c.fetch()
    c.delete_offsets(0, group="no-such-group")
    c.delete_group()
    c.delete_group()
    c.fetch(1)
    c.describe()
    c.describe(version=5)
    c.describe_consumer()


@play
def commits_without_a_group_are_refused_by_version(c: GroupConversation) -> None:
    for version in (2, 8, 9, 10):
        c.admin_commit(1, version=version, generation_id_or_member_epoch=3, member_id="m")
    c.describe()


@play
def a_live_group_keeps_what_it_reads(c: GroupConversation) -> None:
    a = c.member("a")
    a.join()
    a.sync()
    a.commit(4)
    c.delete_offsets(0, 1)
    c.delete_group()
    a.leave()
    c.delete_offsets(0)
    c.fetch(0)
    c.delete_group()
    c.listed()


@play
def offsets_are_fetched_in_every_version(c: GroupConversation) -> None:
    c.admin_commit(5, metadata="where I was")
    c.admin_commit(6, 2)
    for version in range(1, 8):
        c.fetch_as_of_old(0, 1, 2, 99, version=version)
        c.fetch_as_of_old(version=version)
    for version in range(8, 11):
        c.fetch(0, 1, 2, 99, version=version)
        c.fetch(version=version)
        c.fetch(0, version=version, require_stable=True)
    c.fetch(0, topic="no-such-topic")
    c.fetch(0, version=10, topic_id=UUID(int=7))
    c.fetch(0, member_id="m", member_epoch=3)
    c.fetch_groups(c.group, "no-such-group", "", c.group)


@play
def what_is_huge_or_malformed_harms_nobody(c: GroupConversation) -> None:
    c.admin_commit(1, metadata="\N{GRINNING FACE}" * 2_048)
    c.admin_commit(2, metadata="\N{GRINNING FACE}" * 2_049)
    a, new = c.member("a"), c.member("new")
    a.join()
    hand = SyncGroupRequest.SyncGroupRequestAssignment
    a.sync(assignments=[hand(member_id=a.member_id, assignment=bytes(2_000_000))])
    a.beat()
    c.describe()
    a.ask_to_join()
    a.hear_join()
    a.sync(assignments=[hand(member_id=a.member_id, assignment=b"\0")])
    c.describe()
    a.beat()
    new.heartbeat(0)
    a.commit(3)
    c.fetch(0)


@play
def offsets_in_transactions_are_fenced_by_the_group(c: GroupConversation) -> None:
    a = c.member("a", "i1")
    a.join()
    a.sync()
    txn = c.transactions
    session = txn.init()
    for generation, member in (
        (a.generation, a.member_id),
        (99, a.member_id),
        (a.generation, "stranger"),
        (-1, ""),
    ):
        txn.commit_offset(session, 5, 5, generation, member, "i1" if member else None)
    c.fetch(0)
    c.fetch(0, require_stable=True)
    back = c.member("b", "i1")
    back.join()
    txn.commit_offset(session, 6, 5, a.generation, a.member_id, "i1")
    txn.commit_offset(session, 7, 5, back.generation, back.member_id, "i1")
    session = txn.end(session, commit=True, version=5)
    txn.committed(settle=True)
    txn.commit_offset(session, 8, 5, back.generation, back.member_id, "i1")
    txn.end(session, commit=False, version=5)
    txn.committed(settle=True)


# The consumer protocol


@play
def offsets_in_transactions_are_fenced_by_the_members_epoch(c: GroupConversation) -> None:
    a = c.member("a")
    a.heartbeat(0)
    txn = c.transactions
    session = txn.init()
    for epoch, member in (
        (a.generation, a.member_id),
        (a.generation + 1, a.member_id),
        (a.generation - 1, a.member_id),
        (a.generation, "stranger"),
        (-1, ""),
    ):
        txn.commit_offset(session, 5, 5, epoch, member)
    txn.end(session, commit=True, version=5)
    txn.committed(settle=True)


@play
def a_regular_expression_finds_its_topics(c: GroupConversation) -> None:
    a = c.member("a")
    wanted = {"subscribed_topic_names": None, "subscribed_topic_regex": f"{c.topic[:-1]}."}
    a.heartbeat(0, **wanted)
    length = len(c.transcript)
    while not a.owned:
        del c.transcript[length:]
        a.heartbeat()
    c.listed()
    a.heartbeat(subscribed_topic_regex="", subscribed_topic_names=[])
    a.heartbeat(subscribed_topic_regex="[", subscribed_topic_names=[])


@play
def a_lone_consumer_lives_and_leaves(c: GroupConversation) -> None:
    c.describe_consumer()
    a = c.member("a")
    a.heartbeat(5)
    a.heartbeat(-1)
    a.heartbeat(0)
    a.heartbeat()
    a.heartbeat(topic_partitions=None)
    a.heartbeat(0)
    c.describe_consumer()
    c.describe()
    c.listed()
    c.listed(types_filter=["consumer"], states_filter=["stable"])
    a.commit(3)
    a.commit(4, generation_id_or_member_epoch=99)
    a.commit(4, version=8)
    a.commit(4, member_id="stranger")
    c.admin_commit(4)
    c.fetch(0)
    a.heartbeat(99)
    a.heartbeat(1)
    a.heartbeat(member_id="stranger")
    c.delete_group()
    c.delete_offsets(0)
    a.heartbeat(-1)
    c.describe_consumer()
    c.admin_commit(9)
    c.fetch(0)
    c.delete_group()
    c.listed()


@play
def heartbeats_that_make_no_sense(c: GroupConversation) -> None:
    a = c.member("a")
    a.heartbeat(0, member_id="")
    a.heartbeat(0, group_id="")
    a.heartbeat(0, rebalance_timeout_ms=-1)
    a.heartbeat(0, topic_partitions=None)
    a.heartbeat(0, subscribed_topic_names=None)
    a.heartbeat(0, rack_id="")
    a.heartbeat(-2)
    a.heartbeat(-3)
    a.heartbeat(0, server_assignor="magic")
    a.heartbeat(0, subscribed_topic_regex="(", subscribed_topic_names=None)
    c.listed()


@play
def two_consumers_are_led_to_their_halves(c: GroupConversation) -> None:
    a, b = c.member("a"), c.member("b")
    a.heartbeat(0)
    b.heartbeat(0)
    c.describe_consumer()
    b.heartbeat()
    before = a.owned
    a.heartbeat()
    c.describe_consumer()
    keeps, a.owned = a.owned, before
    a.heartbeat()
    b.heartbeat()
    a.owned = keeps
    a.heartbeat()
    c.describe_consumer()
    b.heartbeat()
    c.describe_consumer()
    a.heartbeat(-1)
    b.heartbeat()
    c.describe_consumer()


@play
def what_a_consumer_gave_up_it_may_commit_for_until_its_epoch_ends(c: GroupConversation) -> None:
    x, y, z = c.member("x"), c.member("y"), c.member("z")
    for member in (x, y, z):
        member.member_id = member.name  # ranges are dealt out in their order
    z.heartbeat(0, server_assignor="range")
    epoch = z.generation
    y.heartbeat(0)
    z.heartbeat()
    x.heartbeat(0)
    z.heartbeat()
    x.heartbeat()
    c.describe_consumer()
    txn = c.transactions
    session = txn.init()
    z.commit(3)
    txn.commit_offset(session, 4, 5, epoch, z.member_id)
    z.heartbeat()
    c.describe_consumer()
    z.commit(5, generation_id_or_member_epoch=epoch)
    txn.commit_offset(session, 6, 5, epoch, z.member_id)
    txn.end(session, commit=True, version=5)
    txn.committed(settle=True)


@play
def a_static_consumer_goes_and_returns(c: GroupConversation) -> None:
    a, rival = c.member("a", "i"), c.member("r", "i")
    a.heartbeat(0)
    rival.heartbeat(0)
    a.heartbeat(-2)
    c.describe_consumer()
    a.commit(1)
    rival.heartbeat(0)
    c.describe_consumer()
    a.heartbeat(2)
    a.heartbeat(-1)
    rival.heartbeat()
    rival.heartbeat(-1)
    c.describe_consumer()


@play
def a_consumer_may_fetch_in_its_own_epoch_only(c: GroupConversation) -> None:
    a = c.member("a")
    a.heartbeat(0)
    a.commit(3)
    c.fetch(0, member_id=a.member_id, member_epoch=a.generation)
    c.fetch(0, member_id=a.member_id, member_epoch=a.generation + 1)
    c.fetch(0, member_id="stranger", member_epoch=a.generation)
    c.fetch(0)


@play
def a_full_consumer_group_turns_newcomers_away(c: GroupConversation) -> None:
    for name in "abcd":
        c.member(name).heartbeat(0)
    c.member("old").join()
    c.listed()


# Both at once


@play
def a_static_consumer_returns_in_the_old_tongue(c: GroupConversation) -> None:
    new = c.member("new", "i1")
    new.heartbeat(0)
    new.commit(3)
    new.heartbeat(-2)
    old = c.member("old", "i1")
    old.join()
    c.describe()
    c.describe_consumer()
    old.sync()
    old.beat()
    new.heartbeat()
    c.listed()
    c.fetch(0)


@play
def a_classic_group_is_upgraded_and_turns_back(c: GroupConversation) -> None:
    old, new = c.member("old"), c.member("new")
    old.join()
    old.sync()
    old.commit(3)
    new.heartbeat(0)
    c.describe()
    c.describe_consumer()
    c.listed()
    old.beat()
    old.sync()
    old.commit(4)
    old.ask_to_join()
    old.hear_join()
    old.sync()
    c.describe_consumer()
    old.beat()
    new.heartbeat()
    c.fetch(0)
    new.heartbeat(-1)
    c.describe()
    c.describe_consumer()
    old.beat()
    old.ask_to_join()
    old.hear_join()
    old.sync()
    c.describe()


@play
def a_member_misses_the_way_down_and_up_again(c: GroupConversation) -> None:
    old, new, newer = c.member("old"), c.member("new"), c.member("newer")
    old.join()
    old.sync()
    new.heartbeat(0)
    new.heartbeat(-1)
    newer.heartbeat(0)
    c.describe_consumer()
    txn = c.transactions
    session = txn.init()
    for partition in range(4):
        old.commit(3, partition)
    txn.commit_offset(session, 4, 5, old.generation, old.member_id)
    old.beat()
    c.fetch(0)


@play
def a_classic_member_joins_a_consumer_group(c: GroupConversation) -> None:
    new, old = c.member("new"), c.member("old")
    new.heartbeat(0)
    old.ask_to_join(protocol_type="connect")
    old.hear_join()
    old.join()
    old.sync()
    c.describe_consumer()
    new.heartbeat()
    new.heartbeat()
    old.beat()
    old.ask_to_join()
    old.hear_join()
    old.sync()
    c.describe_consumer()
    old.beat()
    old.leave()
    c.describe_consumer()
    new.heartbeat()


@play
def an_empty_group_changes_its_kind(c: GroupConversation) -> None:
    a, b = c.member("a"), c.member("b")
    a.join()
    a.sync()
    a.commit(3)
    a.leave()
    b.heartbeat(0)
    c.describe_consumer()
    c.fetch(0)
    b.heartbeat(-1)
    again = c.member("again")
    again.join()
    again.sync()
    c.describe()
    c.fetch(0)


def transcript(bootstrap: str, sequence: Sequence) -> list[str]:
    with closing(GroupConversation(bootstrap)) as conversation:
        sequence(conversation)
        return conversation.transcript


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.__name__)
def test_semel_answers_about_groups_as_apache_kafka_does(
    kafka: ApacheKafka, alike: SemelProcess, sequence: Sequence
) -> None:
    assert transcript(alike.bootstrap, sequence) == transcript(kafka.bootstrap, sequence)
