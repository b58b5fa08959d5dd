"""Plots of figures over time: lines and bars in a box of fixed units, which a page stretches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 600.0, 100.0


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    says: str


@dataclass(frozen=True, slots=True)
class Plot:
    """`lines` are the points of polylines, each broken where a figure is missing; `top` is what its upper edge stands for."""

    top: float
    bars: Sequence[Bar] = ()
    lines: Sequence[Sequence[str]] = ()


def bars(values: Sequence[float], says: Sequence[str], top: float | None = None) -> Plot:
    """A bar for each figure."""
    top = top or ceiling(max(values, default=0))
    step = WIDTH / max(1, len(values))
    return Plot(
        top,
        bars=[
            Bar(
                round(n * step + 0.5, 2),
                round(HEIGHT - HEIGHT * value / top, 2),
                round(step - 1, 2),
                round(HEIGHT * value / top, 2),
                says[n],
            )
            for n, value in enumerate(values)
            if value > 0
        ],
    )


def lines(*series: Sequence[float | None]) -> Plot:
    """A line for each series; all have one scale."""
    top = ceiling(max((value for values in series for value in values if value is not None), default=0))
    return Plot(top, lines=[list(_polylines(values, top)) for values in series])


def _polylines(values: Sequence[float | None], top: float) -> list[str]:
    step = WIDTH / max(1, len(values))
    pieces: list[list[tuple[float, float]]] = [[]]
    for n, value in enumerate(values):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append((n * step + step / 2, HEIGHT - HEIGHT * value / top))
    return [" ".join(f"{x:.1f},{y:.1f}" for x, y in _seen(points, step)) for points in pieces if points]


def _seen(points: list[tuple[float, float]], step: float) -> list[tuple[float, float]]:
    """A point alone is a dash."""
    [(x, y), *tail] = points
    return points if tail else [(x - step / 2, y), (x + step / 2, y)]


def ceiling(value: float) -> float:
    """The next round figure: 1, 2 or 5 of some power of ten."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power > value:
        power /= 10
    while power * 10 <= value:
        power *= 10
    return next(power * part for part in (1, 2, 5, 10) if power * part >= value)
