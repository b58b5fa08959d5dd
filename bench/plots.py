"""Drawings for the page of figures: one row a system, a dot for a value on a logarithmic axis, a line to a second one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, ROW = 760, 190, 120, 34, 22
OURS, OTHERS, GRID, INK = "#0b7285", "#868e96", "#dee2e6", "#212529"


@dataclass(frozen=True, slots=True)
class Row:
    label: str
    low: float
    high: float | None
    """The second value, such as the 99th percentile beside the median."""
    ours: bool


def drawn(title: str, rows: Sequence[Row]) -> str:
    """The rows from top to bottom, as SVG."""
    values = [value for row in rows for value in (row.low, row.high) if value]
    first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    last = max(last, first + 1)
    height = TOP + ROW * len(rows) + 30

    def across(value: float) -> float:
        share = (math.log10(value) - first) / (last - first)
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


def number(value: float) -> str:
    """Three digits that count, and no more."""
    if value >= 100:
        return f"{value:,.0f}"
    digits = 2 - math.floor(math.log10(value)) if value > 0 else 0
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
