"""The eight states of a producer with transactions, and the legal moves between them, as a table.

Kafka's TransactionManager.State has the same (and a ninth for two-phase commit, not built here). A
producer that is only idempotent goes UNINITIALIZED → INITIALIZING → READY and stays there.
"""

from enum import Enum


class State(Enum):
    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in transaction"
    COMMITTING_TRANSACTION = "committing"
    ABORTING_TRANSACTION = "aborting"
    ABORTABLE_ERROR = "abortable error"
    FATAL_ERROR = "fatal error"


_S = State

MOVES: dict[State, frozenset[State]] = {
    # Idempotent producers fall back to UNINITIALIZED when their epochs are used up.
    _S.UNINITIALIZED: frozenset({_S.INITIALIZING, _S.FATAL_ERROR}),
    _S.INITIALIZING: frozenset({_S.READY, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}),
    _S.READY: frozenset({_S.IN_TRANSACTION, _S.UNINITIALIZED, _S.FATAL_ERROR}),
    _S.IN_TRANSACTION: frozenset(
        {
            _S.COMMITTING_TRANSACTION,
            _S.ABORTING_TRANSACTION,
            _S.ABORTABLE_ERROR,
            _S.FATAL_ERROR,
        }
    ),
    # To INITIALIZING when the epoch must be bumped before the next transaction (KIP-360).
    _S.COMMITTING_TRANSACTION: frozenset(
        {_S.READY, _S.INITIALIZING, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}
    ),
    # An abortable error while aborting changes nothing: the abort goes on.
    _S.ABORTING_TRANSACTION: frozenset({_S.READY, _S.INITIALIZING, _S.FATAL_ERROR}),
    _S.ABORTABLE_ERROR: frozenset({_S.ABORTING_TRANSACTION, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}),
    _S.FATAL_ERROR: frozenset(),
}


def diagram() -> str:
    """The table as a Mermaid state diagram, for the documentation."""
    lines = ["stateDiagram-v2", "    [*] --> UNINITIALIZED"]
    for source, targets in MOVES.items():
        lines += [f"    {source.name} --> {t.name}" for t in State if t in targets]
    return "\n".join(lines)
