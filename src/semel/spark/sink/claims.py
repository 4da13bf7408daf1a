"""Who may write to which partition while one batch's transaction is open. Decisions only: no
sockets, no clock.

Sequence numbers belong to a Kafka partition, so a partition has one writer at a time. A task claims
partitions for the length of one Produce request and learns the base sequence of each. Nobody waits
while holding, so nobody deadlocks. The broker's deduplication compares sequence numbers, not
contents: whenever it is unclear what a task has sent, the transaction is aborted and the whole
batch runs again under a new epoch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

Target = tuple[str, int]
_SEQUENCES = 1 << 31


@dataclass(frozen=True, slots=True)
class Want:
    """Some rows, and the partitions that would do: one for keyed rows, several for the others."""

    rows: int
    candidates: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class Grant:
    """`want` is the place of the answered want in its claim."""

    want: int
    target: Target
    sequence: int


@dataclass(frozen=True, slots=True)
class ClaimReply:
    """What to tell one session: its grants, or why it is refused (and cut off)."""

    session: int
    grants: tuple[Grant, ...] = ()
    refused: str | None = None


@dataclass(slots=True)
class Writer:
    """The task attempt that speaks for one Spark partition."""

    attempt: int
    granted_rows: int = 0
    acknowledged_rows: int = 0
    ever_granted: bool = False
    #: What it said before it went, as the end of a sentence.
    failure: str = ""


@dataclass(slots=True)
class _TaskSession:
    partition: int
    attempt: int
    held: dict[Target, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What a finished task says of itself in the job's result."""

    partition: int
    attempt: int
    rows: int


class Claims:
    """One batch attempt's claims."""

    def __init__(self) -> None:
        self.abort_reason: str | None = None
        self.closed = False
        self.writers: dict[int, Writer] = {}
        self._sessions: dict[int, _TaskSession] = {}
        self._holder: dict[Target, int] = {}
        self._sequences: dict[Target, int] = {}
        self._waiting: deque[tuple[int, tuple[Want, ...]]] = deque()

    def register(self, session: int, partition: int, attempt: int) -> ClaimReply:
        """A task is known by (partition, task attempt id).

        Never by its attempt number: after a FetchFailed, Spark runs a partition twice, overlapping,
        both with number 0.
        """
        if refusal := self._refusal():
            return ClaimReply(session, refused=refusal)
        writer = self.writers.get(partition)
        if writer is not None and writer.attempt != attempt:
            if writer.ever_granted:
                self._must_abort(
                    f"task {attempt} came for partition {partition}"
                    f" after task {writer.attempt} had written{writer.failure}"
                )
                return ClaimReply(session, refused=self.abort_reason)
            if attempt < writer.attempt:
                return ClaimReply(
                    session, refused=f"task {writer.attempt} has taken over partition {partition}"
                )
            writer = None
        if writer is None:
            self.writers[partition] = Writer(attempt)
        self._sessions[session] = _TaskSession(partition, attempt)
        return ClaimReply(session)

    def claim(
        self, session: int, released: Iterable[tuple[Target, int]], wanted: tuple[Want, ...]
    ) -> list[ClaimReply]:
        """Give back what was written (with the rows acknowledged), ask for more. An answer may come
        later.
        """
        if refusal := self._refusal_of(session):
            return [ClaimReply(session, refused=refusal)]
        for target, rows in released:
            if fault := self._release(session, target, rows):
                self._must_abort(fault)
                return [ClaimReply(session, refused=fault)]
        if not wanted:
            return [ClaimReply(session), *self._serve()]
        self._waiting.append((session, wanted))
        return self._serve()

    def lost(self, session: int) -> list[ClaimReply]:
        """The connection is gone. What it held may or may not have been written."""
        gone = self._sessions.pop(session, None)
        self._waiting = deque(entry for entry in self._waiting if entry[0] != session)
        if gone is not None and gone.held and not self.closed:
            failure = self.writers[gone.partition].failure
            self._must_abort(
                f"task {gone.attempt} was lost while it was writing to {_names(gone.held)}{failure}"
            )
        return []

    def failed(self, session: int, reason: str) -> None:
        """Why a task ended: the reason for which the batch is aborted names it."""
        known = self._sessions.get(session)
        if known is not None and self.writers[known.partition].attempt == known.attempt:
            self.writers[known.partition].failure = f": {reason}"

    def must_abort(self, reason: str) -> None:
        """From outside: the transaction cannot be completed."""
        self._must_abort(reason)

    def close(self, reports: Iterable[TaskReport]) -> str | None:
        """No more claims. Returns why the batch must not be committed, or None when every row is
        accounted for.
        """
        self.closed = True
        if self.abort_reason:
            return self.abort_reason
        if self._holder:
            return f"still being written to: {_names(self._holder)}"
        seen: dict[int, TaskReport] = {}
        for report in reports:
            if report.partition in seen:
                return f"partition {report.partition} was reported twice"
            seen[report.partition] = report
        if set(seen) != set(range(len(seen))):
            return f"partitions {sorted(set(range(max(seen) + 1)) - set(seen))} were never reported"
        return self._mismatch(seen)

    def _mismatch(self, seen: dict[int, TaskReport]) -> str | None:
        for partition, writer in self.writers.items():
            if partition not in seen and writer.ever_granted:
                return (
                    f"task {writer.attempt} of partition {partition} wrote rows and never reported"
                )
        for partition, report in seen.items():
            writer = self.writers.get(partition, Writer(report.attempt))
            if not writer.ever_granted:
                if report.rows:
                    return f"task {report.attempt} reports {report.rows} rows and was granted none"
                continue
            if writer.attempt != report.attempt:
                return (
                    f"task {writer.attempt} wrote for partition {partition},"
                    f" task {report.attempt} reports it"
                )
            if not writer.granted_rows == writer.acknowledged_rows == report.rows:
                return (
                    f"task {writer.attempt}: {writer.granted_rows} rows granted,"
                    f" {writer.acknowledged_rows} acknowledged, {report.rows} reported"
                )
        return None

    def _must_abort(self, reason: str) -> None:
        if self.abort_reason is None:
            self.abort_reason = reason

    def _refusal(self) -> str | None:
        if self.closed:
            return "this batch's transaction is closed"
        return self.abort_reason

    def _refusal_of(self, session: int) -> str | None:
        if refusal := self._refusal():
            return refusal
        known = self._sessions.get(session)
        if known is None:
            return "claim before registration"
        writer = self.writers[known.partition]
        if writer.attempt != known.attempt:
            return f"task {writer.attempt} has taken over partition {known.partition}"
        return None

    def _release(self, session: int, target: Target, rows: int) -> str | None:
        known = self._sessions[session]
        granted = known.held.pop(target, None)
        if granted is None:
            return f"task {known.attempt} gave back {target}, which it did not hold"
        if granted != rows:
            return (
                f"task {known.attempt} wrote {rows} rows to {target} where {granted} were granted"
            )
        del self._holder[target]
        self.writers[known.partition].acknowledged_rows += rows
        return None

    def _serve(self) -> list[ClaimReply]:
        """Grant in order of arrival; whoever can get at least one partition goes on with what is
        free.
        """
        replies, still_waiting = [], deque[tuple[int, tuple[Want, ...]]]()
        for session, wanted in self._waiting:
            # A session may have been overtaken while it waited.
            if refusal := self._refusal_of(session):
                replies.append(ClaimReply(session, refused=refusal))
            elif grants := self._grant(session, wanted):
                replies.append(ClaimReply(session, grants=grants))
            else:
                still_waiting.append((session, wanted))
        self._waiting = still_waiting
        return replies

    def _grant(self, session: int, wanted: tuple[Want, ...]) -> tuple[Grant, ...]:
        known = self._sessions[session]
        writer = self.writers[known.partition]
        grants = []
        for place, want in enumerate(wanted):
            free = [target for target in want.candidates if target not in self._holder]
            if not free:
                continue
            # Of many partitions that would do, the one with the fewest rows so far.
            target = min(free, key=lambda candidate: self._sequences.get(candidate, 0))
            sequence = self._sequences.get(target, 0)
            self._sequences[target] = (sequence + want.rows) % _SEQUENCES
            self._holder[target] = session
            known.held[target] = want.rows
            writer.granted_rows += want.rows
            writer.ever_granted = True
            grants.append(Grant(place, target, sequence))
        return tuple(grants)


def _names(targets: Iterable[Target]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(targets))
