"""ListOffsets: the earliest, the latest, or the first offset at or after a time.

Who may: DESCRIBE on each TOPIC. Answers with an offset, its timestamp where it was searched by one,
and its leader epoch; -1 where there is none. "Latest" is the last stable offset for committed
readers. Versions 1-11. Not here: tiered storage (-5 and -6 find nothing, and -4, the earliest local
offset, is the earliest one).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from semel.core.partition.epochs import epoch_refusal
from semel.store.interface import StorageError, TimestampOffset
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

if TYPE_CHECKING:
    from semel.broker.context import Context
    from semel.broker.partitions.partition import Partition

API_KEY = 2
VERSIONS = ADVERTISED[API_KEY]

READ_COMMITTED = 1
EPOCHS_SINCE = 4

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = (
    -1, -2, -3, -4, -5, -6,
)  # fmt: skip
# Since which version of the request each of them may be asked for.
SINCE = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
NOTHING = TimestampOffset(-1, -1, -1)

Asked = ListOffsetsRequest.ListOffsetsPartition
Answer = ListOffsetsResponse.ListOffsetsPartitionResponse


def handle(ctx: Context, request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
    is_committed = request.isolation_level == READ_COMMITTED
    seen: set[tuple[str, int]] = set()
    response = ListOffsetsResponse()
    for topic in request.topics:
        result = ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name)
        response.topics.append(result)
        for asked in topic.partitions:
            key = (topic.name, asked.partition_index)
            if key in seen:
                answer = _failed(asked, ErrorCode.INVALID_REQUEST)
            else:
                answer = _answer(ctx, topic.name, asked, version, is_committed)
            seen.add(key)
            result.partitions.append(answer)
    return response


def _answer(ctx: Context, topic: str, asked: Asked, version: int, is_committed: bool) -> Answer:
    if not ctx.may("DESCRIBE", "TOPIC", topic):
        return _failed(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if asked.timestamp < 0 and version < SINCE.get(asked.timestamp, version + 1):
        return _failed(asked, ErrorCode.UNSUPPORTED_VERSION)
    partition = ctx.partitions.find(topic, asked.partition_index)
    if partition is None:
        return _failed(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    refused = epoch_refusal(asked.current_leader_epoch, partition.leader_epoch)
    if refused is not None:
        return _failed(asked, refused.error)
    try:
        found = find_offset(partition, asked.timestamp, is_committed)
    except StorageError:
        return _failed(asked, ErrorCode.KAFKA_STORAGE_ERROR)
    answer = Answer(
        partition_index=asked.partition_index, timestamp=found.timestamp, offset=found.offset
    )
    if version >= EPOCHS_SINCE:
        answer.leader_epoch = found.leader_epoch
    return answer


def find_offset(partition: Partition, timestamp: int, is_committed: bool) -> TimestampOffset:
    if partition.log.offline is not None:
        raise partition.log.offline
    end = partition.last_stable_offset if is_committed else partition.high_watermark
    if timestamp == LATEST:
        return TimestampOffset(-1, end, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = partition.log.start_offset
        return TimestampOffset(-1, start, _epoch_at(partition, start))
    if timestamp == MAX_TIMESTAMP:
        found = partition.log.max_timestamp()
    elif timestamp < 0:
        return NOTHING
    else:
        found = partition.log.offset_for_timestamp(timestamp, end)
    return found if found is not None and found.offset < end else NOTHING


def _epoch_at(partition: Partition, offset: int) -> int:
    epochs = [epoch for epoch, first in partition.epochs if first <= offset]
    return epochs[-1] if epochs else -1


def _failed(asked: Asked, error: ErrorCode) -> Answer:
    return Answer(partition_index=asked.partition_index, error_code=error)
