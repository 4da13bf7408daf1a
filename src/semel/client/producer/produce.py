"""Produce, as the producer says and hears it."""

from collections.abc import Callable, Iterable
from uuid import UUID

from semel.client.machines.accumulator import ProducerBatch
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
