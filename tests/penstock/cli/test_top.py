"""The figures of `penstock top`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rich.console import Console

from penstock.cli.top import _drawn
from penstock.language.terms.ids import new_id
from penstock.operate.overview import Overview, RecentActivity
from penstock.store.processes.processes import Process


def test_percentiles_are_named_as_durations_with_waits() -> None:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(_drawn(Overview(RecentActivity(1.0, 60, 0, 0.5, 86_400.0, 900.0), [], [], [])))
    assert "p50, last 15 min, with waits" in capture.get()
    assert "p95, last 15 min, with waits" in capture.get()


def process(name: str, state: str, silence: float) -> Process:
    at = datetime(2030, 1, 31, 9, tzinfo=UTC)
    return Process(
        id=new_id(),
        kind="worker",
        name=name,
        state=state,
        routes=["default"],
        actions=[],
        labels="{}",
        concurrency=4,
        started_at=at,
        beat_at=at,
        age=timedelta(seconds=silence),
        held=0,
        executors="{}",
        language=None,
        sdk=None,
    )


def test_processes_that_are_not_online_are_counted_in_one_line() -> None:
    processes = [
        process("lives", "active", 1),
        process("leaves", "draining", 3),
        *(process(f"gone-{number}", "dead", 5) for number in range(3)),
        process("silent", "active", 61),
    ]
    console = Console(width=200)
    with console.capture() as capture:
        console.print(_drawn(Overview(RecentActivity(0.0, 0, 0, None, None, 900.0), [], processes, [])))
    text = capture.get()
    assert "lives" in text
    assert "leaves" in text
    assert "gone-" not in text
    assert "silent " not in text
    line = "Not online: 3 dead, 1 without a heartbeat for 60 s. List all workers with: penstock workers list --all"
    assert line in text


def test_nothing_is_said_of_processes_that_are_all_online() -> None:
    console = Console(width=200)
    overview = Overview(RecentActivity(0.0, 0, 0, None, None, 900.0), [], [process("lives", "active", 1)], [])
    with console.capture() as capture:
        console.print(_drawn(overview))
    assert "Not online" not in capture.get()
