"""What an audit can find, and the report of what it found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

# Of each anomaly so many examples are kept; the others are counted.
EXAMPLES = 20


class Anomaly(Enum):
    """A broken promise. The value is what it means."""

    LOST = "a committed record cannot be read"
    DUPLICATED = "a record was written once and is read more than once"
    REORDERED = "records of one producer are not in the order in which it sent them"
    ABORTED_READ = "a record of a transaction that was aborted is read as committed"
    TORN = "of one transaction some records are committed and others are not"
    PHANTOM = "a record is read that nobody sent"
    UNSTABLE = "the same offset was read twice with different records"
    OFFSETS = "committed offsets of a group are not in step with what it wrote"
    ZOMBIE = "an old producer or member was let in after it was replaced"
    HANGING = "an open transaction that nobody will end keeps committed readers waiting"
    STALLED = "work did not go on after the faults were over"
    SEQUENCE_GAP = "batches of a producer are missing between two that are there"
    REPEATED_BATCH = "a producer's batch is in the log twice"
    EPOCH_BACK = "a producer wrote with an older epoch after a newer one"
    MARKER_MISSING = "a transaction ended elsewhere, but has no marker in this partition"
    DUPLICATE_VALUE = "two committed records have the same value where each should be the only one"

    @property
    def title(self) -> str:
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True)
class Finding:
    """One anomaly at one place."""

    anomaly: Anomaly
    where: str
    what: str

    def as_dict(self) -> dict[str, Any]:
        return {"anomaly": self.anomaly.title, "where": self.where, "what": self.what}


class Findings:
    """Findings as they come: the first of each anomaly are kept, all are counted."""

    def __init__(self, found: Iterable[Finding] = ()) -> None:
        self.counts: dict[Anomaly, int] = {}
        self._kept: dict[Anomaly, list[Finding]] = {}
        for finding in found:
            self.add(finding)

    def add(self, finding: Finding) -> None:
        self.counts[finding.anomaly] = self.counts.get(finding.anomaly, 0) + 1
        kept = self._kept.setdefault(finding.anomaly, [])
        if len(kept) < EXAMPLES:
            kept.append(finding)

    def found(self, anomaly: Anomaly, where: object, what: str) -> None:
        self.add(Finding(anomaly, str(where), what))

    def merge(self, other: Findings) -> None:
        for anomaly, count in other.counts.items():
            kept = self._kept.setdefault(anomaly, [])
            kept += other.of(anomaly)[: EXAMPLES - len(kept)]
            self.counts[anomaly] = self.counts.get(anomaly, 0) + count

    def of(self, anomaly: Anomaly) -> list[Finding]:
        return list(self._kept.get(anomaly, ()))

    def __len__(self) -> int:
        return sum(self.counts.values())

    def __iter__(self) -> Iterator[Finding]:
        return (finding for kept in self._kept.values() for finding in kept)


@dataclass(frozen=True, slots=True)
class Bar:
    """A partition for the report's picture: where its log starts, is stable, and ends."""

    name: str
    start: int
    last_stable: int
    end: int
    held_by: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to a writer, for the report's picture of the run."""

    at_s: float
    lane: str
    kind: str  # committed, aborted, killed, paused, resumed


@dataclass(slots=True)
class AuditReport:
    """What an audit did and found. `complete` is False where it was stopped before its end."""

    title: str
    findings: Findings
    facts: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    complete: bool = True

    @property
    def clean(self) -> bool:
        """Nothing was found."""
        return not self.findings

    @property
    def verdict(self) -> str:
        seen = "" if self.complete else " in what was looked at before it was stopped"
        if self.clean:
            return f"no anomaly{seen}"
        parts = [f"{count} {kind.title}" for kind, count in self.findings.counts.items()]
        return f"ANOMALIES{seen}: {', '.join(parts)}"

    def __str__(self) -> str:
        from semel.audit.text import as_text

        return as_text(self)

    def as_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "clean": self.clean,
            "complete": self.complete,
            "verdict": self.verdict,
            "counts": {kind.title: count for kind, count in self.findings.counts.items()},
            "findings": [finding.as_dict() for finding in self.findings],
            "facts": self.facts,
            "notes": self.notes,
        }
