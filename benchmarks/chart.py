"""A small line chart as SVG: no plotting library for three pictures."""

import math
from collections.abc import Sequence
from pathlib import Path

WIDTH, HEIGHT = 600, 340
LEFT, RIGHT, TOP, BOTTOM = 60, 45, 64, 62
COLOURS = ("#0b6e4f", "#b5502a", "#3b5b92", "#7a4b94")
Points = Sequence[tuple[float, float]]


def save(
    path: Path, title: str, x_name: str, y_name: str, lines: dict[str, Points], log: bool = False
) -> None:
    """The x axis has the points' own values at equal distances: they grow by factors.

    `log`: what the y axis shows grows by factors too.
    """
    xs = sorted({x for points in lines.values() for x, _ in points})
    ys = [y for points in lines.values() for _, y in points]
    ticks = _powers(min(ys), max(ys)) if log else _round_steps(max(ys))
    scale = math.log10 if log else float
    low, high = scale(ticks[0]), scale(ticks[-1])

    def place(x: float, y: float) -> tuple[float, float]:
        step = (WIDTH - LEFT - RIGHT) / max(1, len(xs) - 1)
        share = (scale(y) - low) / (high - low)
        return LEFT + xs.index(x) * step, HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 22, title, "middle", weight="bold"),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 30, x_name, "middle"),
        _text(LEFT - 40, TOP - 16, y_name, "start"),
    ]
    for y in ticks:
        (x0, height), x1 = place(xs[0], y), WIDTH - RIGHT
        parts.append(f'<path d="M{x0} {height}H{x1}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 6, height + 4, f"{y:,g}", "end"))
    for x in xs:
        parts.append(_text(place(x, ticks[0])[0], HEIGHT - BOTTOM + 18, f"{x:,.0f}", "middle"))
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        spots = [place(x, y) for x, y in points]
        path_of = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        parts.append(
            f'<polyline points="{path_of}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots]
        parts.append(_text(LEFT + 180 * number, HEIGHT - 8, f"● {name}", "start", colour))
    path.write_text("\n".join([*parts, "</svg>\n"]))


def _round_steps(highest: float) -> list[float]:
    """From zero past the highest value in at most six round steps."""
    size = 10.0 ** math.floor(math.log10(highest or 1.0))
    step = next(s * size for s in (0.2, 0.25, 0.5, 1, 2) if highest <= 6 * s * size)
    return [step * number for number in range(max(1, math.ceil(highest / step)) + 1)]


def _powers(lowest: float, highest: float) -> list[float]:
    first, last = math.floor(math.log10(lowest)), math.ceil(math.log10(highest))
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]


def _text(
    x: float, y: float, words: str, anchor: str, colour: str = "#222", weight: str = "normal"
) -> str:
    safe = words.replace("&", "&amp;").replace("<", "&lt;")
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-weight="{weight}"'
        f' fill="{colour}">{safe}</text>'
    )
