"""What compaction must know of transactions and producers: the owner's side of `store.compaction`.

Aborted data goes. A marker goes when nothing of its transaction is left (and its delete horizon has
passed, which the store sees to). The last batch of every producer still remembered stays, emptied:
it holds its epoch and sequence. Kafka's CleanedTransactionMetadata and Cleaner.checkBatchRetention.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from semel.core.partition.producers import Producers
from semel.core.partition.snapshots import decode_aborted, encode_aborted
from semel.core.partition.stability import AbortedTransaction
from semel.wire.batches import BatchHeader, parse_marker

TRANSACTION_INDEX = "txnindex"


class LastBatch(NamedTuple):
    """The end of what a producer wrote: its last data, or only a marker of its epoch (None)."""

    last_offset: int | None
    epoch: int


def last_batches(producers: Producers) -> dict[int, LastBatch]:
    return {
        producer_id: LastBatch(
            producer.batches[-1].last_offset if producer.batches else None, producer.epoch
        )
        for producer_id, producer in producers
    }


class TransactionPolicy:
    """A partition's state as of the compaction's beginning.

    `replaced` is called with the range of offsets whose aborted transactions are those given from
    now on, at the same moment as the files change: a reader that got an entry whose marker is gone
    would take the producer's next transaction for aborted too.
    """

    def __init__(
        self,
        aborted: Iterable[AbortedTransaction],
        producers: Mapping[int, LastBatch],
        on_replaced: Callable[[int, int, list[AbortedTransaction]], None] | None = None,
    ) -> None:
        self._aborted = sorted(aborted, key=lambda entry: entry.first_offset)
        self._producers = producers
        self._on_replaced = on_replaced

    def tracker(self, first_offset: int, end_offset: int) -> "TransactionTracker":
        return TransactionTracker(
            [
                entry
                for entry in self._aborted
                if entry.last_offset >= first_offset and entry.first_offset < end_offset
            ]
        )

    def is_needed(self, batch: BatchHeader) -> bool:
        last = self._producers.get(batch.producer_id) if batch.has_producer else None
        if last is None:
            return False
        if last.last_offset is not None:
            return batch.last_offset == last.last_offset
        return batch.is_control and batch.producer_epoch == last.epoch

    def replaced(self, first_offset: int, end_offset: int, side_files: Mapping[str, bytes]) -> None:
        if self._on_replaced is not None:
            entries = list(decode_aborted(side_files.get(TRANSACTION_INDEX, b"")))
            self._on_replaced(first_offset, end_offset, entries)


class TransactionTracker:
    """Follows batches in offset order, as `store.compaction.Tracker` asks."""

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._coming = list(reversed(aborted))
        self._aborting: dict[int, AbortedTransaction] = {}
        self._aborted_seen: set[int] = set()
        self._committed_seen: set[int] = set()
        self._remaining: list[AbortedTransaction] = []

    def is_dead(self, batch: BatchHeader) -> bool:
        while self._coming and self._coming[-1].first_offset <= batch.last_offset:
            entry = self._coming.pop()
            self._aborting.setdefault(entry.producer_id, entry)
        if batch.is_control:
            return self._is_dead_marker(batch)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborting:
            self._aborted_seen.add(batch.producer_id)
            return True
        self._committed_seen.add(batch.producer_id)
        return False

    def _is_dead_marker(self, batch: BatchHeader) -> bool:
        if not batch.count:
            return True  # emptied by an earlier compaction
        marker = parse_marker(batch)
        if marker is None:
            return False
        if marker.is_commit:
            seen = batch.producer_id in self._committed_seen
            self._committed_seen.discard(batch.producer_id)
            return not seen
        entry = self._aborting.pop(batch.producer_id, None)
        if batch.producer_id not in self._aborted_seen:
            return True
        self._aborted_seen.discard(batch.producer_id)
        if entry is not None:
            self._remaining.append(entry)
        return False

    def side_files(self) -> dict[str, bytes]:
        remaining, self._remaining = self._remaining, []
        remaining.sort(key=lambda entry: entry.last_offset)
        return {TRANSACTION_INDEX: b"".join(map(encode_aborted, remaining))} if remaining else {}
