"""Subscriptions by regular expression: matched by the broker, refreshed as topics come."""

import pytest
from tests.support.groups.bench import GroupBench

from semel.core.groups.consumer.regexes import compile_regex
from semel.core.groups.replies import RequestRefused, ResolveRegexes
from semel.wire.errors import ErrorCode


@pytest.fixture
def shop() -> GroupBench:
    return GroupBench(orders_eu=2, orders_us=1, stock=1)


def subscribe(bench, member="a", regex="orders_.*", epoch=0, **fields):
    return bench.beat(member, epoch, subscribed_topic_regex=regex, **fields)


def assigned(bench, member="a"):
    return bench.names(bench.consumer().members[member].assigned)


def test_a_member_gets_all_topics_that_match(shop):
    reply = subscribe(shop)
    assert reply.assignment == {}, "matching is ordered first"
    assert reply.heartbeat_interval_ms == 250, "and the member is asked to come back soon"
    shop.beat("a", reply.member_epoch)
    assert assigned(shop) == {"orders_eu": [0, 1], "orders_us": [0]}


def test_the_whole_name_must_match(shop):
    reply = subscribe(shop, regex="orders")
    shop.beat("a", reply.member_epoch)
    assert assigned(shop) == {}


def test_a_new_topic_that_matches_is_added_at_the_next_heartbeats(shop):
    epoch = subscribe(shop).member_epoch
    epoch = shop.beat("a", epoch).member_epoch
    shop.set_topics(orders_eu=2, orders_us=1, stock=1, orders_jp=1)
    epoch = shop.beat("a", epoch).member_epoch
    shop.beat("a", epoch)
    assert assigned(shop)["orders_jp"] == [0]


def test_names_and_an_expression_can_be_combined(shop):
    reply = subscribe(shop, topics=["stock"])
    shop.beat("a", reply.member_epoch)
    assert assigned(shop).keys() == {"orders_eu", "orders_us", "stock"}


def test_a_resolved_expression_is_not_matched_again_for_the_next_member(shop):
    epoch = subscribe(shop).member_epoch
    shop.beat("a", epoch)
    subscribe(shop, "b")
    assert not any(isinstance(effect, ResolveRegexes) for effect in shop.last.effects)
    assert shop.consumer().target["b"]


def test_dropping_the_expression_gives_the_topics_up(shop):
    epoch = subscribe(shop).member_epoch
    epoch = shop.beat("a", epoch).member_epoch
    owned = assigned(shop)
    told = subscribe(shop, regex="", epoch=epoch, topics=["stock"], owned=owned)
    shop.beat("a", told.member_epoch, owned={})
    assert assigned(shop) == {"stock": [0]}
    assert shop.consumer().regexes == {}


def test_the_last_subscriber_takes_the_expression_along(shop):
    subscribe(shop)
    shop.beat("b", topics=["stock"])
    shop.beat("a", -1)
    assert shop.consumer().regexes == {}


def test_resolved_expressions_survive_a_restart(shop):
    epoch = subscribe(shop).member_epoch
    shop.beat("a", epoch)
    known = shop.consumer().regexes
    shop.restart()
    assert shop.consumer().regexes == known


@pytest.mark.parametrize("regex", ["(", "[a", "a**", "(?=a)b", "(?<!a)b", r"(a)\1"])
def test_what_re2_does_not_know_is_refused(shop, regex):
    reply = subscribe(shop, regex=regex)
    assert reply.error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert shop.group() is None
    with pytest.raises(RequestRefused):
        compile_regex(regex)
