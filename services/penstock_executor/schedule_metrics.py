"""Figures about schedules for /metrics: counts of this replica, and the state of all schedules, at most a minute old."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.service.assembly import Parts
from penstock.store.schedules.firing import Fired

READ = {
    "schedules_total": "total",
    "schedules_active": "active",
    "schedules_late": "late",
    "schedules_broken": "broken",
    "schedules_erroring": "erroring",
    "schedules_orphaned": "orphaned",
    "schedule_fires_per_minute": "per_minute",
    "schedule_lag_seconds": "lag",
    "schedule_failure_rate": "failure_rate",
    "schedule_run_seconds": "took",
}
"""Gauges of the whole installation, and the figures that they show."""


@dataclass(slots=True)
class Tally:
    """The counts of this replica since it started; and `figures`, which the loop `measure_schedules` renews."""

    fires: dict[str, int] = field(default_factory=dict)
    missed: int = 0
    recoveries: int = 0
    figures: Mapping[str, Any] = field(default_factory=dict)

    def add(self, fired: Fired) -> None:
        self.missed += fired.missed
        for status, count in fired.counts.items():
            self.fires[status] = self.fires.get(status, 0) + count


def tally(parts: Parts) -> Tally:
    """Return the tally of the replica."""
    replica_tally: Tally = parts.database.cache.setdefault("schedules.tally", Tally())
    return replica_tally


def gauges(parts: Parts) -> dict[str, Callable[[], float]]:
    """Return the gauges of the installation by name, to be read on demand."""
    mine = tally(parts)

    def figure(name: str) -> Callable[[], float]:
        return lambda: float(mine.figures.get(name, 0))

    return {gauge: figure(name) for gauge, name in READ.items()}


def counters(parts: Parts) -> dict[str, Callable[[], float]]:
    """Return the counters of this replica by name, to be read on demand."""
    mine = tally(parts)

    def fires(status: str) -> Callable[[], float]:
        return lambda: float(mine.fires.get(status, 0))

    own = {f"schedule_fires_{status}": fires(status) for status in ("created", "queued", "skipped", "failed")}
    return {
        **own,
        "schedule_fires_missed": lambda: float(mine.missed),
        "schedule_recoveries": lambda: float(mine.recoveries),
    }
