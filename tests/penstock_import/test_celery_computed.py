"""Schedules that a module computes of literals are those of Celery, and what only running would tell stays a gap."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.schedules import crontab, maybe_schedule

from penstock_import.celery_times import times
from penstock_import.project import Project
from penstock_import.report import Report
from tests.penstock_import.test_reviewed_changes import named, of_application, texts

HEAD = (
    "from datetime import timedelta\n"
    "from celery import Celery\n"
    "from celery.schedules import crontab\n"
    "app = Celery('depot')\n"
    "app.conf.timezone = 'UTC'\n"
    "@app.task(name='weigh')\n"
    "def weigh(crate=None): ...\n"
)
LINES = HEAD.count("\n")


def imported(folder: Path, text: str, **files: str) -> tuple[Project, Report]:
    sources = {f"{name}.py": lines for name, lines in files.items()}
    return of_application(folder, {"__init__.py": "", "tasks.py": HEAD + text, **sources})


def in_celery(text: str) -> Mapping[str, Any]:
    """Return the schedule that Celery has when the module is run."""
    module: dict[str, Any] = {"__name__": "depot.tasks"}
    exec(HEAD + text, module)
    app = module["app"]
    assert isinstance(app, Celery)
    app.finalize()
    app.loader.import_default_modules()
    app.on_after_configure.send(sender=app)
    return dict(app.conf.beat_schedule)


COMPUTED = {
    "list of pairs": "def beat(task, when, *, queue='slow'):\n"
    "    'Return a pair.'\n"
    "    entry = {'task': task, 'schedule': when, 'options': {'queue': queue, 'routing_key': queue}}\n"
    "    return (f'{task}-{queue}', entry)\n"
    "def utc(hour):\n    return (hour + 7) % 24\n"
    "app.conf.beat_schedule = dict([beat('weigh', 300), beat('weigh', crontab(minute=5, hour=utc(20)), queue='fast')])\n",
    "comprehension of a dict": "HOURS = {'early': 3, 'late': 22}\n"
    "app.conf.beat_schedule = {f'weigh-{name}': {'task': 'weigh', 'schedule': crontab(hour=hour, minute=0)}\n"
    "    for name, hour in HOURS.items() if hour != 3}\n",
    "comprehension of pairs": "app.conf.beat_schedule = {name: {'task': 'weigh', 'args': (name,),\n"
    "        'schedule': timedelta(minutes=each)}\n"
    "    for name, each in (('a', 5), ('b', 2 * 10))}\n",
    "loop of items": "app.conf.beat_schedule = {}\n"
    "for crate in ['small', 'large']:\n"
    "    key = 'weigh ' + crate\n"
    "    app.conf.beat_schedule[key] = {'task': 'weigh', 'schedule': 60.0, 'kwargs': {'crate': crate.upper()}}\n",
    "loop of numbers": "app.conf.beat_schedule = {}\n"
    "for number, crate in enumerate(('small', 'large')):\n"
    "    app.conf.beat_schedule.update({f'{crate}_{number:02d}': {'task': 'weigh', 'schedule': crontab(minute=number * 7)}})\n",
    "loop of calls": "@app.on_after_configure.connect\n"
    "def begin(sender, **words):\n"
    "    for crate, minute in zip(['small', 'large'], range(10, 30, 10)):\n"
    "        sender.add_periodic_task(crontab(minute=minute), weigh.s(crate), name='weigh %s' % crate)\n",
    "function of all": "def schedules():\n"
    "    made = {'often': {'task': 'weigh', 'schedule': 30}}\n"
    "    made['seldom'] = {'task': 'weigh', 'schedule': timedelta(days=1) + timedelta(hours=2)}\n"
    "    return made\n"
    "app.conf.beat_schedule = schedules()\n",
    "function with a choice": "def entry(minute, queue=None, **more):\n"
    "    made = {'task': 'weigh', 'schedule': crontab(minute=minute), **more}\n"
    "    if queue is not None:\n        made['options'] = {'queue': queue}\n"
    "    return made\n"
    "app.conf.beat_schedule = {'a': entry(1), 'b': entry(2, 'slow'), 'c': entry(3, kwargs={'crate': 'x'})}\n",
    "merged entries": "BASE = {'task': 'weigh', 'schedule': crontab(minute=1), 'args': ['x']}\n"
    "app.conf.beat_schedule = {'a': {**BASE, 'schedule': crontab(minute=2)}, 'b': {**BASE}}\n",
    "spread fields": "NIGHT = {'hour': 3, 'minute': 30}\n"
    "app.conf.beat_schedule = {'a': {'task': 'weigh', 'schedule': crontab(**{'hour': 4, 'minute': 0})},\n"
    "    'b': {'task': 'weigh', 'schedule': crontab(*'5 6 * * *'.split())}}\n",
    "interval times a number": "app.conf.beat_schedule = {'a': {'task': 'weigh', 'schedule': timedelta(minutes=3) * 2},\n"
    "    'b': {'task': 'weigh', 'schedule': timedelta(days=1) / 7}}\n",
}  # fmt: skip


@pytest.mark.parametrize("text", COMPUTED.values(), ids=COMPUTED)
def test_computed_schedule_is_that_of_celery(tmp_path: Path, text: str) -> None:
    theirs = in_celery(text)
    project, report = imported(tmp_path, text)
    assert theirs
    assert report.found["schedules"] == report.mapped["schedules"] == len(theirs), texts(report)
    ours = {
        (
            schedule["every"] if "every" in schedule else schedule["cron"],
            tuple(sorted(schedule.get("params", {}).items())),
            schedule["action"].removeprefix("depot.weigh").removeprefix("_on_"),
        )
        for schedule in project.schedules.values()
    }
    expected = set()
    for entry in theirs.values():
        params = dict(zip(["crate"], entry.get("args") or (), strict=False)) | dict(entry.get("kwargs") or {})
        when = entry["schedule"]
        if isinstance(when, crontab):
            text_of = "{0._orig_minute} {0._orig_hour} {0._orig_day_of_month} {0._orig_month_of_year} {0._orig_day_of_week}"
            when = text_of.format(when)
        else:
            when = maybe_schedule(when).run_every.total_seconds()
        queue = (entry.get("options") or {}).get("queue", "")
        expected.add((when, tuple(sorted(params.items())), queue))
    assert ours == expected


NOT_COMPUTED = {
    "list that changes": "NAMES = ['a']\nNAMES.append(load())\n"
    "app.conf.beat_schedule = {name: {'task': 'weigh', 'schedule': 5} for name in NAMES}\n",
    "list of another name": "NAMES = ['a']\nother = NAMES\nother.append(load())\n"
    "app.conf.beat_schedule = {name: {'task': 'weigh', 'schedule': 5} for name in NAMES}\n",
    "items that change": "ALL = [{'name': 'a'}]\nfor each in ALL:\n    each['name'] = load()\n"
    "app.conf.beat_schedule = {each['name']: {'task': 'weigh', 'schedule': 5} for each in ALL}\n",
    "name given twice": "NAMES = ['a']\nif LIVE:\n    NAMES = ['b']\n"
    "app.conf.beat_schedule = {name: {'task': 'weigh', 'schedule': 5} for name in NAMES}\n",
    "decorated function": "@cached\ndef entry():\n    return {'task': 'weigh', 'schedule': 5}\n"
    "app.conf.beat_schedule = {'a': entry()}\n",
    "function that is replaced": "def entry():\n    return {'task': 'weigh', 'schedule': 5}\n"
    "if LIVE:\n    entry = load()\napp.conf.beat_schedule = {'a': entry()}\n",
    "function with a condition": "def entry(minute):\n    if LIVE:\n        minute = 5\n"
    "    return {'task': 'weigh', 'schedule': minute}\napp.conf.beat_schedule = {'a': entry(3)}\n",
    "function that changes its argument": "BASE = {'schedule': 5}\ndef entry(base):\n"
    "    base['task'] = 'weigh'\n    return base\napp.conf.beat_schedule = {'a': entry(BASE)}\n",
    "loop with a break": "app.conf.beat_schedule = {}\nfor name in ('a', 'b'):\n"
    "    app.conf.beat_schedule[name] = {'task': 'weigh', 'schedule': 5}\n    break\n",
    "loop over a call": "app.conf.beat_schedule = {}\nfor name in load():\n"
    "    app.conf.beat_schedule[name] = {'task': 'weigh', 'schedule': 5}\n",
    "builtin that is replaced": "def range(*numbers):\n    return load()\n"
    "app.conf.beat_schedule = {f'a{n}': {'task': 'weigh', 'schedule': 5} for n in range(2)}\n",
}  # fmt: skip


@pytest.mark.parametrize("text", NOT_COMPUTED.values(), ids=NOT_COMPUTED)
def test_schedule_that_only_running_tells_is_found_and_named(tmp_path: Path, text: str) -> None:
    project, report = imported(tmp_path, text)
    assert not report.mapped["schedules"], project.schedules
    assert report.found["schedules"] >= 1
    words = ("is computed", "the schedule a", "the item")
    assert any(word in text for word in words for text in texts(report)), texts(report)


def test_function_of_another_module_is_read_with_the_names_of_that_module(tmp_path: Path) -> None:
    near = (
        "from celery.schedules import crontab\n"
        "def shift(hour):\n    return hour + 2\n"
        "def entry(hour):\n    return {'task': 'weigh', 'schedule': crontab(hour=shift(hour), minute=0)}\n"
    )
    text = (
        "from .near import entry\ndef shift(hour):\n    return 1\napp.conf.beat_schedule = {'a': entry(3)}\n"
    )
    project, report = imported(tmp_path, text, near=near)
    assert project.schedules["a"]["cron"] == "0 5 * * *", texts(report)
    own = near.replace("return hour + 2", "return hour + DELAY") + "DELAY = 2\n"
    _, report = imported(tmp_path, f"DELAY = 9\n{text}", near=own)
    assert not report.mapped["schedules"]


def test_schedule_of_another_module_by_its_member_is_read_once(tmp_path: Path) -> None:
    near = "BEAT = 1\nCELERY_BEAT_SCHEDULE = {'a': {'task': 'weigh', 'schedule': 5}}\n"
    files = {
        "__init__.py": "",
        "celery.py": "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'depot.settings')\n"
        "from celery import Celery\napp = Celery('depot')\n"
        "app.config_from_object('django.conf:settings', namespace='CELERY')\n"
        "@app.task(name='weigh')\ndef weigh(): ...\n",
        "near.py": near,
        "settings.py": "from depot import near\nCELERY_BEAT_SCHEDULE = near.CELERY_BEAT_SCHEDULE\n",
    }
    project, report = of_application(tmp_path, files)
    assert (report.found["schedules"], report.mapped["schedules"]) == (1, 1), texts(report)
    assert project.schedules["a"]["every"] == 5
    assert not any("is computed" in text for text in texts(report))


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("if LIVE:\n    {}", "where LIVE"),
        ("if not LIVE:\n    pass\nelse:\n    {}", "where not not LIVE"),
        ("if LIVE:\n    if LATE:\n        {}", "where LIVE and LATE"),
    ],
)
def test_item_under_a_condition_is_imported_and_named(tmp_path: Path, statement: str, condition: str) -> None:
    item = "app.conf.beat_schedule['a'] = {'task': 'weigh', 'schedule': 5}"
    project, report = imported(tmp_path, f"app.conf.beat_schedule = {{}}\n{statement.format(item)}\n")
    assert project.schedules["a"]["every"] == 5
    assert (report.found["schedules"], report.mapped["schedules"]) == (1, 1)
    line = LINES + 2 + statement.partition("{")[0].count("\n")
    assert named(
        report, f"tasks.py:{line} the item a of beat_schedule, which counts {condition} | It is imported"
    ), texts(report)


@pytest.mark.parametrize(
    "statement",
    [
        "if LIVE:\n    {}\nelse:\n    {}",
        "def begin():\n    {}",
        "def begin():\n    if LIVE:\n        {}",
        "try:\n    {}\nexcept KeyError:\n    pass",
        "while LIVE:\n    {}",
    ],
)
def test_item_that_may_count_otherwise_is_not_imported(tmp_path: Path, statement: str) -> None:
    item = "app.conf.beat_schedule['a'] = {'task': 'weigh', 'schedule': 5}"
    project, report = imported(tmp_path, f"app.conf.beat_schedule = {{}}\n{statement.replace('{}', item)}\n")
    assert not project.schedules
    assert report.found["schedules"] == statement.count("{}")
    assert any(
        "the item a of beat_schedule" in text and "It is not imported" in text for text in texts(report)
    )


def test_route_under_a_condition_is_not_imported(tmp_path: Path) -> None:
    text = "app.conf.task_routes = {}\nif LIVE:\n    app.conf.task_routes['weigh'] = {'queue': 'slow'}\n"
    project, report = imported(tmp_path, text)
    assert "route" not in project.actions["weigh"]
    assert any("the item weigh of task_routes, which counts where LIVE" in text for text in texts(report))


@pytest.mark.parametrize(
    ("body", "condition"),
    [
        ("if LIVE:\n        {}", "where LIVE"),
        ("if LIVE:\n        return\n    {}", "where begin does not end at line 11"),
        (
            "if LIVE:\n        return\n    if LATE:\n        {}",
            "where begin does not end at line 11 and where LATE",
        ),
    ],
)
def test_call_under_a_condition_is_imported_and_named(tmp_path: Path, body: str, condition: str) -> None:
    call = "sender.add_periodic_task(5.0, weigh.s(), name='a')"
    text = f"@app.on_after_configure.connect\ndef begin(sender, **words):\n    {body.format(call)}\n"
    project, report = imported(tmp_path, text)
    assert project.schedules["a"]["every"] == 5
    assert any(f"the schedule a, which is added {condition}" in text for text in texts(report)), texts(report)


@pytest.mark.parametrize(
    "body",
    ["return\n    {}", "while LIVE:\n        {}", "for each in load():\n        {}", "raise Error\n    {}",
     "try:\n        load()\n    except Error:\n        {}", "LIVE and {}"],
)  # fmt: skip
def test_call_that_may_run_otherwise_is_not_imported(tmp_path: Path, body: str) -> None:
    call = "sender.add_periodic_task(5.0, weigh.s(), name='a')"
    text = f"@app.on_after_configure.connect\ndef begin(sender, **words):\n    {body.format(call)}\n"
    project, report = imported(tmp_path, text)
    assert not project.schedules
    assert report.found["schedules"] == 1


def test_task_that_names_its_time_has_a_schedule(tmp_path: Path) -> None:
    text = (
        "from celery.task import periodic_task\n"
        "@periodic_task(run_every=crontab(minute=5), name='tare', queue='slow')\ndef tare(): ...\n"
        "@periodic_task(run_every=timedelta(minutes=1), options={'queue': 'fast'})\ndef empty(): ...\n"
        "@periodic_task(run_every=load())\ndef later(): ...\n"
    )
    project, report = imported(tmp_path, text)
    assert project.schedules["tare"] == {"action": "depot.tare", "cron": "5 * * * *"}
    assert project.schedules["depot_tasks_empty"] == {"action": "depot.empty_on_fast", "every": 60}
    assert (report.found["schedules"], report.mapped["schedules"]) == (3, 2), texts(report)
    assert named(report, "tasks.py:13 the schedule depot.tasks.later: load()"), texts(report)
    assert not any("run_every of" in text for text in texts(report))


@pytest.mark.parametrize(
    ("setting", "is_plain"),
    [
        ("", True),
        ("app.conf.task_queues = {'slow': {}}\n", True),
        ("app.conf.task_queues = {'slow': {'routing_key': 'sl.#'}}\n", False),
        ("app.conf.task_default_exchange_type = 'topic'\n", False),
        ("from kombu import Queue\napp.conf.task_queues = [Queue('slow', routing_key='x')]\n", False),
    ],
)
def test_routing_key_that_is_the_queue_says_nothing(tmp_path: Path, setting: str, is_plain: bool) -> None:
    options = "{'queue': 'slow', 'routing_key': 'slow'}"
    text = f"{setting}app.conf.beat_schedule = {{'a': {{'task': 'weigh', 'schedule': 5, 'options': {options}}}}}\n"
    text += f"app.conf.task_routes = {{'weigh': {options}}}\n"
    project, report = imported(tmp_path, text)
    assert project.actions["weigh"]["route"] == "slow"
    lines = [text for text in texts(report) if "routing_key" in text and "setting" not in text]
    assert len(lines) == (0 if is_plain else 2), lines
    _, report = imported(tmp_path, text.replace("'routing_key': 'slow'", "'routing_key': 'other'"))
    assert len([text for text in texts(report) if "routing_key" in text and "setting" not in text]) == 2


def test_interval_of_a_float_is_that_of_python() -> None:
    import ast

    node = ast.parse("timedelta(days=1) / 7", mode="eval").body
    assert times(node) == {"every": (timedelta(days=1) / 7).total_seconds()}


def test_arguments_by_position_of_a_task_in_no_file_are_one_parameter(tmp_path: Path) -> None:
    entry = "{'task': 'vendor.tasks.count', 'schedule': 5, 'args': (('a', 'b'), 3)"
    project, report = imported(
        tmp_path, f"app.conf.beat_schedule = {{'a': {entry}, 'kwargs': {{'by': 2}}}}}}\n"
    )
    assert project.schedules["a"]["params"] == {"args": [["a", "b"], 3], "by": 2}
    assert report.mapped["schedules"] == 1
    assert named(report, f"tasks.py:{LINES + 1} the arguments by position of the schedule a"), texts(report)
    text = f"app.conf.beat_schedule = {{'a': {entry}, 'kwargs': {{'args': 2}}}}}}\n"
    project, report = imported(tmp_path, text)
    assert not project.schedules, texts(report)


@pytest.mark.parametrize(
    ("block", "zone"),
    [
        ("CELERY_BEAT_SCHEDULE = {}\n", "Asia/Tokyo"),
        ("CELERY_BEAT_SCHEDULE = {}\nCELERY_BEAT_SCHEDULE['b'] = BODY\n", None),
    ],
)
def test_zone_in_the_block_of_all_schedules_is_theirs(tmp_path: Path, block: str, zone: str | None) -> None:
    body = "{'task': 'weigh', 'schedule': crontab(hour=3, minute=0)}"
    settings = (
        "from celery.schedules import crontab\n"
        f"if LIVE:\n    CELERY_BEAT_SCHEDULE = {{'a': {body}}}\n    CELERY_TIMEZONE = 'Asia/Tokyo'\n"
    )
    files = {
        "__init__.py": "",
        "celery.py": "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'depot.settings')\n"
        "from celery import Celery\napp = Celery('depot')\n"
        "app.config_from_object('django.conf:settings', namespace='CELERY')\n"
        "@app.task(name='weigh')\ndef weigh(): ...\n",
        "settings.py": settings,
        "other.py": f"from celery.schedules import crontab\n{block.replace('BODY', body)}",
    }
    project, report = of_application(tmp_path, files)
    assert project.schedules["a"].get("timezone") == zone, texts(report)
    assert project.schedules["a"].get("enabled", True) is (zone is not None)
    assert named(report, "settings.py:2 CELERY_BEAT_SCHEDULE where LIVE")
