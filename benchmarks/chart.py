"""A small line chart as SVG: no plotting library for three pictures."""

from collections.abc import Sequence
from pathlib import Path

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 60
COLOURS = ("#0b6e4f", "#b5502a", "#3b5b92", "#7a4b94")
Points = Sequence[tuple[float, float]]


def save(path: Path, title: str, x_name: str, y_name: str, lines: dict[str, Points]) -> None:
    """The x axis has the points' own values at equal distances: they grow by factors."""
    xs = sorted({x for points in lines.values() for x, _ in points})
    top = max(y for points in lines.values() for _, y in points) * 1.1 or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        step = (WIDTH - LEFT - RIGHT) / max(1, len(xs) - 1)
        return LEFT + xs.index(x) * step, HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 20, title, "middle"),
        _text(WIDTH / 2, HEIGHT - 8, x_name, "middle"),
        _text(8, TOP - 12, y_name, "start"),
    ]
    for share in range(5):
        y = top * share / 4
        (x0, height), x1 = place(xs[0], y), WIDTH - RIGHT
        parts.append(f'<path d="M{x0} {height}H{x1}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 6, height + 4, f"{y:,.3g}", "end"))
    for x in xs:
        parts.append(_text(place(x, 0)[0], HEIGHT - BOTTOM + 18, f"{x:,.0f}", "middle"))
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        spots = [place(x, y) for x, y in points]
        path_of = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        parts.append(
            f'<polyline points="{path_of}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots]
        parts.append(_text(LEFT + 10 + 130 * number, HEIGHT - 26, f"● {name}", "start", colour))
    path.write_text("\n".join([*parts, "</svg>\n"]))


def _text(x: float, y: float, words: str, anchor: str, colour: str = "#222") -> str:
    safe = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{colour}">{safe}</text>'
