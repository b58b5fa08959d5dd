"""Schedules of several applications are schedules of several beats: none replaces another."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject
from penstock_import.project import Project

TASKS = "from celery import shared_task\n@shared_task\ndef weigh(n=0): ...\n@shared_task\ndef bill(): ...\n"


def imported(folder: Path, **files: str) -> tuple[Project, list[str]]:
    for name, text in {"tasks": TASKS, **files}.items():
        (folder / f"{name}.py").write_text(text)
    source = CeleryProject(folder)
    return source.mapped(), [f"{gap.file}:{gap.line} {gap.what}: {gap.by_hand}" for gap in source.report.gaps]


def app(name: str, text: str) -> str:
    text = text.replace("WEIGH", WEIGH).replace("BILL", BILL)
    return f"from celery import Celery\n{name} = Celery('{name}')\n{text}\n"


WEIGH = "{'task': 'tasks.weigh', 'schedule': 60.0}"
BILL = "{'task': 'tasks.bill', 'schedule': 90.0}"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a.conf.beat_schedule = {'k': WEIGH}", "b.conf.beat_schedule = {'k': BILL}"),
        (
            "a.conf.update(beat_schedule={'k': WEIGH})",
            "b.conf.update({'beat_schedule': {'k': BILL}})",
        ),
        ("a.conf['beat_schedule'] = {'k': WEIGH}", "ALL = {'k': BILL}\nb.conf.beat_schedule = ALL"),
        ("a.conf.beat_schedule = {'k': WEIGH}", "b.conf.beat_schedule['k'] = BILL"),
        (
            "a.conf.beat_schedule = {'tasks.bill ()': WEIGH}",
            "import tasks\nb.add_periodic_task(90.0, tasks.bill.s(), name='tasks.bill ()')",
        ),
        (
            "import tasks\n@a.on_after_configure.connect\ndef add(sender, **_):\n"
            "    sender.add_periodic_task(60.0, tasks.weigh.s(), name='k')",
            "import tasks\n@b.on_after_configure.connect\ndef add(sender, **_):\n"
            "    sender.add_periodic_task(90.0, tasks.bill.s(), name='k')",
        ),
    ],
)
@pytest.mark.parametrize("is_one_file", [True, False])
def test_same_key_of_two_applications_is_two_schedules(
    tmp_path: Path, first: str, second: str, is_one_file: bool
) -> None:
    first_app, second_app = app("a", first), app("b", second.replace("add(", "put("))
    files = {"one": first_app + second_app} if is_one_file else {"one": first_app, "two": second_app}
    project, gaps = imported(tmp_path, **files)
    assert sorted(schedule["every"] for schedule in project.schedules.values()) == [60.0, 90.0], gaps
    wrong = ("remove the others", "stands again", "remove this", "also given", "sets again")
    assert not [gap for gap in gaps if any(part in gap for part in wrong)]


def test_schedules_of_two_applications_tell_their_beats(tmp_path: Path) -> None:
    first_app = app("a", "a.conf.beat_schedule = {'k': WEIGH}")
    second_app = app("b", "b.conf.beat_schedule = {'n': BILL}")
    _, gaps = imported(tmp_path, one=first_app, two=second_app)
    line = "two.py:3 beat_schedule, which one.py:3 sets too, for another application: The beat of each application"
    assert [gap for gap in gaps if gap.startswith(line)], gaps


def test_schedules_of_one_application_replace_each_other(tmp_path: Path) -> None:
    text = "a.conf.beat_schedule = {'k': WEIGH}\na.conf.beat_schedule = {'k': BILL}"
    project, gaps = imported(tmp_path, one=app("a", text), two=app("b", "b.conf.enable_utc = True"))
    assert [schedule["every"] for schedule in project.schedules.values()] == [90.0]
    assert any("which line 4 sets again" in gap for gap in gaps)
