"""A schedule may stand in a class, in a copy of a dict, or in calls under `try` and `with`: Celery gets the same entries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject
from penstock_import.project import Project

TASKS = (
    "from celery import shared_task\n\n\n@shared_task\ndef weigh(): ...\n\n\n@shared_task\ndef lift(): ...\n"
)
APP = "from copy import deepcopy\nfrom celery import Celery\nfrom celery.schedules import crontab\napp = Celery('yard')\n"
FIRST = "FIRST = {'often': {'task': 'yard.tasks.weigh', 'schedule': 30}}\n"
SECOND = "SECOND = {'late': {'task': 'yard.tasks.lift', 'schedule': 90}}\n"
CLASSES = """class Plan:
    TZ = "Europe/Berlin"
    CELERYBEAT_SCHEDULE = {"often": {"task": "yard.tasks.weigh", "schedule": 30}}
    ROUTES = {"yard.*": {"queue": "slow"}}


class Config(Plan):
    NAME = "yard"


config = Config()
"""


def imported(folder: Path, files: dict[str, str]) -> tuple[Project, list[str], int]:
    """Return the project, the gaps with their lines, and the number of mapped schedules."""
    for name, text in ({"__init__.py": "", "tasks.py": TASKS} | files).items():
        (folder / "yard").mkdir(exist_ok=True)
        (folder / "yard" / name).write_text(text)
    source = CeleryProject(folder / "yard")
    project = source.mapped()
    gaps = [f"{gap.file}:{gap.line} {gap.what}" for gap in source.report.gaps]
    return project, gaps, source.report.mapped["schedules"]


def times(project: Project) -> dict[str, tuple[str, float]]:
    return {
        name: (entry["action"].rpartition(".")[2], entry["every"])
        for name, entry in project.schedules.items()
    }


def celerys(folder: Path) -> dict[str, tuple[str, float]]:
    """Return the schedules that Celery itself has, of a process that imports the application."""
    script = (
        "from yard.app import app; app.finalize(); app.conf.beat_schedule; "
        "print({name: (entry['task'].rpartition('.')[2], entry['schedule']) for name, entry in app.conf.beat_schedule.items()})"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True
    )
    schedules: dict[str, tuple[str, float]] = eval(run.stdout)
    return schedules


@pytest.mark.parametrize(
    "statements",
    [
        "app.conf.beat_schedule = FIRST.copy()",
        "app.conf.beat_schedule = deepcopy(FIRST)",
        "app.conf.beat_schedule = dict(FIRST, **SECOND)",
        "app.conf.beat_schedule = dict(**FIRST, **SECOND)",
        "app.conf.beat_schedule = dict(FIRST, late={'task': 'yard.tasks.lift', 'schedule': 9})",
        "app.conf.beat_schedule = {**FIRST, **SECOND.copy()}",
        "app.conf.update(beat_schedule=FIRST.copy())",
        "app.conf.update({'beat_schedule': dict(FIRST, **SECOND)})",
        "app.conf.beat_schedule = FIRST.copy()\napp.conf.beat_schedule.update(SECOND)",
        "app.conf.beat_schedule = FIRST.copy()\napp.conf.beat_schedule.update(late={'task': 'yard.tasks.lift', 'schedule': 9})",
        "app.conf.beat_schedule = FIRST.copy()\napp.conf.beat_schedule.update(**SECOND)",
        "PLAN = FIRST.copy()\nPLAN['noon'] = {'task': 'yard.tasks.lift', 'schedule': 9}\napp.conf.beat_schedule = PLAN",
        "FIRST.update(SECOND)\nPLAN = FIRST.copy()\napp.conf.beat_schedule = PLAN",
    ],
)
def test_schedules_of_copies_are_those_of_celery(tmp_path: Path, statements: str) -> None:
    project, gaps, mapped = imported(tmp_path, {"app.py": f"{APP}{FIRST}{SECOND}{statements}\n"})
    assert times(project) == celerys(tmp_path), gaps
    assert mapped == len(project.schedules)


@pytest.mark.parametrize(
    "statement",
    [
        "app.conf.beat_schedule = Config.CELERYBEAT_SCHEDULE",
        "app.conf.beat_schedule = config.CELERYBEAT_SCHEDULE",
        "app.conf.beat_schedule = Config().CELERYBEAT_SCHEDULE",
        "app.conf.beat_schedule = {**Config.CELERYBEAT_SCHEDULE, 'late': {'task': 'yard.tasks.lift', 'schedule': 9}}",
        "app.conf.update(beat_schedule=Config.CELERYBEAT_SCHEDULE.copy())",
    ],
)
def test_schedule_of_class_is_that_of_celery(tmp_path: Path, statement: str) -> None:
    app = f"{APP}from yard.conf import Config, config\n{statement}\n"
    project, gaps, mapped = imported(tmp_path, {"app.py": app, "conf.py": CLASSES})
    assert times(project) == celerys(tmp_path), gaps
    assert mapped == len(project.schedules)


def test_routes_and_zone_of_class_are_imported(tmp_path: Path) -> None:
    app = (
        f"{APP}from yard.conf import Config\napp.conf.task_routes = Config.ROUTES\napp.conf.timezone = Config.TZ\n"
        "app.conf.beat_schedule = {'noon': {'task': 'yard.tasks.lift', 'schedule': crontab(hour=12, minute=0)}}\n"
    )
    project, gaps, _ = imported(tmp_path, {"app.py": app, "conf.py": CLASSES})
    assert project.actions["weigh"]["route"] == "slow", gaps
    assert project.schedules["noon"]["timezone"] == "Europe/Berlin"
    assert "enabled" not in project.schedules["noon"]


def test_schedule_of_module_by_any_name_is_imported(tmp_path: Path) -> None:
    app = f"{APP}from yard import plans\napp.conf.beat_schedule = plans.FIRST\n"
    project, _, mapped = imported(tmp_path, {"app.py": app, "plans.py": FIRST})
    assert times(project) == celerys(tmp_path)
    assert mapped == 1


def test_schedule_that_two_classes_give_is_a_gap(tmp_path: Path) -> None:
    classes = f"{CLASSES}\n\nclass Quick(Config):\n    CELERYBEAT_SCHEDULE = {{}}\n"
    app = f"{APP}from yard.conf import Config\napp.conf.beat_schedule = Config.CELERYBEAT_SCHEDULE\n"
    project, gaps, _ = imported(tmp_path, {"app.py": app, "conf.py": classes})
    assert not project.schedules
    assert "app.py:6 beat_schedule is computed: Config.CELERYBEAT_SCHEDULE" in gaps


def test_calls_under_try_and_with_are_imported(tmp_path: Path) -> None:
    app = f"""{APP}from contextlib import nullcontext
from yard.tasks import weigh, lift


@app.on_after_finalize.connect
def plan(sender, **kwargs):
    try:
        sender.add_periodic_task(11, weigh.s(), name="first")
        sender.add_periodic_task(12, weigh.s(), name="second")
    except ValueError:
        sender.add_periodic_task(13, weigh.s(), name="failed")
    with nullcontext():
        sender.add_periodic_task(14, lift.s(), name="within")
    for name, minutes in (("one", 1), ("two", 2)):
        sender.add_periodic_task(minutes * 60, lift.s(), name=name)
"""
    project, gaps, mapped = imported(tmp_path, {"app.py": app})
    assert times(project) == {
        "first": ("weigh", 11), "second": ("weigh", 12), "within": ("lift", 14), "one": ("lift", 60), "two": ("lift", 120),
    }  # fmt: skip
    assert (
        "app.py:13 the schedule second, which is added where the `try` at line 11 does not fail before it"
        in gaps
    )
    assert any("name='failed')" in gap and "under a condition" in gap for gap in gaps), gaps
    assert mapped == 5


@pytest.mark.parametrize("statement", ["app.on_after_finalize.connect(plan)", "plan(app)"])
def test_function_that_one_statement_runs_gives_schedules(tmp_path: Path, statement: str) -> None:
    app = f"""{APP}from yard.tasks import weigh


def plan(sender, **kwargs):
    sender.add_periodic_task(11, weigh.s(), name="first")


{statement}
"""
    project, _, mapped = imported(tmp_path, {"app.py": app})
    assert times(project) == {"first": ("weigh", 11)}
    assert mapped == 1


@pytest.mark.parametrize(
    "statement", ["", "if app.main:\n    plan(app)", "plan(app)\nplan(app)", "plan(None)"]
)
def test_function_that_may_not_run_once_is_a_gap(tmp_path: Path, statement: str) -> None:
    app = f"""{APP}from yard.tasks import weigh


def plan(sender, **kwargs):
    sender.add_periodic_task(11, weigh.s(), name="first")


{statement}
"""
    project, gaps, _ = imported(tmp_path, {"app.py": app})
    assert not project.schedules
    assert any("a call in plan, which the sources may never call" in gap for gap in gaps), gaps
