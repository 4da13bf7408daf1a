"""Reading: the isolation filter, fetch sessions, and a view of the cluster that grows wiser."""

from uuid import UUID

from semel.client.machines.fetching import (
    EARLIEST,
    Aborted,
    EpochEndOffset,
    FetchErrorAction,
    FetchSession,
    PartitionFetch,
    TopicPartitionState,
    Truncation,
    action_for,
    end_of,
    look_for_truncation,
    visible_batches,
)
from semel.client.machines.metadata import ClusterMetadata
from semel.client.machines.types import TopicPartition
from semel.wire.batches import BatchBuilder, control_batch, records_of
from semel.wire.errors import ErrorCode as E
from semel.wire.messages.metadata import MetadataResponse

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)


class Log:
    def __init__(self) -> None:
        self.data = bytearray()
        self.end = 0

    def write(self, producer: int, *values: bytes, transactional: bool = True) -> "Log":
        builder = BatchBuilder()
        for value in values:
            builder.append(None, value, 0)
        self.data += builder.build(
            producer_id=producer, producer_epoch=0, base_sequence=0, transactional=transactional,
            base_offset=self.end,
        )  # fmt: skip
        self.end += len(values)
        return self

    def mark(self, producer: int, commit: bool) -> "Log":
        self.data += control_batch(
            producer_id=producer, producer_epoch=0, commit=commit, coordinator_epoch=0,
            timestamp=0, base_offset=self.end,
        )  # fmt: skip
        self.end += 1
        return self

    def seen(self, aborted: list[Aborted] | None, position: int = 0) -> list[bytes | None]:
        batches = visible_batches(bytes(self.data), position, aborted)
        return [record.value for batch in batches for record in records_of(batch)]


def test_aborted_records_are_left_out_and_the_producers_next_transaction_is_not() -> None:
    log = Log().write(1, b"void").write(2, b"b").mark(1, False).mark(2, True)
    log.write(1, b"good").mark(1, True)
    assert log.seen([Aborted(1, 0)]) == [b"b", b"good"]
    assert log.seen(None) == [b"void", b"b", b"good"]


def test_two_aborted_transactions_of_one_producer_are_both_left_out() -> None:
    log = Log().write(1, b"x").mark(1, False).write(1, b"y").mark(1, True)
    log.write(1, b"z").mark(1, False)
    assert log.seen([Aborted(1, 4), Aborted(1, 0)]) == [b"y"]


def test_records_outside_transactions_pass_also_from_a_producer_that_aborted() -> None:
    log = Log().write(1, b"void").write(1, b"plain", transactional=False).mark(1, False)
    assert log.seen([Aborted(1, 0)]) == [b"plain"]


def test_a_fetch_from_the_middle_of_an_aborted_transaction_shows_nothing_of_it() -> None:
    log = Log().write(1, b"a").write(1, b"b").mark(1, False).write(1, b"c").mark(1, True)
    assert log.seen([Aborted(1, 0)], position=1) == [b"c"]


def test_what_is_skipped_is_read_and_not_fetched_again() -> None:
    log = Log().write(1, b"void").mark(1, False)
    assert end_of(bytes(log.data), 0) == 2
    assert end_of(bytes(log.data)[:-1], 0) == 1  # the marker was cut off
    assert end_of(b"", 5) == 5


def test_a_session_names_only_what_changed() -> None:
    session = FetchSession()
    first = {P: PartitionFetch(0, 0, -1, 100), Q: PartitionFetch(0, 0, -1, 100)}
    assert session.build(first) == (first, [])
    session.answered(77)
    assert (session.session_id, session.epoch) == (77, 1)
    moved = {P: PartitionFetch(5, 0, -1, 100)}
    assert session.build(moved) == (moved, [Q])
    session.answered(77)
    assert session.build(moved) == ({}, [])
    assert session.epoch == 2
    session.restart()
    assert session.build(moved) == (moved, [])
    assert (session.session_id, session.epoch) == (0, 0)


def test_a_broker_without_sessions_gets_full_fetches() -> None:
    session = FetchSession()
    wanted = {P: PartitionFetch(0, 0, -1, 100)}
    session.build(wanted)
    session.answered(0)
    assert session.build(wanted) == (wanted, [])
    assert session.epoch == 0


def test_an_unanswered_fetch_does_not_change_what_the_broker_is_thought_to_know() -> None:
    session = FetchSession()
    session.build({P: PartitionFetch(0, 0, -1, 100)})
    session.answered(1)
    session.build({P: PartitionFetch(9, 0, -1, 100)})
    assert session.build({P: PartitionFetch(9, 0, -1, 100)}) == (
        {P: PartitionFetch(9, 0, -1, 100)},
        [],
    )


def test_errors_of_a_fetch_have_their_remedies() -> None:
    assert action_for(E.OFFSET_OUT_OF_RANGE) == FetchErrorAction.RESET
    assert action_for(E.NOT_LEADER_OR_FOLLOWER) == FetchErrorAction.REFRESH
    assert action_for(E.UNKNOWN_LEADER_EPOCH) == FetchErrorAction.AGAIN
    assert action_for(E.TOPIC_AUTHORIZATION_FAILED) == FetchErrorAction.RAISE


def test_a_partition_is_fetched_only_with_a_position() -> None:
    state = TopicPartitionState(P)
    assert not state.is_fetchable
    state.seek(5)
    assert state.is_fetchable
    state.paused = True
    assert not state.is_fetchable
    state.paused = False
    state.lose_position(EARLIEST)
    assert not state.is_fetchable


def test_a_position_is_doubted_when_another_leader_has_the_log() -> None:
    state = TopicPartitionState(P)
    assert not state.is_doubtful(3)  # there is no position
    state.seek(5)
    assert not state.is_doubtful(3)  # nor an epoch to ask by
    state.seek(5, leader_epoch=2)
    assert not state.is_doubtful(-1)  # the broker tells no epochs
    assert state.is_doubtful(3)
    assert look_for_truncation(state, EpochEndOffset(2, 5), asked_of=3) is None
    assert not state.is_doubtful(3)
    assert state.is_doubtful(4)


def test_a_log_that_ends_before_the_position_was_truncated() -> None:
    state = TopicPartitionState(P)
    state.seek(5, leader_epoch=2)
    assert look_for_truncation(state, EpochEndOffset(1, 4), asked_of=3) == Truncation(P, 5, 4)
    assert look_for_truncation(state, EpochEndOffset(-1, -1), asked_of=3) == Truncation(P, 5, None)
    assert state.is_doubtful(3)


def answer(leader: int, epoch: int, code: E = E.NONE, topic_id: int = 1) -> MetadataResponse:
    return MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=n, host="h", port=n) for n in (1, 2)
        ],
        topics=[
            MetadataResponse.MetadataResponseTopic(
                name="t",
                topic_id=UUID(int=topic_id),
                error_code=code,
                partitions=[
                    MetadataResponse.MetadataResponsePartition(
                        partition_index=0, leader_id=leader, leader_epoch=epoch
                    )
                ],
            )
        ],
    )


def leader(metadata: ClusterMetadata) -> int | None:
    node = metadata.leader(P)
    return None if node is None else node.node_id


def test_an_older_leader_does_not_replace_a_newer_one() -> None:
    metadata = ClusterMetadata()
    metadata.update(answer(1, 5), 0)
    metadata.update(answer(2, 4), 0)
    assert leader(metadata) == 1
    metadata.update(answer(2, 6), 0)
    assert leader(metadata) == 2
    metadata.leader_moved(P, 1, 7)
    assert leader(metadata) == 1


def test_topics_that_are_gone_are_forgotten_when_all_were_asked_for() -> None:
    metadata = ClusterMetadata()
    metadata.update(answer(1, 5), 0)
    metadata.update(answer(2, 4), 0, complete=True)
    assert leader(metadata) == 1  # still the later one
    metadata.update(MetadataResponse(topics=[]), 0, complete=True)
    assert metadata.partition_count("t") == 0


def test_a_topic_made_anew_begins_with_nothing_known() -> None:
    metadata = ClusterMetadata()
    metadata.update(answer(1, 5), 0)
    metadata.update(answer(2, 0, topic_id=2), 0)
    assert leader(metadata) == 2


def test_metadata_is_asked_for_when_it_is_old_or_wrong_or_lacks_a_topic() -> None:
    metadata = ClusterMetadata(max_age_ms=100)
    assert metadata.needs_refresh(0)
    metadata.update(answer(1, 0), 0)
    assert not metadata.needs_refresh(99, ["t"])
    assert metadata.needs_refresh(100)
    assert metadata.needs_refresh(0, ["other"])
    metadata.expire()
    assert metadata.needs_refresh(0)
    metadata.update(answer(1, 0, code=E.UNKNOWN_TOPIC_OR_PARTITION), 0)
    assert leader(metadata) is None
