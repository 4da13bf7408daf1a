"""Appends a test's records to a partition: checked and stored as a client's are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from semel.core.partition.admission import Refusal
from semel.testing.records import StoredRecord, stored_records
from semel.testing.topics import make_topic
from semel.wire.batches import BatchBuilder, BatchHeader
from semel.wire.murmur2 import murmur2

if TYPE_CHECKING:
    from semel.broker.partitions.partition import Partition
    from semel.broker.server import Broker

Text = str | bytes


async def produce(
    broker: Broker,
    topic: str,
    values: Sequence[Text | None],
    key: Text | None,
    index: int | None,
    headers: Mapping[str, bytes | None],
    timestamp_ms: int | None,
) -> list[StoredRecord]:
    if not values:
        raise TypeError("nothing to produce: kafka.produce(topic, value, …)")
    key_bytes = _bytes("key", key)
    builder = BatchBuilder()
    at_ms = broker.now_ms() if timestamp_ms is None else timestamp_ms
    for value in values:
        builder.append(key_bytes, _bytes("value", value), at_ms, tuple(headers.items()))
    partition = _partition(broker, topic, key_bytes, index)
    batch = partition.opened(BatchHeader(builder.build()), broker.now_ms())
    appended = batch if isinstance(batch, Refusal) else partition.append(batch)
    if isinstance(appended, Refusal):
        raise RuntimeError(
            f"{partition!r} did not take the records: {appended.error.name}, {appended.message}"
        )
    await appended.ticket
    return [
        record for record in stored_records(partition, {}) if record.offset >= appended.base_offset
    ][: len(values)]


def _partition(broker: Broker, topic: str, key: bytes | None, index: int | None) -> Partition:
    if topic not in broker.catalog.topics:
        make_topic(broker, topic, broker.settings["num.partitions"], {})
    count = len(broker.partitions.of(topic))
    if index is None:
        index = 0 if key is None else (murmur2(key) & 0x7FFF_FFFF) % count
    partition = broker.partitions.find(topic, index)
    if partition is None:
        raise IndexError(f"{topic} has partitions 0 to {count - 1}, not {index}")
    return partition


def _bytes(what: str, text: Text | None) -> bytes | None:
    if isinstance(text, str):
        return text.encode()
    if text is None or isinstance(text, bytes):
        return text
    raise TypeError(
        f"a {what} is bytes, str or None, not {type(text).__name__}: serialize it first, "
        "as json.dumps(…) does"
    )
