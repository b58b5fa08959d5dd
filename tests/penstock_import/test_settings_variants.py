"""Settings of Celery in one of several modules of settings of Django: a line names the module, since it may not be in force."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.penstock_import.test_reviewed_changes import of_application, texts

BASE = "TIME_ZONE = 'UTC'\nINSTALLED_APPS = ['depot']\n"
SCHEDULE = "CELERY_BEAT_SCHEDULE = {'often': {'task': 'depot.tasks.weigh', 'schedule': 300}}\n"
FILES = {
    "__init__.py": "",
    "celery.py": "import os\nfrom celery import Celery\n"
    "os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'depot.settings.local')\napp = Celery('depot')\n"
    "app.config_from_object('django.conf:settings', namespace='CELERY')\n",
    "tasks.py": "from celery import shared_task\n@shared_task\ndef weigh(): ...\n",
    "settings/__init__.py": "",
    "settings/base.py": BASE + SCHEDULE,
    "settings/local.py": "from .base import *\nDEBUG = True\n",
    "settings/production.py": "from .base import *\n",
}
ITEM = "CELERY_BEAT_SCHEDULE['rare'] = {'task': 'depot.tasks.weigh', 'schedule': 600}\n"


def lines(folder: Path, files: dict[str, str]) -> list[str]:
    _, report = of_application(folder, FILES | files)
    return [text for text in texts(report) if "do not always take" in text]


@pytest.mark.parametrize(
    ("statement", "setting"),
    [
        (ITEM, "the schedule rare"),
        (
            f"CELERY_BEAT_SCHEDULE.update({{'rare': {ITEM.partition(' = ')[2].strip()}}})\n",
            "the schedule rare",
        ),
        ("CELERY_TASK_TIME_LIMIT = 30\n", "task_time_limit"),
        ("CELERY_TASK_ACKS_LATE = True\n", "task_acks_late"),
        ("CELERY_TASK_DEFAULT_QUEUE = 'own'\n", "task_default_queue"),
        ("CELERY_TASK_ROUTES = {'depot.tasks.weigh': {'queue': 'slow'}}\n", "task_routes"),
        ("CELERY_TIMEZONE = 'Europe/Berlin'\n", "the zone of schedules"),
    ],
)
@pytest.mark.parametrize(("module", "other"), [("production", "local"), ("local", "production")])
def test_setting_of_one_module_of_settings_is_named(
    tmp_path: Path, statement: str, setting: str, module: str, other: str
) -> None:
    name = f"settings/{module}.py"
    (line,) = lines(tmp_path, {name: FILES[name] + statement})
    assert line.startswith(f"{name}:")
    assert (
        f" {setting} of {name}, which these modules of settings do not always take: settings/{other}.py |"
        in line
    )
    assert "It is imported for all: remove it if the module that DJANGO_SETTINGS_MODULE names" in line


def test_setting_of_the_module_that_all_take_is_not_named(tmp_path: Path) -> None:
    base = (
        FILES["settings/base.py"] + ITEM + "CELERY_TASK_TIME_LIMIT = 30\nCELERY_TIMEZONE = 'Europe/Berlin'\n"
    )
    assert lines(tmp_path, {"settings/base.py": base}) == []


def test_setting_that_all_modules_give_alike_is_named_of_none(tmp_path: Path) -> None:
    same = "CELERY_TASK_TIME_LIMIT = 30\n"
    base = FILES["settings/base.py"] + same
    assert (
        lines(tmp_path, {"settings/base.py": base, "settings/local.py": FILES["settings/local.py"] + same})
        == []
    )


@pytest.mark.parametrize(
    "package",
    [
        "import os\nfrom .base import *\nif os.environ.get('ENV') == 'live':\n    from .production import *\n",
        "from .base import *\ntry:\n    from .production import *\nexcept ImportError:\n    pass\n",
    ],
)
def test_module_that_is_taken_under_a_condition_is_named(tmp_path: Path, package: str) -> None:
    files = {
        "celery.py": FILES["celery.py"].replace("settings.local", "settings"),
        "settings/__init__.py": package,
        "settings/local.py": "",
        "settings/production.py": ITEM,
    }
    (line,) = lines(tmp_path, files)
    assert "the schedule rare of settings/production.py" in line
    assert "do not always take: settings/__init__.py" in line


def test_modules_that_take_nothing_of_each_other_are_named(tmp_path: Path) -> None:
    files = {
        "settings/base.py": "",
        "settings/local.py": BASE,
        "settings/production.py": BASE + "CELERY_TASK_TIME_LIMIT = 30\n",
    }
    (line,) = lines(tmp_path, files)
    assert "task_time_limit of settings/production.py" in line


@pytest.mark.parametrize(
    "files",
    [
        {"settings/test.py": "from .base import *\n", "settings/local.py": "from .production import *\n"},
        {"settings/local.py": "from .production import *\n"},
    ],
)
def test_setting_of_a_chain_of_modules_is_not_named(tmp_path: Path, files: dict[str, str]) -> None:
    assert lines(tmp_path, files | {"settings/production.py": "from .base import *\n" + ITEM}) == []
