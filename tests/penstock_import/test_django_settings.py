"""A setting of Django has the value that the modules of settings in the sources give it, or a gap says why it has none."""

from __future__ import annotations

import os
import random
import sys
import types
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from celery.schedules import crontab as celerys_crontab

from penstock_import.celery import CeleryProject
from penstock_import.celery_times import crontab_field

CASES = int(os.environ.get("PENSTOCK_TEST_IMPORT_CASES", "180"))
"""The number of random inputs that are compared."""
HEAD = (
    "INSTALLED_APPS = []\nimport os\nfrom datetime import timedelta\nfrom celery.schedules import crontab\n"
)
TASKS = """\
from datetime import timedelta
from celery import Celery
from django.conf import settings
app = Celery('depot', set_as_current=False)
@app.task({options})
def weigh(): ...
app.conf.beat_schedule = {{'n': {{'task': 'depot.tasks.weigh', 'schedule': {when}}}}}
"""


def imported(folder: Path, files: dict[str, str]) -> tuple[CeleryProject, list[str]]:
    for name, text in {"depot/__init__.py": "", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    source = CeleryProject(folder)
    source.mapped()
    return source, [f"{gap.file}:{gap.line} {gap.what}" for gap in source.report.gaps]


def schedule_of(
    folder: Path, when: str, options: str = "", **modules: str
) -> tuple[dict[str, Any] | None, list[str]]:
    files = {f"depot/{name}.py": HEAD + text for name, text in modules.items()}
    source, gaps = imported(folder, {**files, "depot/tasks.py": TASKS.format(when=when, options=options)})
    return source.project.schedules.get("n"), gaps


@pytest.mark.parametrize(
    ("given", "when", "time"),
    [
        ("EVERY = 30\n", "settings.EVERY", {"every": 30}),
        ("EVERY = 2 * 60 - 30 / 3\n", "settings.EVERY", {"every": 110}),
        ("MINUTE = 60\nEVERY = MINUTE * 5\n", "settings.EVERY", {"every": 300}),
        ("EVERY = timedelta(hours=2)\n", "settings.EVERY", {"every": 7200}),
        ("EVERY = timedelta(hours=2).total_seconds()\n", "settings.EVERY", {"every": 7200}),
        ("HOURS = 2\nEVERY = timedelta(hours=HOURS)\n", "settings.EVERY", {"every": 7200}),
        ("EVERY = crontab(minute=5)\n", "settings.EVERY", {"cron": "5 * * * *"}),
        ("EVERY = 2\n", "timedelta(minutes=min(5, settings.EVERY))", {"every": 120}),
        ("EVERY = 2\n", "timedelta(minutes=settings.EVERY + 1)", {"every": 180}),
        ("EVERY = 2\n", "getattr(settings, 'EVERY', 9)", {"every": 2}),
        ("EVERY = 2\nEVERY = 3\n", "settings.EVERY", {"every": 3}),
        ("EVERY: int = 2\n", "settings.EVERY", {"every": 2}),
    ],
)
def test_setting_in_the_sources_has_its_value(
    tmp_path: Path, given: str, when: str, time: dict[str, Any]
) -> None:
    schedule, gaps = schedule_of(tmp_path, when, settings=given)
    assert schedule == {"action": schedule and schedule["action"], **time}
    assert not any("settings." in gap or "the schedule n" in gap for gap in gaps), gaps


@pytest.mark.parametrize(
    "names",
    [
        "from django.conf import settings as s\nEVERY = s.EVERY",
        "import django.conf\nEVERY = django.conf.settings.EVERY",
        "from django import conf\nEVERY = conf.settings.EVERY",
    ],
)
def test_setting_has_its_value_by_each_name(tmp_path: Path, names: str) -> None:
    tasks = TASKS.format(when="EVERY", options="").replace("from django.conf import settings", names)
    source, _ = imported(tmp_path, {"depot/settings.py": HEAD + "EVERY = 7\n", "depot/tasks.py": tasks})
    assert source.project.schedules["n"]["every"] == 7


@pytest.mark.parametrize(
    ("given", "default"),
    [
        ("int(os.getenv('DEPOT_EVERY', 5))", 5),
        ("int(os.environ.get('DEPOT_EVERY', '5'))", 5),
        ("int(os.getenv('DEPOT_EVERY', '') or 360)", 360),
        ("int(os.getenv('DEPOT_EVERY') or 360)", 360),
        ("60 * int(os.getenv('DEPOT_EVERY', 5))", 300),
        ("timedelta(minutes=int(os.getenv('DEPOT_EVERY', 5)))", 300),
        ("env.int('DEPOT_EVERY', default=5)", 5),
        ("env('DEPOT_EVERY')", 8),
        ("config('DEPOT_EVERY', default='5', cast=int)", 5),
        ("config('DEPOT_EVERY', '5', int)", 5),
    ],
)
def test_setting_of_a_variable_has_its_default(tmp_path: Path, given: str, default: int) -> None:
    head = "import environ\nfrom decouple import config\nenv = environ.Env(DEPOT_EVERY=(int, 8))\n"
    schedule, gaps = schedule_of(tmp_path, "settings.EVERY", settings=f"{head}EVERY = {given}\n")
    assert schedule is not None, gaps
    assert schedule["every"] == default
    assert sum("the variable DEPOT_EVERY" in gap and "with its default" in gap for gap in gaps) == 1


@pytest.mark.parametrize(
    "given", ["config('X', default='5', cast=lambda text: int(text) * 60)", "config('X', '5', Csv())"]
)
def test_variable_with_an_own_cast_is_computed(tmp_path: Path, given: str) -> None:
    head = "from decouple import Csv, config\n"
    schedule, gaps = schedule_of(tmp_path, f"crontab(minute={given})", settings="")
    assert schedule is None
    schedule, gaps = schedule_of(
        tmp_path, "timedelta(minutes=settings.EVERY)", settings=f"{head}EVERY = {given}\n"
    )
    assert schedule is None, gaps


@pytest.mark.parametrize(
    ("modules", "reason"),
    [
        (
            {"base": "EVERY = 5\n", "prod": "from .base import *\nEVERY = 7\n"},
            "settings.EVERY, which is 5 at depot/base.py:5 and 7 at depot/prod.py:6; only running the code would tell "
            "which value counts",
        ),
        (
            {"base": "if os.name:\n    EVERY = 5\nelse:\n    EVERY = 7\n"},
            "settings.EVERY, which depot/base.py:6 gives under a condition",
        ),
        (
            {"base": "EVERY = 5\nif os.name:\n    EVERY = 7\n"},
            "which depot/base.py:7 gives under a condition",
        ),
        ({"base": "EVERY = 5\nEVERY += 7\n"}, "which depot/base.py:6 gives in another way"),
        ({"base": "class Prod:\n    EVERY = 5\n"}, "which depot/base.py:6 gives in a class"),
        ({"base": "EVERY = load()\n"}, "which depot/base.py:5 computes: load()"),
        ({"base": "EVERY = [5][0]\n"}, "which depot/base.py:5 computes: [5][0]"),
        ({"base": "FEW = 5\nif os.name:\n    FEW = 6\nEVERY = FEW\n"}, "which depot/base.py:8 computes: FEW"),
        ({"base": "EVERY = os.environ['EVERY']\n"}, "which depot/base.py:5 computes"),
        ({"base": "OTHER = 5\n"}, "settings.EVERY, which no module of settings in the sources gives"),
        (
            {"base": "EVERY = 5\nfrom vendor.settings import *\n"},
            "which from vendor.settings import * in depot/base.py:6 may change",
        ),
        (
            {"base": "EVERY = 5\n", "app": "from django.conf import settings\nsettings.EVERY = 6\n"},
            "settings.EVERY, which depot/base.py:5 sets and other code changes",
        ),
    ],
)
def test_setting_without_a_certain_value_is_named(
    tmp_path: Path, modules: dict[str, str], reason: str
) -> None:
    schedule, gaps = schedule_of(tmp_path, "settings.EVERY", **modules)
    assert schedule is None
    assert any(
        gap.startswith("depot/tasks.py:7 the schedule n: ") and reason in " ".join(gap.split())
        for gap in gaps
    ), gaps


def test_equal_values_of_several_modules_count(tmp_path: Path) -> None:
    schedule, _ = schedule_of(
        tmp_path, "settings.EVERY", base="EVERY = 5\n", prod="from .base import *\nEVERY = 5\n"
    )
    assert schedule is not None
    assert schedule["every"] == 5


def test_module_of_an_application_gives_no_setting(tmp_path: Path) -> None:
    """Only the modules that Django reads count, and not each one named `settings`."""
    files = {
        "depot/settings.py": HEAD + "EVERY = 5\n",
        "orders/settings.py": "EVERY = 7\nOWN = 9\n",
        "depot/tasks.py": TASKS.format(when="settings.EVERY", options="time_limit=settings.OWN"),
    }
    source, gaps = imported(tmp_path, files)
    assert source.project.schedules["n"]["every"] == 5
    assert source.project.actions["weigh"]["timeout"] is None
    assert any("time_limit of weigh is computed: settings.OWN, which no module" in gap for gap in gaps), gaps


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("try:\n    from .local import *\nexcept ImportError:\n    pass\n", "from .local import *"),
        ("for name, value in os.environ.items():\n    globals()[name] = value\n", "for name, value in os.environ.items():"),
        ("exec(open('more.py').read())\n", "exec(open('more.py').read())"),
        ("import dynaconf\nown = dynaconf.DjangoDynaconf(__name__)\n", "own = dynaconf.DjangoDynaconf(__name__)"),
        ("import sys\nsys.modules[__name__].__dict__.update(more)\n", "sys.modules[__name__].__dict__.update(more)"),
        ("import sys\nfor name in os.environ:\n    setattr(sys.modules[__name__], name, 1)\n", "for name in os.environ:"),
        ("import sys\nsys._getframe().f_globals.update(more)\n", "sys._getframe().f_globals.update(more)"),
    ],
)  # fmt: skip
def test_statement_that_may_give_another_value_is_named(tmp_path: Path, statement: str, text: str) -> None:
    given = f"OFTEN = EVERY = 5\n{statement}OFTEN = 9\n"
    schedule, gaps = schedule_of(
        tmp_path, "settings.EVERY", "time_limit=settings.OFTEN", settings=given.replace("OFTEN = E", "E", 1)
    )
    assert schedule is not None
    assert any(f"{text}, which may change EVERY" in gap for gap in gaps), gaps
    assert not any("OFTEN" in gap for gap in gaps)


@pytest.mark.parametrize(
    "statement", ["import logging\nlog = logging.getLogger(__name__)\n", "print(__name__)\n"]
)
def test_name_of_a_module_of_settings_is_harmless(tmp_path: Path, statement: str) -> None:
    schedule, gaps = schedule_of(tmp_path, "settings.EVERY", settings=f"EVERY = 5\n{statement}")
    assert schedule is not None
    assert not any("other values" in gap or "any setting" in gap for gap in gaps), gaps


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            "setattr(settings, 'EVERY', 7)",
            "settings.EVERY, which depot/settings.py:5 sets and other code changes",
        ),
        ("setattr(settings, name, 7)", "setattr(settings, name, 7), which may change EVERY"),
        ("settings.configure(**more)", "settings.configure(**more), which may change EVERY"),
    ],
)
def test_change_of_a_setting_by_other_code_is_named(tmp_path: Path, change: str, text: str) -> None:
    more = f"from django.conf import settings\ndef ready(name, more):\n    {change}\n"
    files = {"depot/apps.py": more, "depot/settings.py": HEAD + "EVERY = 5\n"}
    _, gaps = imported(tmp_path, {**files, "depot/tasks.py": TASKS.format(when="settings.EVERY", options="")})
    assert any(text in gap for gap in gaps), gaps


def test_default_of_a_setting_that_no_module_gives_is_named(tmp_path: Path) -> None:
    schedule, gaps = schedule_of(
        tmp_path, "getattr(settings, 'EVERY', timedelta(days=1))", settings="OTHER = 1\n"
    )
    assert schedule is not None
    assert schedule["every"] == 86400
    text = "the setting EVERY of Django, which no module of settings gives, imported with its default timedelta(days=1)"
    assert f"depot/tasks.py:7 {text}" in gaps


def test_default_beside_that_of_django_never_counts(tmp_path: Path) -> None:
    schedule, gaps = schedule_of(tmp_path, "getattr(settings, 'EMAIL_PORT', 9)", settings="OTHER = 1\n")
    assert schedule is None, gaps


def test_options_and_zone_of_settings_are_mapped(tmp_path: Path) -> None:
    given = "SLOW = 'slow'\nLIMIT = 60\nTRIES = int(os.getenv('TRIES', 4))\nZONE = 'Europe/Paris'\n"
    options = (
        "queue=settings.SLOW, time_limit=settings.LIMIT, autoretry_for=(OSError,), max_retries=settings.TRIES"
    )
    tasks = TASKS.format(when="crontab(hour=3, minute=0)", options=options)
    tasks = f"from celery.schedules import crontab\n{tasks}app.conf.timezone = settings.ZONE\n"
    source, gaps = imported(tmp_path, {"depot/settings.py": HEAD + given, "depot/tasks.py": tasks})
    action = source.project.actions["weigh"]
    assert (action["route"], action["timeout"], action["retry"]["max_attempts"]) == ("slow", 60, 5)
    assert source.project.schedules["n"]["timezone"] == "Europe/Paris"
    assert source.report.mapped["tasks"] == 1
    assert any(
        "the variable TRIES of max_retries of the task weigh, imported with its default 4" in gap
        for gap in gaps
    )


def test_text_that_may_be_a_secret_is_not_copied(tmp_path: Path) -> None:
    given = "BROKER_URL = 'amqp://depot:hunter2@host'\nAPI_TOKEN = 'hunter2'\n"
    tasks = TASKS.format(when="5", options="queue=settings.API_TOKEN")
    tasks = tasks.replace("'depot', set", "'depot', broker=settings.BROKER_URL, set")
    _, gaps = imported(tmp_path, {"depot/settings.py": HEAD + given, "depot/tasks.py": tasks})
    assert not any("hunter2" in gap for gap in gaps)
    assert any(
        "queue of weigh is computed: settings.API_TOKEN, which depot/settings.py:6 gives" in gap
        for gap in gaps
    ), gaps


def test_receiver_may_name_its_time(tmp_path: Path) -> None:
    tasks = (
        "from datetime import timedelta\nfrom celery import Celery\nfrom django.conf import settings\n"
        "app = Celery('depot')\n@app.task\ndef weigh(): ...\n@app.on_after_finalize.connect\n"
        "def setup(sender, **words):\n    every = timedelta(minutes=settings.EVERY)\n"
        "    sender.add_periodic_task(every, weigh.s(), name='n')\n"
    )
    source, gaps = imported(tmp_path, {"depot/settings.py": HEAD + "EVERY = 5\n", "depot/tasks.py": tasks})
    assert source.project.schedules["n"]["every"] == 300, gaps


# -- beside Celery ----------------------------------------------------------------------------------------------------


def random_value(rng: random.Random, names: list[str]) -> str:
    """Return an expression of a settings module, which may name others."""
    number = rng.choice([str(rng.randint(1, 50)), *names]) if names else str(rng.randint(1, 50))
    variable = f"DEPOT_{rng.randint(1, 999)}"
    return rng.choice(
        [
            number,
            f"{number} * {rng.randint(2, 9)} + {rng.randint(1, 9)}",
            f"({number} + 30) / 2",
            f"int(os.getenv('{variable}', {rng.randint(1, 50)}))",
            f"int(os.environ.get('{variable}', '') or {rng.randint(1, 50)})",
            f"max({number}, {rng.randint(1, 50)})",
            f"timedelta(minutes={rng.randint(1, 50)}).total_seconds()",
        ]
    )


def random_time(rng: random.Random, names: list[str]) -> str:
    """Return an expression of a time in a module of tasks."""
    name = f"settings.{rng.choice(names)}"
    return rng.choice(
        [
            name,
            f"timedelta(seconds={name})",
            f"getattr(settings, '{rng.choice(names)}', 7)",
            f"getattr(settings, 'GIVEN_NOWHERE', {rng.randint(1, 90)})",
            f"{name} * 60",
            f"min({name}, 40)",
            "settings.TAB",
        ]
    )


def random_settings(rng: random.Random) -> dict[str, str]:
    """Return modules of settings. The last one is that which Django reads."""
    names: list[str] = []
    lines: list[str] = []
    for name in ("A", "B", "C", "D"):
        lines.append(f"{name} = {random_value(rng, names)}")
        names.append(name)
    fields = [
        f"{field}={rng.randint(1, 6)}" for field in ("minute", "hour", "day_of_week") if rng.random() < 0.7
    ]
    positions = rng.choice(["0, '*', '*', '*', '*'", "5, 3, '*'", ", ".join(fields)])
    lines.append(f"TAB = crontab({positions})")
    files = {"base": HEAD + "\n".join(lines) + "\n"}
    if rng.random() < 0.6:
        later = rng.choice(["A = 77", "B = B", "if not os.environ.get('DEPOT_NONE'):\n    C = 88", "NEW = 3"])
        files["prod"] = f"from depot.base import *\nimport os\n{later}\n"
    return files


def run_by_celery(folder: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the time that Celery has for the schedule, where no variable is set."""
    own: dict[str, Any] = {}
    for text in files.values():
        monkeypatch.setitem(sys.modules, "depot", types.ModuleType("depot"))
        module = types.ModuleType("depot.base")
        vars(module).update(own)
        monkeypatch.setitem(sys.modules, "depot.base", module)
        exec(text, own)
    conf = types.ModuleType("django.conf")
    conf.settings = types.SimpleNamespace(**{name: own[name] for name in own if name.isupper()})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "django", types.ModuleType("django"))
    monkeypatch.setitem(sys.modules, "django.conf", conf)
    names: dict[str, Any] = {"__name__": "depot.tasks"}
    exec((folder / "depot" / "tasks.py").read_text(), names)
    return names["app"].conf.beat_schedule["n"]["schedule"]


@pytest.mark.parametrize("seed", range(3))
def test_random_settings_have_the_times_of_celery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    compared = 0
    for number in range(CASES // 3):
        folder = tmp_path / str(number)
        files = random_settings(rng)
        when = random_time(rng, ["A", "B", "C", "D"])
        own = {f"depot/{name}.py": text for name, text in files.items()}
        source, gaps = imported(folder, {**own, "depot/tasks.py": TASKS.format(when=when, options="")})
        ours = source.project.schedules.get("n")
        theirs = run_by_celery(folder, files, monkeypatch)
        if ours is None:
            assert any("the schedule n: " in gap for gap in gaps), (when, files)
            continue
        compared += 1
        if isinstance(theirs, celerys_crontab):
            minute, hour, _, _, weekday = ours["cron"].split()
            assert (minute, hour) == tuple(
                "*" if len(part) in (60, 24) else ",".join(map(str, sorted(part)))
                for part in (theirs.minute, theirs.hour)
            ), (when, files)
            assert crontab_field("day_of_week", weekday) == theirs.day_of_week
        else:
            seconds = theirs.total_seconds() if isinstance(theirs, timedelta) else theirs
            assert ours["every"] == pytest.approx(seconds), (when, files)
    assert compared > CASES // 6


@pytest.mark.parametrize(
    "use",
    [
        "class Crate(Model):\n    owner = ForeignKey(settings.OWNER)\n",
        "WIDTH = getattr(settings, 'WIDTH', 12)\n",
        "pen = open(settings.OWNER)\n",
    ],
)
def test_setting_that_no_task_reads_has_no_line(tmp_path: Path, use: str) -> None:
    head = "from django.conf import settings\nfrom django.db.models import ForeignKey, Model\n"
    given = HEAD + "OWNER = 'people'\nload_settings(globals())\nEVERY = 40\n"
    files = {
        "depot/settings.py": given,
        "depot/shelves.py": head + use,
        "depot/models.py": head.replace("\n", "\nimport celery\n", 1) + use if "class" in use else "",
        "depot/tasks.py": TASKS.format(when="settings.EVERY", options=""),
    }
    source, gaps = imported(tmp_path, files)
    assert source.project.schedules["n"]["every"] == 40
    assert not any("OWNER" in gap or "WIDTH" in gap for gap in gaps), gaps


def test_constant_of_a_module_without_celery_has_the_value_of_its_setting(tmp_path: Path) -> None:
    files = {
        "depot/settings.py": HEAD + "EVERY = 30\n",
        "depot/times.py": "from django.conf import settings\nPAUSE = settings.EVERY\n",
        "depot/tasks.py": "from depot.times import PAUSE\n" + TASKS.format(when="PAUSE", options=""),
    }
    source, _ = imported(tmp_path, files)
    assert source.project.schedules["n"]["every"] == 30
