"""The records of a topic as its log holds them, each with what became of its transaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from semel.wire.batches import NO_PRODUCER_ID, BatchHeader, parse_marker, records_of

if TYPE_CHECKING:
    from semel.broker.partitions.partition import Partition

Outcome = Literal["committed", "aborted", "open"]


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record in a partition."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int
    outcome: Outcome
    """What became of its transaction. A record outside any is committed."""
    producer_id: int | None
    """None: its producer was not idempotent."""
    producer_epoch: int | None
    transactional_id: str | None
    """Where the transaction's coordinator still knows it."""


def stored_records(partition: Partition, ids: dict[int, str]) -> list[StoredRecord]:
    """All that are in the log, oldest first. `ids` are transactional ids by producer id."""
    found: list[StoredRecord] = []
    undecided: dict[int, list[int]] = {}  # producer id → where its open transaction is in `found`
    log = partition.log
    for data in log.batches(log.start_offset):
        batch = BatchHeader(data)
        if batch.is_control:
            marker = parse_marker(batch)
            if marker is not None:
                outcome: Outcome = "committed" if marker.is_commit else "aborted"
                for index in undecided.pop(marker.producer_id, ()):
                    found[index] = replace(found[index], outcome=outcome)
            continue
        for record in _records(partition, batch, ids):
            if record.offset >= log.start_offset:
                if batch.is_transactional:
                    undecided.setdefault(batch.producer_id, []).append(len(found))
                found.append(record)
    return found


def committed_records(partition: Partition, ids: dict[int, str]) -> list[StoredRecord]:
    """Those that a consumer with `read_committed` gets now."""
    readable = partition.last_stable_offset
    return [
        record
        for record in stored_records(partition, ids)
        if record.outcome == "committed" and record.offset < readable
    ]


def _records(
    partition: Partition, batch: BatchHeader, ids: dict[int, str]
) -> Iterator[StoredRecord]:
    has_producer = batch.producer_id != NO_PRODUCER_ID
    for record in records_of(batch):
        yield StoredRecord(
            partition.topic.name,
            partition.index,
            record.offset,
            record.key,
            record.value,
            record.headers,
            record.timestamp,
            "open" if batch.is_transactional else "committed",
            batch.producer_id if has_producer else None,
            batch.producer_epoch if has_producer else None,
            ids.get(batch.producer_id) if batch.is_transactional else None,
        )
