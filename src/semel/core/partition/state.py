"""Everything a partition knows beside its bytes: producers, open and aborted transactions.

Look (`look_batch`, `look_internal`, `look_marker`) without touching, append, then `apply_batch` or
`apply_marker`: nothing changes before its bytes are in the log. `replay` applies a
batch read back from the log: the state replayed from any prefix of a log is the one that wrote it.
"""

from semel.core.partition.admission import CONTROL, TRANSACTIONAL, Refusal
from semel.core.partition.producers import (
    NONE_OPEN,
    Duplicate,
    ProducerEntry,
    Producers,
    look,
    out_of_order,
    stale_epoch,
)
from semel.core.partition.stability import AbortedIndex, AbortedTransaction, Stability
from semel.core.partition.verification import AT_ONCE, Guard, Unverified, Verifications
from semel.wire.batches import NO_PRODUCER_ID, BatchHeader, Marker
from semel.wire.errors import ErrorCode

MAX_EPOCH = 2**15 - 1


class PartitionState:
    """Producers, stability, the aborted index and open verifications of one partition."""

    __slots__ = ("aborted", "producers", "stability", "verifications")

    def __init__(self) -> None:
        self.producers = Producers()
        self.stability = Stability()
        self.aborted = AbortedIndex()
        self.verifications = Verifications()

    def __eq__(self, other: object) -> bool:
        """Verifications are not compared: they live in memory only."""
        return (
            isinstance(other, PartitionState)
            and self.producers == other.producers
            and self.stability == other.stability
            and self.aborted == other.aborted
        )

    __hash__ = None  # type: ignore[assignment]

    def has_open(self, producer_id: int, epoch: int) -> bool:
        """Whether a producer's transaction is open here: it needs no verification then."""
        producer = self.producers.get(producer_id)
        return (
            producer is not None
            and producer.epoch == epoch
            and producer.open_since_offset != NONE_OPEN
        )

    def ask_verification(
        self, header: Unverified, begins_at_zero: bool, now_ms: int
    ) -> Guard | Refusal | None:
        """Before a transactional batch of a client: a guard to ask the coordinator with, None if
        the transaction is open here already, or the refusal of a zombie."""
        producer_id, epoch = header.producer_id, header.producer_epoch
        if self.has_open(producer_id, epoch):
            return None
        producer = self.producers.get(producer_id)
        if producer is not None and epoch < producer.epoch:
            return stale_epoch(producer_id, epoch, producer.epoch)
        return self.verifications.ask(
            producer_id, epoch, header.base_sequence, begins_at_zero, now_ms
        )

    def look_batch(
        self, header: BatchHeader, guard: Guard | None = None
    ) -> Duplicate | Refusal | None:
        """Judge a client's batch that `admission` let through. None: append it."""
        producer_id = header.producer_id
        if producer_id == NO_PRODUCER_ID:
            return None
        producer = self.producers.get(producer_id)
        current = self.verifications.get(producer_id)
        if producer is not None and current is None and _goes_on(producer, header, guard):
            return None
        return self.judge(producer, header, current, guard)

    def judge(
        self,
        producer: ProducerEntry | None,
        header: BatchHeader,
        current: Guard | None,
        guard: Guard | None,
    ) -> Duplicate | Refusal | None:
        """The same rule by rule, with what is known of the producer. `_goes_on` is its twin."""
        verdict = look(producer, header, current is not None and current.begins_at_zero)
        if isinstance(verdict, Duplicate):
            return verdict
        if header.attributes & TRANSACTIONAL:
            refused = _verification_refusal(producer, header, current, guard)
        else:
            refused = None if verdict else _outsider_refusal(producer, header)
        if current is None:
            return refused or verdict
        return refused or verdict or _overtaking_refusal(header, current)

    def look_internal(self, header: BatchHeader, guard: Guard | None = None) -> Refusal | None:
        """Judge a coordinator's batch: no sequences, but epochs and transactions count."""
        if header.producer_id == NO_PRODUCER_ID:
            return None
        producer = self.producers.get(header.producer_id)
        if producer is not None and header.producer_epoch < producer.epoch:
            return stale_epoch(header.producer_id, header.producer_epoch, producer.epoch)
        if not header.attributes & TRANSACTIONAL:
            return _outsider_refusal(producer, header)
        current = self.verifications.get(header.producer_id)
        return _verification_refusal(producer, header, current, guard)

    def look_marker(self, marker: Marker, transaction_version: int) -> Refusal | None:
        """Judge a coordinator's marker (ProducerAppendInfo.appendEndTxnMarker)."""
        producer = self.producers.get(marker.producer_id)
        if producer is None:
            return None
        if not _marker_epoch_allowed(marker.producer_epoch, producer, transaction_version):
            return stale_epoch(marker.producer_id, marker.producer_epoch, producer.epoch)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            return Refusal(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"The marker for producer {marker.producer_id} comes from coordinator epoch"
                f" {marker.coordinator_epoch}, the current one is {producer.coordinator_epoch}.",
            )
        return None

    def apply_batch(self, header: BatchHeader, now_ms: int) -> None:
        """The batch is in the log, with the offset and timestamp that its header now carries."""
        producer_id = header.producer_id
        if producer_id == NO_PRODUCER_ID:
            return
        producer = self.producers.apply_batch(header, now_ms)
        if header.attributes & TRANSACTIONAL:
            self.verifications.pop(producer_id, None)  # the question is answered
            if producer.open_since_offset == NONE_OPEN:
                producer.open_since_offset = header.base_offset
                self.stability.open(producer_id, header.base_offset)

    def apply_marker(
        self, marker: Marker, offset: int, timestamp: int, now_ms: int
    ) -> AbortedTransaction | None:
        """Returns the entry to write to the aborted index, if it aborted anything here."""
        producer = self.producers.apply_marker(marker, timestamp, now_ms)
        self.verifications.pop(marker.producer_id, None)
        first_offset = producer.open_since_offset
        if first_offset == NONE_OPEN:
            return None
        producer.open_since_offset = NONE_OPEN
        self.stability.close(marker.producer_id, offset)
        if marker.is_commit:
            return None
        stable = self.stability.first_open_offset()
        entry = AbortedTransaction(
            marker.producer_id, first_offset, offset, offset + 1 if stable is None else stable
        )
        self.aborted.add(entry)
        return entry

    def replay(
        self, header: BatchHeader, marker: Marker | None, now_ms: int
    ) -> AbortedTransaction | None:
        """Apply a batch read from the log; `marker` is the content of a control batch, None if
        compaction emptied it or it ends no transaction. The log is the truth: nothing is judged,
        least of all by transaction versions, which it does not hold."""
        if not header.attributes & CONTROL:
            self.apply_batch(header, now_ms)
            return None
        if marker is None:
            return None
        return self.apply_marker(marker, header.base_offset, header.max_timestamp, now_ms)

    def expire(self, before_ms: int) -> int:
        self.verifications.expire(before_ms)
        return self.producers.expire(before_ms)


def _goes_on(producer: ProducerEntry, header: BatchHeader, guard: Guard | None) -> bool:
    """What nearly every batch does: its sequence comes next, within the producer's transaction, or
    outside where none is open. Its twin is `PartitionState.judge`, where no verification is open.
    """
    if header.base_sequence != producer.next_sequence or header.producer_epoch != producer.epoch:
        return False
    is_open = producer.open_since_offset != NONE_OPEN
    return (is_open or guard is AT_ONCE) if header.attributes & TRANSACTIONAL else not is_open


def _verification_refusal(
    producer: ProducerEntry | None, header: BatchHeader, current: Guard | None, guard: Guard | None
) -> Refusal | None:
    """A transactional batch needs a transaction open here, or the guard of its verification."""
    if producer is not None:
        if header.producer_epoch < producer.epoch:
            return stale_epoch(header.producer_id, header.producer_epoch, producer.epoch)
        if producer.has_open_transaction and producer.epoch == header.producer_epoch:
            return None
    if guard is None or guard is not (AT_ONCE if current is None else current):
        return _invalid_state(header, "has no ongoing transaction that includes this partition")
    return None


def _outsider_refusal(producer: ProducerEntry | None, header: BatchHeader) -> Refusal | None:
    """A batch outside of transactions, while its producer has one open here."""
    if producer is None or not producer.has_open_transaction:
        return None
    return _invalid_state(header, "has a transaction open here, and this batch is not part of it")


def _overtaking_refusal(header: BatchHeader, current: Guard) -> Refusal | None:
    if header.base_sequence > current.lowest_sequence:
        return out_of_order(header, f"{current.lowest_sequence} is still to be verified")
    return None


def _marker_epoch_allowed(epoch: int, producer: ProducerEntry, transaction_version: int) -> bool:
    """Version 2 bumps the epoch with every transaction, so an equal one is a repeated marker, and
    harmless only where nothing is open. At the largest epoch there is no higher one left."""
    if transaction_version < 2:
        return epoch >= producer.epoch
    if epoch == producer.epoch:
        return not producer.has_open_transaction or epoch == MAX_EPOCH
    return epoch > producer.epoch


def _invalid_state(header: BatchHeader, reason: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_TXN_STATE, f"Producer {header.producer_id} {reason}.")
