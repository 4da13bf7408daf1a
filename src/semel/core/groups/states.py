"""The states of groups and of their members, and the only legal moves between them.

The tables are drawn into the docs and asserted whenever a state changes.
"""

from enum import IntEnum, StrEnum


class ClassicState(StrEnum):
    """A group whose members assign partitions among themselves. The names are Kafka's own."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


CLASSIC_MOVES: dict[ClassicState, frozenset[ClassicState]] = {
    ClassicState.EMPTY: frozenset({ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}),
    # Everybody (or nobody) has joined: the leader is asked to assign, or the group is empty.
    ClassicState.PREPARING_REBALANCE: frozenset(
        {ClassicState.COMPLETING_REBALANCE, ClassicState.EMPTY, ClassicState.DEAD}
    ),
    # The leader's SyncGroup settles the generation; anything else starts over.
    ClassicState.COMPLETING_REBALANCE: frozenset(
        {ClassicState.STABLE, ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}
    ),
    ClassicState.STABLE: frozenset({ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}),
    ClassicState.DEAD: frozenset({ClassicState.DEAD}),
}

CAN_REBALANCE = frozenset(
    state for state, moves in CLASSIC_MOVES.items() if ClassicState.PREPARING_REBALANCE in moves
)


class ConsumerState(StrEnum):
    """A group that the broker assigns (KIP-848). Derived from its epochs, never stored."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberState(IntEnum):
    """Where a member of a consumer group stands. The numbers are written to __consumer_offsets."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


_ALIVE = frozenset(
    {MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS}
)

MEMBER_MOVES: dict[MemberState, frozenset[MemberState]] = {
    MemberState.STABLE: _ALIVE,
    # The member must first give up what it no longer owns.
    MemberState.UNREVOKED_PARTITIONS: _ALIVE,
    # The member waits for partitions that others have not given up yet.
    MemberState.UNRELEASED_PARTITIONS: _ALIVE,
    # Written by a broker newer than this one: the member starts over.
    MemberState.UNKNOWN: _ALIVE | {MemberState.UNKNOWN},
}
