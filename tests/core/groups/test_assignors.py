"""The broker's assignors: examples, and what must hold for any group."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.core.groups.consumer.assign import ASSIGNORS, Subscriber, range_, uniform

T, U, V = (UUID(int=number) for number in (1, 2, 3))


def member(name, topics=(T,), has=None, instance=None):
    held = {t: frozenset(p) for t, p in (has or {}).items()}
    return Subscriber(name, instance, frozenset(topics), held)


def sizes(result):
    return sorted(sum(map(len, topics.values())) for topics in result.values())


def test_range_gives_everybody_the_same_slice_of_every_topic():
    result = range_([member("a", (T, U)), member("b", (T, U))], {T: 3, U: 4})
    assert result == {
        "a": {T: frozenset({0, 1}), U: frozenset({0, 1})},
        "b": {T: frozenset({2}), U: frozenset({2, 3})},
    }


def test_range_orders_static_members_by_their_instance_id():
    result = range_([member("a", instance="2"), member("b"), member("z", instance="1")], {T: 3})
    assert {m: min(p[T]) for m, p in result.items()} == {"z": 0, "a": 1, "b": 2}


def test_range_counts_only_those_who_want_the_topic():
    result = range_([member("a", (T,)), member("b", (T, U)), member("c", (U,))], {T: 2, U: 2})
    assert result["b"] == {T: frozenset({1}), U: frozenset({0})}


def test_uniform_spreads_evenly():
    members = [member(name, (T, U)) for name in "abc"]
    assert sizes(uniform(members, {T: 4, U: 4})) == [2, 3, 3]


def test_uniform_moves_only_what_a_newcomer_needs():
    members = [member("a", has={T: {0, 1, 2, 3}}), member("b")]
    result = uniform(members, {T: 4})
    assert result == {"a": {T: frozenset({0, 1})}, "b": {T: frozenset({2, 3})}}


def test_uniform_leaves_a_balanced_group_alone_whoever_has_the_extra_partition():
    members = [member("a", has={T: {0}}), member("b", has={T: {1, 2}})]
    result = uniform(members, {T: 3})
    assert result == {"a": {T: frozenset({0})}, "b": {T: frozenset({1, 2})}}


def test_uniform_takes_back_topics_that_are_no_longer_wanted():
    members = [member("a", (U,), has={T: {0}, U: {0}}), member("b", (U,))]
    result = uniform(members, {T: 1, U: 2})
    assert result == {"a": {U: frozenset({0})}, "b": {U: frozenset({1})}}


def test_uniform_evens_out_different_subscriptions():
    members = [member("a", (T, U)), member("b", (U,)), member("c", (T,))]
    assert sizes(uniform(members, {T: 3, U: 3})) == [2, 2, 2]


def test_uniform_balances_what_members_already_have():
    members = [member("a", (T, U), has={T: {0, 1, 2, 3}}), member("b", (T,), has={})]
    result = uniform(members, {T: 4, U: 0})
    assert sizes(result) == [2, 2]


@pytest.mark.parametrize("assign", [range_, uniform])
def test_nobody_and_nothing(assign):
    assert assign([], {}) == {}
    assert assign([member("a", ())], {T: 3}) == {"a": {}}


groups = st.lists(st.frozensets(st.sampled_from([T, U, V])), min_size=1, max_size=7)
counts = st.fixed_dictionaries({topic: st.integers(0, 9) for topic in (T, U, V)})


@pytest.mark.parametrize("name", ASSIGNORS)
@given(wanted=groups, later=groups, partitions=counts)
def test_every_wanted_partition_has_exactly_one_owner_who_wants_it(name, wanted, later, partitions):
    result: dict = {}
    for topics_of in (wanted, later):
        members = [
            Subscriber(str(index), None, topics, result.get(str(index), {}))
            for index, topics in enumerate(topics_of)
        ]
        result = ASSIGNORS[name](members, partitions)
        given_out = [(t, p) for topics in result.values() for t in topics for p in topics[t]]
        everything = {(t, p) for topics in topics_of for t in topics for p in range(partitions[t])}
        assert len(given_out) == len(set(given_out))
        assert set(given_out) == everything
        for one in members:
            assert result[one.member_id].keys() <= one.topics


@given(size=st.integers(1, 9), later=st.integers(1, 9), partitions=counts)
def test_uniform_keeps_alike_members_within_one_partition_and_moves_no_more(
    size, later, partitions
):
    everything = frozenset({T, U, V})
    first = uniform([Subscriber(str(i), None, everything, {}) for i in range(size)], partitions)
    members = [Subscriber(str(i), None, everything, first.get(str(i), {})) for i in range(later)]
    second = uniform(members, partitions)
    assert max(sizes(second)) - min(sizes(second)) <= 1
    for one in members:
        kept = sum(len(one.has.get(t, frozenset()) & p) for t, p in second[one.member_id].items())
        had, has = sizes({"": one.has})[0], sizes({"": second[one.member_id]})[0]
        assert kept == min(had, has), "a member gives up no more than it must"
