"""Fetch over the wire: limits, waiting, isolation, sessions, epochs."""

import threading
import uuid

import pytest

from semel.broker.partitions.partition import Appended
from semel.wire.batches import header_at, headers
from semel.wire.errors import ErrorCode
from semel.wire.messages.fetch import FetchRequest


def name_of(answer) -> str:
    return ErrorCode(answer.error_code).name


def values(records) -> list[bytes]:
    return [record.value for record in records]


def transact(broker, in_loop, batch, partition=0):
    """Append the first batch of a transaction as if its coordinator had agreed."""

    def append():
        home = broker.partitions.find("t", partition)
        header = header_at(batch)
        return home.append(header, home.state.ask_verification(header, False, 0))

    appended = in_loop(broker, append)
    assert isinstance(appended, Appended), appended


def end(broker, in_loop, producer_id, epoch, commit, partition=0):
    home = broker.partitions.find("t", partition)
    appended = in_loop(broker, lambda: home.append_marker(producer_id, epoch, commit, 0, 1))
    assert isinstance(appended, Appended), appended


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_with_names_reads_what_was_written(talk, build_batch, version):
    talk.create("t")
    talk.produce("t", build_batch(b"a", b"b"))
    data = talk.fetch("t", 0, version=version)
    assert (data.high_watermark, data.last_stable_offset) == (2, 2)
    assert data.aborted_transactions is None
    assert len(data.records) > 0


@pytest.mark.parametrize("version", range(13, 19))
def test_newer_versions_name_topics_by_id(
    broker, talk, build_batch, new_fetch, decode_records, version
):
    talk.create("t")
    talk.produce("t", build_batch(b"a"))
    request = new_fetch("", 0)
    request.topics[0].topic_id = broker.catalog.topics["t"].id
    [topic] = talk.ask(request, version).responses
    assert topic.topic_id == broker.catalog.topics["t"].id
    assert values(decode_records(topic.partitions[0].records)) == [b"a"]
    request = new_fetch("", 0)
    request.topics[0].topic_id = uuid.uuid4()
    [topic] = talk.ask(request, version).responses
    assert name_of(topic.partitions[0]) == "UNKNOWN_TOPIC_ID"


def test_reading_begins_with_the_batch_that_holds_the_offset(talk, build_batch):
    talk.create("t")
    talk.produce("t", build_batch(b"a", b"b", b"c"))
    talk.produce("t", build_batch(b"d"))
    assert values(talk.read("t", 1)) == [b"a", b"b", b"c", b"d"]
    assert values(talk.read("t", 3)) == [b"d"]
    assert talk.read("t", 4) == []


@pytest.mark.parametrize("offset", [-1, -2, 2, 2**62])
def test_an_offset_outside_of_the_log_is_out_of_range(talk, build_batch, offset):
    talk.create("t")
    talk.produce("t", build_batch(b"a"))
    data = talk.fetch("t", offset)
    assert name_of(data) == "OFFSET_OUT_OF_RANGE"
    assert data.high_watermark == -1


def test_a_place_that_does_not_exist_is_refused(talk):
    talk.create("t")
    assert name_of(talk.fetch("nobody", 0)) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert name_of(talk.fetch("t", 0, partition=1)) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_limits_cut_between_batches_but_the_first_one_always_comes(talk, build_batch):
    talk.create("t")
    size = 0
    for value in (b"a" * 1000, b"b" * 1000, b"c" * 1000):
        batch = build_batch(value)
        size = len(batch)
        talk.produce("t", batch)
    assert len(talk.read("t", partition_max_bytes=1)) == 1
    assert len(talk.read("t", max_bytes=1)) == 1
    assert len(talk.read("t", partition_max_bytes=2 * size)) == 2
    assert len(talk.read("t", partition_max_bytes=3 * size - 1)) == 2
    assert len(talk.read("t", max_bytes=3 * size)) == 3


def test_only_the_first_partition_with_data_may_exceed_the_limit(talk, build_batch):
    talk.create("t", partitions=3)
    for partition in (1, 2):
        talk.produce("t", build_batch(b"x" * 1000), partition)
    answer = talk.ask(_several("t", 3, max_bytes=1), 12)
    sizes = [len(data.records) for data in answer.responses[0].partitions]
    assert [size > 0 for size in sizes] == [False, True, False]


def test_the_last_fetched_epoch_tells_where_a_fork_began(broker, talk, build_batch, in_loop):
    talk.create("t")
    talk.produce("t", build_batch(b"a"))
    topic = broker.catalog.topics["t"]
    before = topic.leader_epochs[0]
    in_loop(broker, lambda: broker.catalog.bump_leader_epoch(topic, 0))
    talk.produce("t", build_batch(b"b"))
    same = talk.fetch("t", 1, last_fetched_epoch=before)
    assert (same.diverging_epoch.epoch, len(same.records) > 0) == (-1, True)
    forked = talk.fetch("t", 2, last_fetched_epoch=before)
    assert (forked.diverging_epoch.epoch, forked.diverging_epoch.end_offset) == (before, 1)
    assert len(forked.records) == 0
    unknown = talk.fetch("t", 2, last_fetched_epoch=before + 7)
    assert name_of(unknown) == "OFFSET_OUT_OF_RANGE"


def test_a_client_with_other_metadata_is_told_so(broker, talk, build_batch):
    talk.create("t")
    current = broker.catalog.topics["t"].leader_epochs[0]
    assert name_of(talk.fetch("t", 0, current_leader_epoch=current)) == "NONE"
    assert name_of(talk.fetch("t", 0, current_leader_epoch=current + 1)) == "UNKNOWN_LEADER_EPOCH"
    broker.catalog.topics["t"].leader_epochs[0] += 1
    assert name_of(talk.fetch("t", 0, current_leader_epoch=current)) == "FENCED_LEADER_EPOCH"


# Waiting


def test_a_fetch_waits_until_something_is_written(broker, talk, build_batch, new_fetch, new_talk):
    talk.create("t")
    talk.tell(new_fetch("t", 0, max_wait_ms=60_000), 12)
    with new_talk(broker.bootstrap_servers) as other:
        other.produce("t", build_batch(b"a"))
    [data] = talk.hear(1, 12).responses[0].partitions
    assert len(data.records) > 0


def test_a_fetch_waits_for_as_many_bytes_as_it_asked_for(
    broker, talk, build_batch, new_fetch, new_talk, decode_records
):
    talk.create("t", partitions=2)
    size = len(build_batch(b"a"))
    talk.tell(_several("t", 2, max_wait_ms=60_000, min_bytes=3 * size), 12)
    with new_talk(broker.bootstrap_servers) as other:
        for partition in (0, 1, 0):
            other.produce("t", build_batch(b"a"), partition)
    partitions = talk.hear(1, 12).responses[0].partitions
    assert [len(decode_records(data.records)) for data in partitions] == [2, 1]


def test_a_fetch_answers_empty_when_its_time_is_up(talk):
    talk.create("t")
    data = talk.fetch("t", 0, max_wait_ms=20)
    assert (name_of(data), len(data.records)) == ("NONE", 0)


def test_a_committed_reader_is_woken_by_the_marker_and_not_by_the_data(
    broker, talk, build_batch, new_fetch, in_loop, decode_records
):
    talk.create("t")
    talk.tell(new_fetch("t", 0, max_wait_ms=60_000, isolation_level=1), 12)
    batch = build_batch(b"a", producer_id=5, epoch=0, sequence=0, transactional=True)
    transact(broker, in_loop, batch)
    in_loop(broker, lambda: None)
    assert in_loop(broker, lambda: len(broker.partitions.find("t", 0).waiters)) == 1
    end(broker, in_loop, 5, 0, commit=True)
    [data] = talk.hear(1, 12).responses[0].partitions
    assert values(decode_records(data.records)) == [b"a"]
    assert in_loop(broker, lambda: len(broker.partitions.find("t", 0).waiters)) == 0


def test_deleting_the_topic_ends_the_wait(broker, talk, new_fetch, in_loop):
    talk.create("t")
    talk.tell(new_fetch("t", 0, max_wait_ms=60_000), 12)
    in_loop(broker, lambda: None)
    in_loop(broker, lambda: broker.catalog.delete_topic("t"))
    [data] = talk.hear(1, 12).responses[0].partitions
    assert name_of(data) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_nothing_waits_for_a_client_that_has_gone(broker, talk, new_fetch, new_talk, in_loop):
    talk.create("t")
    waiters = lambda: len(broker.partitions.find("t", 0).waiters)  # noqa: E731
    timers = lambda: len(broker.loop._scheduled)  # noqa: E731
    before = in_loop(broker, timers)
    with new_talk(broker.bootstrap_servers) as gone:
        for _ in range(50):
            gone.tell(new_fetch("t", 0, max_wait_ms=2**31 - 1), 12)
        while in_loop(broker, waiters) < 50:
            pass
    while in_loop(broker, waiters):
        pass
    assert in_loop(broker, lambda: sum(not t.cancelled() for t in broker.loop._scheduled)) <= before


def test_one_request_that_writes_everywhere_is_read_in_one_answer(
    broker, talk, build_batch, new_talk, decode_records
):
    from semel.wire.messages.produce import ProduceRequest

    talk.create("t", partitions=3)
    talk.tell(_several("t", 3, max_wait_ms=60_000), 12)
    parts = [
        ProduceRequest.PartitionProduceData(index=index, records=build_batch(b"%d" % index))
        for index in range(3)
    ]
    data = ProduceRequest.TopicProduceData(name="t", partition_data=parts)
    with new_talk(broker.bootstrap_servers) as other:
        other.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 9)
    partitions = talk.hear(1, 12).responses[0].partitions
    read = [values(decode_records(data.records)) for data in partitions]
    assert read == [[b"0"], [b"1"], [b"2"]]


# Isolation


def test_committed_readers_stop_at_the_first_open_transaction(broker, talk, build_batch, in_loop):
    talk.create("t")
    talk.produce("t", build_batch(b"before"))
    batch = build_batch(b"open", producer_id=5, epoch=0, sequence=0, transactional=True)
    transact(broker, in_loop, batch)
    talk.produce("t", build_batch(b"after"))
    data = talk.fetch("t", 0, isolation_level=1)
    assert (data.high_watermark, data.last_stable_offset) == (3, 1)
    assert data.aborted_transactions == []
    assert values(talk.read("t", isolation_level=1)) == [b"before"]
    assert values(talk.read("t", isolation_level=0)) == [b"before", b"open", b"after"]


def test_committed_readers_get_the_aborted_transactions_of_what_they_read(
    broker, talk, build_batch, in_loop
):
    talk.create("t")
    for producer_id in (5, 6):
        batch = build_batch(b"x", producer_id=producer_id, epoch=0, sequence=0, transactional=True)
        transact(broker, in_loop, batch)
        end(broker, in_loop, producer_id, 0, commit=False)
    talk.produce("t", build_batch(b"good"))

    def aborted(offset, **fields):
        found = talk.fetch("t", offset, isolation_level=1, **fields).aborted_transactions
        return [(entry.producer_id, entry.first_offset) for entry in found]

    assert aborted(0) == [(5, 0), (6, 2)]
    assert aborted(0, partition_max_bytes=1) == [(5, 0)]
    assert aborted(2) == [(6, 2)]
    assert aborted(4) == []
    assert talk.fetch("t", 0, isolation_level=0).aborted_transactions is None


# Sessions


def ask_session(talk, request, session_id, epoch, version=12):
    request.session_id, request.session_epoch = session_id, epoch
    return talk.ask(request, version)


def test_a_session_answers_only_what_is_new(talk, build_batch):
    talk.create("t", partitions=3)
    first = ask_session(talk, _several("t", 3), 0, 0)
    assert first.session_id > 0
    assert len(first.responses[0].partitions) == 3
    nothing = ask_session(talk, _empty(), first.session_id, 1)
    assert nothing.responses == []
    talk.produce("t", build_batch(b"a"), 1)
    news = ask_session(talk, _empty(), first.session_id, 2)
    assert [data.partition_index for data in news.responses[0].partitions] == [1]


def test_a_session_goes_on_from_the_offsets_it_is_told_and_forgets_partitions(talk, build_batch):
    talk.create("t", partitions=2)
    for partition in (0, 1):
        talk.produce("t", build_batch(b"a"), partition)
    session = ask_session(talk, _several("t", 2), 0, 0).session_id
    moved = _several("t", 1, offset=1)
    again = ask_session(talk, moved, session, 1)
    assert [data.partition_index for data in again.responses[0].partitions] == [1]
    forget = _empty()
    forget.forgotten_topics_data = [FetchRequest.ForgottenTopic(topic="t", partitions=[1])]
    assert ask_session(talk, forget, session, 2).responses == []
    talk.produce("t", build_batch(b"b"), 1)
    assert ask_session(talk, _empty(), session, 3).responses == []


def test_an_error_is_said_again_in_every_answer_of_a_session(talk, build_batch):
    talk.create("t")
    session = ask_session(talk, _several("t", 1, offset=99), 0, 0).session_id
    for epoch in (1, 2):
        answer = ask_session(talk, _empty(), session, epoch)
        assert name_of(answer.responses[0].partitions[0]) == "OFFSET_OUT_OF_RANGE"


def test_partitions_that_got_data_go_to_the_end_of_the_line(talk, build_batch):
    talk.create("t", partitions=3)
    for partition in range(3):
        for _ in range(3):
            talk.produce("t", build_batch(b"x" * 1000), partition)
    session = ask_session(talk, _several("t", 3, max_bytes=1), 0, 0).session_id
    served = []
    for epoch in (1, 2, 3):
        request = _empty()
        request.max_bytes = 1
        [topic] = ask_session(talk, request, session, epoch).responses
        served += [data.partition_index for data in topic.partitions if len(data.records)]
    assert served == [1, 2, 0]


def test_unknown_sessions_and_wrong_epochs_are_refused_as_a_whole(talk):
    talk.create("t")
    session = ask_session(talk, _several("t", 1), 0, 0).session_id
    assert name_of(ask_session(talk, _empty(), session + 1, 1)) == "FETCH_SESSION_ID_NOT_FOUND"
    assert name_of(ask_session(talk, _empty(), session, 9)) == "INVALID_FETCH_SESSION_EPOCH"
    mixed = ask_session(talk, _empty(), session, 1, version=13)
    assert name_of(mixed) == "FETCH_SESSION_TOPIC_ID_ERROR"


def test_the_final_epoch_closes_a_session_and_an_old_version_has_none(broker, talk):
    talk.create("t")
    session = ask_session(talk, _several("t", 1), 0, 0).session_id
    last = ask_session(talk, _several("t", 1), session, -1)
    assert last.session_id == 0
    assert name_of(ask_session(talk, _empty(), session, 1)) == "FETCH_SESSION_ID_NOT_FOUND"
    talk.fetch("t", 0, version=6)
    assert len(broker.partitions.sessions) == 0


def test_a_broker_with_all_session_slots_in_lively_use_answers_without_one(broker, talk):
    talk.create("t")
    broker.partitions.sessions._slots = 1
    assert ask_session(talk, _several("t", 1), 0, 0).session_id > 0
    assert ask_session(talk, _several("t", 1), 0, 0).session_id == 0


def _several(topic: str, count: int, offset: int = 0, **fields) -> FetchRequest:
    partitions = [
        FetchRequest.FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
        )
        for index in range(count)
    ]
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=partitions)]
    return FetchRequest(topics=topics, **{"max_wait_ms": 0, "min_bytes": 1, **fields})


def _empty() -> FetchRequest:
    return FetchRequest(max_wait_ms=0, min_bytes=1)


def test_batches_are_sent_from_the_file_byte_for_byte(broker, talk, build_batch, tmp_path):
    """Regions of both kinds: small ones are copied, large ones go by sendfile."""
    talk.create("t")
    large = build_batch(b"x" * 300_000)
    for batch in (build_batch(b"small"), large, large):
        talk.produce("t", bytearray(batch))
    records = bytes(talk.fetch("t", 0).records)
    path = next((tmp_path / "data" / "t-0").glob("*.log"))
    assert records == path.read_bytes()
    assert [batch.base_offset for batch in headers(records)] == [0, 1, 2]


def test_many_readers_wait_side_by_side(broker, talk, build_batch, new_talk, new_fetch):
    talk.create("t")
    readers = [new_talk(broker.bootstrap_servers) for _ in range(20)]
    for reader in readers:
        reader.tell(new_fetch("t", 0, max_wait_ms=60_000), 12)
    thread = threading.Thread(target=lambda: talk.produce("t", build_batch(b"a")))
    thread.start()
    for reader in readers:
        [data] = reader.hear(1, 12).responses[0].partitions
        assert len(data.records) > 0
        reader.close()
    thread.join()
