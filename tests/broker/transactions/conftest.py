"""A transactional producer that says exactly what it is told to, over a real connection."""

import time
from collections.abc import Callable

import pytest

from semel.wire.batches import BatchBuilder, headers, records_of
from semel.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from semel.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.end_txn import EndTxnRequest
from semel.wire.messages.fetch import FetchRequest
from semel.wire.messages.find_coordinator import FindCoordinatorRequest
from semel.wire.messages.init_producer_id import InitProducerIdRequest
from semel.wire.messages.produce import ProduceRequest

COMMITTED = 1


class Peer:
    """Speaks version 1 of transactions with these versions; pass others to speak version 2."""

    def __init__(self, ask, transactional_id="etl") -> None:
        self.ask = ask
        self.transactional_id = transactional_id
        self.producer_id, self.epoch = -1, -1
        self.sequences: dict[tuple[str, int], int] = {}

    async def create_topic(self, name="t", partitions=1):
        topic = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1
        )
        answer = await self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 5)
        assert answer.topics[0].error_code == 0

    async def find(self):
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=[self.transactional_id])
        return (await self.ask(request, 4)).coordinators[0]

    async def init(self, producer_id=-1, epoch=-1, timeout_ms=60_000, version=4, **more):
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            **more,
        )
        answer = await self.ask(request, version)
        if answer.error_code == 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return answer

    async def add(self, topic="t", *partitions, version=3):
        """The error codes by partition."""
        asked = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
            name=topic, partitions=list(partitions) or [0]
        )
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[asked],
        )
        answer = await self.ask(request, version)
        results = answer.results_by_topic_v3_and_below[0].results_by_partition
        return [result.partition_error_code for result in results]

    async def add_offsets(self, group, version=3):
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        return (await self.ask(request, version)).error_code

    def batch(self, value=b"x", topic="t", partition=0):
        builder = BatchBuilder()
        builder.append(None, value, time.time_ns() // 1_000_000)
        return builder.build(
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequences.get((topic, partition), 0),
            transactional=True,
        )

    async def produce(self, value=b"x", topic="t", partition=0, version=10):
        """The partition's answer."""
        data = ProduceRequest.PartitionProduceData(
            index=partition, records=self.batch(value, topic, partition)
        )
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=5_000,
            topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])],
        )
        answer = (await self.ask(request, version)).responses[0].partition_responses[0]
        if answer.error_code == 0:
            self.sequences[topic, partition] = self.sequences.get((topic, partition), 0) + 1
        return answer

    async def end(self, commit, version=3):
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer = await self.ask(request, version)
        if answer.error_code == 0 and version >= 5:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return answer

    async def read(self, topic="t", partition=0, isolation=COMMITTED):
        """The values a reader sees, aborted ones left out."""
        asked = FetchRequest.FetchPartition(partition=partition, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            max_bytes=1 << 20,
            isolation_level=isolation,
            topics=[FetchRequest.FetchTopic(topic=topic, partitions=[asked])],
        )
        answer = (await self.ask(request, 12)).responses[0].partitions[0]
        assert answer.error_code == 0
        return list(visible(answer))


def visible(answer):
    """As a consumer filters: a range begins with its first offset and ends with an abort marker."""
    begins = {entry.first_offset: entry.producer_id for entry in answer.aborted_transactions or ()}
    aborting = set()
    for batch in headers(answer.records or b""):
        if batch.base_offset in begins:
            aborting.add(begins[batch.base_offset])
        if batch.is_control:
            aborting.discard(batch.producer_id)
        elif batch.producer_id not in aborting:
            yield from (record.value for record in records_of(batch))


@pytest.fixture
async def new_peer(connect) -> Callable:
    async def new(broker, transactional_id="etl"):
        return Peer(await connect(broker), transactional_id)

    return new


@pytest.fixture
async def peer(broker, new_peer):
    """Connected, and the topic `t` exists."""
    peer = await new_peer(broker)
    await peer.create_topic()
    return peer


@pytest.fixture
async def ready(peer):
    """Holds a producer id and epoch 0."""
    await peer.init()
    return peer
