"""What happened to transactions lately, and why producers were fenced. In bounded memory.

The moves of all transactions go into one ring, newest last. The causes of forced ends are kept by
whom they fenced, and longer, because a fenced producer may ask hours later.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import NamedTuple

from semel.core.transactions.transaction import Transaction

MOVES_KEPT = 20_000
CAUSES_KEPT = 10_000


class Move(NamedTuple):
    """One step of a transaction, for people."""

    at_ms: int
    state: str
    producer_id: int
    epoch: int
    partitions: int
    reason: str


class Timeline:
    def __init__(self, moves_kept: int = MOVES_KEPT, causes_kept: int = CAUSES_KEPT) -> None:
        # Records are immutable and shared with the coordinator: noting one costs a pointer.
        self._records: deque[Transaction] = deque(maxlen=moves_kept)
        self.note: Callable[[Transaction], None] = self._records.append
        """Note a move."""
        self._causes: OrderedDict[tuple[int, int], str] = OrderedDict()
        self._causes_kept = causes_kept

    def why(self, producer_id: int, epoch: int) -> str | None:
        """Why this producer is fenced, if we remember."""
        return self._causes.get((producer_id, epoch))

    def explain(self, producer_id: int, epoch: int, why: str) -> None:
        """Remember why a producer's transaction was ended without its asking."""
        self._causes[producer_id, epoch] = why
        if len(self._causes) > self._causes_kept:
            self._causes.popitem(last=False)

    def moves(self, transactional_id: str) -> list[Move]:
        """What is still remembered of one transactional id, oldest first."""
        return [
            Move(
                record.updated_at_ms,
                record.state.kafka_name,
                record.producer_id,
                record.epoch,
                len(record.partitions),
                record.cause.reason if record.cause else "",
            )
            for record in self._records
            if record.transactional_id == transactional_id
        ]
