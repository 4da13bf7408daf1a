"""Decisions of the client's TransactionManager: which request is next, and what answers lead to."""

from typing import Any

import pytest

from semel.client.machines.transactions import MOVES, NotAllowed, State, TransactionManager, diagram
from semel.client.machines.types import (
    Failure,
    GroupMetadata,
    OffsetAndMetadata,
    Pending,
    ProducerIdentity,
    TopicPartition,
)
from semel.wire.errors import ErrorCode as E
from semel.wire.errors import ErrorKind
from semel.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from semel.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from semel.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from semel.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from semel.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from semel.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

A, B = TopicPartition("a", 0), TopicPartition("b", 1)
GROUP = GroupMetadata("group", 3, "member")
OFFSETS = {A: OffsetAndMetadata(7)}
FOREVER = 10**12


def found(code: E = E.NONE) -> FindCoordinatorResponse:
    coordinator = FindCoordinatorResponse.Coordinator(
        node_id=1, host="h", port=9, error_code=code, error_message=None
    )
    return FindCoordinatorResponse(coordinators=[coordinator])


def identity(code: E = E.NONE, producer_id: int = 5, epoch: int = 0) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=epoch)


def added(codes: dict[TopicPartition, E]) -> AddPartitionsToTxnResponse:
    results = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    result = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            results(
                name=p.topic,
                results_by_partition=[
                    result(partition_index=p.partition, partition_error_code=code)
                ],
            )
            for p, code in codes.items()
        ]
    )


def offsets_committed(code: E = E.NONE) -> TxnOffsetCommitResponse:
    topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
        name="a",
        partitions=[
            TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                partition_index=0, error_code=code
            )
        ],
    )
    return TxnOffsetCommitResponse(topics=[topic])


class Story:
    """Plays the shell: takes the next request, checks its kind, answers it."""

    def __init__(self, version: int = 1, transactional_id: str | None = "t") -> None:
        self.manager = TransactionManager(transactional_id)
        self.manager.version = version
        self.now = 0.0

    def expect(self, kind: type, answer: Any, unsettled: bool = False) -> Any:
        """The next request is of this kind; it is answered ('lost': the connection breaks)."""
        request = self.manager.next_request(FOREVER, unsettled)
        assert request is not None, f"nothing to send instead of {kind.__name__}"
        message = request.message(min(request.version_limit(), kind.VERSIONS.stop - 1))
        assert type(message) is kind
        if answer == "lost":
            request.lost(self.now)
        else:
            request.answered(answer, self.now)
        return message

    def expect_nothing(self, unsettled: bool = False) -> None:
        assert self.manager.next_request(FOREVER, unsettled) is None

    def ready(self) -> "Story":
        pending = self.manager.init_transactions()
        self.expect(FindCoordinatorRequest, found())
        self.expect(InitProducerIdRequest, identity())
        assert pending.settled
        assert self.manager.state is State.READY
        return self

    def in_transaction(self, *partitions: TopicPartition) -> "Story":
        self.ready().manager.begin_transaction()
        for partition in partitions:
            self.manager.add_partition(partition, 0)
        if partitions and self.manager.version == 1:
            self.expect(AddPartitionsToTxnRequest, added(dict.fromkeys(partitions, E.NONE)))
        return self


def failed(pending: Pending, kind: ErrorKind) -> bool:
    return pending.settled and pending.failure is not None and pending.failure.kind is kind


# The table of moves


def test_every_state_is_in_the_table_and_a_fatal_error_is_the_end() -> None:
    assert set(MOVES) == set(State)
    assert MOVES[State.FATAL_ERROR] == frozenset()
    assert all(State.FATAL_ERROR in MOVES[state] for state in State if state.name != "FATAL_ERROR")


def test_the_diagram_is_drawn_from_the_table() -> None:
    assert diagram().count("-->") == 1 + sum(len(targets) for targets in MOVES.values())
    assert "READY --> IN_TRANSACTION" in diagram()


# The ordinary course


def test_a_transaction_of_version_1_adds_partitions_before_records_go_to_them() -> None:
    story = Story().ready()
    manager = story.manager
    manager.begin_transaction()
    manager.add_partition(A, 0)
    assert not manager.may_send_to(A)
    message = story.expect(AddPartitionsToTxnRequest, added({A: E.NONE}))
    assert message.v3_and_below_topics[0].name == "a"
    assert manager.may_send_to(A)
    assert not manager.may_send_to(B)
    commit = manager.commit()
    story.expect_nothing(unsettled=True)
    assert story.expect(EndTxnRequest, EndTxnResponse()).committed
    assert commit.settled
    assert commit.failure is None
    assert manager.state is State.READY
    assert manager.producer == ProducerIdentity(5, 0)
    assert not manager.may_send_to(A)


def test_a_transaction_of_version_2_needs_no_adding_and_gets_its_next_epoch_from_the_end() -> None:
    story = Story(version=2).in_transaction(A)
    manager = story.manager
    assert manager.may_send_to(A)
    story.expect_nothing()
    assert manager.take_sequence_reset()
    manager.commit()
    story.expect(EndTxnRequest, EndTxnResponse(producer_id=5, producer_epoch=1))
    assert manager.producer == ProducerIdentity(5, 1)
    assert manager.take_sequence_reset()
    assert not manager.take_sequence_reset()


def test_version_2_follows_the_producer_id_when_the_epochs_are_used_up() -> None:
    story = Story(version=2).in_transaction(A)
    story.manager.commit()
    story.expect(EndTxnRequest, EndTxnResponse(producer_id=77, producer_epoch=0))
    assert story.manager.producer == ProducerIdentity(77, 0)


@pytest.mark.parametrize("version", [1, 2])
def test_a_transaction_without_records_is_ended_without_a_request(version: int) -> None:
    story = Story(version).in_transaction()
    commit = story.manager.commit()
    story.expect_nothing()
    assert commit.settled
    assert commit.failure is None
    assert story.manager.state is State.READY


def test_offsets_of_version_1_are_added_at_one_coordinator_and_committed_at_the_other() -> None:
    story = Story().in_transaction()
    pending = story.manager.send_offsets(OFFSETS, GROUP, 0)
    story.expect(AddOffsetsToTxnRequest, AddOffsetsToTxnResponse())
    lookup = story.expect(FindCoordinatorRequest, found())
    assert (lookup.key_type, lookup.coordinator_keys) == (0, ["group"])
    assert not pending.settled
    message = story.expect(TxnOffsetCommitRequest, offsets_committed())
    assert (message.generation_id, message.member_id) == (3, "member")
    assert message.topics[0].partitions[0].committed_offset == 7
    assert pending.settled
    story.manager.commit()
    story.expect(EndTxnRequest, EndTxnResponse())


def test_offsets_of_version_2_go_to_the_group_at_once() -> None:
    story = Story(version=2).in_transaction()
    story.manager.send_offsets(OFFSETS, GROUP, 0)
    story.expect(FindCoordinatorRequest, found())
    story.expect(TxnOffsetCommitRequest, offsets_committed())
    story.manager.commit()
    story.expect(EndTxnRequest, EndTxnResponse(producer_id=5, producer_epoch=1))


def test_an_idempotent_producer_asks_any_broker_for_its_id() -> None:
    story = Story(transactional_id=None)
    story.manager.init_transactions()
    message = story.expect(InitProducerIdRequest, identity())
    assert message.transactional_id is None
    assert story.manager.may_send_to(A)


def test_offsets_wait_behind_partitions_and_the_end_comes_last() -> None:
    story = Story().in_transaction()
    story.manager.send_offsets(OFFSETS, GROUP, 0)
    story.manager.add_partition(A, 0)
    story.manager.commit()
    story.expect(AddOffsetsToTxnRequest, AddOffsetsToTxnResponse(), unsettled=True)
    story.expect(AddPartitionsToTxnRequest, added({A: E.NONE}), unsettled=True)
    story.expect(FindCoordinatorRequest, found(), unsettled=True)
    story.expect(TxnOffsetCommitRequest, offsets_committed(), unsettled=True)
    story.expect(EndTxnRequest, EndTxnResponse())


def test_partitions_added_while_a_request_waits_join_it() -> None:
    story = Story().in_transaction()
    story.manager.add_partition(A, 0)
    story.expect(AddPartitionsToTxnRequest, added({A: E.CONCURRENT_TRANSACTIONS}))
    story.manager.add_partition(B, 0)
    message = story.expect(AddPartitionsToTxnRequest, added({A: E.NONE, B: E.NONE}))
    assert [topic.name for topic in message.v3_and_below_topics] == ["a", "b"]
    story.expect_nothing()


# Only one request at a time, and waiting


def test_no_second_request_leaves_before_the_first_is_answered() -> None:
    story = Story()
    story.manager.init_transactions()
    assert story.manager.next_request(0, False) is not None
    story.expect_nothing()


def test_a_request_to_be_repeated_waits_its_time() -> None:
    story = Story().in_transaction(A)
    story.manager.commit()
    story.now = 1000.0
    story.expect(EndTxnRequest, EndTxnResponse(error_code=E.CONCURRENT_TRANSACTIONS))
    wake = story.manager.wake_at_ms()
    assert wake is not None
    assert wake > 1000.0
    assert story.manager.next_request(wake - 1, False) is None
    assert story.manager.next_request(wake, False) is not None


def test_the_first_partition_of_a_transaction_does_not_wait_long_for_the_last_markers() -> None:
    story = Story().in_transaction()
    story.manager.add_partition(A, 0)
    story.expect(AddPartitionsToTxnRequest, added({A: E.CONCURRENT_TRANSACTIONS}))
    assert story.manager.wake_at_ms() == 20.0


# Coordinators that move, and answers that are lost


@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE])
def test_a_lost_coordinator_is_looked_up_and_asked_again(code: E) -> None:
    story = Story().in_transaction(A)
    commit = story.manager.commit()
    story.expect(EndTxnRequest, EndTxnResponse(error_code=code))
    story.expect(FindCoordinatorRequest, found())
    story.expect(EndTxnRequest, EndTxnResponse())
    assert commit.settled
    assert commit.failure is None


@pytest.mark.parametrize("version", [1, 2])
def test_a_commit_whose_answer_is_lost_is_asked_again_before_anything_else(version: int) -> None:
    story = Story(version).in_transaction(A)
    commit = story.manager.commit()
    first = story.expect(EndTxnRequest, "lost")
    assert not commit.settled
    story.expect(FindCoordinatorRequest, "lost")
    story.expect(FindCoordinatorRequest, found(E.COORDINATOR_NOT_AVAILABLE))
    story.expect(FindCoordinatorRequest, found())
    answer = EndTxnResponse() if version == 1 else EndTxnResponse(producer_id=5, producer_epoch=1)
    assert story.expect(EndTxnRequest, answer) == first
    assert commit.settled
    assert story.manager.state is State.READY


def test_a_lost_lookup_waits_longer_each_time() -> None:
    story = Story()
    story.manager.init_transactions()
    waits = []
    for _ in range(5):
        story.expect(FindCoordinatorRequest, "lost")
        waits.append(story.manager.wake_at_ms())
    assert waits == [100.0, 200.0, 400.0, 800.0, 1000.0]


def test_offsets_that_time_out_look_the_group_up_again() -> None:
    story = Story(version=2).in_transaction()
    pending = story.manager.send_offsets(OFFSETS, GROUP, 0)
    story.expect(FindCoordinatorRequest, found())
    story.expect(TxnOffsetCommitRequest, offsets_committed(E.REQUEST_TIMED_OUT))
    story.expect(FindCoordinatorRequest, found())
    story.expect(TxnOffsetCommitRequest, offsets_committed())
    assert pending.settled
    assert pending.failure is None


# Errors that only an abort repairs


def test_a_topic_that_may_not_be_written_to_is_abortable_and_the_producer_goes_on() -> None:
    story = Story().in_transaction()
    manager = story.manager
    manager.add_partition(A, 0)
    manager.add_partition(B, 0)
    codes = {A: E.OPERATION_NOT_ATTEMPTED, B: E.TOPIC_AUTHORIZATION_FAILED}
    story.expect(AddPartitionsToTxnRequest, added(codes))
    assert manager.state is State.ABORTABLE_ERROR
    with pytest.raises(NotAllowed, match=r"b-1 was not added.*not allowed to use this topic") as no:
        manager.commit()
    assert no.value.failure is not None
    assert no.value.failure.kind is ErrorKind.ABORTABLE
    abort = manager.abort()
    story.expect_nothing()
    assert abort.settled
    assert manager.state is State.READY
    manager.begin_transaction()


@pytest.mark.parametrize(
    "code", [E.ILLEGAL_GENERATION, E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID,
             E.GROUP_AUTHORIZATION_FAILED, E.TRANSACTION_ABORTABLE],
)  # fmt: skip
def test_a_group_that_moved_on_makes_the_transaction_abortable(code: E) -> None:
    story = Story(version=2).in_transaction()
    pending = story.manager.send_offsets(OFFSETS, GROUP, 0)
    story.expect(FindCoordinatorRequest, found())
    story.expect(TxnOffsetCommitRequest, offsets_committed(code))
    assert failed(pending, ErrorKind.ABORTABLE)
    story.manager.abort()
    story.expect(EndTxnRequest, EndTxnResponse(producer_id=5, producer_epoch=1))
    assert story.manager.state is State.READY


def test_a_failed_batch_under_version_1_bumps_the_epoch_after_the_abort() -> None:
    story = Story().in_transaction(A)
    manager = story.manager
    manager.take_sequence_reset()
    manager.batch_failed(Failure(ErrorKind.FATAL, "timed out", E.REQUEST_TIMED_OUT))
    assert manager.state is State.ABORTABLE_ERROR
    abort = manager.abort()
    story.expect_nothing(unsettled=True)
    assert not story.expect(EndTxnRequest, EndTxnResponse()).committed
    assert not abort.settled
    assert manager.state is State.INITIALIZING
    bump = story.expect(InitProducerIdRequest, identity(epoch=1))
    assert (bump.producer_id, bump.producer_epoch) == (5, 0)
    assert abort.settled
    assert manager.producer == ProducerIdentity(5, 1)
    assert manager.take_sequence_reset()


def test_a_failed_batch_under_version_2_is_repaired_by_the_abort_itself() -> None:
    story = Story(version=2).in_transaction(A)
    story.manager.batch_failed(Failure(ErrorKind.FATAL, "old epoch", E.INVALID_PRODUCER_EPOCH))
    abort = story.manager.abort()
    story.expect(EndTxnRequest, EndTxnResponse(producer_id=5, producer_epoch=1))
    assert abort.settled
    assert story.manager.state is State.READY


def test_a_batch_that_fails_while_committing_fails_the_commit_which_is_never_sent() -> None:
    story = Story().in_transaction(A)
    commit = story.manager.commit()
    story.manager.batch_failed(Failure(ErrorKind.FATAL, "too large", E.MESSAGE_TOO_LARGE))
    assert failed(commit, ErrorKind.ABORTABLE)
    story.expect_nothing()
    story.manager.abort()
    assert not story.expect(EndTxnRequest, EndTxnResponse()).committed


def test_a_forgotten_producer_id_skips_the_end_and_asks_for_a_new_one() -> None:
    story = Story().in_transaction(A)
    commit = story.manager.commit()
    story.expect(EndTxnRequest, EndTxnResponse(error_code=E.INVALID_PRODUCER_ID_MAPPING))
    assert failed(commit, ErrorKind.ABORTABLE)
    abort = story.manager.abort()
    story.expect(InitProducerIdRequest, identity(producer_id=9))
    assert abort.settled
    assert story.manager.producer == ProducerIdentity(9, 0)


def test_without_epoch_bumps_such_an_error_is_fatal() -> None:
    story = Story().in_transaction(A)
    story.manager.can_bump = False
    story.manager.batch_failed(Failure(ErrorKind.FATAL, "gap", E.OUT_OF_ORDER_SEQUENCE_NUMBER))
    assert story.manager.state is State.FATAL_ERROR


def test_a_second_error_does_not_hide_the_first() -> None:
    story = Story().in_transaction(A)
    story.manager.batch_failed(Failure(ErrorKind.FATAL, "first", E.MESSAGE_TOO_LARGE))
    story.manager.batch_failed(Failure(ErrorKind.FATAL, "second", E.INVALID_RECORD))
    assert story.manager.failure is not None
    assert story.manager.failure.what == "first"


def test_errors_while_aborting_do_not_stop_the_abort() -> None:
    story = Story().in_transaction(A)
    abort = story.manager.abort()
    story.manager.batch_failed(Failure(ErrorKind.FATAL, "late", E.REQUEST_TIMED_OUT))
    story.expect(EndTxnRequest, EndTxnResponse())
    assert not abort.settled  # the batch may have been written: only a new epoch is safe
    story.expect(InitProducerIdRequest, identity(epoch=1))
    assert abort.settled
    assert abort.failure is None


def test_an_added_partition_whose_answer_is_lost_after_an_error_needs_a_new_epoch() -> None:
    story = Story().in_transaction()
    manager = story.manager
    manager.add_partition(A, 0)
    request = manager.next_request(0, False)
    assert request is not None
    manager.fail_abortable(Failure(ErrorKind.ABORTABLE, "something else"), needs_bump=False)
    request.lost(0)
    manager.abort()
    story.expect(FindCoordinatorRequest, found())
    story.expect(InitProducerIdRequest, identity(epoch=2))
    assert manager.state is State.READY


# Errors that end the producer


@pytest.mark.parametrize("code", [E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH])
def test_a_fenced_producer_is_told_so_whatever_the_version_called_it(code: E) -> None:
    story = Story().in_transaction(A)
    commit = story.manager.commit()
    story.expect(EndTxnRequest, EndTxnResponse(error_code=code))
    assert failed(commit, ErrorKind.FATAL)
    assert commit.failure is not None
    assert commit.failure.code is E.PRODUCER_FENCED
    for call in (story.manager.begin_transaction, story.manager.abort, story.manager.commit):
        with pytest.raises(NotAllowed, match="newer producer"):
            call()
    story.expect_nothing()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("code", [E.INVALID_TXN_STATE, E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH])
def test_a_transaction_past_its_timeout_is_told_so_and_one_within_it_is_not(
    code: E, version: int
) -> None:
    for now, told in ((59_999.0, False), (60_000.0, True)):
        story = Story(version).in_transaction(A)
        story.now = now
        commit = story.manager.commit()
        story.expect(EndTxnRequest, EndTxnResponse(error_code=code))
        text = str(commit.failure)
        assert ("had run for 60.0 s, longer than its timeout" in text) == told
        assert ("transaction.timeout.ms, 60000 ms" in text) == told
        assert ("raise transaction_timeout_ms" in text) == told


def test_the_time_of_a_transaction_begins_with_the_first_that_is_sent_in_it() -> None:
    manager = (story := Story(2).in_transaction(A)).manager
    manager.commit()
    story.expect(EndTxnRequest, EndTxnResponse(producer_id=7, producer_epoch=2))
    manager.begin_transaction()
    refused = Failure(ErrorKind.FATAL, "refused", E.INVALID_TXN_STATE)
    assert manager.explained(refused, 90_000.0) is refused, "nothing was sent yet"
    manager.send_offsets(OFFSETS, GROUP, 80_000)
    assert manager.explained(refused, 90_000.0) is refused
    assert "70.0 s" in str(manager.explained(refused, 150_000.0))


@pytest.mark.parametrize(
    "code", [E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, E.INVALID_TXN_STATE, E.UNKNOWN_SERVER_ERROR]
)
def test_what_a_coordinator_will_never_accept_is_fatal(code: E) -> None:
    story = Story().in_transaction(A)
    commit = story.manager.commit()
    story.expect(EndTxnRequest, EndTxnResponse(error_code=code))
    assert failed(commit, ErrorKind.FATAL)
    assert story.manager.state is State.FATAL_ERROR
    assert not story.manager.may_send_to(A)


def test_a_timeout_that_the_broker_does_not_allow_fails_the_initialization() -> None:
    story = Story()
    pending = story.manager.init_transactions()
    story.expect(FindCoordinatorRequest, found())
    story.expect(InitProducerIdRequest, identity(E.INVALID_TRANSACTION_TIMEOUT))
    assert failed(pending, ErrorKind.FATAL)
    assert "transaction.max.timeout.ms" in str(pending.failure)


def test_initializing_waits_while_the_last_transaction_is_aborted_for_us() -> None:
    story = Story()
    pending = story.manager.init_transactions()
    story.expect(FindCoordinatorRequest, found())
    story.expect(InitProducerIdRequest, identity(E.CONCURRENT_TRANSACTIONS))
    story.expect(InitProducerIdRequest, identity(epoch=2))
    assert pending.settled
    assert story.manager.producer.epoch == 2


def test_closing_settles_everything_that_waits() -> None:
    story = Story().in_transaction(A)
    commit = story.manager.commit()
    story.manager.close(Failure(ErrorKind.FATAL, "the producer was closed"))
    assert failed(commit, ErrorKind.FATAL)


# Calls out of order


def test_a_call_that_timed_out_is_repeated_not_replaced() -> None:
    story = Story().in_transaction(A)
    commit = story.manager.commit()
    assert story.manager.commit() is commit
    for call in (story.manager.abort, story.manager.begin_transaction):
        with pytest.raises(NotAllowed, match="call commit_transaction again"):
            call()


def test_calls_out_of_order_say_what_is_missing() -> None:
    manager = TransactionManager("t")
    with pytest.raises(NotAllowed, match="needs init_transactions"):
        manager.begin_transaction()
    story = Story().ready()
    for call in (story.manager.commit, story.manager.abort):
        with pytest.raises(NotAllowed, match="needs begin_transaction"):
            call()
    with pytest.raises(NotAllowed, match="send needs begin_transaction"):
        story.manager.add_partition(A, 0)
    with pytest.raises(NotAllowed, match="needs begin_transaction"):
        story.manager.send_offsets(OFFSETS, GROUP, 0)
    story.manager.begin_transaction()
    with pytest.raises(NotAllowed, match="a transaction is open"):
        story.manager.begin_transaction()


def test_transactions_need_a_transactional_id() -> None:
    manager = TransactionManager(None)
    for call in (manager.begin_transaction, manager.commit, manager.abort):
        with pytest.raises(NotAllowed, match="needs a producer with a transactional_id"):
            call()


# Idempotence without transactions


def test_an_idempotent_producer_bumps_its_own_epoch() -> None:
    story = Story(transactional_id=None)
    manager = story.manager
    manager.init_transactions()
    story.expect(InitProducerIdRequest, identity())
    manager.take_sequence_reset()
    manager.bump_idempotent_epoch()
    assert manager.producer == ProducerIdentity(5, 1)
    assert manager.take_sequence_reset()


def test_an_idempotent_producer_at_the_last_epoch_asks_for_a_new_id() -> None:
    story = Story(transactional_id=None)
    manager = story.manager
    manager.init_transactions()
    story.expect(InitProducerIdRequest, identity(epoch=32767))
    manager.bump_idempotent_epoch()
    assert manager.state is State.UNINITIALIZED
    assert not manager.may_send_to(A)
    manager.init_transactions()
    story.expect(InitProducerIdRequest, identity(producer_id=6))
    assert manager.producer == ProducerIdentity(6, 0)
