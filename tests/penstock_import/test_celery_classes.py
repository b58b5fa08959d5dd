"""Tasks that are objects of a class are counted, and named with their options."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_import.applied import keep_applicable
from penstock_import.celery import CeleryProject

APP = "from celery import Celery\napp = Celery('depot')\n"
WEIGH = (
    "class Weigh({base}):\n    name = 'depot.weigh'\n    max_retries = 5\n    acks_late = True\n"
    "    def run(self, crate): ...\n"
)


def imported(folder: Path, text: str) -> tuple[CeleryProject, dict[str, str]]:
    """Return the importer after a run, and the advice of each gap."""
    (folder / "depot").mkdir()
    (folder / "depot/tasks.py").write_text(text)
    source = CeleryProject(folder / "depot")
    keep_applicable(source.mapped(), source.report)
    return source, {f"{gap.line} {gap.what}": gap.by_hand for gap in source.report.gaps}


@pytest.mark.parametrize(
    ("head", "base"),
    [
        ("from celery import Task\n", "Task"),
        ("from celery.app.task import Task\n", "Task"),
        ("from celery.task import Task\n", "Task"),
        ("import celery\n", "celery.Task"),
        ("", "app.Task"),
        ("from celery import Task\nclass Careful(Task):\n    abstract = True\n", "Careful"),
    ],
)
def test_task_of_class_is_counted_and_named(tmp_path: Path, head: str, base: str) -> None:
    text = APP + head + WEIGH.format(base=base) + "weigh = app.register_task(Weigh())\n"
    source, gaps = imported(tmp_path, text)
    line = text[: text.index("class Weigh")].count("\n") + 1
    assert source.report.found["tasks"] == 1
    assert source.report.mapped["tasks"] == 0
    assert f"{line} the task depot.weigh, an object of the class Weigh" in gaps
    assert f"{line + 2} max_retries of the task depot.weigh: 5" in gaps
    assert f"{line + 3} acks_late of the task depot.weigh: True" in gaps


@pytest.mark.parametrize(
    "text",
    [
        "from celery import Task\nclass Careful(Task):\n    def run(self): ...\n@app.task(base=Careful)\ndef weigh(): ...\n",
        "from celery import Task\nclass Careful(Task):\n    abstract = True\n    def run(self): ...\n"
        "@app.task\ndef weigh(): ...\n",
        "from luigi import Task\nclass Careful(Task):\n    def run(self): ...\n@app.task\ndef weigh(): ...\n",
    ],
    ids=["base", "abstract", "another package"],
)
def test_class_that_is_no_task_is_not_counted(tmp_path: Path, text: str) -> None:
    source, gaps = imported(tmp_path, APP + text)
    assert source.report.found["tasks"] == 1
    assert not any("an object of the class" in gap for gap in gaps)


def test_schedule_of_task_of_class_names_the_class(tmp_path: Path) -> None:
    entry = "app.conf.beat_schedule = {'a': {'task': 'depot.weigh', 'schedule': 60}}\n"
    text = APP + "from celery import Task\n" + WEIGH.format(base="Task") + entry
    source, gaps = imported(tmp_path, text)
    place = "tasks.py:4"
    assert f"9 the task depot.weigh is the class at {place}" in gaps
    assert not any("is not in the imported files" in gap for gap in gaps)
    assert source.report.mapped["schedules"] == 1
