"""Queues of Celery applications: each queue there is one route here, by whichever way tasks come to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock_import.project import Project
from penstock_import.report import Report
from tests.penstock_import.test_reviewed_changes import of_application, texts

APP = "from celery import Celery\napp = Celery('depot')\n"
TASKS = (
    "@app.task\ndef weigh(a=None): ...\n@app.task(queue='celery')\ndef bill(a=None): ...\n"
    "@app.task(queue='slow')\ndef load(a=None): ...\n@app.task\ndef ship(a=None): ...\n"
)
ROUTES = "app.conf.task_routes = {'depot.tasks.ship': {'queue': 'celery'}}\n"
BEAT = (
    "app.conf.beat_schedule = {'often': {'task': 'depot.tasks.weigh', 'schedule': 9, 'options': {'queue': 'celery'}},"
    " 'other': {'task': 'far.away', 'schedule': 9}}\n"
)


def imported(folder: Path, *parts: str) -> tuple[Project, Report]:
    return of_application(folder, {"tasks.py": "".join([APP, TASKS, *parts])})


def routes(project: Project) -> dict[str, Any]:
    """Return the route of each action, and of each task of a workflow."""
    tasks = {name: body["tasks"]["run"] for name, body in project.workflows.items()}
    return {name: about.get("route", "default") for name, about in (project.actions | tasks).items()}


@pytest.mark.parametrize("setting", ["", "app.conf.task_default_queue = 'celery'\n"])
def test_default_queue_of_celery_is_the_default_route(tmp_path: Path, setting: str) -> None:
    project, _ = imported(tmp_path, ROUTES, BEAT, setting)
    others = {"weigh_on_default", "far_away"}
    assert routes(project) == dict.fromkeys({"weigh", "bill", "ship", *others}, "default") | {"load": "slow"}


def test_default_queue_with_another_name_is_a_route_of_it(tmp_path: Path) -> None:
    project, _ = imported(tmp_path, ROUTES, BEAT, "app.conf.task_default_queue = 'slow'\n")
    assert {name for name, route in routes(project).items() if route == "slow"} == {
        "weigh",
        "load",
        "far_away",
    }
    assert {name for name, route in routes(project).items() if route == "celery"} == {
        "bill",
        "ship",
        "weigh_on_celery",
    }


def test_default_queue_keeps_its_name_beside_a_queue_default(tmp_path: Path) -> None:
    task = "@app.task(queue='default')\ndef other(): ...\n"
    project, _ = imported(tmp_path, ROUTES, BEAT, task)
    assert {name for name, route in routes(project).items() if route == "default"} == {"other"}
    assert routes(project)["weigh"] == routes(project)["bill"] == routes(project)["far_away"] == "celery"


def test_default_queue_that_is_computed_merges_no_queues(tmp_path: Path) -> None:
    project, report = imported(tmp_path, "import os\napp.conf.task_default_queue = os.environ['QUEUE']\n")
    assert routes(project)["bill"] == "celery"
    assert any("task_default_queue" in text for text in texts(report))


def test_call_that_names_the_default_queue_names_its_route(tmp_path: Path) -> None:
    _, report = imported(tmp_path, "def start():\n    weigh.apply_async(queue='celery')\n")
    assert any("The queue celery is the route `default` in Penstock." in text for text in texts(report))
