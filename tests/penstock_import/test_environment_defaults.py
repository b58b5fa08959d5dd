"""A schedule that reads a variable of the environment has the variable's default, as Celery has where it is not set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock_import.celery import CeleryProject

HEAD = """\
import os
from os import getenv
from celery import Celery
from celery.schedules import crontab
def get_int(name, default): return int(os.environ.get(name, default))
def env(name, default): return os.environ.get(name, default)
def config(name, default, cast=str): return cast(os.environ.get(name, default))
app = Celery('depot', set_as_current=False)
PAUSE = get_int('DEPOT_PAUSE', 60 * 2)
@app.task
def weigh(): ...
"""


def imported(folder: Path, text: str) -> tuple[CeleryProject, list[str]]:
    (folder / "tasks.py").write_text(text)
    source = CeleryProject(folder)
    source.mapped()
    return source, [gap.what for gap in source.report.gaps]


@pytest.mark.parametrize(
    ("when", "variable"),
    [
        ("PAUSE", "DEPOT_PAUSE"),
        ("get_int('DEPOT_PAUSE', 7)", "DEPOT_PAUSE"),
        ("get_int(name='DEPOT_PAUSE', default=7)", "DEPOT_PAUSE"),
        ("int(os.environ.get('DEPOT_EVERY', '30'))", "DEPOT_EVERY"),
        ("float(getenv('DEPOT_EVERY', '30'))", "DEPOT_EVERY"),
        ("config('DEPOT_EVERY', default='45', cast=int)", "DEPOT_EVERY"),
    ],
)
def test_interval_of_a_variable_has_its_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, variable: str
) -> None:
    monkeypatch.delenv(variable, raising=False)
    text = f"{HEAD}app.conf.beat_schedule = {{'n': {{'task': 'tasks.weigh', 'schedule': {when}}}}}\n"
    names: dict[str, Any] = {"__name__": "tasks"}
    exec(text, names)
    source, gaps = imported(tmp_path, text)
    assert source.project.schedules["n"]["every"] == names["app"].conf.beat_schedule["n"]["schedule"]
    assert source.report.mapped["schedules"] == 1
    assert [gap for gap in gaps if variable in gap and "imported with its default" in gap]


@pytest.mark.parametrize(
    "zone", ["os.environ.get('DEPOT_TZ', 'Europe/Paris')", "env('DEPOT_TZ', default='Europe/Paris')"]
)
def test_zone_of_a_variable_has_its_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    monkeypatch.delenv("DEPOT_TZ", raising=False)
    beat = "app.conf.beat_schedule = {'n': {'task': 'tasks.weigh', 'schedule': crontab(minute=0, hour=getenv('DEPOT_H', '3'))}}\n"
    text = f"{HEAD}app.conf.timezone = {zone}\n{beat}"
    names: dict[str, Any] = {"__name__": "tasks"}
    exec(text, names)
    source, gaps = imported(tmp_path, text)
    schedule = source.project.schedules["n"]
    assert schedule == {
        "action": f"{source.project.name}.weigh",
        "cron": "0 3 * * *",
        "timezone": "Europe/Paris",
    }
    assert str(names["app"].timezone) == schedule["timezone"]
    assert names["app"].conf.beat_schedule["n"]["schedule"].hour == {3}
    assert sum("imported with its default" in gap for gap in gaps) == 2


@pytest.mark.parametrize(
    "when", ["get_int('DEPOT_PAUSE')", "int(os.environ['DEPOT_EVERY'])", "int(getenv('A', name()))"]
)
def test_variable_without_a_default_is_computed(tmp_path: Path, when: str) -> None:
    text = f"{HEAD}app.conf.beat_schedule = {{'n': {{'task': 'tasks.weigh', 'schedule': {when}}}}}\n"
    source, gaps = imported(tmp_path, text)
    assert not source.project.schedules
    assert any(gap.startswith("the schedule n") for gap in gaps)


@pytest.mark.parametrize("text", ["({} if OFF else $)", "{**(dict() if OFF else $)}", "($ if ON else {})"])
def test_schedules_under_an_expression_are_imported_and_named(tmp_path: Path, text: str) -> None:
    beat = text.replace("$", "{'n': {'task': 'tasks.weigh', 'schedule': 30}}")
    source, gaps = imported(tmp_path, f"{HEAD}ON = not (OFF := False)\napp.conf.beat_schedule = {beat}\n")
    assert source.project.schedules["n"]["every"] == 30
    assert any(gap.startswith("beat_schedule where O") for gap in gaps), gaps


@pytest.mark.parametrize(
    ("zone", "is_enabled"),
    [("''", True), ("'utc'", True), ("'Utc'", True), ("''\napp.conf.enable_utc = False", False)],
)
def test_empty_zone_and_small_utc_are_utc(tmp_path: Path, zone: str, is_enabled: bool) -> None:
    beat = "app.conf.beat_schedule = {'n': {'task': 'tasks.weigh', 'schedule': crontab(minute=0, hour=3)}}\n"
    source, _ = imported(tmp_path, f"{HEAD}app.conf.timezone = {zone}\n{beat}")
    schedule = source.project.schedules["n"]
    assert schedule["cron"] == "0 3 * * *"
    assert "timezone" not in schedule
    assert schedule.get("enabled", True) is is_enabled


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("'kwargs': {'crate': int(os.getenv('DEPOT_CRATES', 20)), 'size': 3}", {"crate": 20, "size": 3}),
        ("'args': (PAUSE,), 'kwargs': {'size': env('DEPOT_SIZE', 'big')}", {"crate": 120, "size": "big"}),
    ],
)
def test_argument_of_a_schedule_has_the_default_of_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, expected: dict[str, Any]
) -> None:
    for variable in ("DEPOT_CRATES", "DEPOT_SIZE", "DEPOT_PAUSE"):
        monkeypatch.delenv(variable, raising=False)
    text = HEAD.replace("weigh()", "weigh(crate, size)")
    text += f"app.conf.beat_schedule = {{'n': {{'task': 'tasks.weigh', 'schedule': 9, {arguments}}}}}\n"
    names: dict[str, Any] = {"__name__": "tasks"}
    exec(text, names)
    entry = names["app"].conf.beat_schedule["n"]
    source, gaps = imported(tmp_path, text)
    assert source.project.schedules["n"]["params"] == expected
    assert expected == {
        **dict(zip(("crate", "size"), entry.get("args", ()), strict=False)),
        **entry["kwargs"],
    }
    assert source.report.mapped["schedules"] == 1
    assert [gap for gap in gaps if "of the schedule n, imported with its default" in gap]


@pytest.mark.parametrize(
    "minute",
    ["'*/{}'.format(getenv('DEPOT_EVERY', '30'))", "'{}-{}'.format(1, PAUSE // 4)", "'{:d}'.format(5)"],
)
def test_time_that_a_format_makes_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minute: str
) -> None:
    monkeypatch.delenv("DEPOT_EVERY", raising=False)
    text = f"{HEAD}app.conf.beat_schedule = {{'n': {{'task': 'tasks.weigh', 'schedule': crontab(minute={minute})}}}}\n"
    names: dict[str, Any] = {"__name__": "tasks"}
    exec(text, names)
    when = names["app"].conf.beat_schedule["n"]["schedule"]
    source, _ = imported(tmp_path, text)
    assert source.project.schedules["n"]["cron"].split()[0] == when._orig_minute
    assert source.report.mapped["schedules"] == 1


@pytest.mark.parametrize(
    "minute",
    [
        "'{:d}'.format(load())",
        "'{0}'.format(load())",
        "'{}'.format(load())",
        "'{{{}'.format(5)",
        "n.format(5)",
    ],
)
def test_time_of_another_format_is_named(tmp_path: Path, minute: str) -> None:
    text = f"{HEAD}app.conf.beat_schedule = {{'n': {{'task': 'tasks.weigh', 'schedule': crontab(minute={minute})}}}}\n"
    source, gaps = imported(tmp_path, text)
    assert not source.project.schedules
    assert [gap for gap in gaps if gap.startswith("the schedule n: ")]
