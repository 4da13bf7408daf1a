"""The options of the source, spelled as Spark's own Kafka source spells them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any

from semel.client.machines.ledger import LEDGER_TOPIC
from semel.errors import UsageError
from semel.spark.kafka.client import BlockingCluster
from semel.spark.kafka.settings import SparkSettings
from semel.spark.source.keywords import SourceKeywords

COLUMNS = (
    "key binary, value {value}, topic string, partition int, offset long, timestamp timestamp,"
    " timestampType int"
)
HEADERS_COLUMN = ", headers array<struct<key: string, value: binary>>"

Positions = dict[str, dict[int, int]]
#: A time in ms for all partitions, or one for each.
Times = int | Positions
_PREFIX = "kafka."
_TOPICS = ("subscribe", "subscribePattern", "assign")
# Spark gives options in small letters, and adds `path` where `load` was given one.
_SPELLED = {name.lower(): name for name in (*_TOPICS, "path", *SourceKeywords.__annotations__)}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Checked options. A name that is not known is an error: a misspelt limit would be no limit."""

    settings: SparkSettings
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[tuple[str, int], ...] = ()
    starting: str = "earliest"
    ending: str = "latest"
    starting_times: Times | None = None
    ending_times: Times | None = None
    application: str | None = None
    ledger_topic: str = LEDGER_TOPIC
    committed_fallback: str | None = None
    max_offsets: int | None = None
    max_bytes: int | None = None
    min_partitions: int | None = None
    max_per_task: int | None = None
    tasks: int | None = None
    headers: bool = False
    fail_on_data_loss: bool = True
    committed_only: bool = True
    fetch_bytes: int = 8 << 20
    value_format: str | None = None
    value_schema: str | None = None
    bad_values: str = "fail"

    @classmethod
    def of(cls, given: Mapping[str, str]) -> SourceOptions:
        options = {name.lower(): value for name, value in given.items()}
        settings = {
            name[len(_PREFIX) :]: value
            for name, value in options.items()
            if name.startswith(_PREFIX)
        }
        for name in options:
            if not name.startswith(_PREFIX) and name not in _SPELLED:
                close = [_SPELLED[near] for near in get_close_matches(name, _SPELLED, n=1)]
                hint = f"; did you mean {close[0]}?" if close else ""
                raise UsageError(f"unknown option of the source: {name}{hint}")
        if not settings.keys() & {"bootstrap.servers", "bootstrap_servers"}:
            raise UsageError("the source needs the option kafka.bootstrap.servers")
        isolation = settings.pop("isolation.level", None)
        checked = cls(
            settings=SparkSettings.of(settings),
            topics=_names(options.get("subscribe")),
            pattern=options.get("subscribepattern"),
            assigned=_assignment(options.get("assign")),
            starting=options.get("startingoffsets", "earliest"),
            ending=options.get("endingoffsets", "latest"),
            starting_times=_times(options, "starting"),
            ending_times=_times(options, "ending"),
            application=options.get("application"),
            ledger_topic=options.get("ledgertopic", LEDGER_TOPIC),
            committed_fallback=options.get("committedfallback"),
            max_offsets=_smallest(options, "maxoffsetspertrigger", "maxrecordspertrigger"),
            max_bytes=_positive(options, "maxbytespertrigger"),
            min_partitions=_positive(options, "minpartitions"),
            max_per_task=_positive(options, "maxrecordsperpartition"),
            tasks=_positive(options, "tasks"),
            headers=_flag(options, "includeheaders", False),
            fail_on_data_loss=_flag(options, "failondataloss", True),
            committed_only=_isolation(options, isolation) == "read_committed",
            fetch_bytes=_positive(options, "fetchbytes") or 8 << 20,
            value_format=options.get("valueformat"),
            value_schema=options.get("valueschema"),
            bad_values=_one_of(options.get("badvalues", "fail"), "badValues", "fail", "null"),
        )
        checked._check()
        return checked

    def _check(self) -> None:
        if sum(map(bool, (self.topics, self.pattern, self.assigned))) != 1:
            raise UsageError("give the source one of subscribe, subscribePattern and assign")
        if self.starting == "committed" and not self.application:
            raise UsageError("startingOffsets=committed needs the sink's application name")
        if self.ending == "committed":
            raise UsageError("endingOffsets is earliest, latest or numbers, not committed")
        if bool(self.value_format) != bool(self.value_schema):
            raise UsageError("valueFormat and valueSchema belong together: give both or neither")
        if self.value_format is not None:
            _one_of(self.value_format, "valueFormat", "json", "avro")

    def columns(self) -> str:
        """The rows' schema as DDL."""
        return COLUMNS.format(value=self._value_type()) + (HEADERS_COLUMN if self.headers else "")

    def _value_type(self) -> str:
        if self.value_format is None:
            return "binary"
        assert self.value_schema is not None
        if self.value_format == "json":
            return f"struct<{self.value_schema}>"
        if find_spec("fastavro") is None:
            raise UsageError("valueFormat=avro needs fastavro: pip install 'semel[avro]'")
        from semel.spark.source.avro import ddl_of

        return ddl_of(json.loads(self.value_schema))

    def cluster(self) -> BlockingCluster:
        return BlockingCluster(self.settings)

    def partitions(self, cluster: BlockingCluster) -> list[tuple[str, int]]:
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
    try:
        chosen = json.loads(text)
        return tuple((topic, int(p)) for topic, numbers in chosen.items() for p in numbers)
    except (ValueError, TypeError, AttributeError):
        raise UsageError(f'assign is such as {{"topic": [0, 1]}}, not {text!r}') from None


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.strip().isdecimal():
        raise UsageError(f"option {_SPELLED[name]} is a number from 0 on, not {text!r}")
    return int(text)


def _positive(options: Mapping[str, str], name: str) -> int | None:
    number = _number(options, name)
    if number == 0:
        raise UsageError(f"option {_SPELLED[name]} is 0: nothing would ever be read")
    return number


def _smallest(options: Mapping[str, str], *names: str) -> int | None:
    return min(filter(None, (_positive(options, name) for name in names)), default=None)


def _times(options: Mapping[str, str], which: str) -> Times | None:
    name = f"{which}offsetsbytimestamp"
    each = options.get(name)
    if not each:
        return _number(options, f"{which}timestamp")
    try:
        return positions_of(json.loads(each))
    except (ValueError, TypeError, AttributeError):
        example = '{"topic": {"0": 1700000000000}}'
        raise UsageError(f"{_SPELLED[name]} is such as {example}, not {each!r}") from None


def _flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = options.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise UsageError(f"option {_SPELLED[name]} is true or false, not {text!r}")
    return text == "true"


def _isolation(options: Mapping[str, str], spark_s_own: str | None) -> str:
    """Also under the name that it has in Spark's own source, `kafka.isolation.level`."""
    chosen = options.get("isolationlevel", spark_s_own or "read_committed")
    return _one_of(chosen, "isolationLevel", "read_committed", "read_uncommitted")


def _one_of(text: str, name: str, *allowed: str) -> str:
    if text not in allowed:
        raise UsageError(f"{name} is {' or '.join(allowed)}, not {text!r}")
    return text


def positions_of(value: Any) -> Positions:
    """{"topic": {"0": 5}} with partitions as numbers."""
    return {t: {int(p): int(offset) for p, offset in parts.items()} for t, parts in value.items()}


def as_json(positions: Positions) -> dict[str, dict[str, int]]:
    return {t: {str(p): offset for p, offset in parts.items()} for t, parts in positions.items()}
