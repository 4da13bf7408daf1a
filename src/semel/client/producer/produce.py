"""Produce, as the producer says and hears it."""

from collections.abc import Callable, Iterable
from uuid import UUID

from semel.client.machines.accumulator import ProducerBatch
from semel.client.machines.types import TopicPartition
from semel.errors import RetriableError
from semel.net.client_connection import ClientConnection
from semel.wire.errors import ErrorCode
from semel.wire.frames import Pieces
from semel.wire.messages.end_txn import EndTxnRequest
from semel.wire.messages.produce import ProduceRequest, ProduceResponse
from semel.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

# Produce from this version on adds the partition to the transaction by itself (KIP-890).
PRODUCE_ADDS_FROM = 12

# A broker names every bad record of a batch; a message that people read, the first few.
_RECORDS_TOLD = 3
_LARGE_BATCH = 32 * 1024


class Trouble:
    """Why batches were sent again: what to tell whoever has no more time to wait for them."""

    def __init__(self) -> None:
        self._last: dict[TopicPartition, tuple[ProducerBatch, ErrorCode, str]] = {}

    def note(self, batch: ProducerBatch, code: ErrorCode, why: str) -> None:
        self._last[batch.partition] = batch, code, why

    def late(self, what: str, batches: Iterable[ProducerBatch], advice: str) -> RetriableError:
        """The exception for time that is over while these batches wait."""
        waiting = list(batches)
        code = self.code_of(waiting) or ErrorCode.REQUEST_TIMED_OUT
        return RetriableError(f"{what}{self.of(waiting)}: {advice}", code)

    def of(self, batches: Iterable[ProducerBatch]) -> str:
        """The end of a sentence, or nothing: these were not refused, they are on their way."""
        for batch in batches:
            last, code, why = self._last.get(batch.partition, _NONE)
            if last is batch:
                named = "" if why == code.name else f": {why}"
                return (
                    f"; {batch.partition} was refused because {code.meaning} ({code.name}{named})"
                )
        return ""

    def code_of(self, batches: Iterable[ProducerBatch]) -> ErrorCode:
        for batch in batches:
            last, code, _ = self._last.get(batch.partition, _NONE)
            if last is batch:
                return code
        return ErrorCode.NONE


_NONE = (None, ErrorCode.NONE, "")


def produce_request(
    batches: Iterable[ProducerBatch],
    topic_id: Callable[[str], UUID],
    *,
    transactional_id: str | None,
    acks: int,
    timeout_ms: int,
) -> ProduceRequest:
    by_topic: dict[str, list[ProduceRequest.PartitionProduceData]] = {}
    for batch in batches:
        by_topic.setdefault(batch.partition.topic, []).append(
            ProduceRequest.PartitionProduceData(
                index=batch.partition.partition, records=_as_sent(batch.data)
            )
        )
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=name, topic_id=topic_id(name), partition_data=partitions
            )
            for name, partitions in by_topic.items()
        ],
    )


def speaks_version_2(connection: ClientConnection) -> bool:
    """Whether the broker has the transaction protocol of KIP-890."""
    return connection.features.get("transaction.version", 0) >= 2 and all(
        connection.versions.get(message.API_KEY, range(0)).stop > newest
        for message, newest in (
            (ProduceRequest, PRODUCE_ADDS_FROM),
            (EndTxnRequest, 5),
            (TxnOffsetCommitRequest, 5),
        )
    )


def _as_sent(data: bytearray | None) -> bytearray | Pieces | None:
    """Large batches are not copied into the request."""
    return Pieces(data) if data is not None and len(data) >= _LARGE_BATCH else data


def reason_of(result: ProduceResponse.PartitionProduceResponse) -> str:
    """The broker's own words, and the first records it means, where it says so (KIP-467)."""
    errors = result.record_errors
    if not errors:
        return result.error_message or ErrorCode.of(result.error_code).name
    told = [
        f"record {error.batch_index}: {error.batch_index_error_message or 'invalid'}"
        for error in errors[:_RECORDS_TOLD]
    ]
    more = len(errors) - len(told)
    return ", ".join(told) + (f", and {more} more" if more else "")
