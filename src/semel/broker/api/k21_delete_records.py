"""DeleteRecords: move the start of partitions up to given offsets.

Who may: DELETE on each TOPIC. Answers with the new first offset; -1 as offset means the high
watermark. Versions 0-2. Not here: internal topics and topics that are only compacted, which refuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from semel.store.interface import StorageError
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse

if TYPE_CHECKING:
    from semel.broker.context import Context
    from semel.broker.partitions.partition import Partition

API_KEY = 21
VERSIONS = ADVERTISED[API_KEY]

HIGH_WATERMARK = -1
NO_OFFSET = -1

Result = DeleteRecordsResponse.DeleteRecordsPartitionResult


def handle(ctx: Context, request: DeleteRecordsRequest, version: int) -> DeleteRecordsResponse:
    response = DeleteRecordsResponse()
    for topic in request.topics:
        result = DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name)
        response.topics.append(result)
        for asked in topic.partitions:
            outcome = _delete(ctx, topic.name, asked.partition_index, asked.offset)
            row = Result(partition_index=asked.partition_index, low_watermark=NO_OFFSET)
            if isinstance(outcome, ErrorCode):
                row.error_code = outcome
            else:
                row.low_watermark = outcome
            result.partitions.append(row)
    return response


def _delete(ctx: Context, topic: str, index: int, offset: int) -> int | ErrorCode:
    if not ctx.may("DELETE", "TOPIC", topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    partition = ctx.partitions.find(topic, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    refused = _refusal(partition, offset)
    if refused is not None:
        return refused
    try:
        wanted = partition.high_watermark if offset == HIGH_WATERMARK else offset
        start: int = partition.delete_below(wanted)
        return start
    except StorageError:
        return ErrorCode.KAFKA_STORAGE_ERROR


def _refusal(partition: Partition, offset: int) -> ErrorCode | None:
    if partition.topic.is_internal:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if "delete" not in partition.topic.config["cleanup.policy"]:
        return ErrorCode.POLICY_VIOLATION
    if partition.log.offline is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if offset < HIGH_WATERMARK or offset > partition.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    return None
