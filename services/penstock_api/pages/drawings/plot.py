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
    """The points of a plot. `lines` are polylines, broken where a figure is missing. `top` is the figure at the upper
    edge."""

    top: float
    bars: Sequence[Bar] = ()
    lines: Sequence[Sequence[str]] = ()


def bars(values: Sequence[float], says: Sequence[str], top: float | None = None) -> Plot:
    """Return a plot with a bar for each figure."""
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
    """Return a plot with a line for each series. All have the same scale."""
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
    """Return the points of a line. A lone point becomes a dash, so that it can be seen."""
    [(x, y), *tail] = points
    return points if tail else [(x - step / 2, y), (x + step / 2, y)]


def ceiling(value: float) -> float:
    """Return the next round figure: 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power > value:
        power /= 10
    while power * 10 <= value:
        power *= 10
    return next(power * part for part in (1, 2, 5, 10) if power * part >= value)
