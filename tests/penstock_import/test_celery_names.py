"""Celery names a task by the module that the application imports. Schedules and routes find the task by this name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject
from penstock_import.project import Project

TASK = "from celery import shared_task\n\n\n@shared_task\ndef weigh(): ...\n"


def imported(folder: Path, files: dict[str, str]) -> tuple[Project, list[str]]:
    for name, text in files.items():
        (folder / "depot" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "depot" / name).write_text(text)
    source = CeleryProject(folder / "depot")
    project = source.mapped()
    return project, [f"{gap.file}:{gap.line} {gap.what}" for gap in source.report.gaps]


def scheduled(*tasks: str) -> str:
    entries = ", ".join(f"'{task}': {{'task': '{task}', 'schedule': 5}}" for task in tasks)
    return f"CELERY_BEAT_SCHEDULE = {{{entries}}}\n"


@pytest.mark.parametrize(
    ("files", "folder", "module"),
    [
        ({"src/yard/__init__.py": "", "src/yard/tasks.py": TASK}, "src", "yard.tasks"),
        (
            {
                "manage.py": "import sys\nsys.path.insert(0, os.path.join(BASE, 'apps'))\n",
                "apps/yard/tasks.py": TASK,
            },
            "apps",
            "yard.tasks",
        ),
        (
            {"conf.py": "sys.path.append(str(BASE / 'web' / 'apps'))\n", "web/apps/tasks.py": TASK},
            "web/apps",
            "tasks",
        ),
        (
            {
                "pyproject.toml": "[tool.setuptools.packages.find]\nwhere = ['lib']\n",
                "lib/yard/tasks.py": TASK,
            },
            "lib",
            "yard.tasks",
        ),
        (
            {
                "conf.py": "APPS = os.path.join(BASE, 'apps')\n",
                "run.py": "import sys\nimport conf\nsys.path.append(conf.APPS)\n",
                "apps/yard/tasks.py": TASK,
            },
            "apps",
            "yard.tasks",
        ),
        ({"setup.py": "setup(package_dir={'': 'lib'})\n", "lib/yard/tasks.py": TASK}, "lib", "yard.tasks"),
        ({"pyproject.toml": "", "yard/__init__.py": "", "yard/crates/__init__.py": TASK}, ".", "yard.crates"),
    ],
    ids=[
        "package",
        "path of manage.py",
        "path of two parts",
        "pyproject",
        "path of a name",
        "setup.py",
        "package itself",
    ],
)
def test_task_has_the_name_that_celery_gives_it(
    tmp_path: Path, files: dict[str, str], folder: str, module: str
) -> None:
    """Celery itself names the task, in a process with the folder on its path."""
    project, gaps = imported(tmp_path, files | {"settings.py": scheduled(f"{module}.weigh")})
    script = f"import {module} as module; print(module.weigh.name)"
    place = tmp_path / "depot" / folder
    named = subprocess.run(
        [sys.executable, "-c", script], cwd=place, capture_output=True, text=True, check=True
    )
    assert named.stdout.strip() == f"{module}.weigh"
    assert [entry["action"] for entry in project.schedules.values()] == ["depot.weigh"]
    assert any(f"the code of weigh, the task {named.stdout.strip()}" in gap for gap in gaps)


def test_schedule_of_shorter_name_is_in_no_file(tmp_path: Path) -> None:
    """No folder on the path has the module `tasks`, so that beat would name a task which no worker knows."""
    files = {"src/yard/__init__.py": "", "src/yard/tasks.py": TASK, "settings.py": scheduled("tasks.weigh")}
    project, gaps = imported(tmp_path, files)
    assert project.schedules["tasks_weigh"]["action"] == "depot.tasks_weigh"
    assert "settings.py:1 the task tasks.weigh is not in the imported files" in gaps


def test_route_that_depends_on_the_name_is_named(tmp_path: Path) -> None:
    routes = "CELERY_TASK_ROUTES = {'yard.*': {'queue': 'slow'}, 'apps.*': {'queue': 'fast'}}\n"
    path = "sys.path.insert(0, 'apps')\n"
    project, gaps = imported(tmp_path, {"apps/yard/tasks.py": TASK, "settings.py": routes, "manage.py": path})
    assert project.actions["weigh"]["route"] == "slow"
    assert any("for weigh, although apps.* would fit its name apps.yard.tasks.weigh" in gap for gap in gaps)


def test_second_task_of_a_name_is_named(tmp_path: Path) -> None:
    second = "from celery import shared_task\n\n\n@shared_task(name='depot.yard.weigh')\ndef lift(): ...\n"
    project, gaps = imported(
        tmp_path, {"yard.py": TASK, "zoo.py": second, "settings.py": scheduled("depot.yard.weigh")}
    )
    assert "zoo.py:5 the name depot.yard.weigh of lift, which another task has" in gaps
    assert project.schedules["depot_yard_weigh"]["action"] == "depot.weigh"


def test_folder_with_manage_py_is_no_package_unless_it_is_imported(tmp_path: Path) -> None:
    files = {
        "src/yard/__init__.py": "",
        "src/yard/manage.py": "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'config.settings')\n",
        "src/yard/config/__init__.py": "",
        "src/yard/config/settings.py": scheduled("cranes.tasks.weigh"),
        "src/yard/cranes/__init__.py": "",
        "src/yard/cranes/tasks.py": TASK,
    }
    project, gaps = imported(tmp_path / "a", files)
    assert [schedule["action"] for schedule in project.schedules.values()] == ["depot.weigh"]
    assert any("the task cranes.tasks.weigh" in gap for gap in gaps), gaps
    project, gaps = imported(tmp_path / "b", files | {"src/run.py": "from yard.cranes import tasks\n"})
    assert any("the task yard.cranes.tasks.weigh" in gap for gap in gaps), gaps


def test_imported_folder_with_manage_py_is_no_package(tmp_path: Path) -> None:
    files = {"__init__.py": "", "manage.py": "", "cranes/__init__.py": "", "cranes/tasks.py": TASK}
    _, gaps = imported(tmp_path, files)
    assert any("the task cranes.tasks.weigh" in gap for gap in gaps), gaps
