"""Reads the batches of partitions as they lie in the log, from one offset to another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Self

from semel.client.admin.admin import Admin
from semel.client.cluster import FETCH, Cluster
from semel.client.errors import error_for
from semel.client.machines.fetching import Aborted, end_of, visible_batches
from semel.client.machines.types import TopicPartition
from semel.errors import FatalError
from semel.wire.batches import BatchHeader, headers
from semel.wire.errors import ErrorCode, ProtocolError
from semel.wire.messages.fetch import FetchRequest, FetchResponse

_WAIT_MS = 500
_FETCH_BYTES = 8 << 20
_UNCOMMITTED, _COMMITTED = 0, 1
_TOPIC_IDS_FROM = 13


class LogReader:
    """A connection for reading. All batches, or those that committed readers see."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._admin = Admin(settings=settings)

    async def __aenter__(self) -> Self:
        await self._admin.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._admin.close()

    @property
    def admin(self) -> Admin:
        return self._admin

    async def every(
        self, partition: TopicPartition, start: int, end: int
    ) -> AsyncIterator[BatchHeader]:
        """All batches, markers too, from `start` up to the offset `end`."""
        async for data in self._answers(partition, start, end, _UNCOMMITTED):
            try:
                for batch in headers(data.records or b"", partial_tail=True):
                    if start <= batch.last_offset and batch.base_offset < end:
                        yield batch
            except ProtocolError as damage:
                raise FatalError(f"{partition} cannot be read: {damage}") from None

    async def committed(
        self, partition: TopicPartition, start: int, end: int
    ) -> AsyncIterator[BatchHeader]:
        """The batches that a committed reader sees, up to the last stable offset `end`."""
        position = start
        async for data in self._answers(partition, start, end, _COMMITTED):
            aborted = [
                Aborted(each.producer_id, each.first_offset)
                for each in data.aborted_transactions or ()
            ]
            for batch in visible_batches(data.records or b"", position, aborted):
                if batch.base_offset < end:
                    yield batch
                position = max(position, batch.next_offset)

    async def _answers(
        self, partition: TopicPartition, start: int, end: int, isolation: int
    ) -> AsyncIterator[FetchResponse.PartitionData]:
        cluster = self._admin._cluster
        await cluster.topic(partition.topic, cluster.deadline())
        position, attempt, deadline = start, 0, cluster.deadline()
        while position < end:
            data = await _fetch(cluster, partition, position, isolation)
            code = ErrorCode.of(data.error_code)
            if code is not ErrorCode.NONE:
                attempt += 1
                if not await cluster.may_try_again(code, attempt, deadline):
                    raise error_for(code, f"{partition} from offset {position}")
                cluster.metadata.expire()
                await cluster.refresh()
                continue
            after = end_of(data.records or b"", position)
            if after > position:
                attempt, deadline = 0, cluster.deadline()
                yield data
            elif deadline.has_passed(cluster.now_ms()):
                said = f"nothing came from offset {position} on, and {end} should be the end"
                raise FatalError(f"{partition}: {said}")
            position = after


async def _fetch(
    cluster: Cluster, partition: TopicPartition, position: int, isolation: int
) -> FetchResponse.PartitionData:
    topic, index = partition
    wanted = FetchRequest.FetchPartition(
        partition=index,
        current_leader_epoch=-1,
        fetch_offset=position,
        last_fetched_epoch=-1,
        partition_max_bytes=_FETCH_BYTES,
    )
    topic_id = cluster.metadata.topic_id(topic)
    request = FetchRequest(
        max_wait_ms=_WAIT_MS,
        min_bytes=1,
        max_bytes=_FETCH_BYTES,
        isolation_level=isolation,
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=topic, topic_id=topic_id, partitions=[wanted])],
    )
    answer = await cluster.ask(
        request,
        node=cluster.metadata.leader(partition),
        purpose=FETCH,
        wait_ms=_WAIT_MS,
        at_most=0x7FFF if topic_id.int else _TOPIC_IDS_FROM - 1,
    )
    if answer.error_code:
        raise error_for(answer.error_code, f"{partition} cannot be fetched")
    data: FetchResponse.PartitionData = answer.responses[0].partitions[0]
    return data
