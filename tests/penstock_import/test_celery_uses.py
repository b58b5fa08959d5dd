"""Uses of Celery that are not mapped: each has a line with advice that is true."""

from __future__ import annotations

from pathlib import Path

import pytest
from celery.app.defaults import _TO_NEW_KEY, SETTING_KEYS

from penstock_import.celery_setting_names import advice_of, today
from tests.penstock_import.test_reviewed_changes import named, of_application, texts

APP = "from celery import Celery\napp = Celery('depot')\n"
TASK = "@app.task\ndef weigh(): ...\n"


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("from django_structlog.celery import signals", "signals.bind_extra_task_metadata"),
        ("import django_structlog.celery.signals as kinds", "kinds.bind_extra_task_metadata"),
        ("from celery_sender.signals import sent", "sent"),
    ],
)
def test_receiver_of_a_package_around_celery_is_named(tmp_path: Path, statement: str, name: str) -> None:
    code = f"from django.dispatch import receiver\n{statement}\n@receiver({name})\ndef add(**_): ...\n"
    _, report = of_application(tmp_path, {"tasks.py": APP + TASK, "bind.py": code})
    line = next(text for text in texts(report) if text.startswith(f"bind.py:3 {name} of "))
    assert "Do it in the function" in line


def test_own_module_called_celery_is_no_package_around_celery(tmp_path: Path) -> None:
    files = {"__init__.py": "", "tasks.py": APP + TASK, "celery.py": "def start(): ...\n"}
    files["use.py"] = "from depot.celery import start\nstart()\n"
    _, report = of_application(tmp_path, files)
    assert not named(report, "use.py")


def test_file_of_another_python_says_so(tmp_path: Path) -> None:
    _, report = of_application(tmp_path, {"tasks.py": APP + TASK, "new.py": "# celery\ndef f(:\n    pass\n"})
    (line,) = [text for text in texts(report) if text.startswith("new.py")]
    assert line.startswith("new.py:2 Python 3.")
    assert "run the import with the Python version that the file is written for" in line


def test_old_names_of_settings_are_those_of_celery() -> None:
    assert {old: today(old) for old in _TO_NEW_KEY} == _TO_NEW_KEY


def test_each_setting_of_celery_is_known() -> None:
    assert [key for key in SETTING_KEYS if "has no setting" in advice_of(key)] == []
    assert [key for key in _TO_NEW_KEY if "has no setting" in advice_of(key)] == []
    assert [key for key in SETTING_KEYS if "has no setting" in advice_of(f"CELERY_{key.upper()}")] == []


@pytest.mark.parametrize(
    "name",
    ["CELERY_TASK_MAX_RETRIES", "CELERY_TASK_BUCKET_NAME", "task_default_retry_delay", "task_max_retries", "CELERY_PIDFILE"],
)  # fmt: skip
def test_name_that_only_looks_like_a_setting_is_said_to_be_none(name: str) -> None:
    assert advice_of(name).startswith("Celery has no setting of this name, and reads nothing")


def test_setting_that_is_a_word_of_a_command_is_none(tmp_path: Path) -> None:
    code = (
        "import os, subprocess\nCELERY_QUEUES = os.environ['CELERY_QUEUES']\n"
        "def run():\n    command = ['celery', '-A', 'depot', 'worker']\n"
        "    command += ['--queues', CELERY_QUEUES]\n    subprocess.run(command)\n"
    )
    _, report = of_application(tmp_path, {"tasks.py": APP + TASK, "start.py": code})
    line = next(text for text in texts(report) if text.startswith("start.py:2 the setting CELERY_QUEUES"))
    assert "It is a word of the command at start.py:4" in line
    assert named(report, "start.py:4 the command celery -A depot worker --queues {CELERY_QUEUES}")


def test_variables_and_bases_of_a_settings_module_are_no_settings(tmp_path: Path) -> None:
    code = (
        "from enum import Enum\nfrom pydantic import BaseModel\nclass Kind(Enum): ...\nclass Config(BaseModel):\n"
        "    task_max_retries = 3\n    worker_prefetch_multiplier = 1\n"
        "    def show(self):\n        redis_stats = 1\n        task_acks_late = True\n"
    )
    files = {
        "tasks.py": f"{APP}app.config_from_object('depot.conf:Config')\n{TASK}",
        "conf.py": code,
        "__init__.py": "",
    }
    _, report = of_application(tmp_path, files)
    lines = [text for text in texts(report) if text.startswith("conf.py")]
    assert not [line for line in lines if "redis_stats" in line or "import" in line]
    assert any("task_max_retries" in line and "has no setting" in line for line in lines)
    assert any("worker_prefetch_multiplier" in line for line in lines)
