"""Lending a transaction: both protocols, doubt, fencing, and what a late borrower can still do."""

import pytest

from semel.client.machines.ledger import LedgerEntry
from semel.errors import FencedError, RefusedError, SemelError
from semel.spark.kafka.client import BlockingCluster, is_an_answer
from semel.spark.kafka.ledger import SparkLedger
from semel.spark.kafka.settings import SparkSettings
from semel.spark.kafka.transactions import CommitOutcome, Lender
from semel.spark.query_batch import QueryBatch

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def cluster(kafka):
    found = BlockingCluster(SparkSettings.of(kafka.bootstrap))
    yield found
    found.close()


@pytest.fixture(params=[2, 1], ids=["version 2", "version 1"])
def lender(request, kafka, cluster):
    made = Lender(cluster, f"lender-{kafka.topic(1)}", 60_000)
    made.protocol = request.param
    made.fence()
    return made


def twin(lender):
    """Somebody who still holds what was lent before."""
    other = Lender(BlockingCluster(lender.cluster.settings), lender.transactional_id, 60_000)
    other.protocol, other.producer_id, other.epoch = (
        lender.protocol,
        lender.producer_id,
        lender.epoch,
    )
    return other


def test_what_is_committed_is_seen_and_the_next_loan_has_another_epoch(kafka, lender):
    topic = kafka.topic(1)
    first = lender.lend()
    lender.write(topic, 0, b"k", b"one")
    assert lender.commit() is CommitOutcome.COMMITTED
    second = lender.lend()
    assert (second.producer_id, second.epoch) != (first.producer_id, first.epoch)
    assert second.token != first.token
    lender.write(topic, 0, b"k", b"two")
    lender.commit()
    assert kafka.values(topic) == {"one": 1, "two": 1}


def test_what_is_aborted_is_not_seen_and_its_borrower_is_too_late(kafka, lender):
    topic = kafka.topic(1)
    lender.lend()
    lender.write(topic, 0, b"k", b"aborted")
    zombie = twin(lender)
    lender.abort()
    kafka.wait_until_stable(topic)
    with pytest.raises(SemelError) as refused:
        zombie.write(topic, 0, b"k", b"zombie")
    assert is_an_answer(refused.value)
    assert kafka.values(topic) == {}


def test_a_borrower_of_a_committed_transaction_cannot_write_into_the_next(kafka, lender):
    topic = kafka.topic(1)
    lender.lend()
    lender.write(topic, 0, b"k", b"first")
    zombie = twin(lender)
    lender.commit()
    kafka.wait_until_stable(topic)
    lender.lend()
    with pytest.raises(SemelError) as refused:
        zombie.write(topic, 0, b"k", b"zombie")
    assert is_an_answer(refused.value)
    lender.write(topic, 0, b"k", b"second")
    lender.commit()
    assert kafka.values(topic) == {"first": 1, "second": 1}


def test_a_commit_whose_answer_was_lost_is_found_out_by_asking_again(kafka, lender):
    topic = kafka.topic(1)
    lender.lend()
    lender.write(topic, 0, b"k", b"once")
    assert twin(lender).commit() is CommitOutcome.COMMITTED
    assert lender.commit() is CommitOutcome.COMMITTED
    assert kafka.values(topic) == {"once": 1}


def test_a_commit_that_met_the_other_outcome_is_in_doubt_and_recovers(kafka, lender):
    topic = kafka.topic(1)
    lender.lend()
    lender.write(topic, 0, b"k", b"never")
    twin(lender).abort()
    assert lender.commit() is CommitOutcome.IN_DOUBT
    lender.recover()
    lender.lend()
    lender.write(topic, 0, b"k", b"after")
    assert lender.commit() is CommitOutcome.COMMITTED
    assert kafka.values(topic) == {"after": 1}


def test_an_owner_that_was_taken_over_is_told_so(kafka, lender):
    topic = kafka.topic(1)
    lender.lend()
    lender.write(topic, 0, b"k", b"never")
    newcomer = twin(lender)
    newcomer.fence()
    assert lender.commit() is CommitOutcome.IN_DOUBT
    with pytest.raises(FencedError, match="another driver has taken over"):
        lender.recover()
    newcomer.lend()
    newcomer.write(topic, 0, b"k", b"newcomer")
    newcomer.commit()
    assert kafka.values(topic) == {"newcomer": 1}


def test_offsets_are_committed_with_the_transaction(kafka, lender):
    topic = kafka.topic(2)
    group = f"group-{topic}"
    for offset, end in ((5, lender.commit), (9, lender.abort)):
        lender.lend()
        lender.write(topic, 0, b"k", b"v")
        lender.commit_offsets(group, {(topic, 0): offset, (topic, 1): offset})
        end()
    kafka.wait_until_stable(topic)
    assert kafka.committed_offsets(group) == {(topic, 0): 5, (topic, 1): 5}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_live_members_is_refused_with_that_reason(kafka, lender, protocol):
    topic = kafka.topic(1)
    lender.refuse_live_group(f"busy-{topic}")
    with (
        kafka.member(topic, f"busy-{topic}", protocol),
        pytest.raises(RefusedError, match="has 1 live members"),
    ):
        lender.refuse_live_group(f"busy-{topic}")


def test_the_ledger_finds_an_entry_behind_many_others(kafka, cluster, lender):
    ledger = SparkLedger(cluster, f"mine-{lender.transactional_id}")
    ledger.create()
    mine = QueryBatch("q", 1, ({"a": 1},), ({"a": 2},))
    lender.lend()
    ledger.write(lender, mine)
    lender.commit()
    others = kafka.producer()
    for number in range(3000):
        others.produce(ledger.topic, mine.entry("other").encode(), key=f"other-{number}")
    others.flush()
    assert ledger.read() == mine
    assert SparkLedger(cluster, "nobody").read() is None


def test_an_application_that_was_removed_from_the_ledger_is_unknown(kafka, cluster, lender):
    """Its older entries may be there until compaction takes them."""
    ledger = SparkLedger(cluster, f"mine-{lender.transactional_id}")
    ledger.create()
    lender.lend()
    ledger.write(lender, QueryBatch("q", 1, (), ()))
    lender.commit()
    others = kafka.producer()
    for number in range(1500):
        others.produce(ledger.topic, b"{}", key=f"other-{number}")
    others.produce(ledger.topic, None, key=ledger.application)
    others.flush()
    assert ledger.read() is None


def test_an_aborted_entry_is_not_found(kafka, cluster, lender):
    ledger = SparkLedger(cluster, f"mine-{lender.transactional_id}")
    ledger.create()
    lender.lend()
    ledger.write(lender, QueryBatch("q", 1, (), ()))
    lender.abort()
    assert ledger.read() is None


def test_an_application_that_the_client_recorded_is_not_a_querys(kafka, cluster, lender):
    ledger = SparkLedger(cluster, f"client-{lender.transactional_id}")
    ledger.create()
    others = kafka.producer()
    entry = LedgerEntry(ledger.application, 7, {"query": "q", "start": [], "end": []})
    others.produce(ledger.topic, entry.encode(), key=entry.key)
    others.flush()
    with pytest.raises(RefusedError, match="by client, not by spark"):
        ledger.read()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_producer_ids_rotate_without_a_trace(kafka, lender):
    """The epoch is a short: after 32,766 transactions the coordinator hands out another id."""
    topic = kafka.topic(1)
    while lender.epoch < 32_764:
        lender.recover()
    first = lender.producer_id
    for number in range(10):
        lender.lend()
        lender.write(topic, 0, b"k", str(number).encode())
        assert lender.commit() is CommitOutcome.COMMITTED
    assert lender.producer_id != first
    assert kafka.values(topic) == {str(number): 1 for number in range(10)}
