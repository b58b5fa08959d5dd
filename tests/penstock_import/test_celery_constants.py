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
        ("app.conf.update(task_default_queue=environ['Q'])", "the setting task_default_queue"),
        ("try:\n    app.conf.task_acks_late = True\nexcept E: ...", "the setting app.conf.task_acks_late"),
        ("app.conf.task_time_limit = int(getenv('LIMIT'))", "the setting app.conf.task_time_limit"),
    ],
)
def test_setting_that_only_running_tells_is_named(tmp_path: Path, statement: str, subject: str) -> None:
    text = f"{APP}@app.task\ndef pack(item): ...\n{statement}\n"
    project, gaps = imported(tmp_path, tasks=text)
    action = project.actions["pack"]
    assert (action["timeout"], action["on_worker_loss"], action.get("route")) == (None, "fail", None)
    assert any(gap.partition(" ")[2] == subject for gap in gaps), gaps


@pytest.mark.parametrize(
    ("head", "limit"),
    [
        ("LIMIT = 5\n", 5),
        ("LIMIT = 5 * 60\n", 300),
        ("from .near import LIMIT\n", 7),
        ("from shop.near import LIMIT\n", 7),
        ("from .near import LIMIT as MOST\nLIMIT = MOST\n", None),
        ("LIMIT = 5\nLIMIT = 6\n", None),
        ("LIMIT = 5\ndef change():\n    global LIMIT\n    LIMIT = 6\n", None),
        ("from vendor import LIMIT\n", None),
    ],
)
def test_constant_of_its_own_module_counts_beside_others(
    tmp_path: Path, head: str, limit: int | None
) -> None:
    """Another module gives another value to the name."""
    tasks = f"{head}{APP}@app.task(time_limit=LIMIT)\ndef pack(item): ...\n"
    project, gaps = imported(tmp_path, near="LIMIT = 7\n", tasks=tasks)
    assert project.actions["pack"]["timeout"] == limit
    assert any("time_limit of pack is computed" in gap for gap in gaps) == (limit is None)


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("class Names:\n    PACK = 'cargo.pack'\n", "Names.PACK"),
        ("PACK = 'cargo.pack'\n", "PACK"),
        ("from .names import Names\n", "Names.PACK"),
    ],
)
def test_name_of_task_may_be_a_constant(tmp_path: Path, head: str, name: str) -> None:
    beat = f"app.conf.beat_schedule = {{'often': {{'task': {name}, 'schedule': 5}}}}\n"
    tasks = f"{head}{APP}@app.task(name={name})\ndef pack(): ...\n{beat}"
    names = {"names": "class Names:\n    PACK = 'cargo.pack'\n"} if "import Names" in head else {}
    project, gaps = imported(tmp_path, tasks=tasks, **names)
    assert list(project.actions) == ["pack"]
    assert project.schedules == {"often": {"action": "shop.pack", "every": 5}}
    assert not any("computed" in gap for gap in gaps)


def test_task_of_schedule_may_be_one_with_a_computed_name(tmp_path: Path) -> None:
    beat = "app.conf.beat_schedule = {'often': {'task': 'cargo.pack', 'schedule': 5}}\n"
    tasks = f"{APP}@app.task(name=name())\ndef pack(): ...\n{beat}"
    (tmp_path / "tasks.py").write_text(tasks)
    source = CeleryProject(tmp_path / "tasks.py")
    source.mapped()
    (hint,) = [gap.by_hand for gap in source.report.gaps if "is not in the imported files" in gap.what]
    assert hint.endswith("It may be a task whose name is computed.")


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("from shop.loc import A as LIMIT\n", 9),
        ("from .loc import A as LIMIT\n", 9),
        ("LIMIT = 5\nfrom shop.loc import *\n", None),
        ("LIMIT = 5\nfrom vendor.loc import *\n", None),
        ("from shop.loc import *\nLIMIT = 5\n", 5),
        ("LIMIT = 5\nfrom shop.others import *\n", 5),
    ],
)
def test_constant_is_that_of_the_import(tmp_path: Path, text: str, limit: int | None) -> None:
    tasks = f"{text}{APP}@app.task(time_limit=LIMIT)\ndef pack(item): ...\n"
    loc, apart = "A = 9\nLIMIT = 9\n", "LIMIT = 3\n"
    project, gaps = imported(
        tmp_path,
        __init__="",
        tasks=tasks,
        loc=loc if "*" in text else "A = 9\n",
        others="B = 1\n",
        apart=apart,
    )
    assert project.actions["pack"]["timeout"] == limit
    assert any("time_limit of pack is computed: LIMIT" in gap for gap in gaps) is (limit is None), gaps


def test_queue_and_time_of_a_renamed_import_are_those_of_its_module(tmp_path: Path) -> None:
    tasks = (
        f"from shop.loc import A as Q, B as OFTEN\n{APP}@app.task(queue=Q)\ndef pack(item): ...\n"
        "app.conf.beat_schedule = {'often': {'task': 'shop.tasks.pack', 'schedule': OFTEN}}\n"
    )
    project, _ = imported(
        tmp_path, __init__="", tasks=tasks, loc="A = 'slow'\nB = 60.0\n", apart="Q = 'fast'\nOFTEN = 9.0\n"
    )
    assert project.actions["pack"]["route"] == "slow"
    assert project.schedules["often"]["every"] == 60.0


@pytest.mark.parametrize(
    ("statement", "time", "is_mapped"),
    [
        ("from shop.loc import Times", "Times.crontab(minute=5)", False),
        ("from shop import loc", "loc.timedelta(minutes=5)", False),
        ("class Times:\n    crontab = timedelta = lambda **words: 9", "Times.timedelta(minutes=5)", False),
        ("import crontab as tabs", "tabs.crontab(minute=5)", False),
        ("from shop import loc", "loc.crontab.from_string('5 * * * *')", False),
        ("from shop.loc import OFTEN", "OFTEN", False),
        ("from shop.loc import *", "times().timedelta(minutes=5)", False),
        ("import celery.schedules", "celery.schedules.crontab(minute=5)", True),
        ("from celery import schedules as when", "when.crontab(minute=5)", True),
        ("import datetime as dt", "dt.timedelta(minutes=5)", True),
        ("from django.utils import timezone", "timezone.timedelta(minutes=5)", True),
        ("from celery.schedules import crontab as tab", "tab.from_string('5 * * * *')", True),
    ],
)
def test_time_of_another_module_is_not_that_of_celery(
    tmp_path: Path, statement: str, time: str, is_mapped: bool
) -> None:
    tasks = (
        f"{statement}\n{APP}@app.task\ndef pack(item): ...\n"
        f"app.conf.beat_schedule = {{'often': {{'task': 'shop.tasks.pack', 'schedule': {time}}}}}\n"
    )
    loc = "from vendor import clock\nOFTEN = clock.crontab(minute=5)\n"
    project, gaps = imported(tmp_path, __init__="", tasks=tasks, loc=loc)
    assert ("often" in project.schedules) is is_mapped, gaps
    assert any("the schedule often: " in gap for gap in gaps) is not is_mapped
