"""Proof that a transaction's first append here was checked with its coordinator (KIP-890).

Before the first transactional batch of a producer the leader asks the coordinator whether this
partition belongs to the ongoing transaction. The question leaves with a guard; the append that
follows must bring the same guard back. A marker that lands in between removes it, so a late append
cannot slip into no transaction, or into the next one. (Kafka: VerificationStateEntry.)
"""

from typing import Protocol


class Unverified(Protocol):
    """What a verification wants to know of a batch, which need not be built yet."""

    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...


class Guard:
    """A question to the coordinator, known by identity alone."""

    __slots__ = ("asked_ms", "begins_at_zero", "epoch", "lowest_sequence")

    def __init__(self, asked_ms: int, sequence: int, epoch: int, begins_at_zero: bool) -> None:
        self.asked_ms = asked_ms
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.begins_at_zero = begins_at_zero


AT_ONCE = Guard(0, 0, 0, False)
"""The guard of an append in the same turn as its question, where no other one was open: nothing
could come in between."""


class Verifications(dict[int, Guard]):
    """The open questions of one partition, one per producer id."""

    __slots__ = ()

    def ask(
        self, producer_id: int, epoch: int, sequence: int, begins_at_zero: bool, now_ms: int
    ) -> Guard:
        """The guard to carry. The lowest sequence asked for is remembered: if its verification
        fails and is retried, a later batch of the same producer must not overtake it."""
        guard = self.get(producer_id)
        if guard is None:
            guard = self[producer_id] = Guard(now_ms, sequence, epoch, begins_at_zero)
        elif epoch > guard.epoch:
            guard.epoch = epoch
            guard.lowest_sequence = sequence
        elif epoch == guard.epoch and sequence < guard.lowest_sequence:
            guard.lowest_sequence = sequence
        return guard

    def expire(self, asked_before_ms: int) -> None:
        for producer_id, guard in list(self.items()):
            if guard.asked_ms < asked_before_ms:
                del self[producer_id]
