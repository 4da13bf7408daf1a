"""The report for a terminal."""

from __future__ import annotations

from typing import Any

from semel.audit.findings import AuditReport, Bar

_BAR = 40


def as_text(report: AuditReport) -> str:
    lines = [report.title, ""]
    width = max((len(name) for name in report.facts), default=0)
    lines += [f"  {name:<{width}}  {_shown(value)}" for name, value in report.facts.items()]
    held = [bar for bar in report.bars if bar.last_stable < bar.end]
    if held:
        lines += ["", "Partitions whose committed readers wait:"]
        lines += [f"  {_drawn(bar)}" for bar in held]
    for kind, count in report.findings.counts.items():
        lines += ["", f"{kind.title}, {count} times: {kind.value}"]
        examples = report.findings.of(kind)
        lines += [f"  {each.where}: {each.what}" for each in examples]
        if count > len(examples):
            lines.append(f"  and {count - len(examples)} more")
    if report.notes:
        lines += ["", *report.notes]
    return "\n".join([*lines, "", f"Verdict: {report.verdict}."])


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items()) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _drawn(bar: Bar) -> str:
    whole = max(bar.end - bar.start, 1)
    stable = round(_BAR * (bar.last_stable - bar.start) / whole)
    picture = "█" * stable + "░" * (_BAR - stable)
    numbers = f"stable to {bar.last_stable:,} of {bar.end:,}"
    held = f", held by {bar.held_by}" if bar.held_by else ""
    return f"{bar.name} {picture} {numbers}{held}"
