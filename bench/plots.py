"""Drawings for the page of figures: one row a system, a dot for a value on a logarithmic axis, a line to a second one; and
curves, one line a system, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, ROW = 760, 190, 120, 34, 22
LEAST = 0.1
"""What is less is drawn here: a clock of whole milliseconds may even give times below zero."""
OURS, OTHERS, GRID, INK = "#0b7285", "#868e96", "#dee2e6", "#212529"


@dataclass(frozen=True, slots=True)
class Row:
    label: str
    low: float
    high: float | None
    """The second value, such as the 99th percentile beside the median."""
    ours: bool


def drawn(title: str, rows: Sequence[Row]) -> str:
    """Return the rows as SVG, from top to bottom."""
    values = [max(value, LEAST) for row in rows for value in (row.low, row.high) if value]
    first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    last = max(last, first + 1)
    height = TOP + ROW * len(rows) + 30

    def across(value: float) -> float:
        share = (math.log10(max(value, LEAST)) - first) / (last - first)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    bottom = TOP + ROW * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="12" role="img" aria-label="{escape(title)}">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        _text(12, 20, title, weight="bold"),
    ]
    for decade in range(first, last + 1):
        x = across(10.0**decade)
        parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="{GRID}"/>')
        parts.append(_text(x, bottom + 18, number(10.0**decade), anchor="middle"))
    for place, row in enumerate(rows):
        y = TOP + ROW * place + ROW / 2
        parts += _row(row, y, across)
    return "\n".join([*parts, "</svg>", ""])


def _row(row: Row, y: float, across: Callable[[float], float]) -> list[str]:
    colour, low = OURS if row.ours else OTHERS, across(row.low)
    high = across(row.high) if row.high else low
    text = number(row.low) + (f" - {number(row.high)}" if row.high else "")
    parts = [_text(LEFT - 10, y + 4, row.label, anchor="end", weight="bold" if row.ours else "normal")]
    if row.high:
        parts.append(
            f'<line x1="{low:.1f}" y1="{y}" x2="{high:.1f}" y2="{y}" stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(
            f'<circle cx="{high:.1f}" cy="{y}" r="4" fill="white" stroke="{colour}" stroke-width="2"/>'
        )
    parts.append(f'<circle cx="{low:.1f}" cy="{y}" r="5" fill="{colour}"/>')
    parts.append(_text(max(low, high) + 10, y + 4, text))
    return parts


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{INK}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )


CURVE_HEIGHT, CURVE_RIGHT, LABEL = 420, 190, 14
DASHES = ("", "6 3", "2 3", "8 3 2 3")


@dataclass(frozen=True, slots=True)
class Curve:
    """The values of one system, by what they depend on."""

    label: str
    points: Sequence[tuple[float, float]]
    ours: bool


def curves(title: str, along: str, all_curves: Sequence[Curve]) -> str:
    """Return curves as SVG. `along` names the horizontal axis. Labels are at the right ends, moved apart."""
    xs = sorted({x for curve in all_curves for x, _ in curve.points})
    ys = [y for curve in all_curves for _, y in curve.points]
    low, high = math.log10(min(ys)), math.log10(max(ys))
    left, right, bottom = 60, WIDTH - CURVE_RIGHT, CURVE_HEIGHT - 50

    def across(x: float) -> float:
        first, last = math.log10(xs[0]), math.log10(xs[-1])
        return left + (math.log10(x) - first) / ((last - first) or 1) * (right - left)

    def up(y: float) -> float:
        return bottom - (math.log10(y) - low) / ((high - low) or 1) * (bottom - TOP - 10)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{CURVE_HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {CURVE_HEIGHT}" font-family="sans-serif" font-size="12" role="img" '
        f'aria-label="{escape(title)}">',
        f'<rect width="{WIDTH}" height="{CURVE_HEIGHT}" fill="white"/>',
        _text(12, 20, title, weight="bold"),
        _text((left + right) / 2, CURVE_HEIGHT - 8, along, anchor="middle"),
    ]
    for x in xs:
        parts.append(
            f'<line x1="{across(x):.1f}" y1="{TOP}" x2="{across(x):.1f}" y2="{bottom}" stroke="{GRID}"/>'
        )
        parts.append(_text(across(x), bottom + 18, number(x), anchor="middle"))
    for mark in (m * 10.0**e for e in range(math.floor(low), math.ceil(high) + 1) for m in (1, 2, 5)):
        if low <= math.log10(mark) <= high:
            parts.append(
                f'<line x1="{left}" y1="{up(mark):.1f}" x2="{right}" y2="{up(mark):.1f}" stroke="{GRID}"/>'
            )
            parts.append(_text(left - 6, up(mark) + 4, number(mark), anchor="end"))
    below = -math.inf
    for place, curve in enumerate(sorted(all_curves, key=lambda curve: -curve.points[-1][1])):
        colour, width = (OURS, 2.5) if curve.ours else (OTHERS, 1.5)
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in curve.points)
        dashes = DASHES[place % len(DASHES)]
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}" '
            f'stroke-dasharray="{dashes}"/>'
        )
        end_x, end_y = across(curve.points[-1][0]), up(curve.points[-1][1])
        below = max(end_y, below + LABEL)
        parts.append(
            f'<line x1="{end_x:.1f}" y1="{end_y:.1f}" x2="{right + 8}" y2="{below:.1f}" stroke="{GRID}"/>'
        )
        parts.append(_text(right + 12, below + 4, curve.label, weight="bold" if curve.ours else "normal"))
    return "\n".join([*parts, "</svg>", ""])


def number(value: float) -> str:
    """Three digits that count, and no more."""
    if value >= 100:
        return f"{value:,.0f}"
    digits = 2 - math.floor(math.log10(value)) if value > 0 else 0
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
