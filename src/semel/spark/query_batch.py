"""A micro-batch as the ledger remembers it, and what to do when Spark comes with one.

A batch number alone would lose data: a restored old checkpoint runs other rows under a number that
was used before. So an entry of the sink also says which query it was, where its sources stood, and
when Spark planned it: the offset of some sources is only a counter, such as that of files
(docs/decisions/0008-the-ledger.md). The decision is pure.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from semel.client.machines.ledger import LedgerEntry, LedgerRefusal
from semel.errors import StaleCheckpointError

WRITER = "spark"


class BatchVerdict(enum.Enum):
    RUN = "run"
    SKIP = "skip"
    NEW_LINEAGE = "new lineage"


@dataclass(frozen=True, slots=True)
class QueryBatch:
    """A batch of a query, with the offsets of all sources before it and after it."""

    query_id: str
    batch: int
    start: tuple[Any, ...]
    end: tuple[Any, ...]
    #: `batchTimestampMs` of Spark's offset log. A batch that is run again keeps it, one that is
    #: planned anew gets another. None in entries of the past, which did not have it.
    planned_ms: int | None = None

    def entry(self, application: str) -> LedgerEntry:
        note: dict[str, Any] = {"query": self.query_id, "start": self.start, "end": self.end}
        if self.planned_ms is not None:
            note["planned_ms"] = self.planned_ms
        return LedgerEntry(application, self.batch, note, WRITER)

    @classmethod
    def of(cls, entry: LedgerEntry) -> QueryBatch:
        entry.check_writer(WRITER)
        try:
            note = entry.note
            start, end = tuple(note["start"]), tuple(note["end"])
            return cls(note["query"], entry.number, start, end, note.get("planned_ms"))
        except (KeyError, TypeError):
            raise LedgerRefusal(
                f"the ledger's entry of application {entry.application!r} does not say which query"
                f" it is of: {entry.note!r}"
            ) from None

    def __str__(self) -> str:
        offsets = f"batch {self.batch} of query {self.query_id}, offsets {self.start} to {self.end}"
        if self.planned_ms is None:
            return offsets
        return f"{offsets}, planned at {_utc(self.planned_ms)}"

    def reads_the_same(self, other: QueryBatch) -> bool:
        """Whether both name the same rows, as far as offsets can tell."""
        return (self.query_id, self.batch, self.start, self.end) == (
            other.query_id,
            other.batch,
            other.start,
            other.end,
        )

    def planned_with(self, other: QueryBatch) -> bool:
        """Whether one may be the other, run again. An entry without a time may be any."""
        return None in (self.planned_ms, other.planned_ms) or self.planned_ms == other.planned_ms


def judge(
    application: str, committed: QueryBatch | None, batch: QueryBatch, begin_anew: bool = False
) -> BatchVerdict:
    """What to do with a batch, given what is committed.

    `begin_anew` allows a new checkpoint to write again what an earlier one has committed.
    """
    continued = _continued_from_ledger(application, batch)
    if committed is None:
        if continued is not None:
            raise StaleCheckpointError(
                f"application {application!r} starts from its ledger, which has no entry"
            )
        return BatchVerdict.RUN
    if committed.query_id != batch.query_id:
        return _judge_new_query(application, committed, batch, continued, begin_anew)
    if committed.reads_the_same(batch):
        if committed.planned_with(batch):
            return BatchVerdict.SKIP
        raise StaleCheckpointError(
            f"application {application!r} has committed {committed}; the checkpoint comes with"
            f" {batch}. Numbers and offsets are the same, but it was planned anew, so its rows may"
            " be others: an old checkpoint was restored. Continue with the right checkpoint, or"
            " begin a new one"
        )
    if batch.batch == committed.batch + 1 and batch.start == committed.end:
        return BatchVerdict.RUN
    raise StaleCheckpointError(
        f"application {application!r} has committed {committed}; the checkpoint comes with {batch}."
        " It is neither that batch nor the next one: an old checkpoint was restored, or the topic"
        " with the ledger was. Continue with the right checkpoint, or begin a new one"
    )


def origins(end: tuple[Any, ...]) -> tuple[Any, ...]:
    """Where a query began: Spark does not log it, our own source carries it along."""
    return tuple(offset.get("origin") if isinstance(offset, dict) else None for offset in end)


def source_positions(offsets: tuple[Any, ...]) -> dict[tuple[str, int], int]:
    """Kafka offsets of our own source or of Spark's connector; other sources have none."""
    positions = {}
    for offset in offsets:
        topics = offset.get("topics", offset) if isinstance(offset, dict) else {}
        for topic, partitions in topics.items():
            if not isinstance(partitions, dict):
                continue
            for partition, number in partitions.items():
                if partition.isdigit() and isinstance(number, int):
                    positions[topic, int(partition)] = number
    return positions


def _judge_new_query(
    application: str,
    committed: QueryBatch,
    batch: QueryBatch,
    continued: tuple[Any, ...] | None,
    begin_anew: bool,
) -> BatchVerdict:
    if batch.batch != 0:
        raise StaleCheckpointError(
            f"application {application!r} has committed {committed}; the checkpoint is of another"
            f" query and not at its beginning: {batch}. Use that query's checkpoint, a new one, or"
            " another application name"
        )
    if continued is not None and continued != tuple(map(_position, committed.end)):
        raise StaleCheckpointError(
            f"the query starts from the ledger of {application!r} at {continued}, but by now"
            f" {committed} is committed: another query got there first"
        )
    if not begin_anew and _may_repeat(committed, batch):
        raise StaleCheckpointError(
            f"application {application!r} has committed {committed}; a new checkpoint comes with"
            f" {batch}, which would write rows a second time. Continue with the checkpoint of that"
            " query (checkpointLocation); or go on from the ledger, with the source's"
            ' startingOffsets="committed"; or use another application name; or, if the rows shall'
            " be written again, give the sink begin_anew=True"
        )
    return BatchVerdict.NEW_LINEAGE


def _may_repeat(committed: QueryBatch, batch: QueryBatch) -> bool:
    """Whether a new query may read what is committed: only Kafka's offsets prove the contrary."""
    if not all(source_positions((offset,)) for offset in (*committed.end, *batch.start)):
        return True
    begun = source_positions(batch.start)
    ends = source_positions(committed.end)
    return any(begun[target] < ends[target] for target in begun.keys() & ends.keys())


def _continued_from_ledger(application: str, batch: QueryBatch) -> tuple[Any, ...] | None:
    """Where the sources began, if this is a first batch that goes on from the ledger."""
    origins = [end.get("origin") for end in batch.end if isinstance(end, dict)]
    if batch.batch != 0 or not any(o and o.get("ledger") == application for o in origins):
        return None
    return tuple(origin and origin["topics"] for origin in origins)


def _position(end: Any) -> Any:
    return end.get("topics") if isinstance(end, dict) else end


def _utc(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
