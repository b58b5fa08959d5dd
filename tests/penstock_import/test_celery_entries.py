"""Schedules that calls give, `add_periodic_task` and rows of django-celery-beat, are mapped or named with their line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.schedules import crontab, schedule

from penstock_import.applied import keep_applicable
from penstock_import.celery import CeleryProject
from penstock_import.project import Project
from penstock_import.report import Report

APP = "from celery import Celery\nfrom celery.schedules import crontab\napp = Celery('depot')\n"
TASK = "@app.task\ndef weigh(crate, size=1): ...\n"
ROWS = "from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask\n"


def imported(folder: Path, text: str, **files: str) -> tuple[Project, set[str], Report]:
    (folder / "depot").mkdir()
    for name, content in {"tasks": text, **files}.items():
        (folder / "depot" / f"{name}.py").write_text(content)
    source = CeleryProject(folder / "depot")
    project = source.mapped()
    keep_applicable(project, source.report)
    return project, {f"{gap.file}:{gap.line} {gap.what}" for gap in source.report.gaps}, source.report


SETUP = """
EVERY = 10.0
HOUR = 7
NIGHT = crontab(hour=3, minute=0)
@app.on_after_configure.connect
def setup(sender, **options):
    sender.add_periodic_task(EVERY, weigh.s(1), name='often')
    sender.add_periodic_task(crontab(hour=HOUR, minute=30, day_of_week=1), weigh.s(crate=2, size=3), name='weekly')
    app.add_periodic_task(NIGHT, weigh.si(1), name='nightly')
    sender.add_periodic_task(schedule=HOUR, sig=weigh, args=(4,), kwargs={'size': 5}, name='named')
    sender.add_periodic_task(NIGHT, weigh.signature((6,), {'size': 7}), name='signature')
"""


def celerys_entries() -> dict[str, tuple[dict[str, Any], schedule | crontab | float]]:
    """Return what Celery itself makes of the calls in SETUP: the parameters by name, and the time."""
    names: dict[str, Any] = {}
    exec(APP + TASK + SETUP, names)
    app: Celery = names["app"]
    app.finalize()
    entries = app.conf.beat_schedule
    return {
        key: (
            dict(zip(("crate", "size"), entry["args"], strict=False)) | dict(entry["kwargs"]),
            entry["schedule"],
        )
        for key, entry in entries.items()
    }


def test_periodic_tasks_are_those_that_celery_makes(tmp_path: Path) -> None:
    project, _, report = imported(tmp_path, APP + TASK + SETUP)
    theirs = celerys_entries()
    assert len(theirs) == 5
    assert {key: entry["params"] for key, entry in project.schedules.items()} == {
        key: params for key, (params, _) in theirs.items()
    }
    assert report.mapped["schedules"] == 5, report.gaps
    assert {key: entry.get("every") or entry["cron"] for key, entry in project.schedules.items()} == {
        "often": 10.0,
        "weekly": "30 7 * * 1",
        "nightly": "0 3 * * *",
        "named": 7,
        "signature": "0 3 * * *",
    }
    assert theirs["often"][1] == 10.0
    assert theirs["weekly"][1] == crontab(minute=30, hour=7, day_of_week=1)


SENDER = "@app.on_after_configure.connect\ndef setup(sender, **options):\n"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("def setup(sender):\n    sender.add_periodic_task(5, weigh.s(1))\n", 7, "which the sources may never call"),
        (SENDER + "    while DEBUG:\n        sender.add_periodic_task(5, weigh.s(1))\n", 9, "a call under a condition"),
        (SENDER + "    if DEBUG: raise E\n    sender.add_periodic_task(5, weigh.s(1))\n", 9, "which may end before this call"),
        (SENDER + "    for i in crates:\n        sender.add_periodic_task(5, weigh.s(i))\n", 9, "a call under a condition"),
        (SENDER + "    sender.add_periodic_task(5, other.s(1))\n", 8, "other is not a task of this source"),
        (SENDER + "    sender.add_periodic_task(5, weigh.s(*crates))\n", 8, "*crates"),
        (SENDER + "    sender.add_periodic_task(5, weigh.s(1), args=(1,))\n", 8, "arguments beside those of a signature"),
        (SENDER + "    other.add_periodic_task(5, weigh.s(1))\n", 8, "other is not an application of this file"),
        ("EVERY = 5\n@app.on_after_configure.connect\ndef setup(sender, EVERY=6):\n"
         "    sender.add_periodic_task(EVERY, weigh.s(1))\n", 9, "EVERY"),
    ],
    ids=["function", "condition", "error", "loop", "task", "star", "arguments", "receiver", "own name"],
)  # fmt: skip
def test_periodic_task_that_only_running_tells_is_named(
    tmp_path: Path, text: str, line: int, reason: str
) -> None:
    project, gaps, report = imported(tmp_path, APP + TASK + text)
    assert project.schedules == {}
    assert any(gap.startswith(f"tasks.py:{line} the schedule") and reason in gap for gap in gaps), gaps
    assert report.mapped["schedules"] == 0


def test_periodic_task_that_stands_twice_is_named(tmp_path: Path) -> None:
    """Celery keeps the later one of two without a name."""
    text = (
        SENDER + "    sender.add_periodic_task(5, weigh.s(1))\n    sender.add_periodic_task(9, weigh.s(1))\n"
    )
    names: dict[str, Any] = {}
    exec(APP + TASK + text, names)
    names["app"].finalize()
    assert len(names["app"].conf.beat_schedule) == 1
    project, gaps, _ = imported(tmp_path, APP + TASK + text)
    assert project.schedules == {}
    assert sum("which stands twice" in gap for gap in gaps) == 2


def test_periodic_task_with_the_key_of_the_settings_is_named(tmp_path: Path) -> None:
    settings = (
        "app.conf.beat_schedule = {'often': {'task': 'depot.tasks.weigh', 'schedule': 9, 'args': [1]}}\n"
    )
    call = SENDER + "    sender.add_periodic_task(5, weigh.s(1), name='often')\n"
    project, gaps, _ = imported(tmp_path, APP + TASK + settings + call)
    assert {name: entry["every"] for name, entry in project.schedules.items()} == {"often": 9}
    assert any("'often' is also given at another place" in gap for gap in gaps)


def test_options_of_a_periodic_task_are_named(tmp_path: Path) -> None:
    text = (
        SENDER + "    sender.add_periodic_task(5, weigh.s(1), name='often', countdown=3, expires=later())\n"
    )
    _, gaps, report = imported(tmp_path, APP + TASK + text)
    assert "tasks.py:8 countdown in options of the schedule often" in gaps
    assert "tasks.py:8 expires in options of the schedule often" in gaps
    assert report.mapped["schedules"] == 0


@pytest.mark.parametrize(
    ("options", "mapped"),
    [
        ("{'priority': 5, 'expires': 300}", {"priority": 5, "expires": 300}),
        ("{'priority': None, 'expires': timedelta(minutes=2)}", {"expires": 120}),
        ("{'priority': 9, 'queue': 'scales'}", {"priority": 9}),
    ],
)
def test_priority_and_expiry_of_beat_entry_are_mapped(
    tmp_path: Path, options: str, mapped: dict[str, object]
) -> None:
    entry = "{'task': 'depot.tasks.weigh', 'schedule': 9, 'args': [1], 'options': " + options + "}"
    text = f"from datetime import timedelta\n{APP}{TASK}app.conf.beat_schedule = {{'often': {entry}}}\n"
    project, gaps, report = imported(tmp_path, text)
    often = project.schedules["often"]
    assert {name: often[name] for name in ("priority", "expires") if name in often} == mapped
    assert report.mapped["schedules"] == 1, gaps
    notes = [gap for gap in gaps if "priorities of schedules, with the larger number first" in gap]
    assert len(notes) == ("priority" in mapped)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("{'priority': 256}", "priority"),
        ("{'priority': True}", "priority"),
        ("{'expires': 0}", "expires"),
        ("{'expires': datetime(2030, 1, 1)}", "expires"),
        ("{'expires': 60, 'queue': 'scales'}", "expires"),
        ("{'queue': 5}", "queue"),
    ],
)
def test_option_without_a_meaning_is_named(tmp_path: Path, options: str, named: str) -> None:
    entry = "{'task': 'depot.tasks.weigh', 'schedule': 9, 'args': [1], 'options': " + options + "}"
    project, gaps, report = imported(tmp_path, f"{APP}{TASK}app.conf.beat_schedule = {{'often': {entry}}}\n")
    assert any(f"{named} in options of the schedule often" in gap for gap in gaps)
    assert named not in project.schedules["often"]
    assert report.mapped["schedules"] == 0


def test_priority_and_expiry_of_row_are_mapped(tmp_path: Path) -> None:
    row = WRITTEN.replace("name='often',", "name='often', priority=3, expire_seconds=60,")
    project, gaps, _ = imported(tmp_path, APP + ROWS + "import json\n" + TASK + row)
    assert (project.schedules["often"]["priority"], project.schedules["often"]["expires"]) == (3, 60), gaps


def test_queue_of_a_periodic_task_is_mapped(tmp_path: Path) -> None:
    text = SENDER + "    sender.add_periodic_task(5, weigh.s(1), name='often', queue='scales')\n"
    project, _, _ = imported(tmp_path, APP + TASK + text)
    assert project.schedules["often"]["action"] == "depot.weigh_on_scales"
    assert project.workflows["weigh_on_scales"]["tasks"]["run"]["route"] == "scales"


WRITTEN = """
def setup():
    often, _ = IntervalSchedule.objects.get_or_create(every=10, period=IntervalSchedule.MINUTES)
    PeriodicTask.objects.get_or_create(interval=often, name='often', task='depot.tasks.weigh', args=json.dumps([1]))
    half, made = CrontabSchedule.objects.get_or_create(minute='30', day_of_week='mon', timezone='Europe/Paris')
    PeriodicTask.objects.update_or_create(
        name='half', defaults={'crontab': half, 'task': 'depot.tasks.weigh', 'kwargs': '{"crate": 2}', 'enabled': False})
    PeriodicTask.objects.create(
        name='scales', task='depot.tasks.weigh', args='[3]', queue='scales', one_off=False, expires=None,
        interval=IntervalSchedule.objects.get_or_create(every=2, period='days')[0])
"""


def test_rows_of_literals_are_mapped(tmp_path: Path) -> None:
    project, gaps, report = imported(tmp_path, APP + TASK, setup=ROWS + WRITTEN)
    assert project.schedules == {
        "often": {"action": "depot.weigh", "every": 600, "params": {"crate": 1}},
        "half": {
            "action": "depot.weigh",
            "cron": "30 * * * 1",
            "params": {"crate": 2},
            "timezone": "Europe/Paris",
            "enabled": False,
        },
        "scales": {"action": "depot.weigh_on_scales", "every": 172800, "params": {"crate": 3}},
    }
    assert report.mapped["schedules"] == 3
    assert "setup.py:5 schedules that are rows of django-celery-beat" in gaps
    assert not any("of django_celery_beat.models" in gap for gap in gaps)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("PeriodicTask.objects.create(name='x', task='depot.tasks.weigh', interval=a, one_off=True)\n", 2, "one_off of a row"),
        ("PeriodicTask.objects.create(name='x', task='depot.tasks.weigh', interval=often)\n", 2, "often"),
        ("PeriodicTask.objects.create(name='x', task='depot.tasks.weigh', clocked=now)\n", 2, "clocked of a row"),
        ("if new:\n    PeriodicTask.objects.create(name='x', task='depot.tasks.weigh')\n", 3, "written under a condition"),
        ("PeriodicTask.objects.update_or_create(name='x', defaults=values)\n", 2, "values"),
        ("a = IntervalSchedule.objects.create(every=1, period='microseconds')\n"
         "PeriodicTask.objects.create(name='x', task='depot.tasks.weigh', interval=a)\n", 3, "the period 'microseconds'"),
        ("a = IntervalSchedule.objects.create(every=1, period='hours')\na = other\n"
         "PeriodicTask.objects.create(name='x', task='depot.tasks.weigh', interval=a)\n", 4, "a"),
        ("a = CrontabSchedule.objects.create(minute=1, timezone='Europe/Paris')\nDJANGO_CELERY_BEAT_TZ_AWARE = False\n"
         "PeriodicTask.objects.create(name='x', task='depot.tasks.weigh', crontab=a)\n", 4, "DJANGO_CELERY_BEAT_TZ_AWARE"),
        ("a = IntervalSchedule.objects.create(every=1, period='hours')\n"
         "PeriodicTask.objects.create(name='x', task='depot.tasks.weigh', interval=a, args='[1')\n", 3, "is not JSON"),
    ],
    ids=["one-off", "unknown", "clocked", "condition", "computed", "period", "two values", "zone", "text"],
)  # fmt: skip
def test_row_that_only_running_tells_is_named(tmp_path: Path, text: str, line: int, reason: str) -> None:
    project, gaps, _ = imported(tmp_path, APP + TASK, setup=ROWS + text)
    assert project.schedules == {}
    assert any(gap.startswith(f"setup.py:{line} the schedule of") and reason in gap for gap in gaps), gaps


def test_rows_of_a_migration_are_mapped_or_named(tmp_path: Path) -> None:
    text = (
        "def add(apps, editor):\n"
        "    Task = apps.get_model('django_celery_beat', 'PeriodicTask')\n"
        "    Interval = apps.get_model('django_celery_beat.IntervalSchedule')\n"
        "    Task.objects.create(name='x', task='depot.tasks.weigh', args='[1]',\n"
        "        interval=Interval.objects.create(every=1, period='hours'))\n"
        "    Task.objects.filter(name='y').delete()\n"
    )
    project, gaps, _ = imported(tmp_path, APP + TASK, setup=text)
    assert project.schedules == {"x": {"action": "depot.weigh", "every": 3600, "params": {"crate": 1}}}
    assert "setup.py:6 Task.objects.filter of django_celery_beat.models.PeriodicTask" in gaps


def test_commands_and_fixtures_of_a_folder_are_named(tmp_path: Path) -> None:
    (tmp_path / "depot" / "conf").mkdir(parents=True)
    (tmp_path / "depot" / "tasks.py").write_text(APP + TASK)
    (tmp_path / "depot" / "Procfile").write_text(
        "web: serve\nworker: celery -A depot worker -Q scales --time-limit 300\n"
    )
    (tmp_path / "depot" / "conf" / "up.yml").write_text(
        '# celery worker\ncommand: ["celery", "-A", "depot", "beat"]\n'
    )
    (tmp_path / "depot" / "rows.json").write_text(
        '[\n {"model": "django_celery_beat.periodictask", "pk": 1}]\n'
    )
    source = CeleryProject(tmp_path / "depot")
    source.mapped()
    advice_of_gaps = {f"{gap.file}:{gap.line} {gap.what}": gap.by_hand for gap in source.report.gaps}
    command = advice_of_gaps["Procfile:2 the command celery -A depot worker -Q scales --time-limit 300"]
    assert "`penstock worker --routes scales`" in command
    assert "`timeout`" in command
    assert "conf/up.yml:2 the command celery -A depot beat" in advice_of_gaps
    assert "rows.json:2 rows of the table periodictask of django-celery-beat" in advice_of_gaps


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ("countdown=3", "countdown: give `delay`"),
        ("eta=then", "eta: give `at`"),
        ("expires=9", "expires: give `expires_at`"),
        ("link=lift.s()", "link: write a workflow"),
        ("colour=1", "colour: see what it should do"),
    ],
)
def test_each_option_of_a_call_is_named(tmp_path: Path, options: str, advice: str) -> None:
    _, _, report = imported(tmp_path, f"{APP}{TASK}weigh.apply_async((1,), {options})\n")
    advice_of_gaps = [gap.by_hand for gap in report.gaps if gap.what.startswith("the call weigh.apply_async")]
    assert len(advice_of_gaps) == 1
    assert advice in advice_of_gaps[0]


@pytest.mark.parametrize(
    "call", ["weigh.map([1])", "weigh.AsyncResult(id)", "weigh.signature_from_request()"]
)
def test_further_calls_of_tasks_are_named(tmp_path: Path, call: str) -> None:
    _, gaps, _ = imported(tmp_path, f"{APP}{TASK}{call}\n")
    assert f"tasks.py:6 the call {call}" in gaps


@pytest.mark.parametrize(
    ("body", "action"),
    [
        (
            "    task = app.tasks['depot.tasks.weigh']\n    sender.add_periodic_task(5, task.s(1), name='often')\n",
            "weigh",
        ),
        (
            "    task = sender.tasks['depot.tasks.weigh']\n    sender.add_periodic_task(5, task, (1,), name='often')\n",
            "weigh",
        ),
        ("    sender.add_periodic_task(5, app.tasks['depot.tasks.weigh'].s(1), name='often')\n", "weigh"),
        (
            "    task = app.tasks['other.pack']\n    sender.add_periodic_task(5, task.s(), name='often')\n",
            "other_pack",
        ),
        ("    task = app.tasks[NAME()]\n    sender.add_periodic_task(5, task.s(1), name='often')\n", None),
        (
            "    task = other.tasks['depot.tasks.weigh']\n    sender.add_periodic_task(5, task.s(1), name='often')\n",
            None,
        ),
        (
            "    task = app.tasks['depot.tasks.weigh']\n    task = app.tasks['x']\n"
            "    sender.add_periodic_task(5, task.s(1), name='often')\n",
            None,
        ),
        (
            "    if A: task = app.tasks['depot.tasks.weigh']\n    sender.add_periodic_task(5, task.s(1), name='often')\n",
            None,
        ),
    ],
)
def test_periodic_task_by_its_registered_name(tmp_path: Path, body: str, action: str | None) -> None:
    project, gaps, report = imported(tmp_path, APP + TASK + SENDER + body)
    assert [schedule["action"] for schedule in project.schedules.values()] == (
        [f"depot.{action}"] if action else []
    )
    assert report.mapped["schedules"] == (1 if action else 0)
    assert any("the schedule of sender.add_periodic_task" in gap for gap in gaps) is (action is None)


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("countdown=7", "Celery delays each start by it"),
        ("time_limit=7", "Write `timeout` and `executor: process` of the action"),
        ("headers={'a': 1}", "An execution has no headers"),
        ("routing_key='x'", "Write `route` of the action"),
        ("own=1", "Celery gives it to each message"),
    ],
)
def test_option_of_sending_has_a_line_of_its_own(tmp_path: Path, option: str, hint: str) -> None:
    _, _, report = imported(
        tmp_path, f"{APP}{TASK}app.add_periodic_task(5, weigh.s(1), name='often', {option})\n"
    )
    (line,) = [gap for gap in report.gaps if "in options of the schedule often" in gap.what]
    assert line.by_hand.startswith(hint)
