"""Reading for consumers: what a Fetch gets now, and the wait for more (Kafka's DelayedFetch).

Records are not copied: an answer holds regions of the log's files, which the connection sends.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

from semel.broker.context import CLUSTER_NAME
from semel.broker.partitions.fetch_sessions import CachedPartition, Fetch
from semel.core.partition.epochs import NO_EPOCH_END, epoch_end, epoch_refusal
from semel.store.interface import OffsetOutOfRange, StorageError
from semel.wire.errors import ErrorCode
from semel.wire.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from semel.broker.context import Context
    from semel.broker.partitions.partition import Partition

PartitionData = FetchResponse.PartitionData
AbortedTransaction = FetchResponse.AbortedTransaction

READ_COMMITTED = 1
NOTHING = b""

_NONE = int(ErrorCode.NONE)


class Reading:
    """One Fetch request being answered; a waiter of every partition it reads while it waits."""

    __slots__ = (
        "_answer",
        "_ctx",
        "_fetch",
        "_found",
        "_homes",
        "_is_committed",
        "_max_bytes",
        "_min_bytes",
        "_timer",
    )

    def __init__(
        self,
        ctx: Context,
        fetch: Fetch,
        *,
        isolation_level: int,
        min_bytes: int,
        max_bytes: int,
        is_follower: bool,
    ) -> None:
        self._ctx = ctx
        self._fetch = fetch
        self._is_committed = isolation_level == READ_COMMITTED
        self._min_bytes = min_bytes
        self._max_bytes = max_bytes
        self._homes = _find_all(ctx, fetch.wanted, is_follower)
        self._found: list[tuple[CachedPartition, PartitionData]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._answer: asyncio.Future[FetchResponse] | None = None

    def now(self, must_answer: bool) -> FetchResponse | None:
        """The answer, or None if there is too little of it and the client would rather wait."""
        size = self._read()
        if must_answer or size is None or size >= self._min_bytes:
            return self._response()
        return None

    def later(self, max_wait_ms: int) -> asyncio.Future[FetchResponse]:
        """The answer as soon as there is enough to read, or when the time is up."""
        loop = self._ctx.broker.loop
        self._answer = loop.create_future()
        self._timer = loop.call_later(max_wait_ms / 1000, self._time_is_up)
        for partition in self._partitions():
            partition.waiters.add(self)
        self._ctx.connection.waits.add(self)
        return self._answer

    def wake(self) -> None:
        """A partition has more, or is gone."""
        self._finish(must_answer=False)

    def abandon(self) -> None:
        """The client is gone: nobody reads the answer."""
        assert self._answer is not None
        self._stop_waiting()
        self._answer.cancel()

    def _time_is_up(self) -> None:
        self._finish(must_answer=True)

    def _finish(self, must_answer: bool) -> None:
        assert self._answer is not None
        assert self._timer is not None
        if self._answer.done():
            return
        response = self.now(must_answer)
        if response is None:
            return
        self._stop_waiting()
        self._answer.set_result(response)

    def _stop_waiting(self) -> None:
        assert self._timer is not None
        self._timer.cancel()
        for partition in self._partitions():
            partition.waiters.discard(self)
        self._ctx.connection.waits.discard(self)

    def _partitions(self) -> list[Partition]:
        return [home for _, home in self._homes if not isinstance(home, ErrorCode)]

    def _read(self) -> int | None:
        """Read every partition; the bytes found, or None if an error must be told at once."""
        self._found = []
        left = self._max_bytes
        size = 0
        is_urgent = not self._homes
        for wanted, home in self._homes:
            data = self._read_one(wanted, home, left, at_least_one=not size)
            self._found.append((wanted, data))
            length = len(data.records)
            size += length
            left -= length
            if data.error_code or data.diverging_epoch.epoch >= 0:
                is_urgent = True
        return None if is_urgent else size

    def _read_one(
        self, wanted: CachedPartition, home: Partition | ErrorCode, left: int, at_least_one: bool
    ) -> PartitionData:
        if isinstance(home, ErrorCode):
            return _failed(wanted, home)
        if home.is_deleted:
            return _failed(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        refused = epoch_refusal(wanted.current_leader_epoch, home.leader_epoch)
        if refused is not None:
            return _failed(wanted, refused.error)
        try:
            return read(home, wanted, max(0, left), self._is_committed, at_least_one)
        except OffsetOutOfRange:
            return _failed(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
        except StorageError:
            return _failed(wanted, ErrorCode.KAFKA_STORAGE_ERROR)

    def _response(self) -> FetchResponse:
        fetch = self._fetch
        topics: dict[object, FetchResponse.FetchableTopicResponse] = {}
        for wanted, data in self._found:
            if fetch.session is not None and not _is_news(fetch, wanted, data):
                continue
            topic = topics.get(wanted.topic)
            if topic is None:
                topic = topics[wanted.topic] = _topic_response(wanted.topic)
            topic.partitions.append(data)
        return FetchResponse(session_id=fetch.session_id, responses=list(topics.values()))


def read(
    partition: Partition,
    wanted: CachedPartition,
    max_bytes: int,
    is_committed: bool,
    at_least_one: bool,
) -> PartitionData:
    """Whole batches from the offset on, below the high watermark or the last stable offset."""
    high_watermark = partition.high_watermark
    stable = partition.last_stable_offset
    log = partition.log
    data = PartitionData(
        partition_index=wanted.index,
        high_watermark=high_watermark,
        last_stable_offset=stable,
        log_start_offset=log.start_offset,
        aborted_transactions=[] if is_committed else None,
        records=NOTHING,
    )
    if wanted.last_fetched_epoch >= 0 and _diverges(partition, wanted, data):
        return data
    end = stable if is_committed else high_watermark
    if wanted.fetch_offset == end and log.offline is None:
        return data  # all read: most partitions, most of the time
    region = log.read(wanted.fetch_offset, min(wanted.max_bytes, max_bytes), end, at_least_one)
    if len(region):
        data.records = region
        if is_committed and len(partition.state.aborted):
            aborted = partition.state.aborted.between(wanted.fetch_offset, region.end_offset)
            data.aborted_transactions = [
                AbortedTransaction(producer_id=entry.producer_id, first_offset=entry.first_offset)
                for entry in aborted
            ]
    return data


def _diverges(partition: Partition, wanted: CachedPartition, data: PartitionData) -> bool:
    """Whether the client's log parted from ours before its offset (KIP-595's truncation)."""
    end = epoch_end(partition.epochs, wanted.last_fetched_epoch, partition.log.next_offset)
    if end == NO_EPOCH_END:
        raise OffsetOutOfRange(f"no leader epoch at or above {wanted.last_fetched_epoch}")
    if end.epoch >= wanted.last_fetched_epoch and end.end_offset >= wanted.fetch_offset:
        return False
    data.diverging_epoch = FetchResponse.EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset)
    return True


def _is_news(fetch: Fetch, wanted: CachedPartition, data: PartitionData) -> bool:
    """Whether a session's client must be told (CachedPartition.maybeUpdateResponseData)."""
    is_news = (
        not fetch.is_incremental
        or len(data.records) > 0
        or data.error_code != _NONE
        or data.high_watermark != wanted.told_high_watermark
        or data.log_start_offset != wanted.told_start_offset
        or data.diverging_epoch.epoch != NO_EPOCH_END.epoch
    )
    wanted.told_high_watermark = data.high_watermark
    wanted.told_start_offset = data.log_start_offset
    if data.error_code != _NONE:
        wanted.told_high_watermark = -1  # say it again even if nothing else changes
    if len(data.records) and fetch.session is not None:
        fetch.session.served(wanted)
    return is_news


def _topic_response(topic: str | UUID) -> FetchResponse.FetchableTopicResponse:
    if isinstance(topic, UUID):
        return FetchResponse.FetchableTopicResponse(topic_id=topic)
    return FetchResponse.FetchableTopicResponse(topic=topic)


def _find_all(
    ctx: Context, wanted: list[CachedPartition], is_follower: bool
) -> list[tuple[CachedPartition, Partition | ErrorCode]]:
    """Each with its partition, or with the reason why the client cannot have it. Who says that it
    is a follower is asked once, whether it is of the cluster."""
    if is_follower and not ctx.may("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):
        return [(item, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for item in wanted]
    topics: dict[object, list[Partition] | ErrorCode] = {}
    homes: list[tuple[CachedPartition, Partition | ErrorCode]] = []
    for item in wanted:
        found = topics.get(item.topic)
        if found is None:
            found = topics[item.topic] = _find_topic(ctx, item.topic, is_follower)
        if isinstance(found, ErrorCode):
            homes.append((item, found))
        elif 0 <= item.index < len(found):
            homes.append((item, found[item.index]))
        else:
            homes.append((item, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    return homes


def _find_topic(ctx: Context, topic: str | UUID, is_follower: bool) -> list[Partition] | ErrorCode:
    name = topic if isinstance(topic, str) else ctx.partitions.name_of(topic)
    if name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not is_follower and not ctx.may("READ", "TOPIC", name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    partitions: list[Partition] = ctx.partitions.of(name)
    return partitions or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _failed(wanted: CachedPartition, error: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=wanted.index,
        error_code=error,
        high_watermark=-1,
        aborted_transactions=None,
        records=NOTHING,
    )
