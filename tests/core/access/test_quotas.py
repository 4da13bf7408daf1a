"""Quotas: which one counts for whom, and how long a client waits, in Kafka's arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.core.access import quotas
from semel.core.access.quotas import (
    IP,
    MUTATION,
    PRODUCE,
    USER,
    QuotaBook,
    QuotaMeters,
    SampledRate,
    Tokens,
    Windows,
)


def entity(**names):
    return frozenset((kind.replace("_", "-"), name) for kind, name in names.items())


#: From the one that counts first to the one that counts last.
PRECEDENCE = [
    entity(user="u", client_id="c"),
    entity(user="u", client_id=None),
    entity(user="u"),
    entity(user=None, client_id="c"),
    entity(user=None, client_id=None),
    entity(user=None),
    entity(client_id="c"),
    entity(client_id=None),
]


@pytest.mark.parametrize("first", range(len(PRECEDENCE)))
def test_the_closest_quota_counts(first):
    book = QuotaBook()
    for number, one in enumerate(PRECEDENCE[first:], first):
        book.set(one, PRODUCE, 100.0 + number)
    limit, shared = book.for_client(PRODUCE, "u", "c")
    assert limit == 100.0 + first
    assert {kind for kind, _ in shared} == {kind for kind, _ in PRECEDENCE[first]}
    assert shared <= entity(user="u", client_id="c")  # the client's own share, also of a default


def test_a_quota_of_another_kind_does_not_hide_one():
    book = QuotaBook()
    book.set(entity(user="u"), MUTATION, 1.0)
    book.set(entity(client_id="c"), PRODUCE, 5.0)
    assert book.for_client(PRODUCE, "u", "c") == (5.0, entity(client_id="c"))


def test_removing_the_last_quota_of_an_entity_forgets_it():
    book = QuotaBook()
    heard = []
    book.observers.append(lambda: heard.append(bool(book)))
    book.set(entity(user="u"), PRODUCE, 1.0)
    book.set(entity(user="u"), PRODUCE, None)
    book.set(entity(user="nobody"), PRODUCE, None)
    assert heard == [True, False, False]
    assert not list(book)


def test_of_addresses_the_own_one_counts_before_the_default():
    book = QuotaBook()
    assert book.for_address("10.0.0.1") is None
    book.set(frozenset({(IP, None)}), quotas.CONNECTIONS, 5)
    book.set(frozenset({(IP, "10.0.0.1")}), quotas.CONNECTIONS, 7)
    assert (book.for_address("10.0.0.1"), book.for_address("10.0.0.2")) == (7, 5)


def test_ten_seconds_worth_may_be_used_at_once_and_what_is_more_is_waited_for():
    rate = SampledRate(Windows())
    rate.record(1_000, 0)
    assert rate.throttle_ms(100, 0) == 0
    rate.record(500, 0)
    # 1,500 over 10 s are 150 a second: half of the limit too much, so half of 10 s.
    assert rate.throttle_ms(100, 0) == 5_000


def test_after_the_wait_the_rate_is_within_the_limit():
    rate = SampledRate(Windows())
    rate.record(1_500, 0)
    assert rate.throttle_ms(100, 5_000) > 0
    assert rate.throttle_ms(100, 15_000) == 0


def test_what_is_older_than_all_windows_is_forgotten():
    rate = SampledRate(Windows())
    rate.record(1_000_000, 0)
    rate.record(1, 11_000)
    assert rate.measure(11_000)[0] == pytest.approx(0.1)


@given(st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 10_000)), min_size=1, max_size=60))
def test_a_client_that_waits_as_told_stays_near_its_rate(steps):
    rate, now, total, limit = SampledRate(Windows()), 0, 0, 1_000.0
    for pause, size in steps:
        now += pause
        rate.record(size, now)
        total += size
        now += rate.throttle_ms(limit, now)
    # Ten seconds' worth at once in the beginning, and the last request, are beyond the rate.
    assert total <= limit * (now / 1_000 + 11) + 10_000


def test_a_bucket_of_tokens_is_full_at_first_and_refills_at_the_rate():
    tokens = Tokens(Windows())
    tokens.record(11, 1.0, 0)
    assert tokens.throttle_ms(1.0, 0) == 0
    tokens.record(5, 1.0, 0)
    assert tokens.throttle_ms(1.0, 0) == 5_000
    assert tokens.throttle_ms(1.0, 2_000) == 3_000
    assert tokens.throttle_ms(1.0, 9_000) == 0


def metered(key, limit, **names):
    book = QuotaBook()
    book.set(entity(**names), key, limit)
    return QuotaMeters(book)


def test_clients_that_share_a_quota_are_counted_together():
    meters = metered(PRODUCE, 100, user="u")
    assert meters.used(PRODUCE, "u", "a", 1_000, 0) == 0
    assert meters.used(PRODUCE, "u", "b", 1_000, 0) == 10_000
    assert meters.used(PRODUCE, "v", "b", 1_000_000, 0) == 0


def test_of_a_default_everybody_has_a_share_of_their_own():
    meters = metered(PRODUCE, 100, client_id=None)
    assert meters.used(PRODUCE, "u", "a", 1_000, 0) == 0
    assert meters.used(PRODUCE, "u", "b", 1_000, 0) == 0


def test_what_was_not_used_is_given_back():
    meters = metered(PRODUCE, 100, user="u")
    assert meters.used(PRODUCE, "u", "a", 2_000, 0) == 10_000
    meters.give_back(PRODUCE, "u", "a", 2_000, 0)
    assert meters.used(PRODUCE, "u", "a", 1_000, 0) == 0


def test_names_that_clients_make_up_are_forgotten_in_the_end(monkeypatch):
    monkeypatch.setattr(quotas, "MOST_REMEMBERED", 10)
    meters = metered(PRODUCE, 100, client_id=None)
    for number in range(1_000):
        meters.used(PRODUCE, "u", f"c{number}", 1, 0)
    assert len(meters._rates) == 10


class TestMutations:
    def mutations(self, is_strict):
        meters = metered(MUTATION, 1.0, **{USER: "u"})
        return lambda now_ms=0: meters.mutation("u", "c", now_ms, is_strict)

    def test_a_new_client_is_refused_once_the_bucket_is_overdrawn(self):
        request = self.mutations(is_strict=True)()
        assert [request.take(f"t{number}", 5) for number in range(4)] == [True, True, True, False]
        assert request.throttle_ms == 4_000

    def test_an_old_client_is_served_and_waits(self):
        request = self.mutations(is_strict=False)()
        assert all(request.take(f"t{number}", 5) for number in range(4))
        assert request.throttle_ms == 9_000

    def test_asked_again_it_says_the_same_and_takes_no_more(self):
        begin = self.mutations(is_strict=True)
        request = begin()
        assert [request.take("t", 12) for _ in range(5)] == [True] * 5
        assert begin().take("u", 1) is False
        assert begin(2_000).take("u", 1) is True

    def test_without_a_quota_there_is_nothing_to_ask(self):
        assert QuotaMeters(QuotaBook()).mutation("u", "c", 0, True) is None
        assert metered(MUTATION, 1.0, **{"client_id": "x"}).mutation("u", "c", 0, True) is None
