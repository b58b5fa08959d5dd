"""`penstock import celery`: tasks, retries, routes and schedules become a project that has no fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from penstock.cli import build
from penstock_import.applied import keep_applicable
from penstock_import.celery import CeleryProject
from penstock_import.report import Report

APP = """
raise SystemExit("nothing of this is run")
from celery import Celery, shared_task
from celery.schedules import crontab

app = Celery("depot", task_routes={"depot.weigh": {"queue": "scales"}})

@app.task(bind=True, max_retries=2, default_retry_delay=30, time_limit=60)
def weigh(self, crate): ...

@shared_task(name="depot.tell", rate_limit="10/m", queue="mail")
def tell(): ...

app.conf.beat_schedule = {
    "night": {"task": "depot.tell", "schedule": crontab(hour=2, minute=0)},
    "often": {"task": "depot.weigh", "schedule": 90.0, "kwargs": {"crate": "c"}},
    "odd": {"task": "depot.tell", "schedule": SOON},
}
"""


def test_an_application_becomes_a_project(tmp_path: Path) -> None:
    (tmp_path / "depot.py").write_text(APP)
    into = tmp_path / "ours"
    ran = CliRunner().invoke(build(), ["import", "celery", str(tmp_path / "depot.py"), "--into", str(into)])
    assert ran.exit_code == 0, ran.output
    ran = CliRunner().invoke(build(), ["lint", str(into)])
    assert (ran.exit_code, "no fault" in ran.output) == (0, True), ran.output
    actions = yaml.safe_load((into / "actions.yaml").read_text())
    bounds = {key: actions["weigh"]["retry"][key] for key in ("max_attempts", "initial_delay", "retry_on")}
    assert bounds == {"max_attempts": 3, "initial_delay": 30, "retry_on": ["Retry"]}
    assert actions["weigh"]["parameters"] == {"crate": {"required": True}}
    assert (actions["weigh"]["route"], actions["weigh"]["timeout"]) == ("scales", 60)
    assert len(actions) == 2
    assert actions["tell"]["route"] == "mail"
    schedules = yaml.safe_load((into / "schedules.yaml").read_text())
    assert schedules["night"] == {"action": "depot.tell", "cron": "0 2 * * *"}
    assert schedules["often"] == {"action": "depot.weigh", "every": 90.0, "params": {"crate": "c"}}
    page = (into / "IMPORT.md").read_text()
    for phrase in (
        "depot.py:9 | the code of weigh",
        "depot.py:11 | rate_limit of tell counts for each worker in Celery",
        "depot.py:17 | the schedule odd",
    ):
        assert phrase in page, page


def test_schedules_that_are_put_together_of_dicts_of_other_files(tmp_path: Path) -> None:
    files = {
        "shop/tasks.py": "@shared_task\ndef tell(): ...\n",
        "shop/often.py": 'OFTEN = {"hourly": {"task": "shop.tasks.tell", "schedule": 3600}}\n'
        'AT_NIGHT: dict = {"nightly": {"task": "shop.tasks.tell", "schedule": 86400}}\n',
        "shop/settings.py": "CELERY_BEAT_SCHEDULE = dict(OFTEN)\n"
        "if not STAGE:\n    CELERY_BEAT_SCHEDULE |= AT_NIGHT\n"
        'CELERY_BEAT_SCHEDULE["more"] = made()\n'
        "CELERY_BEAT_SCHEDULE.update(read(FILE))\n",
        "shop/app.py": 'app.conf.timezone = "UTC"\ntimezone = "of a user"\n',
        "shop/tests/test_beat.py": 'CELERY_BEAT_SCHEDULE = {"mock": {"task": "nothing", "schedule": 1}}\n',
    }
    theirs, into = (
        tmp_path / "tests",
        tmp_path / "ours",
    )  # what is named so above the application says nothing of it
    for name, text in files.items():
        (theirs / name).parent.mkdir(parents=True, exist_ok=True)
        (theirs / name).write_text(text)
    ran = CliRunner().invoke(build(), ["import", "celery", str(theirs / "shop"), "--into", str(into)])
    assert ran.exit_code == 0, ran.output
    schedules = yaml.safe_load((into / "schedules.yaml").read_text())
    assert {name: entry["every"] for name, entry in schedules.items()} == {"hourly": 3600, "nightly": 86400}
    page = (into / "IMPORT.md").read_text()
    for phrase in (
        "settings.py:2 | CELERY_BEAT_SCHEDULE where not STAGE",
        "settings.py:4 | CELERY_BEAT_SCHEDULE is computed: made()",
        "settings.py:5 | CELERY_BEAT_SCHEDULE is computed: read(FILE)",
    ):
        assert phrase in page, page
    assert "dict(OFTEN)" not in page
    assert "of a user" not in page
    assert "mock" not in page


def test_constants_and_items_of_settings(tmp_path: Path) -> None:
    (tmp_path / "depot.py").write_text("""
TRIES = 4
@app.task(autoretry_for=(KeyError,), retry_kwargs={"max_retries": TRIES, "countdown": 2})
def weigh(): ...
CELERY_BEAT_SCHEDULE = {}
CELERY_BEAT_SCHEDULE["often"] = {"task": "depot.weigh", "schedule": 5}
CELERY_BEAT_SCHEDULE["seldom"] = read()
""")
    into = tmp_path / "ours"
    ran = CliRunner().invoke(build(), ["import", "celery", str(tmp_path / "depot.py"), "--into", str(into)])
    assert ran.exit_code == 0, ran.output
    retry = yaml.safe_load((into / "actions.yaml").read_text())["weigh"]["retry"]
    assert (retry["max_attempts"], retry["initial_delay"]) == (5, 2)
    page = (into / "IMPORT.md").read_text()
    assert "depot.py:7 | CELERY_BEAT_SCHEDULE is computed: read()" in page
    assert list(yaml.safe_load((into / "schedules.yaml").read_text())) == ["often"]
    assert "the schedule task" not in page


def imported(folder: Path, **files: str) -> tuple[dict[str, Any], dict[str, Any], Report]:
    """Return the actions and schedules of an application, and the report of its import."""
    (folder / "depot").mkdir()
    for name, text in files.items():
        (folder / "depot" / f"{name}.py").write_text(text)
    source = CeleryProject(folder / "depot")
    project = source.mapped()
    keep_applicable(project, source.report)
    return project.actions, project.schedules, source.report


def test_schedule_of_task_in_other_file_starts_stub(tmp_path: Path) -> None:
    text = 'from celery import Celery\napp = Celery("depot")\nYEAR = 365\n' + (
        'app.conf.beat_schedule = {"x": {"task": "other.tasks.clean", "schedule": 60.0, "kwargs": {"days": YEAR * 3}}}\n'
    )
    actions, schedules, report = imported(tmp_path, app=text)
    assert schedules["x"] == {"action": "depot.other_tasks_clean", "every": 60.0, "params": {"days": 1095}}
    assert "other_tasks_clean" in actions
    assert (report.mapped["schedules"], report.applied["schedules"]) == (1, 1)
    assert any("other.tasks.clean is not in the imported files" in gap.what for gap in report.gaps)


def test_settings_hold_for_task_in_other_file(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "from celery import Celery\napp = Celery('shop')\n"
        "app.conf.beat_schedule = {\n"
        "    'one': {'task': 'far.one', 'schedule': 60.0}, 'two': {'task': 'near.two', 'schedule': 60.0}\n}\n"
        "app.conf.task_default_queue = 'slow'\napp.conf.task_time_limit = 90\n"
        "app.conf.task_routes = {'near.*': {'queue': 'fast'}}\n"
    )
    source = CeleryProject(tmp_path / "app.py")
    actions = source.mapped().actions
    assert {name: (about["route"], about["timeout"]) for name, about in actions.items()} == {
        "far_one": ("slow", 90),
        "near_two": ("fast", 90),
    }
    assert source.report.mapped["schedules"] == 2, source.report.gaps
    assert source.report.found["tasks in other files"] == 2


def test_constant_of_two_files_counts_in_each_and_nowhere_else(tmp_path: Path) -> None:
    use = "from celery import shared_task\n{0}@shared_task(time_limit=LIMIT)\ndef {1}(): ...\n"
    files = {"one": "LIMIT = 5\n", "two": "LIMIT = 60\n", "three": "from .one import *\n"}
    actions, _, report = imported(tmp_path, **{name: use.format(head, name) for name, head in files.items()})
    assert {name: actions[name]["timeout"] for name in files} == {"one": 5, "two": 60, "three": None}
    assert [gap.file for gap in report.gaps if "LIMIT" in gap.what] == ["three.py"]


def test_task_with_long_name_has_shorter_one(tmp_path: Path) -> None:
    text = f"from celery import shared_task\n@shared_task\ndef {'long_' * 16}(): ...\n"
    actions, _, report = imported(tmp_path, tasks=text)
    assert (len(next(iter(actions))), report.applied["tasks"]) == (64, 1)


def test_task_that_hands_itself_to_a_function_keeps_its_number_of_tries(tmp_path: Path) -> None:
    (tmp_path / "depot.py").write_text(
        "from celery import Celery\n\napp = Celery('depot')\n\n"
        "@app.task(bind=True, max_retries=48, default_retry_delay=300)\ndef send(self, letter):\n    _send(self, letter)\n\n"
        "def _send(task, letter):\n    task.retry()\n"
    )
    source = CeleryProject(tmp_path / "depot.py")
    retry = source.mapped().actions["send"]["retry"]
    assert (retry["max_attempts"], retry["initial_delay"], retry["retry_on"]) == (49, 300, ["Retry"])


def test_folder_that_is_no_package_gives_names_without_its_own(tmp_path: Path) -> None:
    (tmp_path / "checkout" / "depot").mkdir(parents=True)
    (tmp_path / "checkout" / "depot" / "tasks.py").write_text(
        "from celery import shared_task\n\n@shared_task\ndef weigh(): ...\n"
    )
    (tmp_path / "checkout" / "settings.py").write_text(
        "CELERY_BEAT_SCHEDULE = {'night': {'task': 'depot.tasks.weigh', 'schedule': 90}}\n"
    )
    source = CeleryProject(tmp_path / "checkout")
    assert source.mapped().schedules["night"]["action"] == "checkout.weigh"


@pytest.mark.parametrize(("line", "tasks"), [("from invoke import task", 0), ("from .app import task", 1)])
def test_tasks_of_other_systems_are_no_tasks_of_celery(tmp_path: Path, line: str, tasks: int) -> None:
    _, _, report = imported(tmp_path, tasks=f"{line}\n\n\n@task(name='begin')\ndef begin(context): ...\n")
    assert report.found["tasks"] == tasks
