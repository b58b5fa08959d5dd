"""Changes of meaning that a comparison with public applications found, each with the smallest source that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.penstock_import.test_reviewed_changes import named, of_application, texts

APP = "from celery import Celery\napp = Celery('depot')\n"
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
    assert named(report, "config.py:2 the application Celery(), which the function depot.celery_queue.Celery makes")
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
    assert named(report, f"weighing.py:5 the decorator {decorator[1:]} of lift, which may make a task"), texts(report)


@pytest.mark.parametrize(
    "lines",
    [
        "from invoke import task\n@task\ndef lift(c): ...\n",
        "from rest_framework.decorators import action\n@action()\ndef lift(c): ...\n",
        "from .own import org_task\n@org_task\ndef lift(c): ...\n",
    ],
)
def test_decorator_of_another_package_that_makes_no_task_has_no_line(tmp_path: Path, lines: str) -> None:
    files = {"__init__.py": "", "tasks.py": WEIGH, "more.py": lines, "own.py": "def org_task(f):\n    return f\n"}
    _, report = of_application(tmp_path, files)
    assert not any("which may make a task" in text for text in texts(report))


@pytest.mark.parametrize("line", ["os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'depot.settings')",
                                  "os.environ['DJANGO_SETTINGS_MODULE'] = 'depot.settings'"])  # fmt: skip
def test_settings_module_that_is_in_no_file_is_named(tmp_path: Path, line: str) -> None:
    of_app = f"import os\n{line}\n{APP}app.config_from_object('django.conf:settings', namespace='CELERY')\n"
    files = {"__init__.py": "", "celery.py": of_app, "tasks.py": WEIGH, "base.py": "CELERY_TASK_ACKS_LATE = True\n"}
    _, report = of_application(tmp_path, files)
    assert named(report, "celery.py:2 the settings of Django of depot.settings, which is in no file that was read")
    _, report = of_application(tmp_path, {**files, "settings.py": "from .base import *\n"})
    assert not any("the settings of Django of" in text for text in texts(report))


@pytest.mark.parametrize("name", ["settings.py.prod", "settings.py-dist", "settings.py.j2", "local_settings.example"])
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
    files = {"__init__.py": "", "tasks.py": WEIGH, "bin/weigh-all": script, "bin/start": "#!/bin/sh\nweigh.delay()\n"}
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
