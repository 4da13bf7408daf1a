"""The states of groups and of their members, and the only legal moves between them.

`docs/group-states.md` draws its diagrams from the tables; `ClassicGroup.move_to` and
`GroupsState.apply` assert them.
"""

from enum import IntEnum, StrEnum


class ClassicState(StrEnum):
    """A group whose members assign partitions among themselves. The names are Kafka's own."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"  # what DescribeGroups says of a group that is not there; no group is in it


CLASSIC_CAUSES: dict[tuple[ClassicState, ClassicState], str] = {
    (ClassicState.EMPTY, ClassicState.PREPARING_REBALANCE): "a first member joins",
    (ClassicState.PREPARING_REBALANCE, ClassicState.COMPLETING_REBALANCE): "all joined, or time up",
    (ClassicState.PREPARING_REBALANCE, ClassicState.EMPTY): "nobody is left",
    (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE): "the leader assigns",
    (ClassicState.COMPLETING_REBALANCE, ClassicState.PREPARING_REBALANCE): "a member comes or goes",
    (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE): "a member comes, changes or goes",
}

CLASSIC_MOVES: dict[ClassicState, frozenset[ClassicState]] = {
    state: frozenset(after for before, after in CLASSIC_CAUSES if before is state)
    for state in ClassicState
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


MEMBER_CAUSES: dict[tuple[MemberState, MemberState], str] = {
    (MemberState.STABLE, MemberState.STABLE): "a target that only adds free partitions",
    (MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS): "it must give something up",
    (MemberState.STABLE, MemberState.UNRELEASED_PARTITIONS): "others still hold its partitions",
    (MemberState.UNREVOKED_PARTITIONS, MemberState.UNREVOKED_PARTITIONS): "still more to give up",
    (MemberState.UNREVOKED_PARTITIONS, MemberState.STABLE): "it has let go",
    (MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS): "it has, others not",
    (MemberState.UNRELEASED_PARTITIONS, MemberState.STABLE): "the others have let go",
    (MemberState.UNRELEASED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS): "some of them have",
    (MemberState.UNRELEASED_PARTITIONS, MemberState.UNREVOKED_PARTITIONS): "a new target",
    # A state written by a newer broker than this one: the member starts over.
    (MemberState.UNKNOWN, MemberState.STABLE): "it rejoins without partitions",
    (MemberState.UNKNOWN, MemberState.UNREVOKED_PARTITIONS): "it rejoins without partitions",
    (MemberState.UNKNOWN, MemberState.UNRELEASED_PARTITIONS): "it rejoins without partitions",
}

MEMBER_MOVES: dict[MemberState, frozenset[MemberState]] = {
    state: frozenset(after for before, after in MEMBER_CAUSES if before is state)
    for state in MemberState
}


def classic_mermaid() -> str:
    """The diagram of a classic group, drawn from the table that it obeys."""
    lines = ["stateDiagram-v2", "    [*] --> Empty"]
    for (before, after), cause in CLASSIC_CAUSES.items():
        lines.append(f"    {before} --> {after}: {cause}")
    lines.append("    Empty --> [*]: deleted or expired")
    return "\n".join(lines)


def member_mermaid() -> str:
    """The same of a member of a consumer group."""
    lines = ["stateDiagram-v2", "    [*] --> STABLE"]
    for (before, after), cause in MEMBER_CAUSES.items():
        lines.append(f"    {before.name} --> {after.name}: {cause}")
    return "\n".join(lines)
