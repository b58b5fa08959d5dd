"""A constant has a value for the importer only where no other statement or package may give it another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject
from penstock_import.project import Project

APP = "from celery import Celery\napp = Celery('shop')\n"


def imported(folder: Path, **files: str) -> tuple[Project, list[str]]:
    (folder / "shop").mkdir()
    for name, text in files.items():
        (folder / "shop" / f"{name}.py").write_text(text)
    source = CeleryProject(folder / "shop")
    project = source.mapped()
    return project, [f"{gap.file}:{gap.line} {gap.what}" for gap in source.report.gaps]


@pytest.mark.parametrize(
    ("settings", "statement", "route"),
    [
        ("QUEUE = 'x'\n", "from .settings import QUEUE", "x"),
        ("QUEUE = 'x'\n", "from shop.settings import QUEUE", "x"),
        ("QUEUE = 'x'\n", "from vendor.conf import QUEUE", None),
        ("QUEUE = 'x'\n", "from vendor import SLOW as QUEUE", None),
        ("QUEUE = 'x'\nQUEUE, OTHER = 'y', 'z'\n", "from .settings import QUEUE", None),
        ("QUEUE = 'x'\nfor QUEUE in ('y',): pass\n", "from .settings import QUEUE", None),
        ("QUEUE = 'x'\nwith connect() as QUEUE: pass\n", "from .settings import QUEUE", None),
        ("QUEUE = 'x'\nif (QUEUE := choose()): pass\n", "from .settings import QUEUE", None),
        ("QUEUE = 'x'\ndel QUEUE\n", "from .settings import QUEUE", None),
        ("QUEUE = 'x'\nimport queues as QUEUE\n", "from .settings import QUEUE", None),
    ],
)
def test_constant_of_an_option(tmp_path: Path, settings: str, statement: str, route: str | None) -> None:
    tasks = f"{statement}\n{APP}@app.task(queue=QUEUE)\ndef pack(item): ...\n"
    project, gaps = imported(tmp_path, settings=settings, tasks=tasks)
    assert project.actions["pack"].get("route") == route
    assert ("tasks.py:4 queue of pack is computed: QUEUE" in gaps) == (route is None), gaps


def test_parameter_is_no_constant(tmp_path: Path) -> None:
    made = "def make(QUEUE):\n    @app.task(queue=QUEUE)\n    def pack(item): ...\n"
    project, gaps = imported(tmp_path, tasks=f"QUEUE = 'x'\n{APP}{made}")
    assert "route" not in project.actions["pack"]
    assert "tasks.py:5 queue of pack is computed: QUEUE" in gaps


@pytest.mark.parametrize(
    ("statement", "subject"),
    [
        (
            "setattr(app.conf, 'task_time_limit', 9)",
            "setattr(app.conf, 'task_time_limit', 9), which sets a setting",
        ),
        ("app.conf[name] = True", "the setting app.conf[name], with a computed name"),
        (
            "settings, other = app.conf, 1\nsettings['task_default_queue'] = 'z'",
            "the setting settings['task_default_queue']",
        ),
        ("if PROD:\n    app.conf.update(task_time_limit=5)", "the setting task_time_limit"),
        ("app.conf.update(task_default_queue=environ.get('Q', 'z'))", "the setting task_default_queue"),
        ("try:\n    app.conf.task_acks_late = True\nexcept E: ...", "the setting app.conf.task_acks_late"),
        ("app.conf.task_time_limit = int(getenv('LIMIT', '5'))", "the setting app.conf.task_time_limit"),
    ],
)
def test_setting_that_only_running_tells_is_named(tmp_path: Path, statement: str, subject: str) -> None:
    text = f"{APP}@app.task\ndef pack(item): ...\n{statement}\n"
    project, gaps = imported(tmp_path, tasks=text)
    action = project.actions["pack"]
    assert (action["timeout"], action["on_worker_loss"], action.get("route")) == (None, "fail", None)
    assert any(gap.partition(" ")[2] == subject for gap in gaps), gaps
