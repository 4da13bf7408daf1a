"""ListOffsets: the earliest, the latest, or the first offset at or after a time.

Who may: DESCRIBE on each TOPIC. Answers with an offset, its timestamp where it was searched by one,
and its leader epoch; -1 where there is none. "Latest" is the last stable offset for committed
readers. Versions 1-11. Not here: tiered storage (-5 and -6 find nothing, and -4, the earliest local
offset, is the earliest one).
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from semel.broker.partitions.opening import is_small
from semel.broker.replies import InTurn
from semel.core.partition.epochs import epoch_refusal
from semel.store.interface import NO_LIMIT, StorageError, TimestampOffset, first_record
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
#: What was found already.
Found = dict["Partition", TimestampOffset | None]
Answer = ListOffsetsResponse.ListOffsetsPartitionResponse


class TooLarge(Exception):
    """A batch must be opened to find an offset, and that takes too long for the loop."""


def handle(
    ctx: Context, request: ListOffsetsRequest, version: int
) -> ListOffsetsResponse | InTurn[ListOffsetsResponse]:
    try:
        return _list(ctx, request, version, {})
    except TooLarge:
        return _list_later(ctx, request, version)


async def _list_later(
    ctx: Context, request: ListOffsetsRequest, version: int
) -> ListOffsetsResponse:
    """The same, with the offsets for which batches must be opened looked for beforehand: once more
    if a topic was made again meanwhile."""
    found: Found = {}
    while True:
        await _search_all(ctx, request, found)
        try:
            return _list(ctx, request, version, found)
        except TooLarge:
            continue


async def _search_all(ctx: Context, request: ListOffsetsRequest, found: Found) -> None:
    is_committed = request.isolation_level == READ_COMMITTED
    for topic in request.topics:
        for asked in topic.partitions:
            partition = ctx.partitions.find(topic.name, asked.partition_index)
            if (
                partition is None
                or partition in found
                or not ctx.may("DESCRIBE", "TOPIC", topic.name)
            ):
                continue
            if asked.timestamp >= 0 or asked.timestamp == MAX_TIMESTAMP:
                with suppress(StorageError):  # said by what follows
                    found[partition] = await _search(ctx, partition, asked.timestamp, is_committed)


async def _search(
    ctx: Context, partition: Partition, timestamp: int, is_committed: bool
) -> TimestampOffset | None:
    """Batches are found here, one by one, and opened in the thread for that."""
    log = partition.log
    wanted, limit = _wanted(partition, timestamp, is_committed)
    if wanted is None:
        return None
    for batch in log.batches_at_or_after(wanted, limit):
        found = await ctx.partitions.opener.run(
            partial(first_record, batch, wanted, log.start_offset, limit)
        )
        if found is not None:
            return found
    return None


def _search_now(partition: Partition, timestamp: int, is_committed: bool) -> TimestampOffset | None:
    log = partition.log
    wanted, limit = _wanted(partition, timestamp, is_committed)
    if wanted is None:
        return None
    for batch in log.batches_at_or_after(wanted, limit):
        if not is_small(batch) or batch.compression:
            raise TooLarge
        found = first_record(batch, wanted, log.start_offset, limit)
        if found is not None:
            return found
    return None


def _wanted(partition: Partition, timestamp: int, is_committed: bool) -> tuple[int | None, int]:
    """The timestamp to look for, and the offset below which."""
    if timestamp == MAX_TIMESTAMP:
        return partition.log.largest_timestamp(), NO_LIMIT
    return timestamp, _end(partition, is_committed)


def _end(partition: Partition, is_committed: bool) -> int:
    return partition.last_stable_offset if is_committed else partition.high_watermark


def _list(
    ctx: Context, request: ListOffsetsRequest, version: int, known: Found
) -> ListOffsetsResponse:
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
                answer = _answer(ctx, topic.name, asked, version, is_committed, known)
            seen.add(key)
            result.partitions.append(answer)
    return response


def _answer(
    ctx: Context, topic: str, asked: Asked, version: int, is_committed: bool, known: Found
) -> Answer:
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
        found = find_offset(partition, asked.timestamp, is_committed, known)
    except StorageError:
        return _failed(asked, ErrorCode.KAFKA_STORAGE_ERROR)
    answer = Answer(
        partition_index=asked.partition_index, timestamp=found.timestamp, offset=found.offset
    )
    if version >= EPOCHS_SINCE:
        answer.leader_epoch = found.leader_epoch
    return answer


def find_offset(
    partition: Partition, timestamp: int, is_committed: bool, known: Found
) -> TimestampOffset:
    if partition.log.offline is not None:
        raise partition.log.offline
    end = _end(partition, is_committed)
    if timestamp == LATEST:
        return TimestampOffset(-1, end, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = partition.log.start_offset
        return TimestampOffset(-1, start, _epoch_at(partition, start))
    if timestamp < 0 and timestamp != MAX_TIMESTAMP:
        return NOTHING
    if partition in known:
        found = known[partition]
    else:
        found = _search_now(partition, timestamp, is_committed)
    return found if found is not None and found.offset < end else NOTHING


def _epoch_at(partition: Partition, offset: int) -> int:
    epochs = [epoch for epoch, first in partition.epochs if first <= offset]
    return epochs[-1] if epochs else -1


def _failed(asked: Asked, error: ErrorCode) -> Answer:
    return Answer(partition_index=asked.partition_index, error_code=error)
