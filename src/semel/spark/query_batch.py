"""A micro-batch as the ledger remembers it, and what to do when Spark comes with one.

A batch number alone would lose data: a restored old checkpoint runs other rows under a number that
was used before. So an entry of the sink also says which query it was and where its sources stood
(docs/decisions/0008-the-ledger.md). The decision is pure.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
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

    def entry(self, application: str) -> LedgerEntry:
        note = {"query": self.query_id, "start": self.start, "end": self.end}
        return LedgerEntry(application, self.batch, note, WRITER)

    @classmethod
    def of(cls, entry: LedgerEntry) -> QueryBatch:
        entry.check_writer(WRITER)
        try:
            note = entry.note
            return cls(note["query"], entry.number, tuple(note["start"]), tuple(note["end"]))
        except (KeyError, TypeError):
            raise LedgerRefusal(
                f"the ledger's entry of application {entry.application!r} does not say which query"
                f" it is of: {entry.note!r}"
            ) from None

    def __str__(self) -> str:
        return f"batch {self.batch} of query {self.query_id}, offsets {self.start} to {self.end}"


def judge(application: str, committed: QueryBatch | None, batch: QueryBatch) -> BatchVerdict:
    """What to do with a batch, given what is committed. A batch number alone loses data."""
    continued = _continued_from_ledger(application, batch)
    if committed is None:
        if continued is not None:
            raise StaleCheckpointError(
                f"application {application!r} starts from its ledger, which has no entry"
            )
        return BatchVerdict.RUN
    if committed.query_id != batch.query_id:
        return _judge_new_query(application, committed, batch, continued)
    if committed == batch:
        return BatchVerdict.SKIP
    if batch.batch == committed.batch + 1 and batch.start == committed.end:
        return BatchVerdict.RUN
    raise StaleCheckpointError(
        f"application {application!r} has committed {committed}; the checkpoint comes with {batch}."
        " It is neither that batch nor the next one: an old checkpoint was restored, or the topic"
        " with the ledger was. Continue with the right checkpoint, or begin a new one"
    )


def _judge_new_query(
    application: str, committed: QueryBatch, batch: QueryBatch, continued: tuple[Any, ...] | None
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
    return BatchVerdict.NEW_LINEAGE


def _continued_from_ledger(application: str, batch: QueryBatch) -> tuple[Any, ...] | None:
    """Where the sources began, if this is a first batch that goes on from the ledger."""
    origins = [end.get("origin") for end in batch.end if isinstance(end, dict)]
    if batch.batch != 0 or not any(o and o.get("ledger") == application for o in origins):
        return None
    return tuple(origin and origin["topics"] for origin in origins)


def _position(end: Any) -> Any:
    return end.get("topics") if isinstance(end, dict) else end
