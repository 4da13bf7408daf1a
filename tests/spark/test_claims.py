"""Decisions about who may write: given claims, when a task speaks, then a reply."""

import itertools
import random

import pytest

from semel.spark.sink.claims import Claims, Grant, TaskReport, Want

A, B = ("t", 0), ("t", 1)


def want(rows, *targets):
    return Want(rows, targets)


def granted(replies, session):
    return [g for reply in replies if reply.session == session for g in reply.grants]


@pytest.fixture
def claims():
    return Claims()


def test_a_partition_is_granted_with_its_base_sequence_and_continues_for_the_next(claims):
    claims.register(1, 0, 100)
    assert granted(claims.claim(1, [], (want(5, A),)), 1) == [Grant(0, A, 0)]
    assert granted(claims.claim(1, [(A, 5)], (want(3, A),)), 1) == [Grant(0, A, 5)]


def test_a_held_partition_is_waited_for_and_granted_when_given_back(claims):
    claims.register(1, 0, 100)
    claims.register(2, 1, 101)
    claims.claim(1, [], (want(5, A),))
    assert claims.claim(2, [], (want(2, A),)) == []
    assert granted(claims.claim(1, [(A, 5)], ()), 2) == [Grant(0, A, 5)]


def test_any_free_subset_is_granted_at_once(claims):
    claims.register(1, 0, 100)
    claims.register(2, 1, 101)
    claims.claim(1, [], (want(5, A),))
    assert granted(claims.claim(2, [], (want(2, A), want(4, B))), 2) == [Grant(1, B, 0)]


def test_rows_for_anywhere_go_to_the_emptiest_free_partition(claims):
    claims.register(1, 0, 100)
    claims.claim(1, [], (want(5, A),))
    assert granted(claims.claim(1, [(A, 5)], (want(1, A, B),)), 1) == [Grant(0, B, 0)]


def test_two_batches_of_one_claim_never_share_a_partition(claims):
    claims.register(1, 0, 100)
    grants = granted(claims.claim(1, [], (want(1, A, B), want(1, A, B), want(1, A, B))), 1)
    assert sorted(g.target for g in grants) == [A, B]


def test_sequences_start_again_at_zero_after_the_largest(claims):
    claims.register(1, 0, 100)
    claims.claim(1, [], (want(2**31 - 2, A),))
    assert granted(claims.claim(1, [(A, 2**31 - 2)], (want(3, A),)), 1)[0].sequence == 2**31 - 2
    assert granted(claims.claim(1, [(A, 3)], (want(1, A),)), 1)[0].sequence == 1


def test_a_second_attempt_takes_over_from_one_that_wrote_nothing(claims):
    claims.register(1, 0, 100)
    assert claims.register(2, 0, 101).refused is None
    assert "taken over" in claims.claim(1, [], (want(1, A),))[0].refused
    assert claims.abort_reason is None
    assert granted(claims.claim(2, [], (want(1, A),)), 2)


def test_an_older_attempt_that_comes_late_is_refused(claims):
    claims.register(1, 0, 101)
    assert "taken over" in claims.register(2, 0, 100).refused
    assert claims.abort_reason is None


def test_a_second_attempt_after_a_grant_dooms_the_transaction(claims):
    claims.register(1, 0, 100)
    claims.claim(1, [], (want(1, A),))
    claims.claim(1, [(A, 1)], ())
    claims.lost(1)
    assert claims.register(2, 0, 101).refused
    assert "had written" in claims.abort_reason
    assert claims.close([TaskReport(0, 101, 1)]) == claims.abort_reason


def test_the_same_attempt_may_speak_over_several_connections(claims):
    claims.register(1, 0, 100)
    assert claims.register(2, 0, 100).refused is None
    claims.claim(1, [], (want(1, A),))
    claims.claim(2, [], (want(2, B),))
    claims.claim(1, [(A, 1)], ())
    claims.claim(2, [(B, 2)], ())
    assert claims.close([TaskReport(0, 100, 3)]) is None


def test_a_connection_lost_while_holding_dooms_the_transaction(claims):
    claims.register(1, 0, 100)
    claims.claim(1, [], (want(1, A),))
    claims.lost(1)
    assert "lost while" in claims.abort_reason


def test_a_connection_lost_while_waiting_harms_nobody(claims):
    claims.register(1, 0, 100)
    claims.register(2, 1, 101)
    claims.claim(1, [], (want(1, A),))
    claims.claim(2, [], (want(1, A),))
    claims.lost(2)
    assert granted(claims.claim(1, [(A, 1)], ()), 2) == []
    assert claims.abort_reason is None


def test_nobody_gets_a_claim_once_doomed_or_closed(claims):
    claims.register(1, 0, 100)
    claims.must_abort("reason")
    assert claims.claim(1, [], (want(1, A),))[0].refused == "reason"
    closed = Claims()
    closed.register(1, 0, 100)
    closed.close([TaskReport(0, 100, 0)])
    assert "closed" in closed.claim(1, [], (want(1, A),))[0].refused
    assert "closed" in closed.register(2, 1, 101).refused


def test_giving_back_what_is_not_held_or_other_rows_dooms(claims):
    claims.register(1, 0, 100)
    claims.claim(1, [(A, 1)], ())
    assert "did not hold" in claims.abort_reason
    other = Claims()
    other.register(1, 0, 100)
    other.claim(1, [], (want(5, A),))
    other.claim(1, [(A, 4)], ())
    assert "5 were granted" in other.abort_reason


def written(claims, session=1, partition=0, attempt=100, rows=5):
    claims.register(session, partition, attempt)
    claims.claim(session, [], (want(rows, ("t", partition)),))
    claims.claim(session, [(("t", partition), rows)], ())


@pytest.mark.parametrize(
    ("reports", "reason"),
    [
        ([TaskReport(0, 100, 5)], None),
        ([TaskReport(0, 100, 5), TaskReport(1, 7, 0)], None),
        ([], "never reported"),
        ([TaskReport(0, 100, 5), TaskReport(0, 100, 5)], "twice"),
        ([TaskReport(0, 100, 5), TaskReport(2, 7, 0)], r"\[1\] were never reported"),
        ([TaskReport(0, 101, 5)], "task 101 reports it"),
        ([TaskReport(0, 101, 0)], "task 101 reports it"),
        ([TaskReport(0, 100, 4)], "4 reported"),
        ([TaskReport(0, 100, 5), TaskReport(1, 7, 3)], "granted none"),
    ],
)
def test_a_batch_is_committed_only_when_every_row_is_accounted_for(claims, reports, reason):
    written(claims)
    outcome = claims.close(reports)
    if reason is None:
        assert outcome is None
    else:
        with pytest.raises(AssertionError, match=reason):
            raise AssertionError(outcome)


def test_a_partition_still_held_forbids_the_commit(claims):
    claims.register(1, 0, 100)
    claims.claim(1, [], (want(1, A),))
    assert "still being written" in claims.close([TaskReport(0, 100, 1)])


@pytest.mark.parametrize("seed", range(50))
def test_tasks_in_any_order_never_overlap_and_never_starve(seed):
    """Tasks that claim, write and give back at random: sequences are dense, all finish."""
    dice = random.Random(seed)
    claims, log = Claims(), {}
    targets = [("t", p) for p in range(dice.randint(1, 4))]
    work = {
        s: [(dice.randint(1, 9), dice.sample(targets, dice.randint(1, len(targets))))
            for _ in range(dice.randint(0, 12))]
        for s in range(1, dice.randint(2, 6))
    }  # fmt: skip
    rows = {s: sum(n for n, _ in todo) for s, todo in work.items()}
    holding: dict = {s: [] for s in work}
    waiting: dict = {}
    for s in work:
        claims.register(s, s - 1, 100 + s)

    def deliver(replies):
        for reply in replies:
            assert reply.refused is None
            wanted = waiting.pop(reply.session, ())
            for g in reply.grants:
                n = wanted[g.want].rows
                log.setdefault(g.target, []).append((g.sequence, n))
                holding[reply.session].append((g.target, n))
                work[reply.session].remove((n, list(wanted[g.want].candidates)))

    for _ in itertools.count():
        idle = [s for s in work if s not in waiting and (work[s] or holding[s])]
        if not idle:
            break
        s = dice.choice(idle)
        chosen = tuple(Want(n, tuple(c)) for n, c in work[s][: dice.randint(1, 3)])
        released, holding[s] = holding[s], []
        if chosen:
            waiting[s] = chosen
        deliver(claims.claim(s, released, chosen))
    assert not waiting
    assert claims.close([TaskReport(s - 1, 100 + s, rows[s]) for s in work]) is None
    for entries in log.values():
        assert [seq for seq, _ in entries] == list(
            itertools.accumulate([0] + [n for _, n in entries])
        )[:-1]
