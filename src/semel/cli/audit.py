"""`semel audit`: does a cluster keep its promises, and what lies in these topics? On any Kafka."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Protocol

from semel.audit import AuditReport, TopicAudit, WorkloadAudit, WorkloadPlan, as_page, as_text
from semel.cli.commands import CONNECTION, JSON, Action, CommandTable, Option, whole
from semel.cli.connecting import client_settings, run_client
from semel.cli.exits import Exit, usage
from semel.client.admin.transactions import DEFAULT_MAX_TRANSACTION_MS
from semel.errors import UsageError

_AUDIT_PATIENCE_MS = 60_000


class _Audit(Protocol):
    async def run(self) -> AuditReport: ...

    def report(self) -> AuditReport: ...


def _run(arguments: argparse.Namespace) -> int:
    plan = WorkloadPlan(
        seconds=arguments.seconds,
        seed=arguments.seed,
        writers=arguments.writers,
        kills_per_minute=arguments.kills,
        pauses_per_minute=arguments.pauses,
        cuts_per_minute=arguments.cuts,
        keep_topics=arguments.keep_topics,
    )
    settings = client_settings(arguments, default_api_timeout_ms=_AUDIT_PATIENCE_MS)
    return _judged(WorkloadAudit(settings, plan, progress=_Line(every_s=1).show), arguments)


def _topics(arguments: argparse.Namespace) -> int:
    settings = client_settings(arguments)
    if arguments.spark:
        from semel.audit.spark import SparkTopicAudit

        return _judged(
            SparkTopicAudit(
                settings,
                arguments.topic,
                unique=arguments.unique,
                open_longer_than_ms=arguments.open_longer_than_ms,
            ),
            arguments,
        )
    line = _Line(every_s=0.5)
    try:
        audit = TopicAudit(
            settings,
            arguments.topic,
            unique=arguments.unique,
            open_longer_than_ms=arguments.open_longer_than_ms,
            progress=lambda done, of: line.show(f"{done:,} of {of:,} offsets", last=done >= of),
        )
    except UsageError as problem:
        raise usage(str(problem)) from None
    return _judged(audit, arguments)


def _judged(audit: _Audit, arguments: argparse.Namespace) -> int:
    """Runs it, and tells what is known even if it was stopped."""
    _check_writable(arguments.html)
    try:
        run_client(lambda: _ran(audit))
    except KeyboardInterrupt:
        _tell(audit.report(), arguments)
        raise
    report = audit.report()
    _tell(report, arguments)
    return Exit.DONE if report.clean else Exit.ANOMALIES


async def _ran(audit: _Audit) -> None:
    await audit.run()


def _check_writable(path: str | None) -> None:
    if path is not None and not Path(path).resolve().parent.is_dir():
        raise usage(f"--html {path}: its folder does not exist")


def _tell(report: AuditReport, arguments: argparse.Namespace) -> None:
    if arguments.html is not None:
        Path(arguments.html).write_text(as_page(report))
    if arguments.json:
        print(json.dumps(report.as_dict(), default=str))
    else:
        print(as_text(report))
        if arguments.html is not None:
            print(f"The page is in {arguments.html}.")


class _Line:
    """Progress on standard error: one line that changes on a terminal, few lines elsewhere."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._shown_at = 0.0

    def show(self, text: str, last: bool = False) -> None:
        terminal = sys.stderr.isatty()
        now = time.monotonic()
        if not last and now - self._shown_at < (self._every_s if terminal else 10):
            return
        self._shown_at = now
        start, end = ("\r\x1b[K", "\n" if last else "") if terminal else ("", "\n")
        print(f"{start}{text}", end=end, file=sys.stderr, flush=True)


def _seconds(text: str) -> float:
    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        seconds = float(number) * units[unit]
    except ValueError:
        seconds = 0
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} should be a time, as 90, 90s, 10m or 1h")
    return seconds


_HTML = Option("--html", "write the report as one page of HTML, too", value="FILE")

COMMAND = CommandTable(
    common=(*CONNECTION, JSON, _HTML),
    actions=(
        Action("run", "run transactions under kills, and judge what is left", _run, (
            Option("--seconds", "how long, as 90, 90s, 10m or 1h", value="TIME", parse=_seconds,
                   default=60),
            Option("--seed", "what is done when is drawn from it", value="NUMBER",
                   parse=whole(0), default=0),
            Option("--writers", "processes that write", value="NUMBER", parse=whole(1, 64),
                   default=3),
            Option("--kills", "processes killed, per minute", value="NUMBER", parse=whole(0),
                   default=12),
            Option("--pauses", "processes paused and replaced, per minute", value="NUMBER",
                   parse=whole(0), default=3),
            Option("--cuts", "times each process loses its connections, per minute",
                   value="NUMBER", parse=whole(0), default=6),
            Option("--keep-topics", "leave the topics of the run"),
        )),
        Action("topics", "read topics, and judge what lies there; nothing is written", _topics, (
            Option("topic", "the topics", repeated=True),
            Option("--unique", "what no two committed records may share: key, value, value.FIELD "
                   "(of JSON), header.NAME; with --spark an SQL expression", value="EXPRESSION"),
            Option("--open-longer-than-ms", "a transaction open for longer may be hanging",
                   value="NUMBER", parse=whole(0), default=DEFAULT_MAX_TRANSACTION_MS),
            Option("--spark", "on Spark: for topics that are larger than memory"),
        )),
    ),
    notes="Exit code 0: no anomaly. 4: anomalies. Others: the audit itself did not come to an end.",
    examples={
        "semel audit run --seconds 10m --html audit.html": "is this cluster exactly once?",
        "semel audit topics orders payments": "transactions, gaps, what holds readers back",
        "semel audit topics orders --unique value.order_id": "is any order there twice?",
    },
)  # fmt: skip
