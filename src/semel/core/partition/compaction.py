"""What compaction must know of transactions and producers: which batches may go, which must stay.

The rules of Kafka's CleanedTransactionMetadata and LogCleaner: data of aborted transactions goes; a
marker may go once no batch of its transaction is left; the last batch of a producer that may still
write stays, emptied, so that its sequence is not forgotten.
"""

from collections import deque
from collections.abc import Mapping

from semel.core.partition.snapshots import decode_aborted, encode_aborted_index
from semel.core.partition.stability import AbortedTransaction
from semel.core.partition.state import PartitionState
from semel.wire.batches import BatchHeader, parse_marker

TRANSACTION_INDEX = "txnindex"


class TransactionTracker:
    """Follows the batches of a log in order, from transaction to transaction."""

    def __init__(self, aborted: list[AbortedTransaction]) -> None:
        self._coming = deque(sorted(aborted, key=lambda entry: entry.first_offset))
        self._aborting: dict[int, AbortedTransaction] = {}
        self._with_data: set[int] = set()  # producers of which a batch was seen since their marker
        self._kept: list[AbortedTransaction] = []

    def is_dead(self, batch: BatchHeader) -> bool:
        """For data: it was aborted. For a control batch: nothing of its transaction is left."""
        while self._coming and self._coming[0].first_offset <= batch.last_offset:
            entry = self._coming.popleft()
            self._aborting.setdefault(entry.producer_id, entry)
        if batch.is_control:
            return self._ends_nothing(batch)
        if not batch.is_transactional:
            return False
        self._with_data.add(batch.producer_id)
        return batch.producer_id in self._aborting

    def side_files(self) -> Mapping[str, bytes]:
        """The index entries of the markers passed since the last call."""
        kept, self._kept = self._kept, []
        return {TRANSACTION_INDEX: encode_aborted_index(kept)} if kept else {}

    def _ends_nothing(self, batch: BatchHeader) -> bool:
        marker = parse_marker(batch)
        if marker is None:
            # Emptied by an earlier compaction; a control record of another type is left alone.
            return not batch.count
        had_data = batch.producer_id in self._with_data
        self._with_data.discard(batch.producer_id)
        if not marker.is_commit:
            entry = self._aborting.pop(batch.producer_id, None)
            if entry is not None and had_data:
                self._kept.append(entry)
        return not had_data


class CompactionPolicy:
    """A partition's knowledge as of the beginning of a compaction."""

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self._last = {
            producer_id: (
                producer.epoch,
                producer.batches[-1].last_offset if producer.batches else -1,
            )
            for producer_id, producer in state.producers.items()
        }

    def tracker(self, first_offset: int, end_offset: int) -> TransactionTracker:
        return TransactionTracker(self._state.aborted.between(first_offset, end_offset))

    def is_needed(self, batch: BatchHeader) -> bool:
        """Whether it is all that the log holds of what a live producer wrote last."""
        last = self._last.get(batch.producer_id)
        if last is None:
            return False
        epoch, last_offset = last
        if last_offset < 0:
            return batch.is_control and batch.producer_epoch == epoch
        return batch.last_offset == last_offset

    def replaced(self, first_offset: int, end_offset: int, side_files: Mapping[str, bytes]) -> None:
        entries = decode_aborted(side_files.get(TRANSACTION_INDEX, b""))
        self._state.aborted.replace(first_offset, end_offset, list(entries))
