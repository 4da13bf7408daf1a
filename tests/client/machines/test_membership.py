"""Membership in a classic group: assignors, and the conversation with the coordinator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.client.machines.assignors import ASSIGNORS, Member
from semel.client.machines.membership import ClassicMemberSettings, Membership, Next
from semel.client.machines.types import TopicPartition
from semel.wire.errors import ErrorCode as E
from semel.wire.messages.join_group import JoinGroupResponse

topics = st.sampled_from(["a", "b", "c"])
groups = st.dictionaries(
    st.sampled_from(["m1", "m2", "m3", "m4"]),
    st.frozensets(topics, min_size=1).map(lambda names: Member(names)),
    min_size=1,
)
counts = st.fixed_dictionaries({name: st.integers(1, 7) for name in "abc"})


@pytest.mark.parametrize("name", ASSIGNORS)
@given(groups, counts)
def test_every_partition_that_somebody_reads_goes_to_one_who_reads_it(
    name: str, members: dict[str, Member], partitions: dict[str, int]
) -> None:
    shares = ASSIGNORS[name](members, partitions)
    given_out = [p for share in shares.values() for p in share]
    read = {topic for member in members.values() for topic in member.topics}
    assert sorted(given_out) == sorted(
        TopicPartition(t, i) for t in read for i in range(partitions[t])
    )
    assert all(p.topic in members[m].topics for m, share in shares.items() for p in share)


@given(groups, counts)
def test_sticky_is_even_among_members_that_read_the_same(
    members: dict[str, Member], partitions: dict[str, int]
) -> None:
    same = {name: Member(frozenset("abc")) for name in members}
    sizes = [len(share) for share in ASSIGNORS["sticky"](same, partitions).values()]
    assert max(sizes) - min(sizes) <= 1


@given(groups, counts, st.sampled_from(["m1", "m2", "m3", "m4", "m5"]))
def test_sticky_members_keep_what_they_have_when_one_comes(
    members: dict[str, Member], partitions: dict[str, int], newcomer: str
) -> None:
    same = {name: Member(frozenset("abc")) for name in members}
    before = ASSIGNORS["sticky"](same, partitions)
    grown = {name: Member(frozenset("abc"), frozenset(before[name]), 1) for name in same}
    grown.setdefault(newcomer, Member(frozenset("abc")))
    after = ASSIGNORS["sticky"](grown, partitions)
    total = sum(partitions.values())
    moved = sum(len(set(after[name]) - set(before[name])) for name in same)
    assert moved == 0
    if newcomer not in same:
        assert len(after[newcomer]) >= total // len(grown)


@given(groups, counts)
def test_cooperative_members_get_no_partition_that_another_still_has(
    members: dict[str, Member], partitions: dict[str, int]
) -> None:
    one = {"m0": Member(frozenset("abc"))}
    owned = frozenset(ASSIGNORS["sticky"](one, partitions)["m0"])
    crowd = {"m0": Member(frozenset("abc"), owned, 1)} | {
        name: Member(frozenset("abc")) for name in members
    }
    first = ASSIGNORS["cooperative-sticky"](crowd, partitions)
    assert all(not share for name, share in first.items() if name != "m0")
    kept = frozenset(first["m0"])
    second = ASSIGNORS["cooperative-sticky"](
        {n: Member(frozenset("abc"), kept if n == "m0" else frozenset(), 2) for n in crowd},
        partitions,
    )
    assert sum(map(len, second.values())) == sum(partitions.values())


def test_range_gives_neighbours_to_the_same_member_and_the_first_get_more() -> None:
    everyone = {name: Member(frozenset("ab")) for name in ("m2", "m1")}
    shares = ASSIGNORS["range"](everyone, {"a": 3, "b": 1})
    assert shares == {
        "m1": [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)],
        "m2": [TopicPartition("a", 2)],
    }


def member(*strategies: str) -> Membership:
    membership = Membership(ClassicMemberSettings("g", strategies=strategies or ("range",)))
    membership.subscribe(["a"])
    return membership


def join(membership: Membership, *others: Membership) -> JoinGroupResponse:
    """The coordinator's answer to the leader."""
    joined = [membership, *others]
    return JoinGroupResponse(
        generation_id=3, protocol_name="range", leader="id0", member_id="id0",
        members=[
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=f"id{index}", metadata=each.join_request().protocols[0].metadata
            )
            for index, each in enumerate(joined)
        ],
    )  # fmt: skip


def test_a_newcomer_joins_again_with_the_id_it_is_given() -> None:
    membership = member()
    refused = JoinGroupResponse(error_code=E.MEMBER_ID_REQUIRED, member_id="id0")
    assert membership.joined(refused) is Next.JOIN
    assert membership.join_request().member_id == "id0"


def test_the_leader_divides_and_everybody_reads_their_share() -> None:
    leader, follower = member(), member()
    assert leader.joined(join(leader, follower)) is Next.GO_ON
    assert leader.topics_of_all == {"a"}
    sync = leader.sync_request({"a": 3})
    shares = {entry.member_id: entry.assignment for entry in sync.assignments}
    assert leader.synced(0, shares["id0"]) == (
        Next.GO_ON,
        {TopicPartition("a", 0), TopicPartition("a", 1)},
    )
    assert follower.synced(0, shares["id1"])[1] == {TopicPartition("a", 2)}
    assert not leader.wants_to_join


@pytest.mark.parametrize(
    ("code", "following", "keeps_id"),
    [
        (E.REBALANCE_IN_PROGRESS, Next.JOIN, True),
        (E.ILLEGAL_GENERATION, Next.JOIN, True),
        (E.UNKNOWN_MEMBER_ID, Next.JOIN, False),
        (E.NOT_COORDINATOR, Next.FIND, True),
        (E.COORDINATOR_LOAD_IN_PROGRESS, Next.WAIT, True),
        (E.GROUP_AUTHORIZATION_FAILED, Next.FAIL, True),
        (E.FENCED_INSTANCE_ID, Next.FAIL, True),
    ],
)
def test_an_error_of_the_coordinator_leads_to(code: E, following: Next, keeps_id: bool) -> None:
    membership = member()
    membership.joined(join(membership))
    assert membership.refused(code) is following
    assert (membership.member_id == "id0") is keeps_id
    if following is Next.JOIN:
        assert membership.wants_to_join


def test_a_cooperative_member_that_gives_something_up_tells_the_group() -> None:
    membership = member("cooperative-sticky")
    membership.joined(join(membership))
    membership.assigned = frozenset({TopicPartition("a", 0), TopicPartition("a", 1)})
    membership.leader, membership.protocol = True, "range"
    half = membership.sync_request({"a": 1}).assignments[0].assignment
    membership.synced(0, half)
    assert membership.assigned == {TopicPartition("a", 0)}
    assert membership.wants_to_join


def test_an_unknown_strategy_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="unknown partition_assignment_strategy fair"):
        Membership(ClassicMemberSettings("g", strategies=("fair",)))
