"""The settings of classes and modules with which no application is configured: compared with Celery itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from tests.penstock_import.test_celery_sources import APP, TASKS
from tests.penstock_import.test_reviewed_changes import of_application, texts

CRON = "from celery.schedules import crontab\n"
DEV = (
    "task_time_limit = 7\ntask_acks_late = True\ntimezone = 'Asia/Tokyo'\n"
    "task_routes = {'depot.tasks.weigh': {'queue': 'slow'}}\n"
    "task_annotations = {'depot.tasks.pack': {'time_limit': 3}}\n"
    "beat_schedule = {'dev': {'task': 'depot.tasks.weigh', 'schedule': 60.0}}\n"
)
PRODUCTION = (
    "task_time_limit = 5\n"
    "beat_schedule = {'live': {'task': 'depot.tasks.weigh', 'schedule': crontab(hour=3, minute=0)}}\n"
)


def within(name: str, text: str, base: str = "") -> str:
    lines = "".join(f"    {line}\n" for line in text.splitlines())
    return f"class {name}{base}:\n{lines}"


def in_celery(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """Return limit, lateness, zone and keys of schedules as Celery has them."""
    monkeypatch.syspath_prepend(str(folder.parent))
    for name in [name for name in sys.modules if name.partition(".")[0] == folder.name]:
        monkeypatch.delitem(sys.modules, name)
    names: dict[str, Any] = {
        "app": Celery("depot", set_as_current=False),
        "__name__": f"{folder.name}.celery",
    }
    exec(code, names)
    conf = names["app"].conf
    zone = str(names["app"].timezone)
    return (
        conf.task_time_limit,
        "rerun" if conf.task_acks_late else "fail",
        None if zone in ("UTC", "Etc/UTC") else zone,
        set(conf.beat_schedule),
    )


def compare(folder: Path, files: dict[str, str], code: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Check that the import has the values of Celery, and return its lines."""
    files = {"__init__.py": "", "tasks.py": TASKS, "celery.py": APP + code} | files
    project, report = of_application(folder, files)
    (depot,) = [path.parent for path in folder.rglob("tasks.py")]
    theirs = in_celery(depot, code, monkeypatch)
    weigh, pack = project.actions["weigh"], project.actions["pack"]
    zones = {schedule.get("timezone") for schedule in project.schedules.values() if "every" not in schedule}
    zone = zones.pop() if zones else None
    assert (weigh["timeout"], weigh["on_worker_loss"], zone, set(project.schedules)) == theirs
    assert (weigh.get("route"), pack["timeout"]) == (None, theirs[0])
    return texts(report)


@pytest.mark.parametrize(
    "code",
    [
        "from depot.conf import Production\napp.config_from_object(Production)\n",
        "from depot.conf import Production\napp.config_from_object(Production())\n",
        "from depot import conf\napp.config_from_object(conf.Production)\n",
        "app.config_from_object('depot.conf.Production')\n",
        "app.config_from_object('depot.conf:Production')\n",
    ],
)
def test_only_the_configured_class_and_its_bases_count(
    tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = (
        CRON
        + within("Dev", DEV)
        + within("Base", PRODUCTION)
        + within("Production", "task_protocol = 2", "(Base)")
    )
    lines = compare(tmp_path, {"conf.py": conf}, code, monkeypatch)
    for name in ("task_acks_late", "task_routes", "task_annotations", "beat_schedule", "timezone"):
        assert any(f"the setting {name} of the class Dev" in line for line in lines), lines


def test_class_in_the_file_of_the_application_counts_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        CRON + within("Dev", DEV) + within("Production", PRODUCTION) + "app.config_from_object(Production)\n"
    )
    compare(tmp_path, {}, code, monkeypatch)


def test_classes_beside_a_configured_module_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "app.config_from_object('depot.conf')\n"
    compare(tmp_path, {"conf.py": CRON + PRODUCTION + within("Dev", DEV)}, code, monkeypatch)


def test_class_that_only_running_would_tell_is_a_gap(tmp_path: Path) -> None:
    conf = (
        CRON
        + within("Dev", DEV)
        + within("Production", PRODUCTION)
        + "chosen = Dev if LOCAL else Production\n"
    )
    files = {
        "__init__.py": "",
        "tasks.py": TASKS,
        "conf.py": conf,
        "celery.py": f"{APP}app.config_from_object('depot.conf.chosen')\n",
    }
    _, report = of_application(tmp_path, files)
    assert any("not proven to be one of the modules" in line for line in texts(report))


def in_capitals(text: str) -> str:
    return "".join(f"CELERY_{line[:line.index('=')].upper()}{line[line.index('='):]}\n" if " = " in line else f"{line}\n"
                   for line in text.splitlines())  # fmt: skip


@pytest.mark.parametrize("imports", ["", "from depot.base import *\n"])
def test_module_that_the_configured_one_does_not_import_does_not_count(
    tmp_path: Path, imports: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prod = in_capitals(CRON + PRODUCTION)
    files = {
        "base.py": prod if imports else "",
        "prod.py": imports or prod,
        "dev.py": "from depot.base import *\n" + in_capitals(DEV) + "CELERY_BEAT_SCHEDULE['more'] = {}\n",
    }
    lines = compare(
        tmp_path, files, "app.config_from_object('depot.prod', namespace='CELERY')\n", monkeypatch
    )
    assert any(
        line.startswith("dev.py") and "CELERY_TASK_ACKS_LATE, in a module that" in line for line in lines
    ), lines


def test_schedule_of_a_module_that_the_application_imports_counts(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "tasks.py": TASKS,
        "cfg.py": "CELERY_TASK_TIME_LIMIT = 5\n",
        "when.py": "CELERY_BEAT_SCHEDULE = {'often': {'task': 'depot.tasks.weigh', 'schedule': 60.0}}\n",
        "celery.py": APP
        + "from depot.when import CELERY_BEAT_SCHEDULE\napp.config_from_object('depot.cfg', namespace='CELERY')\n"
        "app.conf.beat_schedule = CELERY_BEAT_SCHEDULE\n",
    }
    project, _ = of_application(tmp_path, files)
    assert set(project.schedules) == {"often"}


@pytest.mark.parametrize(
    "code",
    [
        "app.config_from_object('depot.dev')\napp.config_from_object('depot.prod')\n",
        "app.config_from_object('depot.dev_of_celery', namespace='CELERY')\napp.config_from_object('depot.capitals')\n",
        "from depot import dev, prod\napp.config_from_object(dev)\napp.config_from_object(prod)\n",
    ],
)
def test_later_source_of_settings_replaces_the_first(
    tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "dev.py": DEV,
        "prod.py": CRON + PRODUCTION,
        "dev_of_celery.py": in_capitals(DEV),
        "capitals.py": in_capitals(CRON + PRODUCTION),
    }
    used = {name: text for name, text in files.items() if name.removesuffix(".py") in code}
    lines = compare(tmp_path, used, code, monkeypatch)
    assert any("Celery takes only the later source" in line for line in lines), lines
