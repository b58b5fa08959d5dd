"""Celery names a task by the path that its module is imported by, and that begins below a folder which Python searches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject
from penstock_import.project import Project

TASK = "from celery import shared_task\n\n\n@shared_task\ndef weigh(): ...\n"
APP = "from celery import Celery\n\napp = Celery('yard')\n"


def imported(folder: Path, files: dict[str, str]) -> tuple[Project, list[str], int]:
    """Return the project, the gaps with their files and lines, and the number of mapped routes."""
    for name, text in files.items():
        (folder / "depot" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "depot" / name).write_text(text)
    source = CeleryProject(folder / "depot")
    project = source.mapped()
    gaps = [f"{gap.file}:{gap.line} {gap.what}" for gap in source.report.gaps]
    return project, gaps, source.report.mapped["routes"]


def routes(*patterns: str) -> str:
    return f"app.conf.task_routes = { {pattern: {'queue': 'slow'} for pattern in patterns} }\n"


@pytest.mark.parametrize(
    ("files", "folder", "module"),
    [
        (
            {
                "server/yard/__init__.py": "",
                "server/yard/main.py": APP.replace("'yard'", "'yard', include=['yard.cranes.big']"),
                "server/yard/cranes/big.py": TASK,
            },
            "server",
            "yard.cranes.big",
        ),
        (
            {
                "server/yard/main.py": APP,
                "server/yard/web.py": "from yard.cranes.big import weigh\n",
                "server/yard/cranes/big.py": TASK,
            },
            "server",
            "yard.cranes.big",
        ),
        (
            {
                "server/yard/main.py": APP + "app.autodiscover_tasks(['yard.cranes'])\n",
                "server/yard/cranes/tasks.py": TASK,
            },
            "server",
            "yard.cranes.tasks",
        ),
        (
            {
                "server/yard/main.py": APP + "app.conf.imports = ('yard.cranes.big',)\n",
                "server/yard/cranes/__init__.py": "",
                "server/yard/cranes/big.py": TASK,
            },
            "server",
            "yard.cranes.big",
        ),
        (
            {
                "Dockerfile": "WORKDIR /server\nCMD celery -A yard.main worker\n",
                "server/yard/main.py": APP,
                "server/yard/cranes/big.py": TASK,
            },
            "server",
            "yard.cranes.big",
        ),
        (
            {
                "compose.yml": "worker:\n  command:\n    - celery\n    - --app\n    - main\n    - worker\n",
                "server/main.py": APP,
                "server/big.py": TASK,
            },
            "server",
            "big",
        ),
        ({"server/main.py": APP + "from big import weigh\n", "server/big.py": TASK}, "server", "big"),
    ],
    ids=["include", "import", "autodiscover", "package in a folder", "Dockerfile", "compose", "neighbor"],
)
def test_task_is_named_as_its_module_is_imported(
    tmp_path: Path, files: dict[str, str], folder: str, module: str
) -> None:
    """Celery itself names the task, in a process with the folder on its path."""
    app = next(name for name in files if name.endswith("main.py"))
    pattern = f"{module.partition('.')[0]}.*"
    files = files | {app: files[app] + routes(pattern)}
    project, gaps, mapped = imported(tmp_path, files)
    script = f"import {module} as module; print(module.weigh.name)"
    named = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path / "depot" / folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert any(gap.endswith(f"the code of weigh, the task {named.stdout.strip()}") for gap in gaps), gaps
    assert project.actions["weigh"]["route"] == "slow"
    assert mapped == 1


def test_name_of_each_service_begins_at_its_folder(tmp_path: Path) -> None:
    files = {
        "one/yard/main.py": APP + "from yard.cranes import weigh\n" + routes("yard.cranes.*"),
        "one/yard/cranes.py": TASK,
        "two/yard/run.py": "from yard.lifts import lift\n",
        "two/yard/lifts.py": TASK.replace("weigh", "lift"),
    }
    project, gaps, _ = imported(tmp_path, files)
    assert any("the task yard.cranes.weigh" in gap for gap in gaps), gaps
    assert any("the task yard.lifts.lift" in gap for gap in gaps), gaps
    assert project.actions["weigh"]["route"] == "slow"
    assert "route" not in project.actions["lift"]


def test_folder_that_no_import_tells_is_named(tmp_path: Path) -> None:
    files = {"server/yard/main.py": APP + routes("yard.*", "*"), "server/yard/big.py": TASK}
    project, gaps, mapped = imported(tmp_path, files)
    line = "server/yard/big.py:5 the names of the tasks of server/yard/big.py, which begin with one of"
    assert any(gap.startswith(line) and "yard.big" in gap for gap in gaps), gaps
    assert project.actions["weigh"]["route"] == "slow"
    assert any(
        "main.py:4 the route of * for weigh, although yard.* would fit its name" in gap for gap in gaps
    ), gaps
    assert mapped == 0


def test_route_that_fits_one_possible_name_is_named(tmp_path: Path) -> None:
    files = {"server/yard/main.py": APP + routes("yard.*"), "server/yard/big.py": TASK}
    project, gaps, mapped = imported(tmp_path, files)
    assert project.actions["weigh"]["route"] == "slow"
    assert any(
        "main.py:4 the route of yard.* for weigh, which fits its name yard.big.weigh and not" in gap
        for gap in gaps
    ), gaps
    assert mapped == 0


def test_module_of_another_package_tells_no_folder(tmp_path: Path) -> None:
    """`celery` in `server/yard` is not what `from celery import Celery` imports."""
    files = {
        "server/yard/celery.py": APP + "app.conf.include = ['yard.big']\n" + routes("yard.*"),
        "server/yard/big.py": TASK,
    }
    _, gaps, mapped = imported(tmp_path, files)
    assert any("the task yard.big.weigh" in gap for gap in gaps), gaps
    assert mapped == 1


def test_task_with_a_name_of_its_own_has_no_uncertain_name(tmp_path: Path) -> None:
    task = TASK.replace("@shared_task", "@shared_task(name='yard.weigh')")
    files = {"server/yard/main.py": APP + routes("yard.*"), "server/yard/big.py": task}
    _, gaps, mapped = imported(tmp_path, files)
    assert not any("the names of the tasks" in gap for gap in gaps), gaps
    assert mapped == 1
