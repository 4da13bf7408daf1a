"""A transactional id's whole state: one immutable value, which is also its record in the log."""

from typing import Any, NamedTuple

from semel.core.transactions.states import EMPTY, MOVES, PREPARE_COMMIT, PREPARED, TxnState

TopicPartition = tuple[str, int]

NO_PRODUCER_ID = -1
NO_EPOCH = -1
LAST_USABLE_EPOCH = 32766
"""The epoch after it is kept for fencing, so that an open transaction can always be taken over."""

NEVER_MS = 2**31 - 1
"""The timeout of a transaction under two-phase commit: another system decides its end (KIP-939)."""

# Kafka's TransactionVersion of the client, as it stands in the log.
TV_0 = 0
"""Clients that add partitions explicitly: what our texts call version 1 of the protocol."""
TV_2 = 2
"""KIP-890: partitions added by Produce itself, and an epoch of its own for every transaction."""

NO_PARTITIONS: frozenset[TopicPartition] = frozenset()


class Cause(NamedTuple):
    """Who was fenced, and why: the answer to the question every fenced producer asks."""

    producer_id: int
    epoch: int
    reason: str


class Transaction(NamedTuple):
    """Kafka's TransactionMetadata. Each record is the whole new value, so the last record of a key
    is the truth and log compaction is right for free."""

    transactional_id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    state: TxnState = EMPTY
    partitions: frozenset[TopicPartition] = NO_PARTITIONS
    started_at_ms: int = -1
    updated_at_ms: int = -1
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the latest move; differs from `producer_id` only after a rotation."""
    next_producer_id: int = NO_PRODUCER_ID
    """Takes over when this transaction is complete: epochs ran out, or 2PC handed it over."""
    next_epoch: int = NO_EPOCH
    """Given only with 2PC's handover; without it the next producer id begins at epoch 0."""
    client_version: int = TV_0
    last_epoch: int = NO_EPOCH
    """The epoch before the last bump that its owner asked for (KIP-360). Kafka's format has no room
    for it: it is lost when the log is loaded, and the owner of a lost answer is then fenced."""
    cause: Cause | None = None
    """Why this move was forced upon a producer; None when it asked for it. Not in the log."""

    @property
    def committing(self) -> bool:
        return self.state is PREPARE_COMMIT

    @property
    def prepared(self) -> bool:
        return self.state in PREPARED

    @property
    def two_phase(self) -> bool:
        return self.timeout_ms == NEVER_MS

    @property
    def handed_over(self) -> bool:
        """Open, but only the holder of (next producer id, next epoch) may end it (KIP-939)."""
        return self.next_epoch != NO_EPOCH

    @property
    def exhausted(self) -> bool:
        return self.epoch >= LAST_USABLE_EPOCH

    @property
    def owner(self) -> tuple[int, int]:
        """The (producer id, epoch) that its producer holds, or will hold once this is complete."""
        if self.next_producer_id == NO_PRODUCER_ID:
            return self.producer_id, self.epoch
        return self.next_producer_id, self.next_epoch if self.handed_over else 0

    def moved(self, state: TxnState, now_ms: int, **changes: Any) -> "Transaction":
        """The next value: every move notes its time and the producer id it started from, as Kafka's
        prepareTransitionTo does, and none but those in MOVES is made."""
        assert state in MOVES[self.state], f"{self.transactional_id}: {self.state!r} -> {state!r}"
        values = list(self)
        values[_STATE], values[_UPDATED_AT], values[_CAUSE] = state, now_ms, None
        values[_PREVIOUS_PRODUCER_ID] = self.producer_id
        for name, value in changes.items():
            values[_PLACE[name]] = value
        return tuple.__new__(Transaction, values)  # `_replace`, its twin, takes longer

    def fenced(self, reason: str) -> Cause:
        """What its present owner shall be told."""
        return Cause(*self.owner, reason)


_PLACE = {name: place for place, name in enumerate(Transaction._fields)}
_STATE, _UPDATED_AT, _CAUSE = _PLACE["state"], _PLACE["updated_at_ms"], _PLACE["cause"]
_PREVIOUS_PRODUCER_ID = _PLACE["previous_producer_id"]
