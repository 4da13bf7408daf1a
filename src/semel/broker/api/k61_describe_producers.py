"""DescribeProducers: who writes to a partition, and whose transaction is open there (KIP-664).

Who may: READ on each TOPIC. Answers with every producer the partition remembers. Version 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from semel.core.partition.producers import ProducerEntry
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)

if TYPE_CHECKING:
    from semel.broker.context import Context

API_KEY = 61
VERSIONS = ADVERTISED[API_KEY]

Answer = DescribeProducersResponse.PartitionResponse
ProducerState = DescribeProducersResponse.ProducerState


def handle(
    ctx: Context, request: DescribeProducersRequest, version: int
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            DescribeProducersResponse.TopicResponse(
                name=topic.name,
                partitions=[_answer(ctx, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _answer(ctx: Context, topic: str, index: int) -> Answer:
    if not ctx.may("READ", "TOPIC", topic):
        return Answer(partition_index=index, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = ctx.partitions.find(topic, index)
    if partition is None:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return Answer(partition_index=index, error_code=error, error_message=error.meaning)
    return Answer(
        partition_index=index,
        active_producers=[_state(*known) for known in partition.state.producers.items()],
    )


def _state(producer_id: int, producer: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=producer_id,
        producer_epoch=producer.epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.open_since_offset,
    )
