"""Reads the batch headers of one partition in order, and judges them. Pure.

Every transaction is found by its batches and its marker. A producer's sequence numbers must go on
without a gap, and nothing may be written twice or with an old epoch. State is kept per producer,
not per record, so a partition may be of any size.

Version 2 of the transaction protocol (KIP-890) ends each transaction with a marker of the next
epoch. So (producer id, epoch) names one transaction in all partitions, and `outcomes` of several
partitions can be compared. Under version 1 an epoch has many transactions, and they cannot.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from semel.audit.findings import Anomaly, Findings
from semel.wire.batches import BatchHeader, advance_sequence, parse_marker

# Outcomes of transactions that are remembered for the comparison of partitions.
MOST_OUTCOMES = 200_000


@dataclass(slots=True)
class _ProducerState:
    """What is known of a producer id in this partition."""

    epoch: int
    next_sequence: int | None  # None: unknown, the log begins in the middle
    recent: list[tuple[int, int]] = field(default_factory=list)  # first sequence, offset
    open_from: int | None = None  # offset of the first batch of the open transaction
    open_since_ms: int = -1
    open_epoch: int = -1


@dataclass(frozen=True, slots=True)
class OpenInLog:
    """A transaction without a marker so far."""

    producer_id: int
    epoch: int
    first_offset: int
    since_ms: int


# A broker remembers five batches of a producer; so many are compared here, too.
_WINDOW = 5


class PartitionScan:
    """`look` at every batch in order, then read the attributes."""

    def __init__(self, name: str, *, compacted: bool = False) -> None:
        self.name = name
        self.compacted = compacted  # compaction removes batches: gaps prove nothing there
        self.findings = Findings()
        self.batches = self.records = 0
        self.committed = self.aborted = 0
        self.outside_of_transactions = 0
        #: (producer id, epoch) → committed; transactions of version 2 only
        self.outcomes: dict[tuple[int, int], bool] = {}
        self._writers: dict[int, _ProducerState] = {}

    @property
    def open(self) -> list[OpenInLog]:
        """By offset: the first holds the last stable offset back."""
        found = [
            OpenInLog(producer_id, writer.open_epoch, writer.open_from, writer.open_since_ms)
            for producer_id, writer in self._writers.items()
            if writer.open_from is not None
        ]
        return sorted(found, key=lambda each: each.first_offset)

    @property
    def producers(self) -> int:
        return len(self._writers)

    def look(self, batch: BatchHeader) -> None:
        self.batches += 1
        if batch.is_control:
            self._ended(batch)
            return
        self.records += batch.count
        if not batch.has_producer:
            self.outside_of_transactions += batch.count
            return
        writer = self._writers.get(batch.producer_id)
        if writer is None:
            starts_here = batch.base_sequence == 0 or batch.base_offset == 0
            writer = _ProducerState(batch.producer_epoch, 0 if starts_here else None)
            self._writers[batch.producer_id] = writer
        self._judge_epoch(writer, batch)
        if not self.compacted:
            self._judge_sequence(writer, batch)
        if batch.is_transactional:
            self._joined(writer, batch)
        else:
            self.outside_of_transactions += batch.count

    def _judge_epoch(self, writer: _ProducerState, batch: BatchHeader) -> None:
        if batch.producer_epoch < writer.epoch:
            self._found(
                Anomaly.EPOCH_BACK,
                batch,
                f"epoch {batch.producer_epoch} after epoch {writer.epoch}",
            )
        elif batch.producer_epoch > writer.epoch:
            writer.epoch, writer.next_sequence = batch.producer_epoch, 0
            writer.recent.clear()

    def _judge_sequence(self, writer: _ProducerState, batch: BatchHeader) -> None:
        expected, first = writer.next_sequence, batch.base_sequence
        if expected is not None and first != expected and batch.producer_epoch == writer.epoch:
            repeated = next((offset for seen, offset in writer.recent if seen == first), None)
            if repeated is not None:
                said = f"sequence {first} is at offset {repeated} already"
                self._found(Anomaly.REPEATED_BATCH, batch, said)
            else:
                said = f"sequence {first} where {expected} should come"
                self._found(Anomaly.SEQUENCE_GAP, batch, said)
        if batch.producer_epoch == writer.epoch:
            writer.next_sequence = advance_sequence(batch.last_sequence, 1)
            writer.recent = [*writer.recent[1 - _WINDOW :], (first, batch.base_offset)]

    def _joined(self, writer: _ProducerState, batch: BatchHeader) -> None:
        if writer.open_from is None:
            writer.open_from = batch.base_offset
            writer.open_since_ms = batch.max_timestamp
            writer.open_epoch = batch.producer_epoch

    def _ended(self, batch: BatchHeader) -> None:
        marker = parse_marker(batch)
        if marker is None:
            return  # of another kind than transaction markers: KRaft has some
        writer = self._writers.get(marker.producer_id)
        if writer is None:
            writer = self._writers[marker.producer_id] = _ProducerState(marker.producer_epoch, None)
        if marker.producer_epoch < writer.epoch:
            said = f"a marker of epoch {marker.producer_epoch} after epoch {writer.epoch}"
            self._found(Anomaly.EPOCH_BACK, batch, said)
            return
        if writer.open_from is not None:
            if marker.is_commit:
                self.committed += 1
            else:
                self.aborted += 1
            if marker.producer_epoch == writer.open_epoch + 1 and self._has_room:
                self.outcomes[marker.producer_id, writer.open_epoch] = marker.is_commit
            writer.open_from = None
        if marker.producer_epoch > writer.epoch:
            writer.epoch, writer.next_sequence = marker.producer_epoch, 0
            writer.recent.clear()

    @property
    def _has_room(self) -> bool:
        return len(self.outcomes) < MOST_OUTCOMES

    def _found(self, anomaly: Anomaly, batch: BatchHeader, what: str) -> None:
        where = f"{self.name} offset {batch.base_offset}"
        self.findings.found(anomaly, where, f"producer {batch.producer_id}: {what}")


def compare_outcomes(scans: list[PartitionScan]) -> Findings:
    """Transactions of version 2 that ended differently in two partitions, or are open in one though
    they ended in another."""
    findings = Findings()
    ended: dict[tuple[int, int], tuple[bool, str]] = {}
    for scan in scans:
        for transaction, committed in scan.outcomes.items():
            other = ended.setdefault(transaction, (committed, scan.name))
            if other[0] is not committed:
                findings.found(
                    Anomaly.TORN,
                    f"{other[1]} and {scan.name}",
                    f"{_named(transaction)} was {_word(other[0])} in the first and "
                    f"{_word(committed)} in the second",
                )
    for scan in scans:
        for each in scan.open:
            elsewhere = ended.get((each.producer_id, each.epoch))
            if elsewhere is not None:
                findings.found(
                    Anomaly.MARKER_MISSING,
                    f"{scan.name} offset {each.first_offset}",
                    f"{_named((each.producer_id, each.epoch))} was {_word(elsewhere[0])} in "
                    f"{elsewhere[1]}",
                )
    return findings


def _named(transaction: tuple[int, int]) -> str:
    return f"the transaction of producer {transaction[0]}, epoch {transaction[1]},"


def _word(committed: bool) -> str:
    return "committed" if committed else "aborted"
