"""Reading: which batches of an answer may be seen, where a partition stands, what to fetch next.

Pure. `visible_batches` is the isolation filter: markers are never shown, and with read_committed
neither are batches of the aborted transactions that the broker listed with its answer.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from semel.client.machines.types import TopicPartition
from semel.wire.batches import BatchHeader, headers
from semel.wire.batches.committed import committed_only, fetched_batches
from semel.wire.compression import Buffer
from semel.wire.errors import ErrorCode

E = ErrorCode

# What the position of a partition is while nobody knows it yet.
NO_POSITION = -1


class Aborted(NamedTuple):
    """A transaction that was aborted: what its producer wrote from here to its marker is void."""

    producer_id: int
    first_offset: int


def visible_batches(
    records: Buffer,
    position: int,
    aborted: Iterable[Aborted] | None,
    *,
    check_crcs: bool = True,
) -> Iterator[BatchHeader]:
    """The batches that a reader at `position` may see. `aborted` is None for uncommitted reads."""
    for batch in committed_only(fetched_batches(records, check_crcs), aborted):
        if not batch.is_control and batch.last_offset >= position:
            yield batch


def end_of(records: Buffer, position: int) -> int:
    """The offset behind the last whole batch: what was skipped is read too, and never again."""
    for batch in headers(records, partial_tail=True):
        position = max(position, batch.next_offset)
    return position


class Reset(NamedTuple):
    """Where to start when there is no (valid) position: a timestamp for ListOffsets."""

    timestamp: int


EARLIEST = Reset(-2)
LATEST = Reset(-1)


@dataclass(slots=True)
class TopicPartitionState:
    """Where a consumer stands in one partition."""

    partition: TopicPartition
    position: int = NO_POSITION
    leader_epoch: int = -1  # of the last record consumed: a shorter log is noticed by it (KIP-320)
    checked_epoch: int = -1  # the leader under which the position was last known to be in the log
    reset: Reset | None = None
    paused: bool = False
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1

    @property
    def is_fetchable(self) -> bool:
        return self.position >= 0 and self.reset is None and not self.paused

    def seek(self, offset: int, leader_epoch: int = -1, checked_epoch: int = -1) -> None:
        self.position, self.leader_epoch, self.reset = offset, leader_epoch, None
        self.checked_epoch = checked_epoch

    def lose_position(self, reset: Reset) -> None:
        self.seek(NO_POSITION)
        self.reset = reset

    def is_doubtful(self, leader_epoch: int) -> bool:
        """Another leader since the last look: its log may have forked before our position.
        Without an epoch on either side there is nothing to ask with."""
        return leader_epoch > self.checked_epoch and self.leader_epoch >= 0 and self.position >= 0


class EpochEndOffset(NamedTuple):
    """A leader's answer to OffsetForLeaderEpoch: the epoch it knows at or below, and its end."""

    leader_epoch: int
    end_offset: int


class Truncation(NamedTuple):
    """The log no longer holds what was read here: others will see other records."""

    partition: TopicPartition
    position: int
    diverged_at: int | None  # the first offset that differs; None where the leader cannot say


def look_for_truncation(
    state: TopicPartitionState, end: EpochEndOffset, asked_of: int
) -> Truncation | None:
    """Kafka's SubscriptionState.maybeCompleteValidation. `asked_of` is the leader's epoch."""
    if end.end_offset < 0 or end.leader_epoch < 0:
        return Truncation(state.partition, state.position, None)
    if end.end_offset < state.position:
        return Truncation(state.partition, state.position, end.end_offset)
    state.checked_epoch = asked_of
    return None


class FetchErrorAction:
    """What to do about an error in a fetch: the names say it."""

    REFRESH = "refresh the metadata"
    AGAIN = "fetch again later"
    RESET = "the position is not in the log"
    RAISE = "tell the user"


def action_for(code: ErrorCode) -> str:
    """Kafka's FetchCollector.handleInitializeErrors."""
    if code is E.OFFSET_OUT_OF_RANGE:
        return FetchErrorAction.RESET
    if code in (
        E.NOT_LEADER_OR_FOLLOWER,
        E.REPLICA_NOT_AVAILABLE,
        E.KAFKA_STORAGE_ERROR,
        E.FENCED_LEADER_EPOCH,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_ID,
        E.INCONSISTENT_TOPIC_ID,
        E.LEADER_NOT_AVAILABLE,
    ):
        return FetchErrorAction.REFRESH
    return (
        FetchErrorAction.AGAIN
        if code.retriable or code is E.UNKNOWN_SERVER_ERROR
        else FetchErrorAction.RAISE
    )


class PartitionFetch(NamedTuple):
    """What is asked for one partition in a fetch."""

    position: int
    leader_epoch: int
    last_fetched_epoch: int
    max_bytes: int


class FetchSession:
    """KIP-227: the broker remembers what was asked; a fetch names only what changed since."""

    NONE, INITIAL = 0, 0

    def __init__(self) -> None:
        self.session_id = self.NONE
        self.epoch = self.INITIAL
        self._known: dict[TopicPartition, PartitionFetch] = {}
        self._asked: dict[TopicPartition, PartitionFetch] = {}

    def build(
        self, wanted: dict[TopicPartition, PartitionFetch]
    ) -> tuple[dict[TopicPartition, PartitionFetch], list[TopicPartition]]:
        """(partitions to name, partitions to forget) for the next request."""
        self._asked = wanted
        if self.epoch == self.INITIAL:
            return wanted, []
        changed = {p: want for p, want in wanted.items() if self._known.get(p) != want}
        return changed, [partition for partition in self._known if partition not in wanted]

    def answered(self, session_id: int) -> None:
        """The broker took the request: it now knows what was asked."""
        self._known = self._asked
        if self.epoch == self.INITIAL:
            self.session_id = session_id
            # 0 means that the broker keeps no session: every fetch stays a full one.
            self.epoch = 1 if session_id != self.NONE else self.INITIAL
        else:
            self.epoch = self.epoch + 1 if self.epoch < 0x7FFF_FFFF else 1

    def restart(self) -> None:
        """Lost, or the two sides disagree: begin with a full fetch."""
        self.session_id, self.epoch = self.NONE, self.INITIAL
        self._known.clear()
