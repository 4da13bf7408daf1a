"""One partition over a log in memory: appends, durability, failures, restarts."""

import pytest
from tests.support.memory_log import MemoryLog

from semel.broker.partitions.opening import MUST_OPEN
from semel.core.partition.admission import Refusal
from semel.store.interface import LogConfig, StorageError
from semel.wire.batches import decoded_records, header_at, records_of, verify_crc
from semel.wire.compression import Compression


class Waiter:
    def wake(self) -> None: ...


def append(partition, batch, guard=None):
    """As Produce does it: what must be opened is, then it is appended."""
    batch = header_at(batch)
    if batch.attributes & MUST_OPEN or partition.opens:
        batch = partition.opened(batch, partition._now_ms())
    return batch if isinstance(batch, Refusal) else partition.append(batch, guard)


def stored(partition) -> list:
    return [header_at(batch) for batch in partition.log.batches(partition.log.start_offset)]


def begin(partition, batch):
    """Append the first batch of a transaction whose coordinator agreed."""
    header = header_at(batch)
    guard = partition.state.ask_verification(header, False, 0)
    return partition.append(header, guard)


def test_a_batch_gets_its_offset_and_leader_epoch_and_keeps_every_other_byte(
    new_bench, build_batch
):
    partition = new_bench().partition
    append(partition, build_batch(b"a", b"b"))
    original = bytes(build_batch(b"c"))
    assert append(partition, bytearray(original)).base_offset == 2
    [_, batch] = stored(partition)
    assert (batch.base_offset, batch.leader_epoch) == (2, 3)
    assert bytes(batch.view)[16:] == original[16:]
    assert verify_crc(batch)


def test_appending_and_reading_decode_no_record(new_bench, build_batch):
    partition = new_bench().partition
    before = decoded_records()
    append(partition, build_batch(b"a", b"b", codec=Compression.LZ4))
    append(partition, build_batch(producer_id=1, epoch=0, sequence=0))
    partition.log.read(0, 1 << 20)
    assert decoded_records() == before


def test_a_corrupt_batch_is_refused_and_nothing_is_appended(new_bench, build_batch):
    partition = new_bench().partition
    batch = build_batch(b"abc")
    batch[-2] ^= 1
    assert append(partition, batch).error.name == "CORRUPT_MESSAGE"
    assert partition.log.next_offset == 0


def test_on_an_append_time_topic_the_brokers_clock_counts(new_bench, build_batch):
    bench = new_bench(message_timestamp_type="LogAppendTime")
    appended = append(bench.partition, build_batch(b"a", timestamp=5))
    assert appended.append_time_ms == bench.now_ms
    [batch] = stored(bench.partition)
    assert verify_crc(batch)
    assert [record.timestamp for record in records_of(batch)] == [bench.now_ms]


def test_on_a_create_time_topic_the_answer_names_no_append_time(new_bench, build_batch):
    assert append(new_bench().partition, build_batch(b"a")).append_time_ms == -1


@pytest.mark.parametrize("name", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_a_topic_with_its_own_compression_stores_in_that_one(new_bench, build_batch, name):
    bench = new_bench(compression_type=name)
    append(bench.partition, build_batch(b"a" * 500, producer_id=4, epoch=0, sequence=0))
    append(bench.partition, build_batch(b"b" * 500, codec=Compression.ZSTD))
    wanted = Compression.NONE if name == "uncompressed" else Compression.named(name)
    batches = stored(bench.partition)
    assert {batch.compression for batch in batches} == {wanted}
    assert [record.value for batch in batches for record in records_of(batch)] == [
        b"a" * 500,
        b"b" * 500,
    ]
    assert (batches[0].producer_id, batches[0].base_sequence) == (4, 0)
    assert all(verify_crc(batch) for batch in batches)


def test_a_batch_already_in_the_topics_compression_stays_as_it_came(new_bench, build_batch):
    bench = new_bench(compression_type="lz4")
    batch = build_batch(b"a" * 500, codec=Compression.LZ4)
    body = bytes(batch[61:])
    append(bench.partition, batch)
    assert bytes(stored(bench.partition)[0].view)[61:] == body


def test_a_compacted_topic_refuses_records_without_a_key_by_number(new_bench, build_batch):
    bench = new_bench(cleanup_policy="compact")
    refused = append(bench.partition, build_batch(b"a", b"b", key=None))
    assert refused.error.name == "INVALID_RECORD"
    assert [fault.number for fault in refused.records] == [0, 1]
    assert not isinstance(append(bench.partition, build_batch(b"a")), Refusal)


def test_nothing_is_readable_before_it_is_durable(new_bench, build_batch):
    bench = new_bench()
    partition = bench.partition
    partition.waiters.add(Waiter())
    bench.log.hold()
    appended = append(partition, build_batch(b"a"))
    assert (partition.high_watermark, partition.log.next_offset, bench.woken) == (0, 1, 0)
    bench.log.release()
    assert appended.ticket.durable
    assert (partition.high_watermark, bench.woken) == (1, 1)


def test_a_repeated_batch_waits_for_the_first_one_to_be_durable(new_bench, build_batch):
    bench = new_bench()
    bench.log.hold()
    append(bench.partition, build_batch(producer_id=1, epoch=0, sequence=0))
    repeated = append(bench.partition, build_batch(producer_id=1, epoch=0, sequence=0))
    assert repeated.base_offset == 0
    assert not repeated.ticket.durable
    bench.log.release()
    assert repeated.ticket.durable
    assert bench.log.next_offset == 1


def test_a_marker_not_yet_durable_does_not_move_the_last_stable_offset(new_bench, build_batch):
    bench = new_bench()
    partition = bench.partition
    begin(partition, build_batch(producer_id=1, epoch=0, sequence=0, transactional=True))
    bench.log.hold()
    partition.append_marker(1, 0, True, 0, 1)
    assert (partition.last_stable_offset, partition.high_watermark) == (0, 1)
    bench.log.release()
    assert partition.last_stable_offset == 2


def test_a_failed_disk_refuses_everything_until_the_log_is_opened_again(new_bench, build_batch):
    bench = new_bench()
    partition = bench.partition
    append(partition, build_batch(b"kept"))
    bench.log.fail(StorageError("no space left"))
    assert append(partition, build_batch(b"x")).error.name == "KAFKA_STORAGE_ERROR"
    assert partition.append_internal(build_batch(b"x")).error.name == "KAFKA_STORAGE_ERROR"
    assert partition.append_marker(1, 0, True, 0, 1).error.name == "KAFKA_STORAGE_ERROR"
    bench.log.offline = None
    partition.reopen(bench.log, partition.high_watermark)
    assert append(partition, build_batch(b"y")).base_offset == 1


def test_a_write_that_fails_later_breaks_its_ticket_and_is_never_readable(new_bench, build_batch):
    bench = new_bench()
    bench.log.hold()
    appended = append(bench.partition, build_batch(b"x"))
    bench.log.fail(StorageError("lost"))
    assert appended.ticket.error is not None
    assert bench.partition.high_watermark == 0


def test_state_survives_a_restart_without_a_snapshot(new_bench, build_batch):
    bench = new_bench()
    fill(bench.partition, build_batch)
    again = bench.open()
    assert again.state == bench.partition.state
    assert again.last_stable_offset == bench.partition.last_stable_offset == 6


def test_state_survives_a_restart_from_a_snapshot_alone(new_bench, build_batch):
    bench = new_bench()
    fill(bench.partition, build_batch)
    bench.partition.snapshot()
    again = bench.open()
    assert again.snapshot_offset == bench.log.next_offset
    assert again.state == bench.partition.state


@pytest.mark.parametrize("snapshot_after", range(1, 8))
def test_state_survives_with_a_snapshot_at_any_batch_and_a_lost_index(
    new_bench, build_batch, snapshot_after
):
    bench = new_bench()
    fill(bench.partition, build_batch, snapshot_after)
    bench.log.recovered_from = 0  # recovery scanned everything, and deleted the index
    bench.log.delete_side_file(0, "txnindex")
    again = bench.open()
    assert again.state == bench.partition.state
    assert bench.log.read_side_file(0, "txnindex") is not None


def test_a_damaged_snapshot_is_dropped_and_the_log_read_instead(new_bench, build_batch):
    bench = new_bench()
    fill(bench.partition, build_batch)
    bench.partition.snapshot()
    bench.log.write_side_file(bench.log.next_offset, "snapshot", b"nonsense")
    again = bench.open()
    assert again.state == bench.partition.state
    assert bench.log.side_files("snapshot") == []


def test_every_roll_leaves_a_snapshot_and_the_two_newest_are_kept(new_bench, build_batch):
    log = MemoryLog("t", 0, None, LogConfig(segment_bytes=200))
    bench = new_bench(log)
    for sequence in range(20):
        append(bench.partition, build_batch(producer_id=1, epoch=0, sequence=sequence))
    bases = [segment.base_offset for segment in log.segments()]
    assert len(bases) > 3
    assert log.side_files("snapshot") == bases[-2:]
    again = bench.open()
    assert again.snapshot_offset == bases[-1]
    assert again.state == bench.partition.state


def test_an_aborted_transaction_is_indexed_in_the_segment_of_its_marker(new_bench, build_batch):
    log = MemoryLog("t", 0, None, LogConfig(segment_bytes=200))
    bench = new_bench(log)
    begin(bench.partition, build_batch(producer_id=1, epoch=0, sequence=0, transactional=True))
    for _ in range(6):
        append(bench.partition, build_batch(b"x" * 40))
    bench.partition.append_marker(1, 0, False, 0, 1)
    assert log.side_files("txnindex") == [log.active_base_offset]
    assert bench.open().state == bench.partition.state


def test_producers_outlive_their_deleted_records(new_bench, build_batch):
    log = MemoryLog("t", 0, None, LogConfig(segment_bytes=100))
    bench = new_bench(log)
    for sequence in range(10):
        append(bench.partition, build_batch(producer_id=1, epoch=0, sequence=sequence))
    bench.partition.delete_below(10)
    again = bench.open()
    refused = append(again, build_batch(producer_id=1, epoch=0, sequence=12))
    assert refused.error.name == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert append(again, build_batch(producer_id=1, epoch=0, sequence=10)).base_offset == 10


def test_a_new_leader_epoch_is_remembered_where_it_first_wrote(new_bench, build_batch):
    bench = new_bench()
    append(bench.partition, build_batch(b"a", b"b"))
    bench.topic.leader_epochs[0] = 5
    assert bench.partition.epochs == [(3, 0), (5, 2)]
    append(bench.partition, build_batch(b"c"))
    assert bench.log.epochs == [(3, 0), (5, 2)]


def fill(partition, build_batch, snapshot_after: int = 0) -> None:
    """Idempotent, committed, aborted and open: a bit of everything, one offset a step."""

    def send(producer_id, epoch, sequence, how=append):
        is_first = how is begin
        return how(
            partition,
            build_batch(
                producer_id=producer_id, epoch=epoch, sequence=sequence, transactional=is_first
            ),
        )

    steps = [
        lambda: send(1, 0, 0),
        lambda: send(2, 0, 0, begin),
        lambda: send(3, 4, 0, begin),
        lambda: partition.append_marker(2, 0, False, 1, 1),
        lambda: send(1, 0, 1),
        lambda: partition.append_marker(3, 5, True, 1, 2),
        lambda: send(2, 0, 1, begin),
        lambda: append(partition, build_batch(b"plain")),
    ]
    for number, step in enumerate(steps, 1):
        assert not isinstance(step(), Refusal)
        if number == snapshot_after:
            partition.snapshot()
