"""The options of the source, spelled as Spark's own Kafka source spells them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from semel.client.lent_wire import Cluster, Security
from semel.spark.ledger import LEDGER_TOPIC

COLUMNS = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp,"
    " timestampType int"
)
HEADERS_COLUMN = ", headers array<struct<key: string, value: binary>>"

Positions = dict[str, dict[int, int]]
_PREFIX = "kafka."
_KNOWN = {
    "subscribe", "subscribepattern", "assign", "startingoffsets", "endingoffsets",
    "startingtimestamp", "endingtimestamp", "application", "ledgertopic", "committedfallback",
    "maxoffsetspertrigger", "maxbytespertrigger", "minpartitions", "tasks", "includeheaders",
    "failondataloss", "isolation", "fetchbytes", "path",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Checked options. A name that is not known is an error: a misspelt limit would be no limit."""

    bootstrap: str
    security: Security
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[tuple[str, int], ...] = ()
    starting: str = "earliest"
    ending: str = "latest"
    starting_timestamp_ms: int | None = None
    ending_timestamp_ms: int | None = None
    application: str | None = None
    ledger_topic: str = LEDGER_TOPIC
    committed_fallback: str | None = None
    max_offsets: int | None = None
    max_bytes: int | None = None
    min_partitions: int | None = None
    tasks: int | None = None
    headers: bool = False
    fail_on_data_loss: bool = True
    committed_only: bool = True
    fetch_bytes: int = 8 << 20

    @classmethod
    def of(cls, given: Mapping[str, str]) -> SourceOptions:
        options = {name.lower(): value for name, value in given.items()}
        settings = {
            name[len(_PREFIX) :]: value
            for name, value in options.items()
            if name.startswith(_PREFIX)
        }
        unknown = {name for name in options if not name.startswith(_PREFIX)} - _KNOWN
        if unknown:
            raise ValueError(f"unknown options of the source: {', '.join(sorted(unknown))}")
        if "bootstrap.servers" not in settings:
            raise ValueError("the source needs the option kafka.bootstrap.servers")
        checked = cls(
            bootstrap=settings["bootstrap.servers"],
            security=Security.of(settings),
            topics=_names(options.get("subscribe")),
            pattern=options.get("subscribepattern"),
            assigned=_assignment(options.get("assign")),
            starting=options.get("startingoffsets", "earliest"),
            ending=options.get("endingoffsets", "latest"),
            starting_timestamp_ms=_number(options, "startingtimestamp"),
            ending_timestamp_ms=_number(options, "endingtimestamp"),
            application=options.get("application"),
            ledger_topic=options.get("ledgertopic", LEDGER_TOPIC),
            committed_fallback=options.get("committedfallback"),
            max_offsets=_number(options, "maxoffsetspertrigger"),
            max_bytes=_number(options, "maxbytespertrigger"),
            min_partitions=_number(options, "minpartitions"),
            tasks=_number(options, "tasks"),
            headers=_flag(options, "includeheaders", False),
            fail_on_data_loss=_flag(options, "failondataloss", True),
            committed_only=_isolation(options.get("isolation", "read_committed")),
            fetch_bytes=_number(options, "fetchbytes") or 8 << 20,
        )
        checked._check()
        return checked

    def _check(self) -> None:
        if sum(map(bool, (self.topics, self.pattern, self.assigned))) != 1:
            raise ValueError("give the source one of subscribe, subscribePattern and assign")
        if self.starting == "committed" and not self.application:
            raise ValueError("startingOffsets=committed needs the sink's application name")

    def cluster(self) -> Cluster:
        return Cluster(self.bootstrap, self.security)

    def partitions(self, cluster: Cluster) -> list[tuple[str, int]]:
        """The partitions that exist now of what was asked for."""
        if self.assigned:
            return list(self.assigned)
        names = list(self.topics)
        if self.pattern is not None:
            wanted = re.compile(self.pattern)
            names = [name for name in cluster.topics() if wanted.fullmatch(name)]
        else:
            cluster.refresh(names)
        return [(name, p) for name in names for p in range(cluster.partitions(name))]


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def _assignment(text: str | None) -> tuple[tuple[str, int], ...]:
    if not text:
        return ()
    chosen = json.loads(text)
    return tuple((topic, int(p)) for topic, numbers in chosen.items() for p in numbers)


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    number = int(text)
    if number < 0:
        raise ValueError(f"option {name} is negative: {number}")
    return number


def _flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = options.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise ValueError(f"option {name} is true or false, not {text!r}")
    return text == "true"


def _isolation(text: str) -> bool:
    if text not in ("read_committed", "read_uncommitted"):
        raise ValueError(f"isolation is read_committed or read_uncommitted, not {text!r}")
    return text == "read_committed"


def positions_of(value: Any) -> Positions:
    """{"topic": {"0": 5}} with partitions as numbers."""
    return {t: {int(p): int(offset) for p, offset in parts.items()} for t, parts in value.items()}


def as_json(positions: Positions) -> dict[str, dict[str, int]]:
    return {t: {str(p): offset for p, offset in parts.items()} for t, parts in positions.items()}
