"""Tasks of other systems, whose objects other modules of the source make. None of them is a task of Celery."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.penstock_import.test_reviewed_changes import APP, of_application, texts

TASKS = f"{APP}@app.task\ndef weigh(): ...\n"
HUEY = "from huey import RedisHuey\nhuey = RedisHuey('x')\n"


@pytest.mark.parametrize(
    ("maker", "line", "decorator"),
    [
        (HUEY, "from depot.config.jobs import huey", "@huey.task(retries=5)"),
        (HUEY, "from depot.config.jobs import huey as queue", "@queue.task()"),
        (HUEY, "from .config.jobs import huey", "@huey.periodic_task(lambda now: True)"),
        (HUEY, "from depot.config import jobs", "@jobs.huey.task()"),
        (HUEY, "import depot.config.jobs", "@depot.config.jobs.huey.task()"),
        (HUEY, "from depot.config.jobs import *", "@huey.task()"),
        ("import huey\nqueue = huey.SqliteHuey()\n", "from depot.config.jobs import queue", "@queue.task()"),
        (
            "from huey import Huey\nclass Own(Huey): ...\nqueue = Own()\n",
            "from depot.config.jobs import queue",
            "@queue.task()",
        ),
        (HUEY + "task = huey.task\n", "from depot.config.jobs import task", "@task()"),
        (
            "from procrastinate import App\napp = App(connector=None)\n",
            "from depot.config.jobs import app",
            "@app.task(queue='x')",
        ),
        (
            "from taskiq import Broker\nbroker = Broker()\n",
            "from depot.config.jobs import broker",
            "@broker.task",
        ),
        ("from invoke import task\n", "from depot.config.jobs import task", "@task"),
    ],
)
def test_task_of_an_object_of_another_module_is_none_of_celery(
    tmp_path: Path, maker: str, line: str, decorator: str
) -> None:
    files = {
        "__init__.py": "",
        "tasks.py": TASKS,
        "config/__init__.py": "",
        "config/jobs.py": maker,
        "hooks.py": f"{line}\n{decorator}\ndef hook(url): ...\n",
    }
    project, report = of_application(tmp_path, files)
    assert list(project.actions) == ["weigh"]
    assert not any(
        "hook" in text.partition(" ")[2].partition("|")[0] and "task" in text for text in texts(report)
    ), texts(report)


def test_task_of_an_application_beside_another_system_stays(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "jobs.py": HUEY,
        "tasks.py": TASKS,
        "others.py": "from depot.jobs import huey\nfrom depot.tasks import app\n@app.task\ndef pack(): huey.flush()\n",
    }
    project, _ = of_application(tmp_path, files)
    assert sorted(project.actions) == ["pack", "weigh"]
