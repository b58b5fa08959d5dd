"""A receiver of a signal gets the application, and a schedule may name its task by `weigh.name`."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject
from penstock_import.project import Project

APP = "import os\nfrom celery import Celery\n\napp = Celery('yard')\n\n\n@app.task\ndef weigh(): ...\n\n\n"


def imported(folder: Path, text: str) -> tuple[Project, list[str]]:
    (folder / "depot.py").write_text(f"{APP}{text}\n")
    source = CeleryProject(folder / "depot.py")
    project = source.mapped()
    return project, [f"{gap.line} {gap.what}" for gap in source.report.gaps]


@pytest.mark.parametrize(
    "text",
    [
        "def plan(sender, **words):\n    sender.control.purge()\n\napp.on_after_finalize.connect(plan)",
        "@app.on_after_configure.connect\ndef plan(sender, **words):\n    sender.control.purge()",
        "class Yard:\n    def plan(self, sender, **words):\n        sender.control.purge()\n\n"
        "    def begin(self):\n        app.on_after_finalize.connect(self.plan)",
    ],
)
def test_application_of_a_receiver_is_followed(tmp_path: Path, text: str) -> None:
    _, gaps = imported(tmp_path, text)
    assert any("sender.control of the application" in gap for gap in gaps), gaps


def test_task_of_schedule_by_its_attribute_is_imported(tmp_path: Path) -> None:
    text = (
        "@app.task(name='other.lift')\ndef lift(): ...\n\n\n"
        "app.conf.beat_schedule = {'one': {'task': weigh.name, 'schedule': 5}, 'two': {'task': lift.name, 'schedule': 6}}"
    )
    project, gaps = imported(tmp_path, text)
    actions = {name: entry["action"] for name, entry in project.schedules.items()}
    assert actions == {"one": "depot.weigh", "two": "depot.lift"}, gaps


def test_default_of_a_variable_in_a_class_is_imported_and_named(tmp_path: Path) -> None:
    text = (
        "class Times:\n    EVERY = int(os.environ.get('YARD_EVERY', 40))\n\n\n"
        "app.conf.beat_schedule = {'one': {'task': 'depot.weigh', 'schedule': Times.EVERY}}"
    )
    project, gaps = imported(tmp_path, text)
    assert project.schedules["one"]["every"] == 40
    assert any(
        "the variable YARD_EVERY of the schedule one, imported with its default 40" in gap for gap in gaps
    ), gaps
