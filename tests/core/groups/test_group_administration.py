"""ListGroups, DescribeGroups, ConsumerGroupDescribe, DeleteGroups."""

import pytest

from semel.core.groups.commands import (
    ConsumerGroupDescribe,
    DeleteGroup,
    DescribeGroup,
    ListGroups,
)
from semel.wire.errors import ErrorCode


@pytest.fixture
def three(bench):
    bench.settle(group_id="classic")
    bench.beat("a", group_id="consumer")
    bench.commit(5, group_id="simple")
    return bench


def listed(bench, **filters):
    return {g.group_id: (g.type, g.state, g.protocol_type) for g in bench.do(ListGroups(**filters))}


def test_all_groups_are_listed(three):
    assert listed(three) == {
        "classic": ("classic", "Stable", "consumer"),
        "consumer": ("consumer", "Stable", "consumer"),
        "simple": ("classic", "Empty", ""),
    }


def test_groups_are_filtered_by_state_and_type_in_any_case(three):
    assert listed(three, states=frozenset({"stable"})).keys() == {"classic", "consumer"}
    assert listed(three, types=frozenset({"CLASSIC"})).keys() == {"classic", "simple"}
    both = listed(three, states=frozenset({"Empty"}), types=frozenset({"consumer"}))
    assert both == {}


def test_a_stable_classic_group_shows_its_members(three):
    group = three.do(DescribeGroup("classic"))
    assert (group.error, group.state, group.protocol_name) == (ErrorCode.NONE, "Stable", "range")
    assert [m.assignment for m in group.members] == [b"for m1", b"for m2"]
    assert all(m.metadata for m in group.members)


def test_metadata_is_hidden_while_a_group_rebalances(three):
    three.join_at_once(group_id="classic")
    group = three.do(DescribeGroup("classic"))
    assert (group.state, group.protocol_name) == ("PreparingRebalance", "")
    assert {m.metadata for m in group.members} == {b""}


@pytest.mark.parametrize("name", ["nowhere", "consumer"])
def test_what_is_no_classic_group_is_described_as_dead(three, name):
    group = three.do(DescribeGroup(name))
    assert (group.error, group.state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")


def test_a_consumer_group_shows_epochs_and_targets(three):
    three.beat("b", group_id="consumer")
    group = three.do(ConsumerGroupDescribe("consumer"))
    assert (group.state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    assert group.assignor == "uniform"
    a, b = group.members
    assert three.names(a.assignment) == {"t": [0, 1, 2, 3]}
    assert three.names(a.target_assignment) == {"t": [0, 1]}
    assert (three.names(b.assignment), b.is_classic) == ({}, False)


@pytest.mark.parametrize("name", ["nowhere", "classic"])
def test_what_is_no_consumer_group_is_not_found(three, name):
    assert three.do(ConsumerGroupDescribe(name)).error is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("name", ["classic", "consumer"])
def test_a_group_with_members_is_not_deleted(three, name):
    assert three.do(DeleteGroup(name)).error is ErrorCode.NON_EMPTY_GROUP


def test_an_unknown_group_is_not_deleted(three):
    assert three.do(DeleteGroup("nowhere")).error is ErrorCode.GROUP_ID_NOT_FOUND


def test_deleted_groups_are_gone_with_their_offsets_for_good(three):
    three.beat("a", -1, group_id="consumer")
    three.commit(9, group_id="consumer")
    for name in ("simple", "consumer"):
        assert three.do(DeleteGroup(name)).error is ErrorCode.NONE
    three.restart()
    assert listed(three).keys() == {"classic"}
    assert three.offset(group_id="consumer") == -1
    assert three.offset(group_id="simple") == -1
