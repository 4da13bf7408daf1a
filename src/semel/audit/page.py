"""The report as one page of HTML: no script, nothing from elsewhere, light and dark."""

from __future__ import annotations

from html import escape
from typing import Any

from semel.audit.findings import AuditReport, Bar, Moment

_STYLE = """
:root { color-scheme: light dark; --good: #15803d; --bad: #b91c1c; --soft: #8884; --warn: #b45309 }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin-bottom: .2rem } h2 { font-size: 1.1rem; margin-top: 2rem }
.verdict { padding: .8rem 1rem; border-radius: .5rem; color: white; font-weight: 600 }
.good { background: var(--good) } .bad { background: var(--bad) }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .25rem .8rem .25rem 0; vertical-align: top;
  border-bottom: 1px solid var(--soft); overflow-wrap: anywhere }
.number { font-variant-numeric: tabular-nums }
svg { width: 100%; height: auto } svg text { font: 12px system-ui, sans-serif; fill: currentColor }
.scroll { overflow-x: auto } .soft { opacity: .7; font-size: .9rem }
"""

_COLOURS = {
    "committed": "#15803d",
    "aborted": "#b45309",
    "killed": "#b91c1c",
    "paused": "#7c3aed",
    "resumed": "#2563eb",
}
_WIDTH, _LANE, _NAMES = 900, 26, 150


def as_page(report: AuditReport) -> str:
    colour = "good" if report.clean else "bad"
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>{escape(report.title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(report.title)}</h1>",
        f"<p class='verdict {colour}'>{escape(report.verdict)}</p>",
        _findings(report),
        _run(report.moments),
        _partitions(report.bars),
        _facts(report.facts),
        "".join(f"<p class='soft'>{escape(note)}</p>" for note in report.notes),
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part)


def _findings(report: AuditReport) -> str:
    found = []
    for kind, count in report.findings.counts.items():
        rows = "".join(
            f"<tr><td>{escape(each.where)}</td><td>{escape(each.what)}</td></tr>"
            for each in report.findings.of(kind)
        )
        more = count - len(report.findings.of(kind))
        rest = f"<p class='soft'>and {more:,} more</p>" if more else ""
        found.append(
            f"<h2>{escape(kind.title)} ({count:,})</h2><p>{escape(kind.value)}</p>"
            f"<table>{rows}</table>{rest}"
        )
    return "".join(found)


def _facts(facts: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td class='number'>{escape(_shown(value))}</td></tr>"
        for name, value in facts.items()
    )
    return f"<h2>Numbers</h2><table>{rows}</table>" if rows else ""


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {count}" for name, count in value.items()) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _run(moments: list[Moment]) -> str:
    """One line per writer: its transactions as ticks, what was done to it as larger marks."""
    if not moments:
        return ""
    lanes = sorted({moment.lane for moment in moments})
    last = max(moment.at_s for moment in moments) or 1.0
    marks = [
        f"<text x='0' y='{_LANE * row + 17}'>{escape(lane)}</text>"
        f"<line x1='{_NAMES}' x2='{_WIDTH}' y1='{_LANE * row + 13}' y2='{_LANE * row + 13}'"
        " stroke='#8884'/>"
        for row, lane in enumerate(lanes)
    ]
    for moment in moments:
        x = _NAMES + (_WIDTH - _NAMES - 8) * moment.at_s / last
        y = _LANE * lanes.index(moment.lane) + 13
        colour = _COLOURS.get(moment.kind, "#888")
        hint = f"<title>{escape(moment.kind)} after {moment.at_s:.2f} s</title>"
        if moment.kind in ("committed", "aborted"):
            line = f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{y - 5}' y2='{y + 5}' stroke='{colour}'>"
            marks.append(f"{line}{hint}</line>")
        else:
            marks.append(f"<circle cx='{x:.1f}' cy='{y}' r='5' fill='{colour}'>{hint}</circle>")
    height = _LANE * len(lanes) + 24
    legend = "".join(
        f"<tspan fill='{colour}' dx='10'>● {escape(kind)}</tspan>"
        for kind, colour in _COLOURS.items()
    )
    end = f"<text x='{_WIDTH}' y='{height - 6}' text-anchor='end'>{last:.0f} s</text>"
    return (
        f"<h2>The run</h2><div class='scroll'><svg viewBox='0 0 {_WIDTH} {height}' role='img'"
        f" aria-label='transactions and kills over time'>{''.join(marks)}"
        f"<text x='{_NAMES - 10}' y='{height - 6}'>{legend}</text>{end}</svg></div>"
    )


def _partitions(bars: list[Bar]) -> str:
    """Each partition from its start to its end; what committed readers wait for is orange."""
    if not bars:
        return ""
    longest = max(bar.end - bar.start for bar in bars) or 1
    rows = []
    for bar in bars:
        stable = 100 * (bar.last_stable - bar.start) / longest
        waiting = 100 * (bar.end - bar.last_stable) / longest
        picture = (
            "<svg viewBox='0 0 100 6' preserveAspectRatio='none' style='height:.8rem'>"
            "<rect width='100' height='6' fill='#8882'/>"
            f"<rect width='{stable:.2f}' height='6' fill='#15803d'/>"
            f"<rect x='{stable:.2f}' width='{waiting:.2f}' height='6' fill='#b45309'/></svg>"
        )
        numbers = f"{bar.start:,} · stable {bar.last_stable:,} · end {bar.end:,}"
        held = f"<br>held by {escape(bar.held_by)}" if bar.held_by else ""
        rows.append(
            f"<tr><td>{escape(bar.name)}</td><td style='width:45%'>{picture}</td>"
            f"<td class='number'>{numbers}{held}</td></tr>"
        )
    return f"<h2>Partitions</h2><table>{''.join(rows)}</table>"
