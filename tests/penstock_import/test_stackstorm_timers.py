"""Timers of StackStorm fire when its scheduler fires: what was due while it was down is lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.language.definitions.schedule import MissedFires
from penstock.language.schedules.fire_plan import FirePolicy, plan
from penstock.language.schedules.spec import Spec
from tests.penstock_import.test_reviewed_changes import named, of_pack, texts

CRON = {"type": "core.st2.CronTimer", "parameters": {"minute": 5}}
INTERVAL = {"type": "core.st2.IntervalTimer", "parameters": {"unit": "hours", "delta": 1}}


def of_timer(folder: Path, trigger: dict[str, Any]) -> Any:
    rule = {
        "name": "tick",
        "enabled": True,
        "trigger": trigger,
        "action": {"ref": "core.local", "parameters": {"cmd": "true"}},
    }
    return of_pack(folder, {"rules/tick.yaml": rule})


@pytest.mark.parametrize("trigger", [CRON, INTERVAL])
def test_missed_fire_of_a_timer_is_lost(tmp_path: Path, trigger: dict[str, Any]) -> None:
    project, report = of_timer(tmp_path, trigger)
    missed = MissedFires(**project.schedules["tick"]["missed"])
    policy = FirePolicy(missed=missed.policy, grace=missed.grace)
    due = datetime(2030, 1, 1, 12, tzinfo=UTC)
    for late, count in ((timedelta(seconds=1), 1), (timedelta(minutes=2), 0)):
        planned = plan(
            Spec.parse("@every 1h"),
            policy,
            schedule_id="tick",
            since=due - timedelta(minutes=1),
            now=due + late,
        )
        assert len(planned.fires) == count
    assert report.mapped["schedules"] == 1, texts(report)


def test_first_fire_of_an_interval_is_named(tmp_path: Path) -> None:
    _, report = of_timer(tmp_path, INTERVAL)
    assert named(report, "rules/tick.yaml:3 the first fire of the timer of rule tick")
    assert report.mapped["schedules"] == 1, texts(report)


@pytest.mark.parametrize(
    ("date", "zone", "is_over"),
    [
        ("2020-01-01 10:00", None, True),
        ("2020-01-01T10:00:00+02:00", None, True),
        ("2020-01-01 10:00", "Europe/Berlin", True),
        ("2200-01-01 10:00", "Europe/Berlin", False),
    ],
)
def test_timer_whose_date_is_past_is_left_out(
    tmp_path: Path, date: str, zone: str | None, is_over: bool
) -> None:
    trigger = {"type": "core.st2.DateTimer", "parameters": {"date": date, "timezone": zone}}
    project, report = of_timer(tmp_path, trigger)
    assert ("tick" in project.schedules) is not is_over
    assert named(report, "rules/tick.yaml:3 the timer of rule tick, whose date") is is_over
    assert report.applied["schedules"] == (not is_over)
