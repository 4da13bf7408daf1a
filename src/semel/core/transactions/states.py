"""The states of a transaction, and the only legal moves between them.

`docs/transaction-states.md` draws its diagram from `MOVES`; `Transaction.moved`, which makes every
new state, asserts it. `Coordinator.apply` does not: a compacted log has gaps.
"""

from enum import IntEnum


class TxnState(IntEnum):
    """The numbers are those written to __transaction_state: never change them."""

    kafka_name: str

    def __new__(cls, number: int, kafka_name: str) -> "TxnState":
        member = int.__new__(cls, number)
        member._value_ = number
        member.kafka_name = kafka_name
        return member

    EMPTY = 0, "Empty"
    ONGOING = 1, "Ongoing"
    PREPARE_COMMIT = 2, "PrepareCommit"
    PREPARE_ABORT = 3, "PrepareAbort"
    COMPLETE_COMMIT = 4, "CompleteCommit"
    COMPLETE_ABORT = 5, "CompleteAbort"
    DEAD = 6, "Dead"


EMPTY, ONGOING, DEAD = TxnState.EMPTY, TxnState.ONGOING, TxnState.DEAD
PREPARE_COMMIT, PREPARE_ABORT = TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT

PREPARED = frozenset({PREPARE_COMMIT, PREPARE_ABORT})
COMPLETE = frozenset({COMPLETE_COMMIT, COMPLETE_ABORT})
IDLE = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})
"""No transaction is open: the id may expire, begin, or change hands."""

# From idle, PREPARE_ABORT is version 2's abort of a transaction in which nothing was added: the
# client may have added something that never arrived, so the epoch must move past it (KIP-890).
_FROM_IDLE = frozenset({EMPTY, ONGOING, PREPARE_ABORT, DEAD})

MOVES: dict[TxnState, frozenset[TxnState]] = {
    EMPTY: _FROM_IDLE,
    ONGOING: frozenset({ONGOING, PREPARE_COMMIT, PREPARE_ABORT}),
    # The outcome is durable here. From a prepared state there is one way, and no way back.
    PREPARE_COMMIT: frozenset({COMPLETE_COMMIT}),
    PREPARE_ABORT: frozenset({COMPLETE_ABORT}),
    COMPLETE_COMMIT: _FROM_IDLE,
    COMPLETE_ABORT: _FROM_IDLE,
    DEAD: frozenset(),  # written as a tombstone: the id is forgotten, and may be used again
}

STATES_BY_NAME = {state.kafka_name: state for state in TxnState}

CAUSES: dict[tuple[TxnState, TxnState], str] = {
    (EMPTY, EMPTY): "InitProducerId",
    (EMPTY, ONGOING): "first partition or group added",
    (EMPTY, PREPARE_ABORT): "EndTxn abort, version 2",
    (EMPTY, DEAD): "idle too long",
    (ONGOING, ONGOING): "more partitions, or a prepared transaction handed over (2PC)",
    (ONGOING, PREPARE_COMMIT): "EndTxn commit",
    (ONGOING, PREPARE_ABORT): "EndTxn abort, takeover, timeout",
    (PREPARE_COMMIT, COMPLETE_COMMIT): "all markers written",
    (PREPARE_ABORT, COMPLETE_ABORT): "all markers written",
    (COMPLETE_COMMIT, EMPTY): "InitProducerId",
    (COMPLETE_COMMIT, ONGOING): "next transaction",
    (COMPLETE_COMMIT, PREPARE_ABORT): "EndTxn abort, version 2",
    (COMPLETE_COMMIT, DEAD): "idle too long",
    (COMPLETE_ABORT, EMPTY): "InitProducerId",
    (COMPLETE_ABORT, ONGOING): "next transaction",
    (COMPLETE_ABORT, PREPARE_ABORT): "EndTxn abort, version 2",
    (COMPLETE_ABORT, DEAD): "idle too long",
}


def mermaid() -> str:
    """The state diagram, drawn from the table that the coordinator obeys."""
    lines = ["stateDiagram-v2", "    [*] --> Empty: InitProducerId"]
    for before, afters in MOVES.items():
        for after in sorted(afters):
            cause = CAUSES[before, after]
            lines.append(f"    {before.kafka_name} --> {after.kafka_name}: {cause}")
    lines.append("    Dead --> [*]: tombstone")
    return "\n".join(lines)
