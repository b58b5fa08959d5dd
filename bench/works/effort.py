"""The durations of the works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    rounds: int
    """How often every system comes up; each figure is the median over these."""
    seconds: float
    """What a throughput work should take, about."""
    most: int
    """Tasks of a throughput work at the most."""
    samples: int
    """Tasks at 20 a second."""
    flows: int
    """Repeats of a chain or fan-out in each round. Not one alone: the first has plans made, and connections opened."""
    window: float
    """Seconds of watching an idle system."""
    minutes: int
    """Of schedules that fire every minute."""


FULL = Effort(rounds=3, seconds=6, most=40_000, samples=200, flows=3, window=60, minutes=3)
QUICK = Effort(rounds=1, seconds=2, most=20_000, samples=100, flows=3, window=20, minutes=1)
