"""State diagrams: the `mermaid` blocks of the pages, drawn as pictures when the site is built.

Code hosts draw such blocks with a script of their own. The site has no script for it: the drawing
is made here, as SVG that takes the colours of the page, with a number on each arrow and a list of
what the numbers mean. Where a state stands is in `PLACES`; a state without a place is an error.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from html import escape

from docutils import nodes
from docutils.parsers.rst import Directive

WIDTH, HEIGHT, COLUMN, ROW, MARGIN = 190, 38, 300, 112, 14
START = "[*]"
Point = tuple[float, float]
Curve = tuple[Point, Point, Point, Point]

#: State → (column, row). States of several diagrams share a name only where they share a place.
PLACES: dict[str, Point] = {
    # a transaction
    "Empty": (1, 0),
    "Ongoing": (1, 1),
    "PrepareCommit": (0.25, 2),
    "PrepareAbort": (1.75, 2),
    "CompleteCommit": (0.25, 3),
    "CompleteAbort": (1.75, 3),
    "Dead": (1, 4),
    # a classic group
    "PreparingRebalance": (1, 1),
    "CompletingRebalance": (0.25, 2),
    "Stable": (1.75, 2),
    # a member of a consumer group
    "UNKNOWN": (0.25, 0),
    "STABLE": (1.75, 0),
    "UNREVOKED_PARTITIONS": (0.25, 1.6),
    "UNRELEASED_PARTITIONS": (1.75, 1.6),
}
#: The control points of arrows that would cross a state on the straight way.
ROUTES: dict[tuple[str, str], tuple[Point, Point]] = {
    ("Empty", "Dead"): ((1.6, 0.75), (1.36, 2.9)),
    ("Empty", "PrepareAbort"): ((1.8, 0.1), (1.9, 0.9)),
    ("CompleteCommit", "Empty"): ((-0.75, 2.7), (-0.6, 0.1)),
    ("CompleteCommit", "Ongoing"): ((-0.5, 2.5), (-0.3, 1.0)),
    ("CompleteAbort", "Empty"): ((2.85, 2.7), (2.7, 0.0)),
    ("CompleteAbort", "Ongoing"): ((2.6, 2.4), (2.3, 0.9)),
}
#: States whose arrow to themselves stands on the left.
LOOPS_LEFT = {"Ongoing", "UNREVOKED_PARTITIONS"}
#: How far along its arrow a number stands, where the middle is taken.
NUMBERS_AT = {("Empty", "Dead"): 0.72, ("UNKNOWN", "UNRELEASED_PARTITIONS"): 0.25}
_ARROW = re.compile(r"\s*(\[\*\]|\w+) --> (\[\*\]|\w+)(?:: (.*))?$")


@dataclass(frozen=True, slots=True)
class Move:
    before: str
    after: str
    cause: str


def moves_of(text: str) -> list[Move]:
    """The arrows of a `stateDiagram-v2`."""
    first, *lines = [line for line in text.splitlines() if line.strip()]
    if first.strip() != "stateDiagram-v2":
        raise ValueError(f"only state diagrams are drawn, not {first!r}")
    found = [_ARROW.match(line) for line in lines]
    return [Move(m[1], m[2], m[3] or "") for m in found if m is not None]


def draw(text: str) -> tuple[str, list[str]]:
    """The picture as SVG, and the causes in the order of their numbers."""
    moves = moves_of(text)
    causes = list(dict.fromkeys(move.cause for move in moves if move.cause))
    states = list(dict.fromkeys(s for m in moves for s in (m.before, m.after) if s != START))
    centres = {state: _centre(state) for state in states}
    curves = [_curve(move, centres, moves) for move in moves]
    arrows, numbers = [], []
    for move, curve in zip(moves, curves, strict=True):
        arrows.append(f'<path class="move" d="{_path(curve)}" marker-end="url(#head)"/>')
        if move.cause:
            share = NUMBERS_AT.get((move.before, move.after), 0.5)
            numbers.append(_number(causes.index(move.cause) + 1, _at(curve, share)))
    boxes = [_box(state, *centres[state]) for state in states]
    head = (
        f'<svg class="states" viewBox="{_frame(curves, centres)}" role="img"'
        f' xmlns="http://www.w3.org/2000/svg"><title>{escape(_in_words(moves))}</title>'
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8"'
        ' markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>'
    )
    return "".join([head, *arrows, *boxes, *numbers, "</svg>"]), causes


def _frame(curves: list[Curve], centres: dict[str, Point]) -> str:
    """The smallest view that shows all of it."""
    spots = [_at(curve, step / 20) for curve in curves for step in range(21)]
    spots += [(x + dx, y + dy) for x, y in centres.values() for dx, dy in _CORNERS]
    left, top = (min(spot[axis] for spot in spots) - MARGIN for axis in (0, 1))
    right, bottom = (max(spot[axis] for spot in spots) + MARGIN for axis in (0, 1))
    return f"{left:.0f} {top:.0f} {right - left:.0f} {bottom - top:.0f}"


_CORNERS = ((-WIDTH / 2, -HEIGHT / 2), (WIDTH / 2, HEIGHT / 2))


def _centre(state: str) -> Point:
    if state not in PLACES:
        raise ValueError(f"state {state!r} has no place in docs/generate/diagrams.py")
    return _on_paper(PLACES[state])


def _on_paper(place: Point) -> Point:
    return place[0] * COLUMN, place[1] * ROW


def _curve(move: Move, centres: dict[str, Point], moves: list[Move]) -> Curve:
    """A cubic from border to border; it bends where it would meet its way back."""
    if START in (move.before, move.after):
        return _stub(move, centres)
    start, end = centres[move.before], centres[move.after]
    if move.before == move.after:
        return _loop(start, -1 if move.before in LOOPS_LEFT else 1)
    if (move.before, move.after) in ROUTES:
        first, second = map(_on_paper, ROUTES[move.before, move.after])
        return _clipped((start, first, second, end))
    there_and_back = any((m.before, m.after) == (move.after, move.before) for m in moves)
    bend = 26 / math.dist(start, end) if there_and_back else 0.0
    dx, dy = end[0] - start[0], end[1] - start[1]
    first = start[0] + dx / 3 - dy * bend, start[1] + dy / 3 + dx * bend
    second = start[0] + dx * 2 / 3 - dy * bend, start[1] + dy * 2 / 3 + dx * bend
    return _clipped((start, first, second, end))


def _loop(centre: Point, side: int) -> Curve:
    x, y = centre[0] + side * WIDTH / 2, centre[1]
    return (x, y - 9), (x + side * 55, y - 30), (x + side * 55, y + 30), (x, y + 9)


def _stub(move: Move, centres: dict[str, Point]) -> Curve:
    """The arrow from where a life begins, or to where it ends."""
    coming = move.before == START
    x, y = centres[move.after if coming else move.before]
    edge, out = (x - WIDTH / 2, y), (x - WIDTH / 2 - 44, y)
    if coming:
        return out, out, edge, edge
    edge, out = (x + WIDTH / 2, y), (x + WIDTH / 2 + 44, y)
    return edge, edge, out, out


def _clipped(curve: Curve) -> Curve:
    """Without what lies inside the boxes at its ends."""
    inside = [_inside(_at(curve, step / 200), curve[0]) for step in range(201)]
    low = max(step for step in range(201) if inside[step]) / 200
    inside = [_inside(_at(curve, step / 200), curve[3]) for step in range(201)]
    high = min(step for step in range(201) if inside[step]) / 200
    return _part(curve, low, high)


def _inside(point: Point, centre: Point) -> bool:
    return abs(point[0] - centre[0]) <= WIDTH / 2 and abs(point[1] - centre[1]) <= HEIGHT / 2


def _at(curve: Curve, t: float) -> Point:
    a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
    return (
        a * curve[0][0] + b * curve[1][0] + c * curve[2][0] + d * curve[3][0],
        a * curve[0][1] + b * curve[1][1] + c * curve[2][1] + d * curve[3][1],
    )


def _slope(curve: Curve, t: float) -> Point:
    a, b, c = 3 * (1 - t) ** 2, 6 * t * (1 - t), 3 * t * t
    p = curve
    return (
        a * (p[1][0] - p[0][0]) + b * (p[2][0] - p[1][0]) + c * (p[3][0] - p[2][0]),
        a * (p[1][1] - p[0][1]) + b * (p[2][1] - p[1][1]) + c * (p[3][1] - p[2][1]),
    )


def _part(curve: Curve, low: float, high: float) -> Curve:
    start, end, share = _at(curve, low), _at(curve, high), (high - low) / 3
    (dx0, dy0), (dx1, dy1) = _slope(curve, low), _slope(curve, high)
    return (
        start,
        (start[0] + dx0 * share, start[1] + dy0 * share),
        (end[0] - dx1 * share, end[1] - dy1 * share),
        end,
    )


def _path(curve: Curve) -> str:
    start, first, second, end = (f"{x:.1f} {y:.1f}" for x, y in curve)
    return f"M{start}C{first} {second} {end}"


def _box(state: str, x: float, y: float) -> str:
    return (
        f'<g class="state"><rect x="{x - WIDTH / 2:.1f}" y="{y - HEIGHT / 2:.1f}" width="{WIDTH}"'
        f' height="{HEIGHT}" rx="8"/><text x="{x:.1f}" y="{y + 5:.1f}">{escape(state)}</text></g>'
    )


def _number(number: int, place: Point) -> str:
    x, y = place
    return (
        f'<g class="number"><circle cx="{x:.1f}" cy="{y:.1f}" r="11"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}">{number}</text></g>'
    )


def _in_words(moves: list[Move]) -> str:
    return "; ".join(f"{m.before} to {m.after}: {m.cause}" for m in moves)


class Diagram(Directive):
    """What a `mermaid` block of a page becomes."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        picture, causes = draw("\n".join(self.content))
        items = "".join(f"<li>{escape(cause)}</li>" for cause in causes)
        figure = f'<figure class="states">{picture}<ol class="causes">{items}</ol></figure>'
        return [nodes.raw("", figure, format="html")]
