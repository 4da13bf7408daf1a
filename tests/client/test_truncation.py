"""A log that lost its end, and grew again: a reader behind the cut notices (KIP-320)."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.process import SemelProcess

from semel.client import Consumer, Producer, TopicPartition, TruncatedError
from semel.wire.batches import headers

PLACE = TopicPartition("t", 0)


class Mortal:
    """A broker that can be killed and whose files can be cut."""

    def __init__(self, broker: SemelProcess | ApacheKafka, data: Path) -> None:
        self.broker = broker
        self.bootstrap = broker.bootstrap
        self.log = data / str(PLACE) / f"{0:020}.log"

    async def crash(self, keep: int | None) -> None:
        """Killed, started again; its log keeps only the batches below an offset, if so wished."""
        await asyncio.to_thread(self.broker.kill)
        if keep is not None:
            kept = [batch for batch in headers(self.log.read_bytes()) if batch.base_offset < keep]
            with self.log.open("rb+") as file:
                file.truncate(kept[-1].position + kept[-1].size)
        await asyncio.to_thread(self.broker.start)


@pytest.fixture(params=["semel", pytest.param("kafka", marks=pytest.mark.interop)])
def mortal(request: pytest.FixtureRequest) -> Iterator[Mortal]:
    if request.param == "semel":
        with SemelProcess() as semel:
            yield Mortal(semel, semel.data)
    else:
        with ApacheKafka() as kafka:
            yield Mortal(kafka, kafka.directory / "data")


async def write(bootstrap: str, *values: bytes) -> None:
    async with Producer(bootstrap) as producer:
        for value in values:
            await producer.send_and_wait(PLACE.topic, value, partition=0)


async def read(consumer: Consumer, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    while len(found) < count:
        found += [record.value for record in await consumer.poll(1_000)]
    return found


OLD = [b"old %d" % number for number in range(10)]
NEW = [b"new %d" % number for number in range(8)]


async def test_a_reader_goes_back_to_where_the_logs_differ(
    mortal: Mortal, caplog: pytest.LogCaptureFixture
) -> None:
    await write(mortal.bootstrap, *OLD)
    async with Consumer(mortal.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([PLACE])
        assert await read(consumer, 10) == OLD
        await mortal.crash(keep=6)
        await write(mortal.bootstrap, *NEW)  # an offset 10 is there again, with another record
        with caplog.at_level(logging.WARNING, "semel.client"):
            assert await read(consumer, 8) == NEW
    assert "cut back behind our position 10: from offset 6 on it differs" in caplog.text


async def test_without_a_reset_policy_the_reader_is_told_and_decides(mortal: Mortal) -> None:
    await write(mortal.bootstrap, *OLD)
    async with Consumer(mortal.bootstrap, group_id="g", auto_offset_reset="none") as consumer:
        consumer.assign([PLACE])
        consumer.seek(PLACE, 0)
        assert await read(consumer, 10) == OLD
        await consumer.commit()
        await mortal.crash(keep=6)
        await write(mortal.bootstrap, *NEW)
        with pytest.raises(TruncatedError, match="seek to an offset") as caught:
            await read(consumer, 1)
        assert (caught.value.position, caught.value.diverged_at) == (10, 6)
        consumer.seek(PLACE, 6)
        assert await read(consumer, 8) == NEW
    async with Consumer(mortal.bootstrap, group_id="g", auto_offset_reset="none") as later:
        later.assign([PLACE])  # from the committed offset, whose epoch tells the same story
        with pytest.raises(TruncatedError):
            await read(later, 1)


async def test_a_log_that_is_whole_is_read_on_through_a_crash(mortal: Mortal) -> None:
    await write(mortal.bootstrap, *OLD)
    async with Consumer(mortal.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([PLACE])
        assert await read(consumer, 10) == OLD
        await mortal.crash(keep=None)
        await write(mortal.bootstrap, *NEW)
        assert await read(consumer, 8) == NEW
