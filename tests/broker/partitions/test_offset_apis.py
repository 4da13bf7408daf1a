"""ListOffsets, DeleteRecords, OffsetForLeaderEpoch, DescribeProducers, InitProducerId."""

import pytest

from semel.broker.server import Broker
from semel.wire.errors import ErrorCode
from semel.wire.messages.delete_records import DeleteRecordsRequest
from semel.wire.messages.describe_producers import DescribeProducersRequest
from semel.wire.messages.init_producer_id import InitProducerIdRequest
from semel.wire.messages.list_offsets import ListOffsetsRequest
from semel.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING = -1, -2, -3, -4, -5, -6


def name_of(answer) -> str:
    return ErrorCode(answer.error_code).name


def list_offsets(talk, timestamp, version=11, topic="t", partition=0, isolation=0, epoch=-1):
    asked = ListOffsetsRequest.ListOffsetsPartition(
        partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch
    )
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[asked])],
    )
    return talk.ask(request, version).topics[0].partitions[0]


def open_transaction(broker, in_loop, batch):
    from semel.wire.batches import header_at

    partition = broker.partitions.find("t", 0)
    header = header_at(batch)
    in_loop(
        broker,
        lambda: partition.append(header, partition.state.ask_verification(header, False, 0)),
    )


@pytest.mark.parametrize("version", range(1, 12))
def test_every_version_tells_earliest_and_latest(talk, build_batch, version):
    talk.create("t")
    talk.produce("t", build_batch(b"a", b"b"))
    assert list_offsets(talk, EARLIEST, version).offset == 0
    assert list_offsets(talk, LATEST, version).offset == 2


def test_offsets_are_found_by_time(broker, talk, build_batch):
    talk.create("t")
    for timestamp in (1_000, 3_000, 2_000):
        talk.produce("t", build_batch(b"v", timestamp=timestamp))
    epoch = broker.catalog.topics["t"].leader_epochs[0]

    def found(timestamp):
        answer = list_offsets(talk, timestamp)
        return (answer.timestamp, answer.offset, answer.leader_epoch)

    assert found(0) == (1_000, 0, epoch)
    assert found(1_001) == (3_000, 1, epoch)
    assert found(3_001) == (-1, -1, -1)
    assert found(MAX_TIMESTAMP) == (3_000, 1, epoch)


def test_tiers_that_do_not_exist_answer_as_kafka_without_them(talk, build_batch):
    talk.create("t")
    talk.produce("t", build_batch(b"v"))
    assert list_offsets(talk, EARLIEST_LOCAL).offset == 0
    assert list_offsets(talk, LATEST_TIERED).offset == -1
    assert list_offsets(talk, PENDING).offset == -1


@pytest.mark.parametrize(
    ("timestamp", "version"),
    [(MAX_TIMESTAMP, 6), (EARLIEST_LOCAL, 7), (LATEST_TIERED, 8), (PENDING, 10), (-7, 11)],
)
def test_a_question_newer_than_its_version_is_refused(talk, timestamp, version):
    talk.create("t")
    assert name_of(list_offsets(talk, timestamp, version)) == "UNSUPPORTED_VERSION"


def test_an_empty_partition_has_no_largest_timestamp(talk):
    talk.create("t")
    answer = list_offsets(talk, MAX_TIMESTAMP)
    assert (name_of(answer), answer.offset) == ("NONE", -1)


def test_committed_readers_are_told_the_last_stable_offset(broker, talk, build_batch, in_loop):
    talk.create("t")
    talk.produce("t", build_batch(b"a", timestamp=1_000))
    batch = build_batch(
        b"b", producer_id=1, epoch=0, sequence=0, transactional=True, timestamp=5_000
    )
    open_transaction(broker, in_loop, batch)
    assert list_offsets(talk, LATEST, isolation=1).offset == 1
    assert list_offsets(talk, LATEST, isolation=0).offset == 2
    assert list_offsets(talk, 4_000, isolation=1).offset == -1
    assert list_offsets(talk, 4_000, isolation=0).offset == 1


def test_places_and_epochs_that_do_not_exist_are_refused(talk):
    talk.create("t")
    assert name_of(list_offsets(talk, LATEST, topic="x")) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert name_of(list_offsets(talk, LATEST, partition=1)) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert name_of(list_offsets(talk, LATEST, epoch=99)) == "UNKNOWN_LEADER_EPOCH"


def test_a_partition_asked_for_twice_is_refused_the_second_time(talk):
    talk.create("t")
    asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    topic = ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[asked, asked])
    answer = talk.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), 7)
    assert [name_of(part) for part in answer.topics[0].partitions] == ["NONE", "INVALID_REQUEST"]


# DeleteRecords


def delete(talk, offset, topic="t", version=2):
    asked = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[asked])],
        timeout_ms=1_000,
    )
    return talk.ask(request, version).topics[0].partitions[0]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_deleting_moves_the_start(talk, build_batch, version):
    talk.create("t")
    for _ in range(5):
        talk.produce("t", build_batch(b"v"))
    assert delete(talk, 3, version=version).low_watermark == 3
    assert list_offsets(talk, EARLIEST).offset == 3
    assert name_of(talk.fetch("t", 2)) == "OFFSET_OUT_OF_RANGE"
    assert len(talk.read("t", 3)) == 2
    assert delete(talk, 1, version=version).low_watermark == 3
    assert delete(talk, -1, version=version).low_watermark == 5


@pytest.mark.parametrize("offset", [6, -2, 2**62])
def test_deleting_beyond_the_log_is_refused(talk, build_batch, offset):
    talk.create("t")
    talk.produce("t", build_batch(b"v"))
    answer = delete(talk, offset)
    assert (name_of(answer), answer.low_watermark) == ("OFFSET_OUT_OF_RANGE", -1)


def test_a_compacted_topic_and_an_unknown_one_refuse(talk):
    talk.create("t", cleanup_policy="compact")
    assert name_of(delete(talk, 0)) == "POLICY_VIOLATION"
    assert name_of(delete(talk, 0, topic="x")) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_the_start_survives_a_restart(tmp_path, new_talk, build_batch):
    with Broker(data=tmp_path) as broker, new_talk(broker.bootstrap_servers) as talk:
        talk.create("t")
        for _ in range(5):
            talk.produce("t", build_batch(b"v"))
        delete(talk, 3)
    with Broker(data=tmp_path) as broker, new_talk(broker.bootstrap_servers) as talk:
        assert list_offsets(talk, EARLIEST).offset == 3
        assert talk.produce("t", build_batch(b"v")).base_offset == 5


# OffsetForLeaderEpoch


def epoch_end(talk, leader_epoch, current=-1, version=4, topic="t"):
    asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
        partition=0, current_leader_epoch=current, leader_epoch=leader_epoch
    )
    group = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=topic, partitions=[asked])
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[group])
    return talk.ask(request, version).topics[0].partitions[0]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_epoch_ends_where_the_next_begins(broker, talk, build_batch, in_loop, version):
    talk.create("t")
    topic = broker.catalog.topics["t"]
    first = topic.leader_epochs[0]
    talk.produce("t", build_batch(b"a", b"b"))
    in_loop(broker, lambda: broker.catalog.bump_leader_epoch(topic, 0))
    talk.produce("t", build_batch(b"c"))
    old = epoch_end(talk, first, version=version)
    assert (old.leader_epoch, old.end_offset) == (first, 2)
    new = epoch_end(talk, first + 1, version=version)
    assert (new.leader_epoch, new.end_offset) == (first + 1, 3)
    unknown = epoch_end(talk, first + 2, version=version)
    assert (name_of(unknown), unknown.end_offset) == ("NONE", -1)
    assert name_of(epoch_end(talk, first, current=first)) == "FENCED_LEADER_EPOCH"
    assert name_of(epoch_end(talk, first, topic="x")) == "UNKNOWN_TOPIC_OR_PARTITION"


# DescribeProducers


def test_producers_are_described_with_their_open_transactions(broker, talk, build_batch, in_loop):
    talk.create("t")
    talk.produce("t", build_batch(b"a", b"b", producer_id=4, epoch=2, sequence=0, timestamp=7_000))
    batch = build_batch(b"c", producer_id=5, epoch=0, sequence=0, transactional=True)
    open_transaction(broker, in_loop, batch)
    request = DescribeProducersRequest(
        topics=[DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0, 1])]
    )
    here, nowhere = talk.ask(request, 0).topics[0].partitions
    found = {
        state.producer_id: (
            state.producer_epoch,
            state.last_sequence,
            state.current_txn_start_offset,
        )
        for state in here.active_producers
    }
    assert found == {4: (2, 1, -1), 5: (0, 0, 2)}
    assert here.active_producers[0].last_timestamp == 7_000
    assert name_of(nowhere) == "UNKNOWN_TOPIC_OR_PARTITION"


# InitProducerId


def init(talk, version=5, **fields):
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000, **fields)
    return talk.ask(request, version)


def test_fresh_producer_ids_are_never_repeated_also_across_restarts(tmp_path, new_talk):
    seen = set()
    for _ in range(3):
        with Broker(data=tmp_path) as broker, new_talk(broker.bootstrap_servers) as talk:
            for version in range(6):
                answer = init(talk, version)
                assert (name_of(answer), answer.producer_epoch) == ("NONE", 0)
                assert answer.producer_id not in seen
                seen.add(answer.producer_id)


def test_a_block_of_ids_is_followed_by_the_next(broker, talk):
    ids = [init(talk).producer_id for _ in range(1_005)]
    assert len(set(ids)) == 1_005


def test_half_an_identity_is_refused_and_a_whole_one_replaced(talk):
    assert name_of(init(talk, producer_id=5)) == "INVALID_REQUEST"
    assert name_of(init(talk, producer_epoch=5)) == "INVALID_REQUEST"
    assert name_of(init(talk, producer_id=5, producer_epoch=0)) == "NONE"
