"""The same scripted requests to Apache Kafka 4.3.1 and to Semel: every answer compared.

A sequence is a function of a conversation and a protocol; most run under both protocols (version 1:
explicit AddPartitionsToTxn; version 2: KIP-890). Where Semel differs on purpose, the sequence says
so in `docs/differences.md` and is kept out of here.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import pytest
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.process import SemelProcess
from tests.support.conversations.conversation import Conversation, Session

pytestmark = pytest.mark.interop

COMMIT, ABORT = True, False
# Both brokers look for timed-out transactions ten times a second, so that sequences are quick.
SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
}


@dataclass(frozen=True)
class Protocol:
    name: str
    produce: int
    end: int
    explicit: bool

    def write(self, c: Conversation, session: Session, partition: int = 0, count: int = 1) -> int:
        """A record into the transaction, as a client of this protocol does it."""
        if self.explicit:
            c.add(session, [partition])
        return c.produce(session, partition, count=count, version=self.produce)

    def end_txn(self, c: Conversation, session: Session, commit: bool) -> Session:
        return c.end(session, commit, self.end)


OLD = Protocol("version 1", produce=11, end=4, explicit=True)
NEW = Protocol("version 2", produce=12, end=5, explicit=False)

Sequence = Callable[[Conversation, Protocol], None]
SEQUENCES: list[tuple[Sequence, Protocol]] = []


def both(sequence: Sequence) -> Sequence:
    SEQUENCES.extend([(sequence, OLD), (sequence, NEW)])
    return sequence


def old(sequence: Sequence) -> Sequence:
    SEQUENCES.append((sequence, OLD))
    return sequence


def new(sequence: Sequence) -> Sequence:
    SEQUENCES.append((sequence, NEW))
    return sequence


# Ending.


@both
def a_commit_is_seen(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.write(c, session, 0, count=3)
    p.write(c, session, 1)
    c.look()
    p.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")
    c.look()


@both
def an_abort_is_not_seen(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.write(c, session, 0, count=3)
    p.write(c, session, 2)
    p.end_txn(c, session, ABORT)
    c.wait_for("CompleteAbort")
    c.look()


@both
def a_commit_is_retried(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.write(c, session)
    for _ in range(3):
        p.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")
    c.look()


@both
def an_abort_is_retried(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.write(c, session)
    for _ in range(3):
        p.end_txn(c, session, ABORT)
    c.wait_for("CompleteAbort")
    c.look()


@both
def a_commit_cannot_become_an_abort(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.write(c, session)
    p.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")
    p.end_txn(c, session, ABORT)
    c.look()


@both
def an_abort_cannot_become_a_commit(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.write(c, session)
    p.end_txn(c, session, ABORT)
    c.wait_for("CompleteAbort")
    p.end_txn(c, session, COMMIT)
    c.look()


@both
def nothing_written_is_committed(c: Conversation, p: Protocol) -> None:
    p.end_txn(c, c.init(), COMMIT)
    c.describe()


@both
def nothing_written_is_aborted(c: Conversation, p: Protocol) -> None:
    p.end_txn(c, c.init(), ABORT)
    if not p.explicit:
        c.wait_for("CompleteAbort")
    c.describe()


@new
def nothing_written_is_aborted_again_and_again(c: Conversation, p: Protocol) -> None:
    session = c.init()
    for _ in range(3):
        session = p.end_txn(c, session, ABORT)
        c.wait_for("CompleteAbort")
        c.describe()
    p.write(c, session)
    session = p.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")
    p.end_txn(c, session, COMMIT)
    p.end_txn(c, session, ABORT)
    c.wait_for("CompleteAbort")
    c.describe()


@both
def transactions_follow_each_other(c: Conversation, p: Protocol) -> None:
    session = c.init()
    for number in range(4):
        p.write(c, session, number % 3)
        session = p.end_txn(c, session, commit=number % 2 == 0)
    c.wait_for("CompleteAbort")
    c.look()


@both
def an_end_is_retried_after_the_next_transaction_began(c: Conversation, p: Protocol) -> None:
    first = c.init()
    p.write(c, first)
    second = p.end_txn(c, first, COMMIT)
    c.wait_for("CompleteCommit")
    p.write(c, second, 1)
    if not p.explicit:  # version 1 cannot tell this retry from the second transaction's own end
        p.end_txn(c, first, COMMIT)
        p.end_txn(c, first, ABORT)
    c.describe()
    p.end_txn(c, second, ABORT)
    c.wait_for("CompleteAbort")
    c.look()


@both
def wrong_epochs_end_nothing(c: Conversation, p: Protocol) -> None:
    session = c.init()
    session = c.init()
    p.write(c, session)
    p.end_txn(c, session.older(), COMMIT)
    p.end_txn(c, session.newer(), COMMIT)
    p.end_txn(c, session.newer(7), ABORT)
    c.describe()
    p.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")


@both
def a_wrong_epoch_with_nothing_open(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.end_txn(c, session.newer(), COMMIT)
    p.end_txn(c, session.newer(), ABORT)
    session = c.init()
    p.end_txn(c, session.older(), COMMIT)
    p.end_txn(c, session.older(), ABORT)
    c.describe()


@both
def a_stranger_ends_nothing(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.write(c, session)
    stranger = Session(session.producer_id + 100_000, session.epoch)
    p.end_txn(c, stranger, COMMIT)
    p.end_txn(c, stranger, ABORT)
    c.describe()


@both
def an_unknown_id_ends_nothing(c: Conversation, p: Protocol) -> None:
    p.end_txn(c, Session(123_456_789, 0), COMMIT)
    p.end_txn(c, Session(123_456_789, 0), ABORT)
    c.describe()


@old
def every_end_version_speaks_of_fencing_in_its_way(c: Conversation, p: Protocol) -> None:
    session = c.init()
    session = c.init()
    p.write(c, session)
    for version in range(5):
        c.end(session.older(), COMMIT, version)
    c.end(session, COMMIT, 0)
    c.wait_for("CompleteCommit")
    for version in range(5):
        c.end(session, COMMIT, version)


@both
def the_protocols_are_mixed_by_one_id(c: Conversation, p: Protocol) -> None:
    other = NEW if p is OLD else OLD
    session = c.init()
    p.write(c, session)
    session = p.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")
    other.write(c, session, 1)
    session = other.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")
    c.look()


# InitProducerId.


@both
def init_bumps_the_epoch(c: Conversation, p: Protocol) -> None:
    for _ in range(3):
        c.init()
        c.describe()


@both
def init_takes_over_an_open_transaction(c: Conversation, p: Protocol) -> None:
    zombie = c.init()
    p.write(c, zombie)
    heir = c.init()
    c.look()
    p.end_txn(c, zombie, COMMIT)
    p.end_txn(c, zombie, ABORT)
    c.produce(zombie, 0, version=p.produce)
    p.write(c, heir)
    p.end_txn(c, heir, COMMIT)
    c.wait_for("CompleteCommit")
    c.look()


@both
def a_zombie_adds_nothing(c: Conversation, p: Protocol) -> None:
    zombie = c.init()
    p.write(c, zombie)
    heir = c.init()
    c.add(zombie, [1])
    c.add(zombie.newer(), [1])
    c.add_offsets(zombie)
    p.write(c, heir, 2)
    c.add(zombie, [1])
    c.produce(zombie, 1, version=p.produce)
    p.end_txn(c, heir, ABORT)
    c.wait_for("CompleteAbort")
    c.look()


@both
def init_after_a_commit(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.write(c, session)
    p.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")
    heir = c.init()
    p.end_txn(c, session, COMMIT)
    p.write(c, heir)
    p.end_txn(c, heir, COMMIT)
    c.wait_for("CompleteCommit")
    c.look()


@both
def init_with_the_expected_epoch_bumps(c: Conversation, p: Protocol) -> None:
    session = c.init()
    bumped = c.init(expected=session)
    c.init(expected=session)
    c.init(expected=session)
    c.describe()
    again = c.init(expected=bumped)
    c.init(expected=session)
    c.init(expected=again.newer())
    c.describe()


@both
def init_with_an_expected_epoch_over_an_open_transaction(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.write(c, session)
    heir = c.init(expected=session)
    c.look()
    c.init(expected=session)
    p.write(c, heir)
    p.end_txn(c, heir, COMMIT)
    c.wait_for("CompleteCommit")
    c.look()


@both
def init_with_the_wrong_expectations(c: Conversation, p: Protocol) -> None:
    c.init(expected=Session(987_654_321, 3))
    session = c.init()
    c.init(expected=Session(session.producer_id + 100_000, 0))
    c.init(expected=session.newer(5))
    c.init(expected=Session(session.producer_id, -1))
    c.init(expected=Session(-1, session.epoch))
    c.describe()


@old
def an_old_producers_expectation_after_a_takeover(c: Conversation, p: Protocol) -> None:
    zombie = c.init()
    p.write(c, zombie)
    c.init()
    c.init(expected=zombie)
    c.init(expected=zombie.newer())
    c.describe()


@old
def bad_timeouts_are_refused(c: Conversation, p: Protocol) -> None:
    for timeout_ms in (0, -1, 900_001, 2**31 - 1, 900_000, 1):
        c.init(timeout_ms=timeout_ms)
    c.describe()


@old
def producer_ids_without_a_transactional_id(c: Conversation, p: Protocol) -> None:
    c.init(transactional_id=None)
    c.init(transactional_id=None, timeout_ms=0)
    c.init(transactional_id=None, expected=Session(5, 5))


@old
def every_init_version_answers(c: Conversation, p: Protocol) -> None:
    for version in range(6):
        c.init(version=version)
    c.describe()


# Partitions.


@old
def unknown_partitions_add_nothing(c: Conversation, p: Protocol) -> None:
    session = c.init()
    c.add(session, [0, 99])
    c.add(session, [0], topic="no-such-topic")
    c.describe()
    c.add(session, [0, 1])
    c.add(session, [1, 2])
    c.add(session, [1, 2])
    c.describe()
    p.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")
    c.look()


@old
def adding_with_wrong_epochs(c: Conversation, p: Protocol) -> None:
    session = c.init()
    session = c.init()
    for version in range(4):
        c.add(session.older(), [0], version)
        c.add(session.newer(), [0], version)
        c.add(Session(session.producer_id + 100_000, 0), [0], version)
    c.describe()


@old
def adding_to_an_unknown_id(c: Conversation, p: Protocol) -> None:
    for version in range(4):
        c.add(Session(123_456_789, 0), [0], version)
    c.add_offsets(Session(123_456_789, 0))


@old
def adding_begins_the_next_transaction(c: Conversation, p: Protocol) -> None:
    session = c.init()
    c.add(session, [0])
    p.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")
    c.add(session, [1])
    c.describe()
    p.end_txn(c, session, ABORT)
    c.wait_for("CompleteAbort")
    c.look()


@old
def brokers_verify_partitions(c: Conversation, p: Protocol) -> None:
    session = c.init()
    c.add_batched(session, [0], verify_only=True)
    c.add_batched(session, [0])
    c.add_batched(session, [0], verify_only=True)
    c.add_batched(session, [0, 1], verify_only=True)
    c.add_batched(session.newer(), [0], verify_only=True)
    c.add_batched(Session(session.producer_id + 100_000, 0), [0], verify_only=True)
    p.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")
    c.add_batched(session, [0], verify_only=True)


@old
def brokers_verify_an_unknown_id(c: Conversation, p: Protocol) -> None:
    c.add_batched(Session(123_456_789, 0), [0], verify_only=True)
    c.add_batched(Session(123_456_789, 0), [0])


# Produce.


@old
def producing_without_adding_is_refused(c: Conversation, p: Protocol) -> None:
    session = c.init()
    for version in (9, 10, 11):
        c.produce(session, 0, version=version)
    c.add(session, [1])
    for version in (9, 10, 11):
        c.produce(session, 0, version=version)
    c.produce(session, 1, version=11)
    c.look()


@old
def producing_after_the_end_is_refused(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.write(c, session)
    p.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")
    c.produce(session, 0, version=11)
    c.produce(session, 0, version=9)
    c.look()


@new
def producing_at_the_old_epoch_after_the_end_is_refused(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.write(c, session)
    p.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")
    c.produce(session, 0, version=12)
    c.produce(session, 1, version=12, sequence=0)
    c.look()


@both
def producing_with_wrong_epochs(c: Conversation, p: Protocol) -> None:
    session = c.init()
    session = c.init()
    p.write(c, session)
    c.produce(session.older(), 0, version=p.produce)
    c.produce(session.newer(), 0, version=p.produce)
    c.produce(session.older(), 1, version=p.produce)
    c.produce(Session(session.producer_id + 100_000, 0), 0, version=p.produce)
    c.look()


@both
def duplicates_and_gaps(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.write(c, session, 0, count=2)
    c.produce(session, 0, sequence=0, count=2, version=p.produce)
    c.produce(session, 0, sequence=2, count=1, version=p.produce)
    c.produce(session, 0, sequence=0, count=2, version=p.produce)
    c.produce(session, 0, sequence=5, version=p.produce)
    c.produce(session, 0, sequence=1, version=p.produce)
    for number in range(5):
        c.produce(session, 0, sequence=3 + number, version=p.produce)
    c.produce(session, 0, sequence=0, count=2, version=p.produce)
    c.produce(session, 0, sequence=3, version=p.produce)
    c.look()


@both
def a_first_sequence_that_is_not_zero(c: Conversation, p: Protocol) -> None:
    session = c.init()
    if p.explicit:
        c.add(session, [0])
    c.produce(session, 0, sequence=7, version=p.produce)
    c.produce(session, 0, sequence=0, version=p.produce)
    c.look()


@both
def a_new_epoch_starts_at_zero(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.write(c, session, count=3)
    p.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")
    heir = c.init()
    if p.explicit:
        c.add(heir, [0])
    c.produce(heir, 0, sequence=3, version=p.produce)
    c.produce(heir, 0, sequence=0, version=p.produce)
    c.look()


@old
def idempotent_producers_without_transactions(c: Conversation, p: Protocol) -> None:
    session = c.init(transactional_id=None)
    for sequence in (0, 1, 1, 0, 5, 2):
        c.produce(session, 0, sequence=sequence, transactional=False)
    c.produce(session.newer(), 0, sequence=1, transactional=False)
    c.produce(session.newer(), 0, sequence=0, transactional=False)
    c.produce(session, 0, sequence=3, transactional=False)
    c.produce(session, 1, sequence=9, transactional=False)
    c.look()


@both
def a_record_outside_the_open_transaction(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.write(c, session)
    c.produce(session, 0, transactional=False, version=p.produce)
    c.look()


# Time.


@both
def a_timed_out_transaction_cannot_commit(c: Conversation, p: Protocol) -> None:
    session = c.init(timeout_ms=200)
    p.write(c, session)
    c.wait_for("CompleteAbort")
    p.end_txn(c, session, COMMIT)
    c.describe()
    c.look()


@both
def a_timed_out_transaction_is_aborted_by_its_producer(c: Conversation, p: Protocol) -> None:
    session = c.init(timeout_ms=200)
    p.write(c, session)
    c.wait_for("CompleteAbort")
    p.end_txn(c, session, ABORT)
    c.describe()


@both
def a_timed_out_producer_writes_nothing_more(c: Conversation, p: Protocol) -> None:
    session = c.init(timeout_ms=200)
    p.write(c, session)
    c.wait_for("CompleteAbort")
    c.produce(session, 0, version=p.produce)
    c.produce(session, 1, version=p.produce)
    c.add(session, [1])
    c.look()


@both
def a_timed_out_producer_begins_anew(c: Conversation, p: Protocol) -> None:
    session = c.init(timeout_ms=200)
    p.write(c, session)
    c.wait_for("CompleteAbort")
    heir = c.init(expected=session)
    p.write(c, heir)
    p.end_txn(c, heir, COMMIT)
    c.wait_for("CompleteCommit")
    c.look()


# Offsets.


@both
def offsets_commit_with_the_transaction(c: Conversation, p: Protocol) -> None:
    session = c.init()
    if p.explicit:
        c.add_offsets(session)
    c.commit_offset(session, 42, version=3 if p.explicit else 5)
    c.committed(require_stable=True)
    c.committed(require_stable=False)
    p.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")
    c.committed()
    c.describe()


@both
def offsets_abort_with_the_transaction(c: Conversation, p: Protocol) -> None:
    session = c.init()
    for offset, outcome in ((10, COMMIT), (20, ABORT)):
        if p.explicit:
            c.add_offsets(session)
        c.commit_offset(session, offset, version=3 if p.explicit else 5)
        session = p.end_txn(c, session, outcome)
        c.wait_for("CompleteCommit" if outcome else "CompleteAbort")
        c.committed()


@old
def offsets_without_adding_the_group(c: Conversation, p: Protocol) -> None:
    session = c.init()
    for version in (2, 3, 4):
        c.commit_offset(session, 7, version=version)
    c.add(session, [0])
    for version in (2, 3, 4):
        c.commit_offset(session, 7, version=version)
    c.committed()


@both
def offsets_of_a_zombie(c: Conversation, p: Protocol) -> None:
    zombie = c.init()
    heir = c.init()
    if p.explicit:
        c.add_offsets(zombie)
        c.add_offsets(heir)
    c.commit_offset(heir, 5, version=3 if p.explicit else 5)
    c.commit_offset(zombie, 6, version=3 if p.explicit else 5)
    p.end_txn(c, heir, COMMIT)
    c.wait_for("CompleteCommit")
    c.committed()


@both
def offsets_of_an_unknown_member(c: Conversation, p: Protocol) -> None:
    session = c.init()
    if p.explicit:
        c.add_offsets(session)
    version = 3 if p.explicit else 5
    c.commit_offset(session, 5, version, generation=3, member="nobody")
    c.commit_offset(session, 5, version, generation=3)
    c.commit_offset(session, 5, version, generation=-1, member="nobody")
    c.committed()


@old
def adding_offsets_with_wrong_epochs(c: Conversation, p: Protocol) -> None:
    session = c.init()
    session = c.init()
    for version in range(4):
        c.add_offsets(session.older(), version)
        c.add_offsets(session.newer(), version)
    c.describe()


# Seeing and repairing.


@both
def an_operator_aborts_a_transaction_by_its_marker(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.write(c, session)
    c.write_marker(session, ABORT)
    c.look()
    c.write_marker(session, ABORT)
    c.produce(session, 0, version=p.produce)
    c.look()


@old
def markers_with_strange_epochs(c: Conversation, p: Protocol) -> None:
    session = c.init()
    session = c.init()
    p.write(c, session)
    c.write_marker(session.older(), ABORT)
    c.write_marker(session, ABORT, coordinator_epoch=5)
    c.write_marker(session, ABORT, coordinator_epoch=4)
    c.write_marker(session.newer(), COMMIT, coordinator_epoch=5)
    c.look()


@new
def markers_of_transaction_version_two(c: Conversation, p: Protocol) -> None:
    session = c.init()
    p.write(c, session)
    c.write_marker(session, ABORT, version=2, transaction_version=2)
    c.write_marker(session.newer(), ABORT, version=2, transaction_version=2)
    c.write_marker(session.newer(), ABORT, version=2, transaction_version=2)
    c.write_marker(session, ABORT, version=2, transaction_version=2)
    c.look()


@old
def a_marker_for_an_unknown_partition(c: Conversation, p: Protocol) -> None:
    session = c.init()
    c.write_marker(session, ABORT, partition=77)
    c.write_marker(session, COMMIT, partition=0)
    c.look()


@both
def lists_are_filtered(c: Conversation, p: Protocol) -> None:
    c.list_states()
    session = c.init()
    c.list_states(["Empty"])
    p.write(c, session)
    c.list_states()
    c.list_states(["Ongoing"])
    c.list_states(["Empty", "NoSuchState", "Ongoing"])
    c.list_states(pattern="no-match.*")
    c.list_states(pattern="(broken")
    p.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")
    c.list_states(["Ongoing"])
    c.list_states(["CompleteCommit"])


@old
def looking_at_an_unknown_id(c: Conversation, p: Protocol) -> None:
    c.look()


# Exhaustion: 32,766 epochs, driven to the end by a fast producer.


def _at_epoch(c: Conversation, epoch: int) -> Session:
    session = c.init()
    quiet = len(c.transcript)
    while session.epoch < epoch:
        session = c.init()
    del c.transcript[quiet:]
    return session


@both
def epochs_run_out_at_init(c: Conversation, p: Protocol) -> None:
    session = _at_epoch(c, 32_764)
    for _ in range(4):
        session = c.init()
    c.describe()
    p.write(c, session)
    p.end_txn(c, session, COMMIT)
    c.wait_for("CompleteCommit")
    c.look()


@new
def epochs_run_out_at_commit(c: Conversation, p: Protocol) -> None:
    session = _at_epoch(c, 32_764)
    for number in range(4):
        p.write(c, session, number % 3)
        session = p.end_txn(c, session, COMMIT)
        c.wait_for("CompleteCommit")
        c.describe()
    c.look()


@both
def epochs_run_out_in_a_takeover(c: Conversation, p: Protocol) -> None:
    zombie = _at_epoch(c, 32_766)
    p.write(c, zombie)
    heir = c.init()
    c.produce(zombie, 0, version=p.produce)
    p.write(c, heir)
    p.end_txn(c, heir, COMMIT)
    c.wait_for("CompleteCommit")
    c.look()


def play(bootstrap: str, sequence: Sequence, protocol: Protocol) -> list[str]:
    with closing(Conversation(bootstrap)) as conversation:
        sequence(conversation, protocol)
        return conversation.transcript


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("sequence", "protocol"),
    SEQUENCES,
    ids=[f"{sequence.__name__}-{protocol.name}" for sequence, protocol in SEQUENCES],
)
def test_semel_answers_as_apache_kafka_does(
    kafka: ApacheKafka, alike: SemelProcess, sequence: Sequence, protocol: Protocol
) -> None:
    assert play(alike.bootstrap, sequence, protocol) == play(kafka.bootstrap, sequence, protocol)
