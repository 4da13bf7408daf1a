"""Those who read a simulated broker: for ever, or once and all of it. Topics go by their ids."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from tests.support.simulated.actors import Actor, Lost, code

from semel.wire.batches import headers, records_of
from semel.wire.errors import ErrorCode as E
from semel.wire.messages.fetch import FetchRequest

if TYPE_CHECKING:
    from tests.support.simulated.broker_world import BrokerWorld

COMMITTED, UNCOMMITTED = 1, 0


class Found(NamedTuple):
    offset: int
    key: bytes | None
    tag: str


class TopicGone(Exception):
    """There is no topic of this id any more, and the catalog agrees."""


async def fetch(
    actor: Actor, topic_id: UUID, index: int, offset: int, isolation: int, wait_ms: int = 0
) -> tuple[int, list[Found]]:
    """Where to read on, and the records found. Aborted ranges begin with their first offset and end
    with their marker. `Lost` if there was no proper answer."""
    asked = FetchRequest.FetchPartition(
        partition=index, fetch_offset=offset, partition_max_bytes=1 << 24
    )
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 24,
        isolation_level=isolation,
        topics=[FetchRequest.FetchTopic(topic_id=topic_id, partitions=[asked])],
    )
    answer = (await actor.ask(request, 13)).responses[0].partitions[0]
    error = code(answer.error_code)
    if error in (E.UNKNOWN_TOPIC_ID, E.UNKNOWN_TOPIC_OR_PARTITION):
        topics = actor.world.broker.catalog.topics_by_id
        assert topic_id not in topics, f"{topics[topic_id]} is there, and its reader hears {error}"
        raise TopicGone
    if error is E.OFFSET_OUT_OF_RANGE:
        below = actor.world.meddler.deleted_below.get((topic_id, index), 0)
        assert offset < below, f"{actor.name}: {offset} is out of range, deleted below {below}"
        partition = actor.world.partition(topic_id, index)
        return (offset if partition is None else partition.log.start_offset), []
    if error is not E.NONE:
        raise Lost
    return _committed(answer, offset)


def _committed(answer: Any, offset: int) -> tuple[int, list[Found]]:
    begins: dict[int, list[int]] = {}
    for entry in answer.aborted_transactions or ():
        begins.setdefault(max(entry.first_offset, offset), []).append(entry.producer_id)
    aborting: set[int] = set()
    found = []
    for batch in headers(bytearray(bytes(answer.records or b""))):
        aborting.update(begins.get(batch.base_offset, ()))
        offset = batch.next_offset
        if batch.is_control:
            aborting.discard(batch.producer_id)
        elif batch.producer_id not in aborting:
            found += [
                Found(record.offset, record.key, (record.value or b"").decode())
                for record in records_of(batch)
            ]
    return offset, found


async def read_all(actor: Actor, topic_id: UUID, index: int, isolation: int) -> list[Found]:
    """From the beginning to where the partition ends now."""
    partition = actor.world.partition(topic_id, index)
    if partition is None:
        raise TopicGone
    end = partition.last_stable_offset if isolation == COMMITTED else partition.high_watermark
    offset, everything = 0, list[Found]()
    while offset < end:
        before = offset
        try:
            offset, more = await fetch(actor, topic_id, index, offset, isolation)
            everything += more
        except Lost:
            await asyncio.sleep(0.1)
            continue
        if offset == before:
            await asyncio.sleep(0.1)  # the partition was cut meanwhile, or is not durable yet
    return everything


class Reader(Actor):
    """Reads one partition's committed records for ever; what it has seen stays as it is."""

    def __init__(self, world: "BrokerWorld", topic_id: UUID, index: int) -> None:
        super().__init__(world, f"reader-{topic_id}-{index}")
        self.topic_id = topic_id
        self.index = index
        self.position = 0
        self.seen: list[Found] = []

    async def run(self) -> None:
        with suppress(TopicGone):
            while True:
                with suppress(Lost):
                    self.position, more = await fetch(
                        self, self.topic_id, self.index, self.position, COMMITTED, 500
                    )
                    self.seen += more
                await asyncio.sleep(0.3)

    async def check(self) -> None:
        """Read it all again, from the beginning."""
        everything = await read_all(self, self.topic_id, self.index, COMMITTED)
        below = self.world.meddler.deleted_below.get((self.topic_id, self.index), 0)
        again = [found for found in everything if below <= found.offset < self.position]
        seen = [found for found in self.seen if found.offset >= below]
        assert again == seen, f"{self.name}: what was read has changed"
