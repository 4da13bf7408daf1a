"""A test's records: appended to a partition directly, or, in a transaction, by a producer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from semel.core.partition.admission import Refusal
from semel.testing.faults.watching import OWN_CLIENT
from semel.testing.records import Outcome, StoredRecord, stored_records
from semel.testing.topics import make_topic
from semel.wire.batches import BatchBuilder, BatchHeader
from semel.wire.murmur2 import murmur2

if TYPE_CHECKING:
    from semel.broker.partitions.partition import Partition
    from semel.broker.server import Broker
    from semel.client.blocking import Producer

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


class Transacting:
    """Producers of transactions that are open on behalf of a test."""

    def __init__(self) -> None:
        self._number = 0
        self._open: list[Producer[bytes, bytes]] = []

    def produce(
        self,
        address: str,
        topic: str,
        values: Sequence[Text | None],
        key: Text | None,
        index: int,
        headers: Mapping[str, bytes | None],
        timestamp_ms: int | None,
        outcome: Outcome,
    ) -> None:
        from semel.client.blocking import Producer

        self._number += 1
        producer: Producer[bytes, bytes] = Producer(
            address, client_id=OWN_CLIENT, transactional_id=f"{OWN_CLIENT}-{self._number}"
        )
        producer.start()
        self._open.append(producer)
        producer.init_transactions()
        producer.begin_transaction()
        for value in values:
            producer.send(
                topic, _bytes("value", value), _bytes("key", key),
                partition=index, headers=headers, timestamp_ms=timestamp_ms,
            ).result()  # fmt: skip
        if outcome == "open":
            return
        end = producer.commit_transaction if outcome == "committed" else producer.abort_transaction
        end()
        self._open.remove(producer)
        producer.close()

    def close(self) -> None:
        """Those that are open are aborted, if the broker is there."""
        for producer in self._open:
            producer.close(timeout_ms=1000)
        self._open = []


def choose_partition(broker: Broker, topic: str, key: Text | None, index: int | None) -> int:
    """By its number, or by the key; makes the topic if need be."""
    return _partition(broker, topic, _bytes("key", key), index).index


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
