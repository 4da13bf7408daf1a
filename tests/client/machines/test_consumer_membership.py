"""Membership by heartbeats (KIP-848): what is said, when, and what the broker's words lead to."""

from uuid import UUID

import pytest

from semel.client.machines.consumer_membership import (
    MOST_STUMBLES,
    ConsumerMembership,
    MemberSettings,
    Phase,
    Plan,
    TopicIdPartition,
)
from semel.client.machines.membership import Next
from semel.client.machines.metadata import TopicMetadata
from semel.client.machines.subscription import Subscription
from semel.client.machines.types import GroupMetadata
from semel.wire.errors import ErrorCode as E
from semel.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

T = UUID(int=7)
NOTHING: frozenset[TopicIdPartition] = frozenset()


def parts(*indexes: int) -> frozenset[TopicIdPartition]:
    return frozenset(TopicIdPartition(T, index) for index in indexes)


def answer(epoch: int, *indexes: int, told: bool = True) -> ConsumerGroupHeartbeatResponse:
    topic = ConsumerGroupHeartbeatResponse.TopicPartitions(topic_id=T, partitions=list(indexes))
    given = ConsumerGroupHeartbeatResponse.Assignment(topic_partitions=[topic] if indexes else [])
    return ConsumerGroupHeartbeatResponse(
        member_id="me", member_epoch=epoch, heartbeat_interval_ms=5_000,
        assignment=given if told else None,
    )  # fmt: skip


def refusal(code: E) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code)


def newcomer(**settings: str) -> ConsumerMembership:
    member = ConsumerMembership(MemberSettings("g", 60_000, **settings), "me")
    member.subscribe(Subscription(frozenset({"t"})))
    return member


def beat(
    member: ConsumerMembership, heard: ConsumerGroupHeartbeatResponse
) -> ConsumerGroupHeartbeatRequest:
    request = member.heartbeat()
    member.answered(heard)
    return request


def owner(*indexes: int) -> ConsumerMembership:
    """A member that owns partitions, and has told the broker."""
    member = newcomer()
    beat(member, answer(5, *indexes))
    member.took(member.plan.take)
    beat(member, answer(5, told=False))
    assert not member.has_news
    return member


def test_a_newcomer_says_everything_under_an_id_of_its_own() -> None:
    said = newcomer(assignor="range", rack_id="r", instance_id="i").heartbeat()
    assert (said.member_id, said.member_epoch, said.rebalance_timeout_ms) == ("me", 0, 60_000)
    assert (said.server_assignor, said.rack_id, said.instance_id) == ("range", "r", "i")
    assert (said.subscribed_topic_names, said.subscribed_topic_regex) == (["t"], None)
    assert said.topic_partitions == []


def test_a_quiet_member_says_who_it_is_and_no_more() -> None:
    said = owner(0).heartbeat()
    assert (said.member_epoch, said.rebalance_timeout_ms) == (5, -1)
    assert said.subscribed_topic_names is said.topic_partitions is said.server_assignor is None


def test_partitions_are_taken_and_the_broker_hears_of_it_at_once() -> None:
    member = newcomer()
    beat(member, answer(3, 0, 1))
    assert member.plan == Plan(NOTHING, parts(0, 1))
    assert not member.has_news
    member.took(parts(0, 1))
    assert member.has_news
    (said,) = member.heartbeat().topic_partitions or ()
    assert (said.topic_id, said.partitions) == (T, [0, 1])


def test_what_must_go_stays_owned_until_it_is_given_up() -> None:
    member = owner(0, 1)
    beat(member, answer(5, 0))
    assert member.plan == Plan(parts(1), NOTHING)
    assert member.heartbeat().topic_partitions is None  # not yet: it is still being read
    member.gave_up(parts(1))
    (said,) = member.heartbeat().topic_partitions or ()
    assert said.partitions == [0]


def test_an_answer_to_an_older_heartbeat_does_not_settle_what_came_after_it() -> None:
    member = owner(0, 1)
    beat(member, answer(5, 0))
    member.heartbeat()
    member.gave_up(parts(1))
    member.answered(answer(5, told=False))
    assert member.has_news


def test_after_a_lost_answer_all_is_said_again() -> None:
    member = owner(0)
    member.heartbeat()
    member.lost()
    said = member.heartbeat()
    assert (said.member_epoch, said.rebalance_timeout_ms) == (5, 60_000)
    assert said.subscribed_topic_names == ["t"]
    assert said.topic_partitions


def test_a_pattern_goes_to_the_broker_and_is_taken_back_by_an_empty_one() -> None:
    member = newcomer()
    member.subscribe(Subscription(pattern="t.*"))
    assert member.heartbeat().subscribed_topic_regex == "t.*"
    member.answered(answer(1))
    assert member.heartbeat().subscribed_topic_regex is None
    member.subscribe(Subscription(frozenset({"u"})))
    assert member.has_news
    said = member.heartbeat()
    assert (said.subscribed_topic_names, said.subscribed_topic_regex) == (["u"], "")


@pytest.mark.parametrize("code", [E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND])
def test_an_expelled_member_drops_what_it_had_before_it_joins_again(code: E) -> None:
    member = owner(0)
    member.heartbeat()
    assert member.answered(refusal(code)) is Next.JOIN
    assert member.phase is Phase.EXPELLED
    assert not member.has_news
    member.dropped()
    said = member.heartbeat()
    assert (said.member_id, said.member_epoch, said.topic_partitions) == ("me", 0, [])


def test_a_former_life_is_committed_under_its_own_epoch() -> None:
    """Otherwise what was read before could be committed under the name of the member after."""
    member = owner(0)
    assert member.metadata == GroupMetadata("g", 5, "me")
    member.expelled()
    assert member.metadata == GroupMetadata("g", 5, "me")
    member.dropped()
    assert member.metadata == GroupMetadata("g", 5, "me")
    beat(member, answer(9))
    assert member.metadata == GroupMetadata("g", 9, "me")


def test_an_answer_to_a_former_life_is_not_believed() -> None:
    member = owner(0)
    member.heartbeat()
    member.expelled()
    member.dropped()
    member.answered(answer(5, 0))
    assert member.phase is Phase.JOINING
    assert member.plan == Plan(NOTHING, NOTHING)


def test_what_is_lost_while_it_is_taken_is_not_owned() -> None:
    member = newcomer()
    beat(member, answer(3, 0))
    member.expelled()
    member.took(parts(0))
    member.dropped()
    assert member.owned == NOTHING


@pytest.mark.parametrize(
    ("code", "following", "phase"),
    [
        (E.NOT_COORDINATOR, Next.FIND, Phase.MEMBER),
        (E.COORDINATOR_NOT_AVAILABLE, Next.FIND, Phase.MEMBER),
        (E.COORDINATOR_LOAD_IN_PROGRESS, Next.WAIT, Phase.MEMBER),
        (E.UNRELEASED_INSTANCE_ID, Next.FAIL, Phase.EXPELLED),
        (E.FENCED_INSTANCE_ID, Next.FAIL, Phase.EXPELLED),
        (E.UNSUPPORTED_ASSIGNOR, Next.FAIL, Phase.EXPELLED),
        (E.GROUP_AUTHORIZATION_FAILED, Next.FAIL, Phase.EXPELLED),
    ],
)
def test_a_refused_heartbeat_leads_to(code: E, following: Next, phase: Phase) -> None:
    member = owner(0)
    member.heartbeat()
    assert member.answered(refusal(code)) is following
    assert member.phase is phase


def test_a_broker_that_stumbles_over_a_newcomer_is_asked_again_but_not_for_ever() -> None:
    """Kafka 4.3.1 does while classic members have no protocol yet (NoSuchElementException)."""
    member = newcomer()
    for _ in range(MOST_STUMBLES):
        member.heartbeat()
        assert member.answered(refusal(E.UNKNOWN_SERVER_ERROR)) is Next.WAIT
    member.heartbeat()
    assert member.answered(refusal(E.UNKNOWN_SERVER_ERROR)) is Next.FAIL
    member.dropped()
    beat(member, refusal(E.UNKNOWN_SERVER_ERROR))
    beat(member, answer(5, 0))
    member.heartbeat()
    assert member.answered(refusal(E.UNKNOWN_SERVER_ERROR)) is Next.FAIL


def test_members_leave_for_good_and_static_ones_for_a_while() -> None:
    assert newcomer().leave_request() is None  # nobody knows of it
    leaving = owner(0).leave_request()
    assert leaving is not None
    assert (leaving.member_epoch, leaving.instance_id) == (-1, None)
    static = newcomer(instance_id="i")
    static.heartbeat()  # its answer may have been lost: the group may know it
    leaving = static.leave_request()
    assert leaving is not None
    assert (leaving.member_epoch, leaving.instance_id) == (-2, "i")


def test_who_has_left_commits_as_nobody_and_may_come_back() -> None:
    member = owner(0)
    member.left()
    assert member.metadata == GroupMetadata("g")
    assert member.leave_request() is None
    member.dropped()
    assert member.heartbeat().member_epoch == 0


def test_a_pattern_means_whole_names_and_no_internal_topics() -> None:
    known = [TopicMetadata("ab"), TopicMetadata("abc"), TopicMetadata("__ab", is_internal=True)]
    assert Subscription(pattern=".*ab").matching(known) == {"ab"}
    assert Subscription(frozenset({"x"})).matching(known) == {"x"}
