"""Settings and applications that a package outside of the sources gives may change any task: each has a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject

SETTINGS = "from framework.settings import Base\n\n\nclass Mine(Base):\n    {} = []\n"
APP = "from celery import Celery\n\napp = Celery('yard')\napp.config_from_object('django.conf:settings', namespace='CELERY')\n"


def imported(folder: Path, files: dict[str, str]) -> tuple[CeleryProject, list[str]]:
    (folder / "yard").mkdir()
    for name, text in files.items():
        (folder / "yard" / name).write_text(text)
    source = CeleryProject(folder / "yard")
    source.mapped()
    return source, [f"{gap.file}:{gap.line} {gap.what}" for gap in source.report.gaps]


@pytest.mark.parametrize("name", ["INSTALLED_APPS", "MIDDLEWARE", "CELERY_IMPORTS", "BROKER_URL"])
def test_base_of_a_class_of_settings_is_a_gap(tmp_path: Path, name: str) -> None:
    _, gaps = imported(tmp_path, {"settings.py": SETTINGS.format(name), "tasks.py": APP})
    assert any(
        gap.startswith("settings.py:1 the settings that from framework.settings import Base takes")
        for gap in gaps
    ), gaps


@pytest.mark.parametrize("package", ["configurations", "pydantic_settings"])
def test_base_without_settings_of_celery_is_no_gap(tmp_path: Path, package: str) -> None:
    text = SETTINGS.format("INSTALLED_APPS").replace("framework.settings", package)
    _, gaps = imported(tmp_path, {"settings.py": text, "tasks.py": APP})
    assert not any("takes from a package" in gap for gap in gaps), gaps


def test_application_of_another_package_is_named_once(tmp_path: Path) -> None:
    task = "from framework.celery import app\n\n\n@app.task\ndef {}(): ...\n"
    source, gaps = imported(tmp_path, {"one.py": task.format("weigh"), "two.py": task.format("lift")})
    named = [gap for gap in gaps if "the application framework.celery.app, which is in no file" in gap]
    assert named == ["one.py:4 the application framework.celery.app, which is in no file"]
    assert source.report.mapped["tasks"] == 2


def test_shared_task_has_no_line_for_an_application(tmp_path: Path) -> None:
    task = "from celery import shared_task\nimport celery\n\n\n@shared_task\ndef weigh(): ...\n"
    task += "\n\n@celery.shared_task\ndef lift(): ...\n"
    _, gaps = imported(tmp_path, {"one.py": task})
    assert not any("which is in no file" in gap for gap in gaps), gaps
