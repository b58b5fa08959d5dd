"""Changes of meaning that a comparison with public applications found, each with the smallest source that shows it."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest
from celery import Celery
from celery.schedules import schedule as interval
from kombu.utils.json import dumps, loads

from tests.penstock_import.test_reviewed_changes import named, of_application, texts

APP = "from celery import Celery\napp = Celery('depot')\n"
DJANGO = (
    f"import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'depot.settings')\n{APP}"
    "app.config_from_object('django.conf:settings', namespace='CELERY')\n"
)
WEIGH = "from celery import shared_task\n@shared_task\ndef weigh(): ...\n"


def test_application_of_a_renamed_class_is_followed(tmp_path: Path) -> None:
    """The module has a function of its own by the name of the class."""
    text = (
        "from celery import Celery as Application\n"
        "class _Queue:\n"
        "    def __init__(self):\n"
        "        app = Application('depot')\n"
        "        app.Task = Recorded\n"
        "        self.app = app\n"
        "    def register(self, function):\n"
        "        return self.app.task(function, queue='slow')\n"
        "def Celery():\n"
        "    return _Queue()\n"
    )
    _, report = of_application(tmp_path, {"queue.py": text, "__init__.py": ""})
    assert named(report, "queue.py:4 Celery of celery.Celery")
    assert named(report, "queue.py:5 app.Task, which is set on the application")
    assert named(report, "queue.py:8 a task that self.app.task makes"), texts(report)


def test_application_that_a_function_of_the_sources_makes_is_not_in_no_file(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "celery_queue.py": "def Celery():\n    return object()\n",
        "config.py": "from depot.celery_queue import Celery\nqueue = Celery()\nqueue.register('weigh')\n",
    }
    _, report = of_application(tmp_path, files)
    assert named(
        report, "config.py:2 the application Celery(), which the function depot.celery_queue.Celery makes"
    )
    assert named(report, "config.py:3 queue.register of the application")


def test_application_that_a_function_makes_is_no_second_one(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "celery_queue.py": f"{APP}def Queue():\n    return app\n",
        "config.py": "from depot.celery_queue import Queue\nqueue = Queue()\n",
    }
    _, report = of_application(tmp_path, files)
    assert not any("one of 2" in text for text in texts(report))


@pytest.mark.parametrize(
    ("line", "decorator"),
    [
        ("from dash.orgs.tasks import org_task", "@org_task('weigh', 60)"),
        ("from dash.orgs import tasks", "@tasks.org_task('weigh', 60)"),
        ("from celery_bonus import recorded", "@recorded"),
        ("from bonus import cron_task as timed", "@timed(lock=3)"),
    ],
)
def test_decorator_of_another_package_that_may_make_a_task_is_named(
    tmp_path: Path, line: str, decorator: str
) -> None:
    text = f"{WEIGH}{line}\n{decorator}\ndef lift(org): ...\n"
    _, report = of_application(tmp_path, {"weighing.py": text, "__init__.py": ""})
    assert named(report, f"weighing.py:5 the decorator {decorator[1:]} of lift, which may make a task"), (
        texts(report)
    )


@pytest.mark.parametrize(
    "lines",
    [
        "from invoke import task\n@task\ndef lift(c): ...\n",
        "from rest_framework.decorators import action\n@action()\ndef lift(c): ...\n",
        "from .own import org_task\n@org_task\ndef lift(c): ...\n",
    ],
)
def test_decorator_of_another_package_that_makes_no_task_has_no_line(tmp_path: Path, lines: str) -> None:
    files = {
        "__init__.py": "",
        "tasks.py": WEIGH,
        "more.py": lines,
        "own.py": "def org_task(f):\n    return f\n",
    }
    _, report = of_application(tmp_path, files)
    assert not any("which may make a task" in text for text in texts(report))


@pytest.mark.parametrize("line", ["os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'depot.settings')",
                                  "os.environ['DJANGO_SETTINGS_MODULE'] = 'depot.settings'"])  # fmt: skip
def test_settings_module_that_is_in_no_file_is_named(tmp_path: Path, line: str) -> None:
    of_app = f"import os\n{line}\n{APP}app.config_from_object('django.conf:settings', namespace='CELERY')\n"
    files = {
        "__init__.py": "",
        "celery.py": of_app,
        "tasks.py": WEIGH,
        "base.py": "CELERY_TASK_ACKS_LATE = True\n",
    }
    _, report = of_application(tmp_path, files)
    assert named(
        report, "celery.py:2 the Django settings module depot.settings is not among the imported files"
    )
    _, report = of_application(tmp_path, {**files, "settings.py": "from .base import *\n"})
    assert not any("the settings of Django of" in text for text in texts(report))


@pytest.mark.parametrize(
    "name", ["settings.py.prod", "settings.py-dist", "settings.py.j2", "local_settings.example"]
)
def test_copy_of_settings_that_is_not_read_is_named(tmp_path: Path, name: str) -> None:
    files = {
        "__init__.py": "",
        "tasks.py": WEIGH,
        name: "DEBUG = False\nCELERY_BROKER_URL = 'redis://'\nCELERY_TASK_TIME_LIMIT = 60\n",
    }
    _, report = of_application(tmp_path, files)
    assert named(report, f"{name}:2 settings of Celery in a copy of a module that is not read"), texts(report)


def test_script_without_a_suffix_is_read(tmp_path: Path) -> None:
    script = "#!/usr/bin/env python3\nfrom depot.tasks import weigh\nweigh.delay()\n"
    files = {
        "__init__.py": "",
        "tasks.py": WEIGH,
        "bin/weigh-all": script,
        "bin/start": "#!/bin/sh\nweigh.delay()\n",
    }
    _, report = of_application(tmp_path, files)
    assert named(report, "bin/weigh-all:3 the call weigh.delay()")
    assert not any(text.startswith("bin/start") for text in texts(report))


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("CELERY_BEAT_SCHEDULE", "'all': {'task': 'depot.tasks.weigh', 'schedule': 60}"),
        ("CELERY_TASK_ROUTES", "'depot.tasks.weigh': {'queue': 'slow'}"),
    ],
)
def test_setting_that_empties_those_of_other_files_is_named(tmp_path: Path, name: str, entry: str) -> None:
    files = {
        "__init__.py": "",
        "tasks.py": WEIGH,
        "base.py": f"{name} = {{{entry}}}\n",
        "local.py": f"from .base import *\n{name} = {{}}\n",
    }
    _, report = of_application(tmp_path, files)
    assert named(report, f"local.py:2 the setting {name}, which has no entry here"), texts(report)
    filled = {"local.py": f"{name} = {{}}\n{name}['more'] = {entry.partition(': ')[2]}\n"}
    _, report = of_application(tmp_path, {**files, **filled})
    assert not any("which has no entry here" in text for text in texts(report))


def in_celery(every: timedelta, count: int = 6) -> list[datetime]:
    """Return the instants at which Celery's beat sends a task with an aligned interval."""
    now = datetime(2026, 1, 5, 10, 7, 31, tzinfo=UTC)
    sent: list[datetime] = []
    aligned = interval(every, relative=True, nowfun=lambda: now, app=Celery("depot", set_as_current=False))
    for _ in range(count):
        last = now
        now += timedelta(seconds=aligned.is_due(last).next)
        sent.append(now)
    return sent


@pytest.mark.parametrize(
    ("words", "is_mapped"),
    [
        ("minutes=20", True),
        ("seconds=30", True),
        ("hours=5", True),
        ("days=2", True),
        ("minutes=90", False),
        ("hours=36", False),
        ("seconds=90", False),
    ],
)
def test_aligned_interval_has_the_instants_of_celery(tmp_path: Path, words: str, is_mapped: bool) -> None:
    entry = f"'all': {{'task': 'depot.tasks.weigh', 'schedule': timedelta({words}), 'relative': True}}"
    text = f"from datetime import timedelta\nCELERY_TIMEZONE = 'UTC'\nCELERY_BEAT_SCHEDULE = {{{entry}}}\n"
    files = {"__init__.py": "", "tasks.py": WEIGH, "celery.py": DJANGO, "settings.py": text}
    project, report = of_application(tmp_path, files)
    assert report.mapped["schedules"] == int(is_mapped), texts(report)
    every = project.schedules["all"]["every"]
    sent = in_celery(eval(f"timedelta({words})"))
    steps = {(after - before).total_seconds() for before, after in pairwise(sent)}
    assert (steps == {every}) == is_mapped
    if is_mapped and every >= 60:
        unit = max(size for size in (60, 3600, 86400) if size <= every)
        assert all(instant.timestamp() % unit == 0 for instant in sent)
    zoned = {**files, "settings.py": text.replace("'UTC'", "'Asia/Kolkata'")}
    _, report = of_application(tmp_path, zoned)
    assert report.mapped["schedules"] == int(is_mapped and every < 3600)


@pytest.mark.parametrize(
    ("lines", "is_certain"),
    [
        ("USE_TZ = True\nif USE_TZ:\n    CELERY_TIMEZONE = 'Europe/Paris'\n", True),
        ("OFF = False\nif not OFF:\n    CELERY_TIMEZONE = 'Europe/Paris'\n", True),
        ("USE_TZ = False\nif USE_TZ:\n    CELERY_TIMEZONE = 'Europe/Paris'\n", False),
        ("USE_TZ = True\nUSE_TZ = load()\nif USE_TZ:\n    CELERY_TIMEZONE = 'Europe/Paris'\n", False),
        ("USE_TZ = True\nfrom other import *\nif USE_TZ:\n    CELERY_TIMEZONE = 'Europe/Paris'\n", False),
        ("USE_TZ = True\nif USE_TZ:\n    CELERY_TIMEZONE = 'Europe/Paris'\nelse:\n    pass\n", False),
    ],
)
def test_condition_that_a_literal_settles_is_none(tmp_path: Path, lines: str, is_certain: bool) -> None:
    entry = "'all': {'task': 'depot.tasks.weigh', 'schedule': crontab(hour=3, minute=0)}"
    text = f"from celery.schedules import crontab\n{lines}CELERY_BEAT_SCHEDULE = {{{entry}}}\n"
    files = {"__init__.py": "", "tasks.py": WEIGH, "celery.py": DJANGO, "settings.py": text}
    project, report = of_application(tmp_path, files)
    assert project.schedules["all"].get("enabled", True) is is_certain, texts(report)
    assert project.schedules["all"].get("timezone") == ("Europe/Paris" if is_certain else None)


@pytest.mark.parametrize(
    ("function", "is_mapped"),
    [
        ("def options():\n    return {'queue': SLOW}\n", True),
        ("def options():\n    'The slow queue.'\n    return {'queue': 'slow'}\n", True),
        ("def options(of='slow'):\n    return {'queue': of}\n", True),
        ("def options(*of):\n    return {'queue': of[0]}\n", False),
        ("@cached\ndef options():\n    return {'queue': 'slow'}\n", False),
        ("def options():\n    log()\n    return {'queue': 'slow'}\n", False),
        ("def options():\n    return {'queue': 'slow'}\noptions = load()\n", False),
    ],
)
def test_options_that_a_function_returns_are_those_of_the_schedule(
    tmp_path: Path, function: str, is_mapped: bool
) -> None:
    entry = "'all': {'task': 'depot.tasks.weigh', 'schedule': 60, 'options': options()}"
    text = f"SLOW = 'slow'\n{function}CELERY_BEAT_SCHEDULE = {{{entry}}}\n"
    files = {"__init__.py": "", "tasks.py": WEIGH, "celery.py": DJANGO, "settings.py": text}
    project, report = of_application(tmp_path, files)
    assert report.mapped["schedules"] == int(is_mapped), texts(report)
    assert project.schedules["all"]["action"] == ("depot.weigh_on_slow" if is_mapped else "depot.weigh")


def test_setting_for_all_tasks_has_the_default_of_its_variable(tmp_path: Path) -> None:
    text = "import environ\nenv = environ.Env()\nCELERY_TASK_TIME_LIMIT = env.int('LIMIT', default=5 * 60)\n"
    files = {"__init__.py": "", "tasks.py": WEIGH, "celery.py": DJANGO, "settings.py": text}
    project, report = of_application(tmp_path, files)
    assert project.actions["weigh"]["timeout"] == 300
    assert named(report, "settings.py:3 the variable LIMIT of the setting task_time_limit"), texts(report)


def test_bound_task_among_other_arguments_keeps_its_retries(tmp_path: Path) -> None:
    body = "    task, crate = args\n    task.rate_limit = '1/m'\n    task.retry()\n"
    text = f"{APP}@app.task(bind=True)\ndef weigh(*args):\n{body}"
    project, report = of_application(tmp_path, {"tasks.py": text, "__init__.py": ""})
    assert project.actions["weigh"]["retry"]["max_attempts"] == 4
    assert named(report, "tasks.py:6 the option task.rate_limit, which is set later"), texts(report)
    assert named(report, "tasks.py:7 the call task.retry()")


def test_annotation_with_a_class_of_celery_has_no_line(tmp_path: Path) -> None:
    text = (
        "import celery\nfrom celery import Task\nfrom typing import Optional\n"
        "def record(task: Optional[celery.Task]) -> Task:\n    return task\n"
        "class Recorded(Task): ...\n"
    )
    _, report = of_application(tmp_path, {"tasks.py": text, "__init__.py": ""})
    lines = [text for text in texts(report) if "of celery" in text]
    assert [text.partition(" ")[0] for text in lines] == ["tasks.py:6"], lines


def test_setting_that_an_option_reads_counts_for_all_tasks(tmp_path: Path) -> None:
    """The option of one task reads the setting, and the setting holds for all tasks besides."""
    tasks = (
        "from celery import shared_task\nfrom django.conf import settings\n"
        "@shared_task(time_limit=settings.CELERY_TASK_SOFT_TIME_LIMIT)\ndef weigh(): ...\n"
    )
    text = "CELERY_TASK_SOFT_TIME_LIMIT = 60\nLIMIT = 5\n"
    files = {"__init__.py": "", "celery.py": DJANGO, "settings.py": text, "tasks.py": tasks}
    project, report = of_application(tmp_path, files)
    assert project.actions["weigh"]["timeout"] == 60
    assert named(report, "settings.py:1 the setting CELERY_TASK_SOFT_TIME_LIMIT"), texts(report)
    assert not any(text.startswith("settings.py:2") for text in texts(report))


def test_application_that_a_function_returns_is_followed(tmp_path: Path) -> None:
    """A method returns the application without a name, and another one gets it as a parameter."""
    makers = (
        "from celery import Celery\n"
        "class Utils:\n"
        "    @classmethod\n"
        "    def make(cls, name):\n"
        "        return Celery(name)\n"
        "    @classmethod\n"
        "    def begin(cls, queue):\n"
        "        queue.Task = Recorded\n"
    )
    used = (
        "from depot.made import Utils\n"
        "def application():\n"
        "    return Utils.make('depot')\n"
        "queue = application()\n"
        "Utils.begin(queue=queue)\n"
        "queue.control.revoke('x')\n"
    )
    _, report = of_application(tmp_path, {"__init__.py": "", "made.py": makers, "used.py": used})
    assert named(report, "made.py:8 queue.Task, which is set on the application"), texts(report)
    assert named(report, "used.py:6 queue.control of the application"), texts(report)


def test_application_with_a_type_is_one(tmp_path: Path) -> None:
    text = (
        "from celery import Celery\napp: Celery = Celery('depot')\n"
        "@app.task\ndef weigh(): ...\n"
        "app.add_periodic_task(5.0, weigh.s(), name='often')\n"
    )
    project, report = of_application(tmp_path, {"__init__.py": "", "tasks.py": text})
    assert project.schedules["often"] == {"action": "depot.weigh", "every": 5}, texts(report)
    _, report = of_application(
        tmp_path, {"more.py": "from celery import Celery\nother: Celery = Celery('x')\n"}
    )
    assert named(report, "more.py:2 the application Celery('x'), one of 2"), texts(report)


@pytest.mark.parametrize(
    ("lines", "zone"),
    [
        ("", "Asia/Tokyo"),
        ("other.conf.timezone = 'Europe/Oslo'\n", None),
        ("other.config_from_object('django.conf:settings', namespace='CELERY')\n", None),
        ("other.add_periodic_task(5, weigh.s())\n", None),
    ],
)
def test_zone_is_that_of_the_one_application_with_settings(
    tmp_path: Path, lines: str, zone: str | None
) -> None:
    entry = "{'task': 'depot.tasks.weigh', 'schedule': crontab(hour=3, minute=0)}"
    settings = (
        "from celery.schedules import crontab\nCELERY_TIMEZONE = 'Asia/Tokyo'\n"
        f"CELERY_BEAT_SCHEDULE = {{'all': {entry}}}\n"
    )
    files = {
        "__init__.py": "",
        "celery.py": DJANGO,
        "settings.py": settings,
        "tasks.py": WEIGH,
        "stop.py": f"from celery import Celery\nfrom depot.tasks import weigh\nother = Celery(broker='amqp://')\n{lines}",
    }
    project, report = of_application(tmp_path, files)
    assert project.schedules["all"].get("timezone") == zone, texts(report)
    assert project.schedules["all"].get("enabled", True) is (zone is not None)


def test_option_about_the_broker_leaves_a_schedule_mapped(tmp_path: Path) -> None:
    """Beat gives `retry` to the publishing of a message, and a fire of a schedule publishes none."""
    text = (
        f"{APP}@app.task\ndef weigh(): ...\napp.conf.beat_schedule = {{'a': {{'task': 'depot.tasks.weigh', 'schedule': 30,\n"
        "    'options': {'expires': 14, 'retry': False}},\n"
        "  'b': {'task': 'depot.tasks.weigh', 'schedule': 30, 'options': {'countdown': 5}}}\n"
    )
    project, report = of_application(tmp_path, {"tasks.py": text, "__init__.py": ""})
    assert project.schedules["a"] == {"action": "depot.weigh", "every": 30, "expires": 14}
    assert named(report, "tasks.py:6 retry in options of the schedule a | Leave it out"), texts(report)
    assert (report.found["schedules"], report.mapped["schedules"]) == (2, 1)


def test_entry_that_a_statement_adds_to_says_so(tmp_path: Path) -> None:
    text = (
        f"{APP}@app.task\ndef weigh(): ...\nROUTES = {{'depot.tasks.weigh': {{'queue': 'slow'}}}}\n"
        "app.conf.task_routes = ROUTES\nfor name in ROUTES:\n    app.conf.task_routes[name]['queue'] += '-eu'\n"
    )
    _, report = of_application(tmp_path, {"tasks.py": text, "__init__.py": ""})
    (line,) = [line for line in texts(report) if "changes an entry" in line]
    assert line.startswith(
        "tasks.py:8 app.conf.task_routes[name]['queue'] += '-eu', which changes an entry"
    ), line
    assert "write the value after this statement" in line


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        ("bytes", b"\xff"),
        ("datetime.datetime", datetime(2030, 1, 1, tzinfo=UTC)),
        ("Optional[date]", date(2030, 1, 1)),
        ("'uuid.UUID | None'", UUID(int=1)),
        ("list[Decimal]", Decimal("1.10")),
        ("time", time(1)),
    ],
)
def test_parameter_of_a_type_that_celery_delivers_is_named(
    tmp_path: Path, annotation: str, value: object
) -> None:
    assert loads(dumps(value)) == value  # type: ignore[no-untyped-call]  # as Celery sends and receives it
    text = f"{APP}@app.task(bind=True)\ndef weigh(self, crate: {annotation}, *, note: str = ''): ...\n"
    _, report = of_application(tmp_path, {"tasks.py": text, "__init__.py": ""})
    shown = annotation if "'" not in annotation else repr("uuid.UUID | None")
    assert named(
        report, f"tasks.py:4 the parameter crate of weigh is {shown}, which Celery's JSON delivers"
    ), texts(report)
    assert report.mapped["tasks"] == 0


@pytest.mark.parametrize(
    "annotation", ["str", "dict[str, int]", "datetime.timedelta", "Literal['date']", "'no type'", "Crate"]
)
def test_parameter_of_another_type_has_no_line(tmp_path: Path, annotation: str) -> None:
    text = f"{APP}@app.task\ndef weigh(crate: {annotation}): ...\n"
    _, report = of_application(tmp_path, {"tasks.py": text, "__init__.py": ""})
    assert not any("the parameter crate" in line for line in texts(report))
    assert report.mapped["tasks"] == 1


CRONTAB = "from celery.schedules import crontab\n"
NIGHTLY = (
    "app.conf.beat_schedule = {'n': {'task': 'depot.tasks.weigh', 'schedule': crontab(hour=1, minute=0)}}\n"
)


@pytest.mark.parametrize(
    "source",
    [
        "app.config_from_object(dict(task_acks_late=True, timezone='Europe/Paris'))",
        "app.config_from_object({'task_acks_late': True, 'timezone': 'Europe/Paris'})",
        "CONFIG = {'task_acks_late': True, 'timezone': 'Europe/Paris'}\napp.config_from_object(CONFIG)",
        "app.config_from_object(dict(task_acks_late=True))\napp.conf.timezone = 'Europe/Paris'",
    ],
)
def test_dict_of_settings_is_a_known_source(tmp_path: Path, source: str) -> None:
    text = f"{APP}{CRONTAB}{source}\n{NIGHTLY}@app.task\ndef weigh(): ...\n"
    project, report = of_application(tmp_path, {"tasks.py": text, "__init__.py": ""})
    assert project.schedules["n"] == {
        "action": "depot.weigh", "cron": "0 1 * * *", "timezone": "Europe/Paris",
    }, texts(report)  # fmt: skip
    assert project.actions["weigh"]["on_worker_loss"] == "rerun"
    assert not any("not proven to be" in line for line in texts(report))


@pytest.mark.parametrize("source", ["dict(timezone='Europe/Paris')", "{**BASE}", "dict(BASE)", "{NAME: 1}"])
def test_dict_with_items_that_are_not_read_is_an_unknown_source(tmp_path: Path, source: str) -> None:
    text = f"from os import NAME, BASE\n{APP}{CRONTAB}app.config_from_object({source})\n{NIGHTLY}@app.task\ndef weigh(): ...\n"
    project, report = of_application(tmp_path, {"tasks.py": text, "__init__.py": ""})
    assert project.schedules["n"]["enabled"] is False
    assert any("not proven to be" in line for line in texts(report))


@pytest.mark.parametrize(
    ("code", "subject"),
    [
        (
            "redis.from_url(settings.CELERY_BROKER_URL).llen('celery')",
            "settings.CELERY_BROKER_URL, which code reads",
        ),
        ("url = app.conf.broker_url\nredis.from_url(url)", "app.conf.broker_url, which code reads"),
        ("redis.from_url(app.conf.result_backend)", "app.conf.result_backend, which code reads"),
        ("client.keys('celery-task-meta-*')", "'celery-task-meta-*', a key of Celery's results"),
    ],
)
def test_code_that_reads_the_server_of_celery_is_named(tmp_path: Path, code: str, subject: str) -> None:
    text = f"import redis\nfrom django.conf import settings\nfrom depot.tasks import app\n{code}\n"
    files = {"__init__.py": "", "tasks.py": f"{APP}@app.task\ndef weigh(): ...\n", "look.py": text}
    _, report = of_application(tmp_path, files)
    assert named(report, f"look.py:4 {subject} | In Penstock that server has no messages"), texts(report)


def test_server_that_a_setting_gives_celery_has_no_second_line(tmp_path: Path) -> None:
    text = (
        f"import os\nCELERY_BROKER_URL = os.environ['B']\nCELERY_RESULT_BACKEND = CELERY_BROKER_URL\n{APP}"
        "app = Celery('depot', broker=CELERY_BROKER_URL)\napp.conf.broker_url = CELERY_BROKER_URL\n"
        "app.conf.update(result_backend=CELERY_RESULT_BACKEND)\nprint(CELERY_BROKER_URL)\n"
    )
    _, report = of_application(tmp_path, {"tasks.py": text, "__init__.py": ""})
    assert not any("which code reads" in line for line in texts(report)), texts(report)


@pytest.mark.parametrize(
    "statement", ["from depot.scales.tasks import weigh", "from .scales.tasks import weigh"]
)
def test_task_of_a_name_that_two_modules_have_is_resolved(tmp_path: Path, statement: str) -> None:
    files = {
        "__init__.py": "",
        "scales/__init__.py": "",
        "scales/tasks.py": WEIGH,
        "cranes/__init__.py": "",
        "cranes/tasks.py": "from depot.beat import app\n@app.task\ndef weigh(): ...\n"
        "@app.on_after_finalize.connect\ndef setup(sender, **kwargs):\n"
        "    sender.add_periodic_task(60, weigh.s(), name='crane')\n",
        "beat.py": f"{APP}{statement}\n@app.on_after_finalize.connect\ndef setup(sender, **kwargs):\n"
        "    sender.add_periodic_task(30, weigh.s(), name='scale')\n",
    }
    project, report = of_application(tmp_path, files)
    places = {name: report.places["actions", name][0] for name in project.actions}
    actions = {
        key: places[schedule["action"].partition(".")[2]] for key, schedule in project.schedules.items()
    }
    assert actions == {"crane": "cranes/tasks.py", "scale": "scales/tasks.py"}, texts(report)


def test_default_within_arithmetic_of_a_constant_is_read(tmp_path: Path) -> None:
    text = (
        f"import os\n{APP}PAUSE = max(5, int(os.environ.get('PAUSE', 20)))\n@app.task\ndef weigh(): ...\n"
        "app.conf.beat_schedule = {'n': {'task': 'depot.tasks.weigh', 'schedule': PAUSE, 'options': {'expires': PAUSE - 1}}}\n"
    )
    project, report = of_application(tmp_path, {"tasks.py": text, "__init__.py": ""})
    assert project.schedules["n"] == {"action": "depot.weigh", "every": 20, "expires": 19}
    assert any(
        "the variable PAUSE of the schedule n, imported with its default 20" in line for line in texts(report)
    )
    assert report.mapped["schedules"] == 1
