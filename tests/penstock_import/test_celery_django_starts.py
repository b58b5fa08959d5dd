"""Calls of `add_periodic_task` in `ready` of an installed application of Django are mapped as those of a receiver."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject
from penstock_import.project import Project

CALL = "app.add_periodic_task(60.0, tasks.weigh.s(2), name='often')"
CONFIG = f"""from django.apps import AppConfig
from .celery import app
class DepotConfig(AppConfig):
    name = 'depot'
    def ready(self):
        from . import tasks
        {CALL}
"""
INSTALLED = "INSTALLED_APPS = ['depot.apps.DepotConfig']\n"


def imported(folder: Path, apps: str, settings: str) -> tuple[Project, list[str]]:
    package = folder / "site" / "depot"
    package.mkdir(parents=True)
    (folder / "site" / "settings.py").write_text(settings)
    for name, text in {
        "__init__": "",
        "celery": "from celery import Celery\napp = Celery('depot')\napp.config_from_object('django.conf:settings')\n",
        "tasks": "from celery import shared_task\n@shared_task\ndef weigh(n): ...\n",
        "apps": apps,
    }.items():
        (package / f"{name}.py").write_text(text)
    source = CeleryProject(folder / "site")
    return source.mapped(), [f"{gap.file}:{gap.line} {gap.what}" for gap in source.report.gaps]


@pytest.mark.parametrize(
    ("apps", "settings"),
    [
        (CONFIG, INSTALLED),
        (CONFIG, "INSTALLED_APPS = ['depot']\n"),
        (CONFIG, "LOCAL_APPS = ('depot',)\nINSTALLED_APPS = (*LOCAL_APPS,)\n"),
        (CONFIG.replace("from django.apps import AppConfig", "from django import apps").replace(
            "(AppConfig)", "(apps.AppConfig)"), INSTALLED),
        (CONFIG.replace("        from . import tasks\n", "").replace("import app\n", "import app\nfrom . import tasks\n"),
         INSTALLED),
        (CONFIG.replace("from .celery import app\n", "").replace(
            "        from . import tasks\n", "        from . import tasks\n        from .celery import app\n"), INSTALLED),
    ],
)  # fmt: skip
def test_schedule_in_ready_is_mapped(tmp_path: Path, apps: str, settings: str) -> None:
    project, gaps = imported(tmp_path, apps, settings)
    assert [(schedule["every"], schedule["params"]) for schedule in project.schedules.values()] == [
        (60.0, {"n": 2})
    ], gaps


def test_condition_in_ready_is_named(tmp_path: Path) -> None:
    apps = CONFIG.replace(f"        {CALL}", f"        if BEAT:\n            {CALL}")
    project, gaps = imported(tmp_path, apps, INSTALLED)
    assert len(project.schedules) == 1
    assert any("the schedule often, which is added where BEAT" in gap for gap in gaps), gaps


@pytest.mark.parametrize(
    ("apps", "settings"),
    [
        (CONFIG, ""),
        (CONFIG, "INSTALLED_APPS = ['shop']\n"),
        (CONFIG, "if DEBUG:\n    INSTALLED_APPS = ['depot']\n"),
        (CONFIG + "class Other(AppConfig):\n    name = 'other'\n", "INSTALLED_APPS = ['depot']\n"),
        (CONFIG + "class Other(AppConfig):\n    default = True\n", "INSTALLED_APPS = ['depot']\n"),
        (CONFIG.replace("(AppConfig)", "(Base)"), INSTALLED),
        (CONFIG.replace("app.add", "self.app.add"), INSTALLED),
        (CONFIG.replace("ready", "start"), INSTALLED),
        (CONFIG.replace("    def ready", "    @only_once\n    def ready"), INSTALLED),
        (CONFIG.replace(f"        {CALL}", f"        for n in (1, 2):\n            {CALL}"), INSTALLED),
    ],
)
def test_schedule_in_method_not_called_is_named(tmp_path: Path, apps: str, settings: str) -> None:
    project, gaps = imported(tmp_path, apps, settings)
    assert project.schedules == {}
    assert any(gap.startswith("depot/apps.py:") and "the schedule of" in gap for gap in gaps), gaps
