"""Microseconds per message against kio, for the messages of a transaction.

    python benchmarks/codec.py [--rounds 200]

Goal: decode in at most 1.5 times kio's time (whose reader is compiled Rust), encode at least five
times as fast as kio. Both sides get the same bytes; rounds are interleaved and the best one counts.
"""

from __future__ import annotations

import argparse
import io
import timeit
from collections.abc import Callable, Iterator
from statistics import geometric_mean
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from semel.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from semel.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from semel.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from semel.wire.messages.fetch import FetchRequest, FetchResponse
from semel.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from semel.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from semel.wire.messages.metadata import MetadataRequest, MetadataResponse
from semel.wire.messages.produce import ProduceRequest, ProduceResponse
from semel.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from semel.wire.schema import Message
from semel.wire.schema.compile_decode import compile_decoder
from semel.wire.schema.compile_encode import compile_encoder

DECODE_GOAL, ENCODE_GOAL = 1.5, 5.0
CALLS = 50  # in a round
TOPIC, TOPIC_ID, TXN = "orders-by-customer", UUID(int=0x1234_5678_9ABC << 64 | 7), "checkout-17"
PARTITIONS = range(3)
BATCH = bytes(1024)


def transaction_messages() -> Iterator[tuple[Message, int]]:
    """Requests and responses as a Java producer and a consumer exchange them, with their versions;
    those of librdkafka beside them where its version is of the older, inflexible kind."""
    yield ApiVersionsRequest(client_software_name="semel", client_software_version="1.0"), 4
    keys = [ApiVersionsResponse.ApiVersion(api_key=key, max_version=9) for key in range(60)]
    yield ApiVersionsResponse(api_keys=keys), 4
    topics = [MetadataRequest.MetadataRequestTopic(name=TOPIC)]
    yield MetadataRequest(topics=topics, allow_auto_topic_creation=True), 13
    yield _metadata_response(), 13
    yield FindCoordinatorRequest(key_type=1, coordinator_keys=[TXN]), 6
    yield _find_coordinator_response(), 6
    yield InitProducerIdRequest(transactional_id=TXN, transaction_timeout_ms=60_000), 5
    yield InitProducerIdResponse(producer_id=4711, producer_epoch=3), 5
    yield from _add_partitions()
    yield from _produce()
    end = EndTxnRequest(transactional_id=TXN, producer_id=4711, producer_epoch=3, committed=True)
    yield end, 1
    yield end, 5
    yield EndTxnResponse(producer_id=4711, producer_epoch=4), 5
    yield from _offsets()
    yield from _fetch()


def _metadata_response() -> MetadataResponse:
    partitions = [
        MetadataResponse.MetadataResponsePartition(
            partition_index=index,
            leader_id=1,
            leader_epoch=4,
            replica_nodes=[1, 2, 3],
            isr_nodes=[1, 2, 3],
        )
        for index in PARTITIONS
    ]
    return MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=node, host="broker.local", port=9092)
            for node in (1, 2, 3)
        ],
        cluster_id="c1uster-1d-of-22-chars",
        controller_id=1,
        topics=[
            MetadataResponse.MetadataResponseTopic(
                name=TOPIC, topic_id=TOPIC_ID, partitions=partitions
            )
        ],
    )


def _find_coordinator_response() -> FindCoordinatorResponse:
    coordinator = FindCoordinatorResponse.Coordinator(
        key=TXN, node_id=1, host="broker.local", port=9092, error_message=""
    )
    return FindCoordinatorResponse(coordinators=[coordinator])


def _add_partitions() -> Iterator[tuple[Message, int]]:
    request, response = AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
    topic = request.AddPartitionsToTxnTopic(name=TOPIC, partitions=list(PARTITIONS))
    old = request(
        v3_and_below_transactional_id=TXN,
        v3_and_below_producer_id=4711,
        v3_and_below_producer_epoch=3,
        v3_and_below_topics=[topic],
    )
    yield old, 0
    yield old, 3
    results = [
        response.AddPartitionsToTxnPartitionResult(partition_index=index) for index in PARTITIONS
    ]
    result = response.AddPartitionsToTxnTopicResult(name=TOPIC, results_by_partition=results)
    yield response(results_by_topic_v3_and_below=[result]), 0
    yield response(results_by_topic_v3_and_below=[result]), 3


def _produce() -> Iterator[tuple[Message, int]]:
    partitions = [
        ProduceRequest.PartitionProduceData(index=index, records=BATCH) for index in PARTITIONS
    ]
    topic = ProduceRequest.TopicProduceData(
        name=TOPIC, topic_id=TOPIC_ID, partition_data=partitions
    )
    request = ProduceRequest(transactional_id=TXN, acks=-1, timeout_ms=30_000, topic_data=[topic])
    yield request, 7
    yield request, 13
    answers = [
        ProduceResponse.PartitionProduceResponse(index=index, base_offset=123_456)
        for index in PARTITIONS
    ]
    answer = ProduceResponse.TopicProduceResponse(
        name=TOPIC, topic_id=TOPIC_ID, partition_responses=answers
    )
    yield ProduceResponse(responses=[answer]), 7
    yield ProduceResponse(responses=[answer]), 13


def _offsets() -> Iterator[tuple[Message, int]]:
    request, response = TxnOffsetCommitRequest, TxnOffsetCommitResponse
    partitions = [
        request.TxnOffsetCommitRequestPartition(
            partition_index=index, committed_offset=99, committed_metadata=""
        )
        for index in PARTITIONS
    ]
    yield (
        request(
            transactional_id=TXN,
            group_id="checkout",
            producer_id=4711,
            producer_epoch=3,
            generation_id=5,
            member_id="consumer-1-5f0c3b6e-1ac5-4a0f-8c41-5b6e1c1d9f11",
            topics=[request.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=partitions)],
        ),
        5,
    )
    answers = [
        response.TxnOffsetCommitResponsePartition(partition_index=index) for index in PARTITIONS
    ]
    topic = response.TxnOffsetCommitResponseTopic(name=TOPIC, partitions=answers)
    yield response(topics=[topic]), 5


def _fetch() -> Iterator[tuple[Message, int]]:
    wanted = [
        FetchRequest.FetchPartition(partition=index, fetch_offset=99, partition_max_bytes=1 << 20)
        for index in PARTITIONS
    ]
    topic = FetchRequest.FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=wanted)
    request = FetchRequest(max_wait_ms=500, min_bytes=1, isolation_level=1, topics=[topic])
    yield request, 11
    yield request, 18
    aborted = [FetchResponse.AbortedTransaction(producer_id=4711, first_offset=90)]
    found = [
        FetchResponse.PartitionData(
            partition_index=index,
            high_watermark=200,
            last_stable_offset=180,
            log_start_offset=0,
            aborted_transactions=aborted,
            records=BATCH,
        )
        for index in PARTITIONS
    ]
    answer = FetchResponse.FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=found)
    yield FetchResponse(responses=[answer]), 11
    yield FetchResponse(responses=[answer]), 18


def best(functions: list[Callable[[], object]], rounds: int) -> list[float]:
    """The best time of each in microseconds. Many short, interleaved rounds: on a busy machine
    some of them run undisturbed."""
    times = [float("inf")] * len(functions)
    for _ in range(rounds):
        for index, function in enumerate(functions):
            seconds = timeit.timeit(function, number=CALLS)
            times[index] = min(times[index], seconds / CALLS * 1e6)
    return times


def measure(message: Message, version: int, rounds: int) -> tuple[int, list[float]]:
    """Size, and µs of: our decode, our decode of a memoryview, kio's; our encode, kio's."""
    cls = type(message)
    out = bytearray()
    message.encode(out, version)
    data, view = bytes(out), memoryview(bytes(out))
    load = load_request_schema if cls.__name__.endswith("Request") else load_response_schema
    kio_class = load(cls.API_KEY, version)
    # Both sides look their functions up beforehand: kio's way to call it, and `frames` does so too.
    decode = compile_decoder(cls, version, of_views=False)
    decode_view = compile_decoder(cls, version, of_views=True)
    encode = compile_encoder(cls, version)
    read, write = entity_reader(kio_class), entity_writer(kio_class)
    entity, _ = read(data, 0)
    buffer = io.BytesIO()
    write(buffer, entity)
    assert buffer.getvalue() == data, f"{cls.__name__} v{version}: kio writes other bytes"
    return len(data), best(
        [
            lambda: decode(data, 0),
            lambda: decode_view(view, 0),
            lambda: read(data, 0),
            lambda: encode(message, bytearray()),
            lambda: write(io.BytesIO(), entity),
        ],
        rounds,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    heads = ("bytes", "decode", "of view", "kio", "×", "encode", "kio", "faster")
    print(f"{'message':34}" + "".join(f"{head:>9}" for head in heads))
    decodes, encodes = [], []
    for message, version in transaction_messages():
        size, (decode, of_view, kio_decode, encode, kio_encode) = measure(message, version, rounds)
        decodes.append(decode / kio_decode)
        encodes.append(kio_encode / encode)
        print(
            f"{type(message).__name__ + f' v{version}':34}{size:9}{decode:9.2f}{of_view:9.2f}"
            f"{kio_decode:9.2f}{decodes[-1]:9.2f}{encode:9.2f}{kio_encode:9.2f}{encodes[-1]:9.1f}"
        )
    print(
        f"\ndecode: {geometric_mean(decodes):.2f} × kio's time, at worst {max(decodes):.2f} "
        f"(goal ≤ {DECODE_GOAL}); encode: {geometric_mean(encodes):.1f} times as fast as kio, "
        f"at worst {min(encodes):.1f} (goal ≥ {ENCODE_GOAL:.0f})"
    )


if __name__ == "__main__":
    main()
