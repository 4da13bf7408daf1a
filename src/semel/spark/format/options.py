"""The options of the format when it writes, spelled as Spark's own Kafka sink spells them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from semel.errors import UsageError
from semel.spark.kafka.settings import SparkSettings
from semel.spark.sink.options import SinkOptions, sink_options

_PREFIX = "kafka."
# Settings of a producer that Spark's own sink takes with the prefix, and our names of them.
_OF_PRODUCERS = {
    "compression.type": "compression_type",
    "batch.size": "batch_size",
    "transaction.timeout.ms": "transaction_timeout_ms",
}
_OF_THE_SINK = {
    "ledgertopic": "ledger_topic",
    "groupid": "group_id",
    "attempts": "attempts",
    "beginanew": "begin_anew",
    "allowunverified": "allow_unverified",
}
# Spark gives options in small letters. `path` comes from `start(…)` and `save(…)`.
_SPELLED = {
    name.lower(): name
    for name in (
        "topic",
        "application",
        "name",
        "checkpointLocation",
        "stagingLocation",
        "carryBytes",
        "ledgerTopic",
        "groupId",
        "attempts",
        "beginAnew",
        "allowUnverified",
        "includeHeaders",
        "queryName",
        "path",
    )
}
# Of one task, inside its commit message: they pass through the driver's memory.
_CARRIED_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """Checked options. A name that is not known is an error."""

    settings: SparkSettings
    sink: SinkOptions
    topic: str | None = None
    application: str | None = None
    name: str | None = None
    checkpoint: str | None = None
    staging: str | None = None
    carried_bytes: int = _CARRIED_BYTES

    @classmethod
    def of(cls, given: Mapping[str, str]) -> FormatOptions:
        options = {name.lower(): value for name, value in given.items()}
        _refuse_unknown(options)
        settings: dict[str, Any] = {
            name[len(_PREFIX) :]: value
            for name, value in options.items()
            if name.startswith(_PREFIX)
        }
        if not settings.keys() & {"bootstrap.servers", "bootstrap_servers"}:
            raise UsageError("the sink needs the option kafka.bootstrap.servers")
        chosen: dict[str, Any] = {
            ours: settings.pop(theirs)
            for theirs, ours in _OF_PRODUCERS.items()
            if theirs in settings
        }
        for spelled, ours in _OF_THE_SINK.items():
            if spelled in options:
                chosen[ours] = options[spelled]
        return cls(
            settings=SparkSettings.of(settings),
            sink=sink_options(chosen),
            topic=options.get("topic"),
            application=options.get("application"),
            name=options.get("name"),
            checkpoint=options.get("checkpointlocation"),
            staging=options.get("staginglocation"),
            carried_bytes=_size(options.get("carrybytes")),
        )


def _refuse_unknown(options: Mapping[str, str]) -> None:
    for name in options:
        if not name.startswith(_PREFIX) and name not in _SPELLED:
            close = [_SPELLED[near] for near in get_close_matches(name, _SPELLED, n=1)]
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UsageError(f"unknown option of the sink: {name}{hint}")


def _size(text: str | None) -> int:
    if text is None:
        return _CARRIED_BYTES
    if not text.strip().isdecimal():
        raise UsageError(f"option carryBytes is a number from 0 on, not {text!r}")
    return int(text)
