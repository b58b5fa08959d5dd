"""A task that may not exist, a class of applications with ways of its own, and a time that is not Celery's are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject
from penstock_import.project import Project

HEAD = "from celery import Celery\nfrom celery.schedules import crontab\napp = Celery('depot')\n"
ENTRY = "app.conf.beat_schedule = {'n': {'task': 'tasks.weigh', 'schedule': crontab(hour=3)}}\n"


def imported(folder: Path, text: str, head: str = HEAD, **files: str) -> tuple[Project, list[str]]:
    (folder / "tasks.py").write_text(head + text)
    for name, lines in files.items():
        (folder / f"{name}.py").write_text(lines)
    source = CeleryProject(folder)
    project = source.mapped()
    return project, [f"{gap.file}:{gap.line - head.count(chr(10))} {gap.what}" for gap in source.report.gaps]


TASK = "@app.task\ndef weigh(): ..."


@pytest.mark.parametrize(
    ("text", "line", "where"),
    [
        ("if PROD:\n    {}\n", 2, "where PROD"),
        ("if OLD:\n    pass\nelse:\n    {}\n", 4, "where OLD"),
        ("try:\n    {}\nexcept ImportError:\n    pass\n", 2, "within try"),
        ("try:\n    import x\nexcept ImportError:\n    {}\n", 4, "within excepthandler"),
        ("for each in (1, 2):\n    {}\n", 2, "within for"),
        ("def make():\n    {}\n", 2, "within make"),
        ("class Jobs:\n    {}\n", 2, "within Jobs"),
        ("with lock:\n    if PROD:\n        {}\n", 3, "where PROD"),
    ],
)
def test_task_that_may_not_exist_is_named(tmp_path: Path, text: str, line: int, where: str) -> None:
    spaces = next(part for part in text.split("\n") if "{}" in part).partition("{")[0]
    project, gaps = imported(tmp_path, text.format(TASK.replace("\n", f"\n{spaces}")))
    assert "weigh" in project.actions
    assert f"tasks.py:{line + 1} the task weigh, which exists {where}" in gaps, gaps


def test_two_definitions_of_a_task_are_named(tmp_path: Path) -> None:
    job = "    @app.task\n    def weigh(): ...\n"
    text = f"try:\n    import fast\n{job}except ImportError:\n{job}"
    _, gaps = imported(tmp_path, text)
    assert sum("the task weigh, which exists within" in gap for gap in gaps) == 2
    assert any("which another task has" in gap for gap in gaps)


def test_task_at_the_top_of_a_module_is_not_named(tmp_path: Path) -> None:
    _, gaps = imported(tmp_path, f"with lock:\n    pass\n{TASK}\n")
    assert not any("which exists" in gap for gap in gaps)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("def gen_task_name(self, name, module):\n        return name", "def gen_task_name(self, name, module):"),
        ("def send_task(self, *args):\n        return None", "def send_task(self, *args):"),
        ("task_cls = 'company:Late'", "task_cls = 'company:Late'"),
    ],
)  # fmt: skip
def test_part_of_a_class_of_applications_is_named(tmp_path: Path, part: str, text: str) -> None:
    head = "from celery import Celery\n"
    _, gaps = imported(tmp_path, f"class Own(Celery):\n    {part}\napp = Own('depot')\n{TASK}\n", head)
    assert f"tasks.py:2 {text} of Own, a class of applications" in gaps, gaps


@pytest.mark.parametrize(
    "binding",
    [
        "from .times import crontab",
        "from company.times import crontab",
        "from company import zoned as crontab",
        "def crontab(**fields): ...",
        "class crontab: ...",
        "crontab = zoned",
    ],
)
def test_time_that_is_not_of_celery_is_named(tmp_path: Path, binding: str) -> None:
    head = "from celery import Celery\napp = Celery('depot')\n"
    project, gaps = imported(
        tmp_path, f"{binding}\n{TASK}\n{ENTRY}", head, times="from celery.schedules import *\n"
    )
    assert not project.schedules
    assert any(
        gap.startswith("tasks.py:4 ") and "crontab is not Celery's function of this name" in gap
        for gap in gaps
    ), gaps


def test_time_of_celery_is_mapped(tmp_path: Path) -> None:
    project, _ = imported(tmp_path, f"{TASK}\n{ENTRY}")
    assert [*project.schedules] == ["n"]


MADE = "from celery import Celery\nfrom celery.schedules import crontab\n"


@pytest.mark.parametrize(
    ("code", "is_certain"),
    [
        ("if TLS:\n    app = Celery('depot', broker_use_ssl=True)\nelse:\n    app = Celery('depot')\n", True),
        (
            "if A:\n    app = Celery('a')\nelif B:\n    app = Celery('b')\nelse:\n    app = Celery('c')\n",
            True,
        ),
        ("app = Celery('depot')\nif TLS:\n    app = Celery('depot')\n", False),
        ("if TLS:\n    app = Celery('depot')\n    app = Celery('depot')\n", False),
        ("if TLS:\n    app = Celery('depot')\nelse:\n    other = Celery('depot')\n", False),
        ("app = Celery('depot')\nother = Celery('depot')\n", False),
    ],
)
def test_applications_of_two_branches_are_one(tmp_path: Path, code: str, is_certain: bool) -> None:
    zone = "app.conf.timezone = 'Asia/Tokyo'\n"
    project, gaps = imported(tmp_path, f"{code}{zone}{TASK}\n{ENTRY}", head=MADE)
    (schedule,) = project.schedules.values()
    assert (schedule.get("timezone"), schedule.get("enabled", True)) == (
        ("Asia/Tokyo", True) if is_certain else (None, False)
    )
    assert any("the zone of the schedule n is computed" in gap for gap in gaps) is not is_certain
    assert any(", one of " in gap for gap in gaps) is not is_certain


@pytest.mark.parametrize(
    ("code", "is_certain"),
    [
        ("def show(user):\n    if user:\n        timezone = user.zone\n    return timezone\n", True),
        ("def show(user):\n    timezone = 'Europe/Oslo'\n    return timezone\n", True),
        ("def show(user):\n    if user:\n        TIME_ZONE = user.zone\n", True),
        ("def show(user):\n    global timezone\n    if user:\n        timezone = user.zone\n", False),
        ("if LIVE:\n    timezone = 'Europe/Oslo'\n", False),
        ("def show(user):\n    if user:\n        app.conf.timezone = user.zone\n", False),
    ],
)
def test_local_variable_is_no_zone_of_schedules(tmp_path: Path, code: str, is_certain: bool) -> None:
    (tmp_path / "celeryconfig.py").write_text(f"from tasks import app\ntimezone = 'Asia/Tokyo'\n{code}")
    read = "app.config_from_object('celeryconfig')\n"
    project, gaps = imported(tmp_path, f"{TASK}\n{read}{ENTRY}")
    (schedule,) = project.schedules.values()
    assert (schedule.get("timezone") == "Asia/Tokyo") is is_certain
    assert any("the zone of the schedule n is computed" in gap for gap in gaps) is not is_certain
