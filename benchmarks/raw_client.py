"""One-record transactions over a raw socket: a client light enough not to be the limit itself."""

import time

from tests.support.conversations.raw_client import RawClient

from semel.wire.batches import BatchBuilder
from semel.wire.errors import ErrorCode
from semel.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from semel.wire.messages.end_txn import EndTxnRequest
from semel.wire.messages.find_coordinator import FindCoordinatorRequest
from semel.wire.messages.init_producer_id import InitProducerIdRequest
from semel.wire.messages.produce import ProduceRequest

BUSY = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}


class RawTransactions:
    """AddPartitionsToTxn, Produce, EndTxn, as a client of version 1 sends them; or version 2."""

    def __init__(
        self, bootstrap: str, topic: str, transactional_id: str, new: bool = False
    ) -> None:
        self.client = RawClient(bootstrap)
        self.topic, self.transactional_id, self.new = topic, transactional_id, new
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
        while self.client.ask(find, 4).coordinators[0].error_code:
            time.sleep(0.05)
        answer = self._settled(
            InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000),
            4,
        )
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequence = 0

    def run(self, transactions: int) -> list[float]:
        """The latency of each commit in milliseconds."""
        latencies = []
        for _ in range(transactions):
            self._begin()
            began = time.perf_counter()
            self._commit()
            latencies.append((time.perf_counter() - began) * 1000)
        return latencies

    def _begin(self) -> None:
        if not self.new:
            self._settled(self._add_partition(), 3)
        builder = BatchBuilder()
        builder.append(None, b"x" * 100, int(time.time() * 1000))
        batch = builder.build(
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            transactional=True,
        )
        data = ProduceRequest.PartitionProduceData(index=0, records=batch)
        topic = ProduceRequest.TopicProduceData(name=self.topic, partition_data=[data])
        request = ProduceRequest(
            transactional_id=self.transactional_id, acks=-1, timeout_ms=5_000, topic_data=[topic]
        )
        self._settled(request, 12 if self.new else 11)
        self.sequence += 1

    def _commit(self) -> None:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=True,
        )
        answer = self._settled(request, 5 if self.new else 4)
        if self.new:
            self.producer_id, self.epoch, self.sequence = (
                answer.producer_id,
                answer.producer_epoch,
                0,
            )

    def _add_partition(self) -> AddPartitionsToTxnRequest:
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=self.topic, partitions=[0])
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[topic],
        )

    def _settled(self, request, version):  # type: ignore[no-untyped-def]
        """Ask until the broker is not busy; any other error ends the benchmark."""
        while True:
            answer = self.client.ask(request, version)
            error = _error_of(answer)
            if error not in BUSY:
                assert error == 0, f"{type(request).__name__}: {ErrorCode(error).name}"
                return answer
            time.sleep(0.001)


def _error_of(answer) -> int:  # type: ignore[no-untyped-def]
    if hasattr(answer, "results_by_topic_v3_and_below"):
        return answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
    if hasattr(answer, "responses"):
        return answer.responses[0].partition_responses[0].error_code
    return answer.error_code
