"""Audits topics that exist, reading only: every transaction, gaps, repetitions, and who holds
readers back. On any Kafka."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from semel.audit.findings import Anomaly, AuditReport, Bar, Findings
from semel.audit.partition_scan import OpenInLog, PartitionScan, compare_outcomes
from semel.audit.reading import LogReader
from semel.client.admin.admin import Admin
from semel.client.admin.transactions import DEFAULT_MAX_TRANSACTION_MS
from semel.client.machines.types import TopicPartition
from semel.errors import SemelError, UsageError
from semel.wire.batches import Record, records_of

# Different values that are remembered in this process, 100 bytes each.
MOST_VALUES = 5_000_000

Progress = Callable[[int, int], None]
"""Called with how many offsets were read, and how many there are."""


@dataclass(frozen=True, slots=True)
class Span:
    """A partition and the offsets to read of it."""

    partition: TopicPartition
    start: int
    last_stable: int
    end: int
    compacted: bool


class TopicAudit:
    """One audit of topics. `run` it; if that is cancelled, `report` tells what is known so far."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        topics: Iterable[str],
        *,
        unique: str | None = None,
        open_longer_than_ms: int = DEFAULT_MAX_TRANSACTION_MS,
        progress: Progress = lambda done, of: None,
    ) -> None:
        self.settings = dict(settings)
        self.topics = list(topics)
        self.unique = None if unique is None else Unique(unique)
        self.open_longer_than_ms = open_longer_than_ms
        self.scans: list[PartitionScan] = []
        self.spans: list[Span] = []
        self.findings = Findings()
        self.complete = False
        self._progress = progress
        self._done = self._all = 0
        self._began = time.monotonic()

    async def run(self) -> AuditReport:
        async with LogReader(self.settings) as reader:
            self.spans = await spans_of(reader.admin, self.topics)
            passes = 1 if self.unique is None else 2
            self._all = passes * sum(span.end - span.start for span in self.spans)
            for span in self.spans:
                await self._scan(reader, span)
            await self.look_at_open(reader.admin)
            if self.unique is not None:
                for span in self.spans:
                    await self._look_for_repetitions(reader, span, self.unique)
        self.complete = True
        return self.report()

    async def _scan(self, reader: LogReader, span: Span) -> None:
        scan = PartitionScan(str(span.partition), compacted=span.compacted)
        self.scans.append(scan)
        before = self._done
        async for batch in reader.every(span.partition, span.start, span.end):
            scan.look(batch)
            self._at(before + batch.next_offset - span.start)
            if scan.batches % 1_000 == 0:
                await asyncio.sleep(0)
        self._at(before + span.end - span.start)

    async def _look_for_repetitions(self, reader: LogReader, span: Span, unique: Unique) -> None:
        before = self._done
        async for batch in reader.committed(span.partition, span.start, span.last_stable):
            for record in records_of(batch):
                unique.look(str(span.partition), record)
            self._at(before + batch.next_offset - span.start)
            await asyncio.sleep(0)
        self._at(before + span.end - span.start)

    def _at(self, done: int) -> None:
        self._done = done
        self._progress(done, self._all)

    async def look_at_open(self, admin: Admin) -> None:
        """Which of the open transactions will never end, as the coordinators see it."""
        partitions = [span.partition for span in self.spans]
        hanging = await admin.find_hanging(partitions, open_longer_than_ms=self.open_longer_than_ms)
        for each in hanging:
            self.findings.found(
                Anomaly.HANGING,
                f"{each.partition} offset {each.transaction_start_offset}",
                f"producer {each.producer_id}, epoch {each.producer_epoch}: no coordinator has "
                "this transaction (`semel transactions abort` ends it)",
            )

    def report(self) -> AuditReport:
        findings = Findings()
        for scan in self.scans:
            findings.merge(scan.findings)
        findings.merge(self.findings)
        if self.complete:
            findings.merge(compare_outcomes(self.scans))
        if self.unique is not None:
            findings.merge(self.unique.findings)
        return AuditReport(
            f"Audit of {', '.join(self.topics)}",
            findings,
            facts=self._facts(),
            notes=self._notes(),
            bars=self._bars(),
            complete=self.complete,
        )

    def _facts(self) -> dict[str, Any]:
        scans = self.scans
        facts: dict[str, Any] = {
            "partitions": len(scans),
            "batches": sum(scan.batches for scan in scans),
            "records": sum(scan.records for scan in scans),
            "committed in partitions": sum(scan.committed for scan in scans),
            "aborted in partitions": sum(scan.aborted for scan in scans),
            "open in partitions": sum(len(scan.open) for scan in scans),
            "records outside of transactions": sum(s.outside_of_transactions for s in scans),
        }
        if self.unique is not None:
            facts[f"different values of {self.unique.expression}"] = self.unique.different
        return facts | {"seconds": round(time.monotonic() - self._began, 1)}

    def _notes(self) -> list[str]:
        notes = []
        if any(span.compacted for span in self.spans):
            notes.append("Compacted topics were not searched for gaps: compaction leaves gaps.")
        ended = sum(scan.committed + scan.aborted for scan in self.scans)
        compared = sum(len(scan.outcomes) for scan in self.scans)
        if ended > compared:
            notes.append(
                f"{ended - compared} of {ended} ends are of version 1 of the transaction protocol. "
                "These cannot be matched across partitions by the log alone."
            )
        return notes

    def _bars(self) -> list[Bar]:
        held = {scan.name: scan.open[0] for scan in self.scans if scan.open}
        return [
            Bar(
                str(span.partition),
                span.start,
                span.last_stable,
                span.end,
                _holder(held.get(str(span.partition)), span),
            )
            for span in self.spans
        ]


def _holder(first: OpenInLog | None, span: Span) -> str:
    if first is None or span.last_stable >= span.end:
        return ""
    return f"producer {first.producer_id}, epoch {first.epoch}, from offset {first.first_offset}"


async def spans_of(admin: Admin, topics: list[str]) -> list[Span]:
    """What there is to read now."""
    if not topics:
        raise UsageError("name at least one topic to audit")
    described = await admin.describe_topics(topics)
    places = [
        TopicPartition(name, i) for name, topic in described.items() for i in topic.partitions
    ]
    starts = await admin.list_offsets(dict.fromkeys(places, -2))
    ends = await admin.list_offsets(dict.fromkeys(places, -1))
    stable = await admin.list_offsets(dict.fromkeys(places, -1), isolation_level="read_committed")
    compacted = {name: await _is_compacted(admin, name) for name in described}
    return [
        Span(
            place,
            starts[place].offset,
            stable[place].offset,
            ends[place].offset,
            compacted[place.topic],
        )
        for place in places
    ]


async def _is_compacted(admin: Admin, topic: str) -> bool:
    try:
        configs = await admin.describe_configs(topic)
    except SemelError:
        return False  # not allowed to see them
    policy = configs.get("cleanup.policy")
    return "compact" in (policy or "")


class Unique:
    """Looks for two committed records with the same value of an expression.

    Expressions: `key`, `value`, `value.a.b` (a field of JSON), `header.name`. Records without it
    (null, or no such field) are left alone.
    """

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.findings = Findings()
        self._of = _getter(expression)
        self._seen: dict[bytes, str] = {}

    @property
    def different(self) -> int:
        return len(self._seen)

    def look(self, partition: str, record: Record) -> None:
        value = self._of(record)
        if value is None:
            return
        place = f"{partition} offset {record.offset}"
        digest = blake2b(value, digest_size=16).digest()
        first = self._seen.setdefault(digest, place)
        if first is not place:
            shown = value[:60].decode(errors="replace")
            said = f"{self.expression} {shown!r} is at {first} already"
            self.findings.found(Anomaly.DUPLICATE_VALUE, place, said)
        elif len(self._seen) > MOST_VALUES:
            raise UsageError(
                f"{self.expression} has more than {MOST_VALUES:,} different values: use --spark, "
                "which compares them on disk"
            )


def _getter(expression: str) -> Callable[[Record], bytes | None]:
    head, _, rest = expression.partition(".")
    if expression == "key":
        return lambda record: record.key
    if expression == "value":
        return lambda record: record.value
    if head == "header" and rest:
        return lambda record: next((v for k, v in record.headers if k == rest), None)
    if head == "value" and rest:
        path = rest.split(".")
        return lambda record: _json_field(record.value, path)
    raise UsageError(
        f"{expression!r} is not known: use key, value, value.FIELD (of JSON) or header.NAME"
    )


def _json_field(value: bytes | None, path: list[str]) -> bytes | None:
    try:
        found = json.loads(value or b"null")
    except ValueError:
        return None
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return None if found is None else json.dumps(found, sort_keys=True).encode()
