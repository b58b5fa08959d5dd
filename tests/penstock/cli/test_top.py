"""The figures of `penstock top`."""

from __future__ import annotations

from rich.console import Console

from penstock.cli.top import _drawn
from penstock.operate.overview import Overview, RecentActivity


def test_percentiles_are_named_as_durations_with_waits() -> None:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(_drawn(Overview(RecentActivity(1.0, 60, 0, 0.5, 86_400.0), [], [], [])))
    assert "p50 with waits" in capture.get()
    assert "p95 with waits" in capture.get()
