"""The sources of the settings of an application, and which of several places of a setting Celery takes."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from celery import Celery
from celery.app.defaults import _TO_OLD_KEY
from celery.app.defaults import DEFAULTS as DEFAULT_SETTINGS

from penstock_import.celery_setting_names import MAPPED, advice_of
from tests.penstock_import.test_reviewed_changes import of_application, texts

APP = "from celery import Celery\napp = Celery('depot')\n"
TASKS = "from celery import shared_task\n@shared_task\ndef weigh(): ...\n@shared_task\ndef pack(): ...\n"
SETTINGS = (
    "from celery.schedules import crontab\ntask_time_limit = 5\ntask_acks_late = True\ntimezone = 'Asia/Tokyo'\n"
    "beat_schedule = {'often': {'task': 'depot.tasks.weigh', 'schedule': crontab(hour=3, minute=0)}}\n"
)
UNKNOWN = "not proven to be one of the modules"


def of_settings(
    folder: Path, code: str, settings: str = SETTINGS
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return the action `weigh`, the schedule `often` and all lines for an application that code configures."""
    files = {"__init__.py": "", "tasks.py": TASKS, "cfg.py": settings, "celery.py": APP + code}
    project, report = of_application(folder, files)
    return project.actions["weigh"], project.schedules.get("often", {}), "\n".join(texts(report))


@pytest.mark.parametrize(
    "code",
    [
        "def start(app, config):\n    app.config_from_object(config)\n",
        "from depot.pick import pick\napp.config_from_object(pick())\n",
        "from depot.pick import CHOSEN\napp.config_from_object(CHOSEN)\n",
        "import os\napp.config_from_object(os.environ['CFG'])\n",
        "import importlib, sys\napp.config_from_object(importlib.import_module(sys.argv[1]))\n",
        "app.config_from_envvar('CFG')\n",
        "app.config_from_object('elsewhere.settings')\n",
        "load = app.config_from_object\nfrom depot import cfg\nload(cfg)\n",
        "from depot import cfg\ndef start(cfg):\n    app.config_from_object(cfg)\n",
    ],
)
def test_source_of_settings_that_only_running_would_tell_is_a_gap(tmp_path: Path, code: str) -> None:
    action, schedule, lines = of_settings(tmp_path, code)
    assert UNKNOWN in lines
    assert (action["timeout"], action["on_worker_loss"]) == (5, "rerun")
    assert schedule["enabled"] is False
    assert "the setting timezone" in lines


@pytest.mark.parametrize(
    ("code", "variable"),
    [
        ("from depot import cfg\napp.config_from_object(cfg)\n", ""),
        ("import depot.cfg\napp.config_from_object(depot.cfg)\n", ""),
        ("CFG = 'depot.cfg'\napp.config_from_object(CFG)\n", ""),
        ("import importlib\napp.config_from_object(importlib.import_module('depot.cfg'))\n", ""),
        ("import os\napp.config_from_object(os.environ.get('CFG', 'depot.cfg'))\n", "CFG"),
        ("import os\nNAME = os.getenv('CFG', 'depot.cfg')\napp.config_from_object(NAME)\n", "CFG"),
    ],
)
def test_source_of_settings_that_stands_there_is_read(tmp_path: Path, code: str, variable: str) -> None:
    action, schedule, lines = of_settings(tmp_path, code)
    assert UNKNOWN not in lines
    assert (action["timeout"], action["on_worker_loss"]) == (5, "rerun")
    assert schedule == {"action": "depot.weigh", "cron": "0 3 * * *", "timezone": "Asia/Tokyo"}
    assert ("the variable CFG of the settings" in lines) is bool(variable)


@pytest.mark.parametrize(
    "code",
    [
        "app.conf.enable_utc = False\n",
        "app.conf.update(enable_utc=False)\n",
        "app.conf.enable_utc = LOCAL\n",
        "if LOCAL:\n    app.conf.enable_utc = False\n",
        "CELERY_ENABLE_UTC = False\n",
    ],
)
def test_schedule_in_the_zone_of_a_machine_is_disabled(tmp_path: Path, code: str) -> None:
    settings = SETTINGS.replace("timezone = 'Asia/Tokyo'\n", "")
    read = "from depot import cfg\napp.config_from_object(cfg)\n"
    _, schedule, lines = of_settings(tmp_path / "local", read + code, settings)
    assert schedule["enabled"] is False
    assert "the zone of the schedule often" in lines
    _, schedule, _ = of_settings(tmp_path / "zone", read + code)
    assert schedule["timezone"] == "Asia/Tokyo"
    assert "enabled" not in schedule
    _, schedule, _ = of_settings(tmp_path / "utc", read + "app.conf.enable_utc = True\n", settings)
    assert "enabled" not in schedule


PLACES = {
    "before": ("app.conf.{name} = {value}\n", ""),
    "after": ("", "app.conf.{name} = {value}\n"),
    "item": ("", "app.conf['{name}'] = {value}\n"),
    "update": ("", "app.conf.update({name}={value})\n"),
    "dict": ("app.conf.update({{'{name}': {value}}})\n", ""),
    "defaults": ("app.add_defaults({{'{name}': {value}}})\n", ""),
    "receiver": (
        "",
        "@app.on_after_configure.connect(weak=False)\ndef set_up(sender, **rest):\n    sender.conf.{name} = {value}\n",
    ),
}
"""Statements before and after `config_from_object`."""
VALUES: dict[str, tuple[str, str]] = {
    "beat_schedule": (
        "{'one': {'task': 'depot.tasks.weigh', 'schedule': 60}}",
        "{'two': {'task': 'depot.tasks.weigh', 'schedule': 60}}",
    ),
    "task_routes": ("{'depot.tasks.weigh': {'queue': 'line'}}", "{'depot.tasks.pack': {'queue': 'line'}}"),
    "task_annotations": (
        "{'depot.tasks.weigh': {'time_limit': 7}}",
        "{'depot.tasks.pack': {'time_limit': 7}}",
    ),
    "task_acks_late": ("True", "False"),
    "task_default_queue": ("'first'", "'second'"),
    "task_default_rate_limit": ("'1/s'", "'2/s'"),
    "task_reject_on_worker_lost": ("True", "False"),
    "task_soft_time_limit": ("4", "3"),
    "task_time_limit": ("5", "6"),
    "timezone": ("'Asia/Tokyo'", "'Europe/Oslo'"),
    "worker_disable_rate_limits": ("True", "False"),
}


def spellings(setting: str) -> list[tuple[str, str]]:
    """Return the names in a module that Celery reads a setting by, with the namespace."""
    names = [(f"CELERY_{setting.upper()}", "CELERY"), (setting, "")]
    return names + ([(_TO_OLD_KEY[setting], "")] if setting in _TO_OLD_KEY else [])


def in_force(setting: str, spelling: str, namespace: str, texts_of_place: tuple[str, str], value: str) -> Any:
    """Return what Celery has of a setting that a module gives, and code by its present name."""
    module = ModuleType("settings_of_module")
    setattr(module, spelling, eval(VALUES[setting][0]))
    app = Celery("depot", set_as_current=False)
    early, late = (text.format(name=setting, value=value) for text in texts_of_place)
    exec(early, {"app": app})
    app.config_from_object(module, namespace=namespace or None)
    exec(late, {"app": app})
    return app.conf[setting]


def test_each_setting_that_is_mapped_has_values() -> None:
    assert set(VALUES) == MAPPED


@pytest.mark.parametrize(("setting", "place"), list(product(sorted(VALUES), PLACES)))
def test_of_two_places_of_a_setting_the_one_counts_that_celery_takes(
    tmp_path: Path, setting: str, place: str
) -> None:
    """Code gives a setting by its present name, beside a module that gives it by any that Celery reads."""
    for number, (spelling, namespace) in enumerate(spellings(setting)):
        first, second = VALUES[setting]
        winner = in_force(setting, spelling, namespace, PLACES[place], second)
        assert winner == eval(first if namespace else second)  # the rule of the importer
        early, late = (text.format(name=setting, value=second) for text in PLACES[place])
        words = f", namespace='{namespace}'" if namespace else ""
        files = {
            "__init__.py": "",
            "tasks.py": TASKS,
            "conf_of_depot.py": f"{spelling} = {first}\n",
            "celery.py": APP + early + f"app.config_from_object('depot.conf_of_depot'{words})\n" + late,
        }
        project, report = of_application(tmp_path / str(number), files)
        lines = texts(report)
        if setting == "beat_schedule":
            assert list(project.schedules) == list(winner)
        elif setting == "task_routes":
            routed = [f"depot.tasks.{name}" for name, action in project.actions.items() if "route" in action]
            assert routed == list(winner)
        loser = "celery.py" if namespace else "conf_of_depot.py"
        named = setting if namespace else spelling
        assert [line for line in lines if line.startswith(loser) and named in line], lines


@pytest.mark.parametrize(
    "settings",
    [
        "if LIVE:\n    CELERY_BEAT_SCHEDULE = {0}\n",
        "def settings():\n    CELERY_BEAT_SCHEDULE = {0}\n",
    ],
)
def test_of_two_places_both_are_imported_where_only_running_would_tell(tmp_path: Path, settings: str) -> None:
    first, second = VALUES["beat_schedule"]
    files = {
        "__init__.py": "",
        "tasks.py": TASKS,
        "conf_of_depot.py": settings.format(first),
        "celery.py": APP + f"app.config_from_object('depot.conf_of_depot', namespace='CELERY')\n"
        f"app.conf.beat_schedule = {second}\n",
    }
    project, report = of_application(tmp_path, files)
    assert set(project.schedules) == {"one", "two"}
    assert [line for line in texts(report) if " sets too" in line and "BEAT_SCHEDULE" in line.upper()]


def test_dict_that_a_setting_is_made_of_is_no_second_place(tmp_path: Path) -> None:
    first, _ = VALUES["beat_schedule"]
    files = {
        "__init__.py": "",
        "tasks.py": TASKS,
        "conf_of_depot.py": f"beat_schedule = {first}\nCELERY_BEAT_SCHEDULE = beat_schedule\n",
        "celery.py": APP + "app.config_from_object('depot.conf_of_depot', namespace='CELERY')\n",
    }
    project, report = of_application(tmp_path, files)
    assert list(project.schedules) == ["one"]
    assert not [line for line in texts(report) if " sets too" in line or ", beside " in line]


@pytest.mark.parametrize(
    ("canvas", "count"),
    [
        ("chain(weigh.s(), pack.si())()", 2),
        ("group([weigh.s(), pack.s()])()", 2),
        ("(weigh.s() | pack.si())()", 2),
        ("chord([weigh.s()], pack.si())()", 2),
        ("chord([weigh.s()])(pack.si())", 2),
        ("chain(weigh.s(), pack.si())(4)", 0),
        ("(weigh.s() | pack.si())(4)", 0),
    ],
)
def test_canvas_that_is_called_is_started(tmp_path: Path, canvas: str, count: int) -> None:
    """With arguments it is a gap: they would be those of its first tasks."""
    code = f"from celery import chain, chord, group\n{TASKS}def run():\n    {canvas}\n"
    project, report = of_application(tmp_path, {"__init__.py": "", "tasks.py": code})
    flows = list(project.workflows.values())
    assert [len(flow["tasks"]) for flow in flows] == [count] * bool(count)
    gaps = [line for line in texts(report) if "the canvas" in line]
    assert not gaps if count else "started with arguments" in gaps[0]


def test_value_that_says_nothing_is_no_gap(tmp_path: Path) -> None:
    """Options without one, the description of a unit, and a module of the sources that has the name of an application."""
    files = {
        "__init__.py": "",
        "tasks.py": TASKS,
        "celery.py": APP
        + "app.conf.beat_schedule = {'one': {'task': 'depot.tasks.weigh', 'schedule': 60, 'options': {}}}\n",
        "biz/__init__.py": "from . import app as app_biz\ndef start(app): ...\n",
        "biz/app.py": "def create(): ...\n",
        "use.py": "from depot.biz import app as app_biz\napp_biz.create()\n",
        "depot.service": "[Unit]\nDescription=The celery worker of a depot\n[Service]\nExecStart=celery -A depot worker\n",
    }
    project, report = of_application(tmp_path, files)
    lines = "\n".join(texts(report))
    assert list(project.schedules) == ["one"]
    assert "options" not in lines
    assert "app_biz" not in lines
    assert "The celery worker" not in lines
    assert "the command celery -A depot worker" in lines


@pytest.mark.parametrize(
    ("own", "losses"),
    [
        ("import depot.base as shared\ntask_acks_late = shared.task_acks_late\n", "rerun"),
        ("from depot import base\ntask_acks_late = base.task_acks_late\n", "rerun"),
        ("task_acks_late = True\n", "rerun"),
        ("task_acks_late = 1\n", "rerun"),
        ("task_acks_late = False\n", "fail"),
        ("task_acks_late = load()\n", "fail"),
    ],
)
def test_setting_of_the_later_of_two_modules_counts(tmp_path: Path, own: str, losses: str) -> None:
    files = {
        "__init__.py": "",
        "base.py": "task_acks_late = True\n",
        "primary.py": own,
        "tasks.py": "from celery import Celery\napp = Celery('depot')\napp.config_from_object('depot.base')\n"
        "app.config_from_object('depot.primary')\n@app.task\ndef weigh(): ...\n",
    }
    project, report = of_application(tmp_path, files)
    assert project.actions["weigh"]["on_worker_loss"] == losses
    lines = [line for line in texts(report) if "task_acks_late" in line]
    assert any(line.startswith("primary.py") for line in lines) is ("load" in own)
    assert any("which line 4 replaces" in line for line in texts(report))


def test_module_alias_keeps_a_setting_that_conf_sets_too(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "base.py": "task_time_limit = 5\n",
        "primary.py": "import depot.base as shared\ntask_time_limit = shared.task_time_limit\n",
        "tasks.py": "from celery import Celery\napp = Celery('depot')\napp.config_from_object('depot.primary')\n"
        "app.conf.task_time_limit = 5\n@app.task\ndef weigh(): ...\n",
    }
    project, _ = of_application(tmp_path, files)
    assert project.actions["weigh"]["timeout"] == 5


@pytest.mark.parametrize("spelling", ["CELERY_BEAT_SCHEDULE", "SCHEDULES"])
@pytest.mark.parametrize("namespace", ["", ", namespace='CELERY'"])
def test_configuration_that_reads_its_own_source(tmp_path: Path, spelling: str, namespace: str) -> None:
    """Code may store a name of the module of settings as a setting: `app.conf.beat_schedule = app.conf.SCHEDULES`."""
    value = "{'often': {'task': 'depot.tasks.weigh', 'schedule': 60}}"
    read = f"app.config_from_object('depot.cfg'{namespace})\napp.conf.beat_schedule = app.conf.{spelling}\n"
    module = ModuleType("cfg")
    setattr(module, spelling, eval(value))
    app = Celery("depot", set_as_current=False)
    files = {
        "__init__.py": "",
        "tasks.py": TASKS,
        "cfg.py": f"{spelling} = {value}\n",
        "celery.py": APP + read,
    }
    project, report = of_application(tmp_path, files)
    named = [line for line in texts(report) if spelling in line]
    if namespace:
        assert named
        return
    app.config_from_object(module)
    assert getattr(app.conf, spelling) == eval(value)
    assert project.schedules == {"often": {"action": "depot.weigh", "every": 60}}
    assert not named


@pytest.mark.parametrize("code", ["app.conf.enable_utc = {}\n", "app.conf.update(enable_utc={})\n"])
@pytest.mark.parametrize("value", ["True", "False", "UTC"])
def test_setting_that_is_true_without_it_has_no_line(tmp_path: Path, code: str, value: str) -> None:
    assert Celery("depot", set_as_current=False).conf.enable_utc is True
    _, _, lines = of_settings(tmp_path, code.format(value))
    assert ("enable_utc" in lines) is (value != "True")


def test_line_of_a_setting_for_tasks_names_no_option_that_actions_lack() -> None:
    names = [name for name in DEFAULT_SETTINGS if name.startswith("task_")]
    assert len(names) > 30
    general = [name for name in names if advice_of(name) == "Write it into each action that needs it."]
    assert set(general) <= MAPPED


CLASS = "class Config:\n    task_acks_late = True\n    task_time_limit: int = 5\n"


@pytest.mark.parametrize(
    ("code", "is_certain"),
    [
        (CLASS + "app.config_from_object(Config)\n", True),
        (CLASS + "class Model:\n    class Config:\n        frozen = True\napp.config_from_object(Config)\n", True),
        (CLASS + "app.config_from_object(f'{__name__}:Config')\n", True),
        (CLASS + "app.config_from_object(__name__ + '.Config')\n", True),
        ("task_acks_late = True\ntask_time_limit = 5\napp.config_from_object(__name__)\n", True),
        ("def make():\n    class Config:\n        task_acks_late = True\n        task_time_limit = 5\n"
         "    app.config_from_object(Config)\nmake()\n", True),
        (CLASS + "app.config_from_object(Config if LIVE else Other)\n", False),
        (CLASS + "def make(Config):\n    app.config_from_object(Config)\n", False),
        ("if LIVE:\n    class Config:\n        task_acks_late = True\n        task_time_limit = 5\nelse:\n"
         "    class Config:\n        task_acks_late = False\napp.config_from_object(Config)\n", None),
    ],
)  # fmt: skip
def test_class_of_the_module_itself_is_read(tmp_path: Path, code: str, is_certain: bool | None) -> None:
    """If `is_certain` is None, the report names two classes, and neither is mapped."""
    project, report = of_application(
        tmp_path, {"__init__.py": "", "tasks.py": TASKS, "celery.py": APP + code}
    )
    action, lines = project.actions["weigh"], texts(report)
    mapped = (None, "fail") if is_certain is None else (5, "rerun")
    assert (action["timeout"], action["on_worker_loss"]) == mapped
    assert any(UNKNOWN in line for line in lines) is not bool(is_certain)
    assert len([line for line in lines if "the setting task_acks_late" in line]) == (
        2 if is_certain is None else 0
    )
