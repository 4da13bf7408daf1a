"""Proof that a transaction's first append here was checked with its coordinator (KIP-890).

Before the first transactional batch of a producer the leader asks the coordinator whether this
partition belongs to the ongoing transaction. The question leaves with a guard; the append that
follows must bring the same guard back. A marker that lands in between removes it, so a late append
cannot slip into no transaction, or into the next one. (Kafka: VerificationStateEntry.)
"""


class Guard:
    """A question to the coordinator, known by identity alone."""

    __slots__ = ("asked_ms", "begins_at_zero", "epoch", "lowest_sequence")

    def __init__(self, asked_ms: int, sequence: int, epoch: int, begins_at_zero: bool) -> None:
        self.asked_ms = asked_ms
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.begins_at_zero = begins_at_zero


class Verifications:
    """The open questions of one partition, one per producer id."""

    __slots__ = ("_guards",)

    def __init__(self) -> None:
        self._guards: dict[int, Guard] = {}

    def __len__(self) -> int:
        return len(self._guards)

    def ask(
        self, producer_id: int, epoch: int, sequence: int, begins_at_zero: bool, now_ms: int
    ) -> Guard:
        """The guard to carry. The lowest sequence asked for is remembered: if its verification
        fails and is retried, a later batch of the same producer must not overtake it."""
        guard = self._guards.get(producer_id)
        if guard is None:
            guard = self._guards[producer_id] = Guard(now_ms, sequence, epoch, begins_at_zero)
        elif epoch > guard.epoch:
            guard.epoch = epoch
            guard.lowest_sequence = sequence
        elif epoch == guard.epoch and sequence < guard.lowest_sequence:
            guard.lowest_sequence = sequence
        return guard

    def current(self, producer_id: int) -> Guard | None:
        return self._guards.get(producer_id)

    def settle(self, producer_id: int) -> None:
        """A transactional batch or a marker was appended: the question is answered."""
        self._guards.pop(producer_id, None)

    def expire(self, asked_before_ms: int) -> None:
        for producer_id, guard in list(self._guards.items()):
            if guard.asked_ms < asked_before_ms:
                del self._guards[producer_id]
