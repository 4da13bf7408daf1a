"""Leader epochs: where each one began, and whether a client's idea of them is the leader's."""

from collections.abc import Sequence
from typing import NamedTuple

from semel.core.partition.admission import Refusal
from semel.wire.errors import ErrorCode

UNDEFINED = -1


class EpochEnd(NamedTuple):
    """The largest epoch at or below the one asked for, and the offset after its last record."""

    epoch: int
    end_offset: int


NO_EPOCH_END = EpochEnd(UNDEFINED, UNDEFINED)


def epoch_end(epochs: Sequence[tuple[int, int]], asked: int, log_end: int) -> EpochEnd:
    """`epochs` are (epoch, first offset), ascending (LeaderEpochFileCache.endOffsetFor)."""
    if asked == UNDEFINED or not epochs or asked > epochs[-1][0]:
        return NO_EPOCH_END
    if asked == epochs[-1][0]:
        return EpochEnd(asked, log_end)
    known = asked
    for epoch, first_offset in epochs:
        if epoch > asked:
            return EpochEnd(known, first_offset)
        known = epoch
    raise AssertionError("the last epoch is larger than the one asked for")


def epoch_refusal(asked: int, current: int) -> Refusal | None:
    """The error for a client whose metadata is older or newer than ours (KIP-320)."""
    if asked in (UNDEFINED, current):
        return None
    if asked < current:
        return Refusal(
            ErrorCode.FENCED_LEADER_EPOCH, f"Leader epoch {asked} is over, it is {current} now."
        )
    return Refusal(
        ErrorCode.UNKNOWN_LEADER_EPOCH, f"Leader epoch {asked} is not known here, only {current}."
    )
