"""The later changes of an application to its own settings: entries of settings that it takes out again, and options of tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock_import.applied import keep_applicable
from penstock_import.attune import AttunePack
from penstock_import.celery import CeleryProject
from penstock_import.project import Project
from penstock_import.stackstorm import StackStormPack
from tests.penstock_import.test_reviewed_changes import of_application, texts

TASK = "from celery import Celery\napp = Celery('depot')\n@app.task(time_limit=10)\ndef weigh(crate): ...\n"
READ = "app.config_from_object('django.conf:settings', namespace='CELERY')\n"


def entry(every: int) -> str:
    return f"{{'task': 'depot.tasks.weigh', 'schedule': {every}, 'args': [1]}}"


def imported(folder: Path, settings: str, tasks: str = "", **files: str) -> tuple[Project, set[str]]:
    (folder / "depot").mkdir()
    for name, text in {"tasks": TASK + READ + tasks, "settings": settings, **files}.items():
        (folder / "depot" / f"{name}.py").write_text(text)
    source = CeleryProject(folder / "depot")
    project = source.mapped()
    return project, {f"{gap.file}:{gap.line} {gap.what}" for gap in source.report.gaps}


def in_force(project: Project) -> dict[str, Any]:
    return {name: schedule["every"] for name, schedule in project.schedules.items()}


WHOLE = f"CELERY_BEAT_SCHEDULE = {{'a': {entry(1)}, 'b': {entry(2)}}}\n"


@pytest.mark.parametrize(
    "line",
    [
        "del CELERY_BEAT_SCHEDULE['a']\n",
        "CELERY_BEAT_SCHEDULE.pop('a')\n",
        "CELERY_BEAT_SCHEDULE.pop('a', None)\n",
        "kept = CELERY_BEAT_SCHEDULE.pop('a')\n",
    ],
)
def test_schedule_that_is_taken_out_is_not_imported(tmp_path: Path, line: str) -> None:
    names: dict[str, Any] = {}
    exec(WHOLE + line, names)
    project, gaps = imported(tmp_path, WHOLE + line)
    assert in_force(project) == {
        key: value["schedule"] for key, value in names["CELERY_BEAT_SCHEDULE"].items()
    }
    assert not any("settings.py:2" in gap for gap in gaps)


@pytest.mark.parametrize(
    "line",
    [
        "if STAGE:\n    del CELERY_BEAT_SCHEDULE['a']\n",
        "if STAGE: CELERY_BEAT_SCHEDULE.pop('a', None)\n",
        "CELERY_BEAT_SCHEDULE.clear()\n",
        "CELERY_BEAT_SCHEDULE.pop(NAME)\n",
        "CELERY_BEAT_SCHEDULE['a'].update({'schedule': 9})\n",
        "del CELERY_BEAT_SCHEDULE['a']['args']\n",
        "CELERY_BEAT_SCHEDULE['a']['schedule'] = 9\n",
        "CELERY_BEAT_SCHEDULE.update(**further)\n",
        "CELERY_BEAT_SCHEDULE.setdefault(NAME, {})\n",
    ],
)
def test_change_of_schedules_that_is_not_certain_is_named(tmp_path: Path, line: str) -> None:
    project, gaps = imported(tmp_path, WHOLE + line)
    number = 2 + (":\n" in line)
    assert any(gap.startswith(f"settings.py:{number} ") and "CELERY_BEAT_SCHEDULE" in gap for gap in gaps), (
        gaps
    )
    assert in_force(project) == {"a": 1, "b": 2}


def test_schedule_that_another_file_takes_out_is_named(tmp_path: Path) -> None:
    _, gaps = imported(tmp_path, WHOLE, stage="from .settings import *\ndel CELERY_BEAT_SCHEDULE['a']\n")
    assert "stage.py:2 CELERY_BEAT_SCHEDULE['a'], which changes CELERY_BEAT_SCHEDULE" in gaps


@pytest.mark.parametrize(
    "line",
    [
        f"CELERY_BEAT_SCHEDULE.update(c={entry(3)})\n",
        f"CELERY_BEAT_SCHEDULE.setdefault('c', {entry(3)})\n",
        f"CELERY_BEAT_SCHEDULE['c'] = {entry(3)}\n",
        f"CELERY_BEAT_SCHEDULE.update({{'c': {entry(3)}}})\n",
        "CELERY_BEAT_SCHEDULE.update(dict(c=dict(task='depot.tasks.weigh', schedule=3, args=[1])))\n",
        f"CELERY_BEAT_SCHEDULE = {{**CELERY_BEAT_SCHEDULE, 'c': {entry(3)}}}\n",
    ],
)
def test_schedule_that_is_added_is_imported(tmp_path: Path, line: str) -> None:
    names: dict[str, Any] = {}
    exec(WHOLE + line, names)
    project, _ = imported(tmp_path, WHOLE + line)
    assert in_force(project) == {
        key: value["schedule"] for key, value in names["CELERY_BEAT_SCHEDULE"].items()
    }


def test_later_assignment_of_a_file_counts(tmp_path: Path) -> None:
    text = f"CELERY_BEAT_SCHEDULE = {{'c': {entry(3)}}}\nCELERY_BEAT_SCHEDULE['d'] = {entry(4)}\n" + WHOLE
    project, gaps = imported(tmp_path, text)
    assert in_force(project) == {"a": 1, "b": 2}
    assert "settings.py:1 CELERY_BEAT_SCHEDULE, which line 3 sets again" in gaps
    assert "settings.py:2 CELERY_BEAT_SCHEDULE, which line 3 sets again" in gaps


def test_later_routes_of_a_file_count(tmp_path: Path) -> None:
    text = "CELERY_TASK_ROUTES = {'depot.tasks.weigh': 'one'}\nCELERY_TASK_ROUTES = {'other': 'two'}\n"
    project, gaps = imported(tmp_path, text)
    assert "route" not in project.actions["weigh"]
    assert "settings.py:1 CELERY_TASK_ROUTES, which line 2 sets again" in gaps


@pytest.mark.parametrize(
    "line",
    [
        "CELERY_TASK_ANNOTATIONS.update({'depot.tasks.weigh': {'time_limit': 5}})",
        "del CELERY_TASK_ANNOTATIONS['*']",
        "CELERY_TASK_ANNOTATIONS['*'].pop('acks_late')",
    ],
)
def test_change_of_annotations_is_named(tmp_path: Path, line: str) -> None:
    _, gaps = imported(tmp_path, f"CELERY_TASK_ANNOTATIONS = {{'*': {{'acks_late': True}}}}\n{line}\n")
    named = line.removeprefix("del ")
    assert f"settings.py:2 {named}, which changes the setting CELERY_TASK_ANNOTATIONS" in gaps


@pytest.mark.parametrize(
    ("line", "gap"),
    [
        ("weigh.time_limit = 99", "the option weigh.time_limit, which is set later"),
        ("weigh.max_retries = 0", "the option weigh.max_retries, which is set later"),
        ("setattr(weigh, 'time_limit', 4)", "setattr(weigh, 'time_limit', 4), which sets an option later"),
    ],
)
def test_option_that_is_set_later_is_named(tmp_path: Path, line: str, gap: str) -> None:
    _, gaps = imported(tmp_path, "", f"{line}\n")
    assert f"tasks.py:6 {gap}" in gaps


def test_entry_of_any_other_dict_is_named(tmp_path: Path) -> None:
    _, gaps = imported(tmp_path, f"SCHEDULED = {{'a': {entry(5)}}}\n")
    assert any(gap.startswith("settings.py:1 the entry") for gap in gaps)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "depot" / "folder.py").mkdir(parents=True)
    (tmp_path / "depot" / "link.py").symlink_to("nowhere.py")
    (tmp_path / "depot" / "latin.py").write_bytes(f"# coding: latin-1\n{TASK}# caf\xe9\n".encode("latin-1"))
    source = CeleryProject(tmp_path / "depot")
    assert list(source.mapped().actions) == ["weigh"]
    unread = [gap.what for gap in source.report.gaps if "read" in gap.what]
    assert unread == ["link.py cannot be read: No such file or directory"]


def test_file_of_a_pack_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for kind in ("actions", "rules"):
        (tmp_path / kind).mkdir()
    (tmp_path / "pack.yaml").write_text("ref: depot\n")
    (tmp_path / "rules" / "a.yaml").symlink_to("nowhere.yaml")
    (tmp_path / "actions" / "b.yaml").mkdir()
    flow = "name: c\nrunner_type: orquesta\nentry_point: c.txt\n"
    (tmp_path / "actions" / "c.yaml").write_text(flow)
    (tmp_path / "actions" / "c.txt").write_text("tasks: [}\n")
    for source in (StackStormPack(tmp_path), AttunePack(tmp_path)):
        source.mapped()
        unread = {gap.file for gap in source.report.gaps if "cannot be read" in gap.what}
        assert {"rules/a.yaml", "actions/b.yaml"} <= unread
        assert ("actions/c.txt" in unread) == isinstance(source, StackStormPack)


def of_files(folder: Path, files: dict[str, str]) -> tuple[Project, list[str], CeleryProject]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    source = CeleryProject(folder)
    project = source.mapped()
    return project, [f"{gap.file}:{gap.line} {gap.what}" for gap in source.report.gaps], source


APP = "from celery import Celery\napp = Celery('one')\n"
ADD = "@app.task\ndef add(a): ...\n"


def test_setting_of_one_of_several_applications_is_named(tmp_path: Path) -> None:
    settings = "app.conf.task_acks_late = True\napp.conf.timezone = 'Europe/Berlin'\n"
    beat = "app.conf.beat_schedule = {'s': {'task': 'other.tasks.add', 'schedule': crontab(hour=3), 'args': [1]}}\n"
    files = {"yard/tasks.py": APP + settings + ADD, "other/tasks.py": APP + ADD + beat}
    project, gaps, source = of_files(tmp_path / "depot", files)
    assert "yard/tasks.py:3 task_acks_late of one application, imported for the tasks of all" in gaps
    assert {gap for gap in gaps if "one of 2" in gap} == {
        "yard/tasks.py:2 the application Celery('one'), one of 2",
        "other/tasks.py:2 the application Celery('one'), one of 2",
    }
    assert source.report.mapped["tasks"] == 0
    assert project.schedules["s"]["enabled"] is False


@pytest.mark.parametrize("folder", ["next-steps", "1st", "café"])
def test_names_that_cannot_be_here_are_changed(tmp_path: Path, folder: str) -> None:
    umlaut = "@app.task\ndef Über(a): ...\n"
    files = {f"{folder}/tasks.py": APP + ADD + umlaut, f"{folder}/more.py": APP + ADD}
    _, _, source = of_files(tmp_path / f"311-{folder}", files)
    project = source.project
    keep_applicable(project, source.report)
    assert source.report.applied["tasks"] == 3, source.report.gaps
    assert project.name.startswith("x_311")


def test_tasks_of_tests_are_named(tmp_path: Path) -> None:
    files = {"tasks.py": APP + ADD, "tests/tasks.py": APP + ADD, "tests/test_x.py": "def test_x(): ...\n"}
    project, gaps, _ = of_files(tmp_path / "depot", files)
    assert list(project.actions) == ["add"]
    assert [gap for gap in gaps if "a file of tests" in gap] == [
        "tests/tasks.py:2 tasks.py is not read, since it is a file of tests"
    ]


@pytest.mark.parametrize(
    ("text", "gap"),
    [
        (
            "class Again(app.Task):\n    def retry(self):\n        return super().retry(b=1)\n",
            "7 the call super().retry(b=1)",
        ),
        ("def go(task):\n    task.signature(args=[1])\n", "6 the call task.signature(args=[1])"),
    ],
)
def test_call_of_a_base_or_a_variable_is_named(tmp_path: Path, text: str, gap: str) -> None:
    _, gaps, _ = of_files(tmp_path / "depot", {"tasks.py": APP + ADD + text})
    assert f"tasks.py:{gap}" in gaps


def test_signature_of_a_module_is_no_call_of_a_task(tmp_path: Path) -> None:
    _, gaps, _ = of_files(
        tmp_path / "depot", {"tasks.py": APP + ADD + "import inspect\ninspect.signature(add)\n"}
    )
    assert not any("inspect" in gap for gap in gaps)


def test_disabled_sensor_does_not_poll(tmp_path: Path) -> None:
    (tmp_path / "sensors").mkdir()
    (tmp_path / "pack.yaml").write_text("ref: depot\n")
    sensor = "class_name: Looks\nentry_point: looks.py\npoll_interval: 5\nenabled: {}\ntrigger_types: [{{name: came}}]\n"
    for enabled in ("false", "true"):
        (tmp_path / "sensors" / "a.yaml").write_text(sensor.format(enabled))
        source = StackStormPack(tmp_path)
        project = source.mapped()
        assert ("poll" in project.triggers["came"]) == (enabled == "true")
        named = any("the sensor Looks is disabled" in gap.what for gap in source.report.gaps)
        assert named == (enabled == "false")


ENTRY = "S = {'often': {'task': 'depot.tasks.weigh', 'schedule': 60.0}}\n"


@pytest.mark.parametrize(
    ("change", "is_named"),
    [
        ("for e in S.values(): e['schedule'] = 9\n", True),
        ("T = S\nT['often']['schedule'] = 9\n", True),
        ("e = S['often']\ne['schedule'] = 9\n", True),
        ("change(S)\n", True),
        ("S['often'].update(schedule=9)\n", True),
        ("S['often']['schedule'] = 9\n", True),
        ("S |= {}\n", False),
        ("def weight(S): return len(S)\n", False),
        ("", False),
    ],
)
def test_schedule_that_is_changed_by_another_name_has_a_line(
    tmp_path: Path, change: str, is_named: bool
) -> None:
    code = f"from celery import Celery\napp = Celery('depot')\n{ENTRY}{change}app.conf.beat_schedule = S\n"
    tasks = "from celery import shared_task\n@shared_task\ndef weigh(): ...\n"
    project, report = of_application(tmp_path, {"__init__.py": "", "tasks.py": tasks, "celery.py": code})
    assert project.schedules["often"]["every"] == 60
    lines = [
        line for line in texts(report) if line.startswith(("celery.py:4 ", "celery.py:5 ")) and "S" in line
    ]
    assert bool(lines) is is_named, lines


def test_imported_schedule_that_is_changed_by_another_name_has_a_line(tmp_path: Path) -> None:
    code = (
        "from celery import Celery\nfrom depot.when import S\napp = Celery('depot')\n"
        "for e in S.values(): e['schedule'] = 9\napp.conf.beat_schedule = S\n"
    )
    _, report = of_application(tmp_path, {"__init__.py": "", "when.py": ENTRY, "celery.py": code})
    assert any(line.startswith("celery.py:4 S, which other code reads") for line in texts(report)), texts(
        report
    )
