"""What each rule that is stated twice for speed saves: the short form beside its twin.

    python -m benchmarks shortcuts

A short form stays only where it pays, and a property test holds it to its twin. Both run in one
process on the same input, in rounds that alternate; medians count. The numbers are nanoseconds of
one call; `calls` says how often it is made.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from statistics import median
from time import perf_counter_ns
from typing import NamedTuple
from uuid import uuid4

from semel.broker.coordinators.marker_sender import PendingCompleteTxn
from semel.broker.server import Broker
from semel.client.machines.accumulator import Accumulator, AccumulatorLimits, PartitionQueue
from semel.client.machines.types import TopicPartition
from semel.core.groups.classic.group import ClassicGroup
from semel.core.groups.encoding import _offset, _offset_key
from semel.core.groups.records import OffsetCommitted
from semel.core.partition.admission import BatchLimits, refusal, refusal_by_rules
from semel.core.partition.state import PartitionState, _goes_on
from semel.core.transactions import records
from semel.core.transactions.commands import VerifyPartitions, WriteMarkers
from semel.core.transactions.partitions import includes, verify_partitions
from semel.core.transactions.states import TxnState
from semel.core.transactions.transaction import Transaction
from semel.store.directory import DiskStore
from semel.store.interface import LogConfig
from semel.wire.batches import (
    HEADER_SIZE,
    BatchBuilder,
    BatchHeader,
    build_few,
    control_batch,
    header_before,
    write_header,
)
from semel.wire.frames import (
    RequestHeader,
    decode_request,
    encode_request,
    encode_response,
    request_reader,
    response_writer,
)
from semel.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from semel.wire.records.consumer_offsets import OffsetCommitValue
from semel.wire.records.transaction_state import TransactionLogValue

ROUNDS, CALLS, WARM_UP = 300, 40, 20
NOW = 1_700_000_000_000
PAYMENTS = ("payments", 0)
ONGOING = Transaction(
    "etl", 7, 3, 60_000, TxnState.ONGOING, frozenset({PAYMENTS}), NOW, NOW, client_version=2
)

Call = Callable[[], object]


class Pair(NamedTuple):
    name: str
    short: Call
    twin: Call
    calls: str


def run() -> None:
    asyncio.run(measure_all())


async def measure_all() -> None:
    print(f"{'rule':58} {'short':>7} {'twin':>7}  ratio  calls")
    with tempfile.TemporaryDirectory() as where:
        async with Broker(data=f"{where}/broker") as broker:
            for pair in chain(pure_pairs(), store_pairs(f"{where}/logs"), marker_pairs(broker)):
                short, twin = measure(pair)
                print(f"{pair.name:58} {short:7.0f} {twin:7.0f} {twin / short:6.2f}  {pair.calls}")


def measure(pair: Pair) -> tuple[float, float]:
    """Medians, in nanoseconds."""
    times: tuple[list[float], list[float]] = [], []
    for number in range(WARM_UP + ROUNDS):
        for call, spent in zip((pair.short, pair.twin), times, strict=True):
            began = perf_counter_ns()
            for _ in range(CALLS):
                call()
            if number >= WARM_UP:
                spent.append((perf_counter_ns() - began) / CALLS)
    return median(times[0]), median(times[1])


def batch(sequence: int = 0) -> bytearray:
    builder = BatchBuilder()
    builder.append(b"key", b"v" * 100, NOW)
    return builder.build(
        producer_id=7, producer_epoch=3, base_sequence=sequence, transactional=True
    )


def pure_pairs() -> Iterator[Pair]:
    yield from partition_pairs()
    yield from codec_pairs()
    yield from record_pairs()
    yield accumulator_pair()
    everything = frozenset({PAYMENTS})
    yield Pair(
        "transactions.partitions.includes / verify_partitions",
        lambda: includes(ONGOING, 7, 3, PAYMENTS),
        lambda: verify_partitions(ONGOING, VerifyPartitions("etl", 7, 3, everything)),
        "every Produce of version 1",
    )


def partition_pairs() -> Iterator[Pair]:
    header, limits = BatchHeader(batch()), BatchLimits()
    yield Pair(
        "admission.refusal / refusal_by_rules",
        lambda: refusal(header, limits, NOW),
        lambda: refusal_by_rules(header, limits, NOW),
        "every batch of a client",
    )
    state = PartitionState()
    state.apply_batch(BatchHeader(batch()), NOW)
    following = BatchHeader(batch(1))
    producer = state.producers[7]
    yield Pair(
        "PartitionState: _goes_on / judge",
        lambda: _goes_on(producer, following, None),
        lambda: state.judge(producer, following, None, None),
        "every batch of a known producer",
    )


def codec_pairs() -> Iterator[Pair]:
    request = EndTxnRequest(transactional_id="etl", producer_id=7, producer_epoch=3, committed=True)
    frame = encode_request(RequestHeader(26, 5, 1, "client"), request)[4:]
    read, write = request_reader(26, 5), response_writer(26, 5)
    response = EndTxnResponse(producer_id=7, producer_epoch=4)
    yield Pair(
        "frames.request_reader / decode_request",
        lambda: read(frame, 16),
        lambda: decode_request(frame),
        "every request",
    )
    yield Pair(
        "frames.response_writer / encode_response",
        lambda: write(response, 1),
        lambda: encode_response(1, response, 5),
        "every answer",
    )
    fields = {
        "attributes": 0x10, "count": 1, "base_timestamp": NOW, "max_timestamp": NOW,
        "producer_id": 7, "producer_epoch": 3, "base_sequence": 0,
    }  # fmt: skip
    buffer = batch()

    def through(buffer: bytearray, **fields: int) -> None:
        buffer[:HEADER_SIZE] = header_before(memoryview(buffer)[HEADER_SIZE:], **fields)

    yield Pair(
        "write_header / header_before, records in place",
        lambda: write_header(buffer, **fields),
        lambda: through(buffer, **fields),
        "every batch of our producer",
    )
    large = bytes(900_000)

    def copied() -> bytearray:
        joined = bytearray(HEADER_SIZE) + large
        write_header(joined, **fields)
        return joined

    yield Pair(
        "header_before / write_header, of 900 KB elsewhere",
        lambda: header_before(large, **fields),
        copied,
        "every batch of the Spark sink: no time, but no copy in memory",
    )


def record_pairs() -> Iterator[Pair]:
    key, value = b"\0\0\0\3etl", bytes(60)
    few = [(key, value)]

    def built() -> bytearray:
        builder = BatchBuilder()
        builder.append(key, value, NOW)
        return builder.build()

    def marker() -> bytearray:
        builder = BatchBuilder()
        builder.append(b"\0\0\0\1", b"\0\0\0\0\0\5", NOW)
        return builder.build(
            producer_id=7, producer_epoch=3, base_offset=9, transactional=True, control=True
        )

    yield Pair(
        "build_few / BatchBuilder", lambda: build_few(few, NOW), built, "coordinators' records"
    )
    packed = partial(
        control_batch, producer_id=7, producer_epoch=3, commit=True, coordinator_epoch=5,
        timestamp=NOW, base_offset=9,
    )  # fmt: skip
    yield Pair("control_batch / BatchBuilder", packed, marker, "every marker")
    yield Pair(
        "transactions.records.encode / TransactionLogValue",
        lambda: records.encode(ONGOING),
        by_schema,
        "three times a transaction",
    )
    commit = OffsetCommitted("group", "orders", 3, 12345, 4, "", NOW)

    def committed() -> tuple[bytes, bytes]:
        value = OffsetCommitValue(
            offset=commit.offset,
            leader_epoch=commit.leader_epoch,
            metadata=commit.metadata,
            commit_timestamp=commit.commit_ms,
            topic_id=commit.topic_id,
        )
        return _offset_key("group", "orders", 3), encoded(value, 4)

    yield Pair(
        "groups.encoding: an offset / OffsetCommitValue",
        lambda: _offset(commit),
        committed,
        "every committed offset",
    )
    yield Pair(
        "Transaction.moved / _replace",
        lambda: ONGOING.moved(TxnState.PREPARE_COMMIT, NOW, next_epoch=4),
        lambda: ONGOING._replace(
            state=TxnState.PREPARE_COMMIT,
            updated_at_ms=NOW,
            previous_producer_id=ONGOING.producer_id,
            cause=None,
            next_epoch=4,
        ),
        "three times a transaction",
    )
    group = ClassicGroup("group")
    yield Pair(
        "ClassicGroup.copy / dataclasses.replace",
        group.copy,
        lambda: replace(
            group,
            members=group.members.copy(),
            protocol_counts=group.protocol_counts.copy(),
            static_members=group.static_members.copy(),
            pending_members=group.pending_members.copy(),
            pending_sync=group.pending_sync.copy(),
        ),
        "every request of a classic member",
    )


def by_schema() -> bytes:
    by_topic = [TransactionLogValue.PartitionsSchema(topic="payments", partition_ids=[0])]
    value = TransactionLogValue(
        producer_id=7,
        producer_epoch=3,
        transaction_timeout_ms=60_000,
        transaction_status=1,
        transaction_partitions=by_topic,
        transaction_last_update_timestamp_ms=NOW,
        transaction_start_timestamp_ms=NOW,
        client_transaction_version=2,
    )
    records.encode_key("etl")
    return encoded(value, 1)


def encoded(message: OffsetCommitValue | TransactionLogValue, version: int) -> bytes:
    out = bytearray(2)
    message.encode(out, version)
    return bytes(out)


def accumulator_pair() -> Pair:
    partition = TopicPartition("t", 0)
    roomy = AccumulatorLimits(batch_size=1 << 40, buffer_memory=1 << 60)

    def filled() -> tuple[Accumulator, PartitionQueue]:
        accumulator = Accumulator(roomy)
        queue = accumulator.queue_of(partition)
        accumulator.append(queue, b"k", b"v" * 100, NOW, (), 120, 0)
        return accumulator, queue

    (short, short_queue), (long, long_queue) = filled(), filled()
    time = asyncio.get_running_loop().time

    def twin() -> None:
        if not long.must_wait(long_queue, 120):
            long.append(long_queue, b"k", b"v" * 100, NOW, (), 120, time() * 1000)

    return Pair(
        "accumulator.append_open / must_wait and append",
        lambda: short.append_open(short_queue, b"k", b"v" * 100, NOW, (), 120),
        twin,
        "every record of our producer",
    )


def store_pairs(where: str) -> Iterator[Pair]:
    store = DiskStore(where)
    config = LogConfig(segment_bytes=1 << 30)
    easy, general = (store.create(name, 0, uuid4(), config) for name in ("easy", "general"))
    made = batch()
    for log in (easy, general):
        log.append([made])

    def short() -> None:
        made[:8] = easy.next_offset.to_bytes(8, "big")
        easy.append_next(made, easy.next_offset, NOW)

    def twin() -> None:
        made[:8] = general.next_offset.to_bytes(8, "big")
        general.append((made,))

    yield Pair("DiskLog.append_next (append_easy) / append", short, twin, "every append")
    store.close()


def marker_pairs(broker: Broker) -> Iterator[Pair]:
    broker.catalog.create_topic("payments", 1)
    prepared = ONGOING._replace(state=TxnState.PREPARE_COMMIT, client_version=0)
    markers, everything = broker.transactions.markers, dict.fromkeys(prepared.partitions)

    def sent() -> None:
        txn = PendingCompleteTxn(WriteMarkers(prepared), 1, lambda: True, lambda order: None)
        markers.send(txn, everything)

    yield Pair(
        "MarkerSender.write / send",
        lambda: markers.write(prepared, 1),
        sent,
        "every transaction's end",
    )


if __name__ == "__main__":
    run()
