"""A setting that is given in another way than by an assignment has a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.penstock_import.test_celery_sources import APP, TASKS
from tests.penstock_import.test_reviewed_changes import of_application, texts

MODULE = "app.config_from_object('depot.cfg')\n"
NAMED = "app.config_from_object('depot.cfg', namespace='CELERY')\n"
CLASS = "from depot.cfg import Settings\napp.config_from_object(Settings)\n"


@pytest.mark.parametrize(
    ("code", "settings", "line"),
    [
        (
            MODULE,
            "from depot.others import ROUTES as task_routes\n",
            "the setting task_routes, which is imported",
        ),
        (
            MODULE,
            "from depot.others import task_acks_late\n",
            "the setting task_acks_late, which is imported",
        ),
        (
            MODULE,
            "import depot.others as task_annotations\n",
            "the setting task_annotations, which is imported",
        ),
        (
            MODULE,
            "task_acks_late, task_time_limit = True, 5\n",
            "the setting task_time_limit, which shares its assignment",
        ),
        (
            MODULE,
            "for task_time_limit in (5,): pass\n",
            "the setting task_time_limit, which is assigned within another",
        ),
        (
            MODULE,
            "with load() as task_routes: pass\n",
            "the setting task_routes, which is assigned within another",
        ),
        (
            MODULE,
            "if (task_time_limit := 5): pass\n",
            "the setting task_time_limit, which is assigned within another",
        ),
        (
            MODULE,
            "task_acks_late = True\ndel task_acks_late\n",
            "the setting task_acks_late, which `del` removes",
        ),
        (MODULE, "globals().update(task_acks_late=True)\n", "globals().update(task_acks_late=True)"),
        (MODULE, "vars().update(load())\n", "vars().update(load()), which may give any setting"),
        (
            MODULE,
            "own = dynaconf.DjangoDynaconf(__name__)\n",
            "DjangoDynaconf(__name__), which may give any setting",
        ),
        (MODULE, "apply_env(globals())\n", "apply_env(globals()), which may give any setting"),
        (MODULE, "sys.modules[__name__].__dict__.update(x)\n", "update(x), which may give any setting"),
        (MODULE, "setattr(sys.modules[__name__], key, 1)\n", "key, 1), which may give any setting"),
        (MODULE, "include('more.py')\n", "include('more.py'), which may give any setting"),
        (
            NAMED,
            "own = dynaconf.DjangoDynaconf(__name__)\n",
            "DjangoDynaconf(__name__), which may give any setting",
        ),
        (NAMED, "heroku.settings(locals())\n", "heroku.settings(locals()), which may give any setting"),
        (NAMED, "globals().update(load())\n", "globals().update(load()), which may give any setting"),
        (MODULE, "def __getattr__(name): return load(name)\n", "__getattr__ of the settings"),
        (CLASS, "class Settings(metaclass=Meta):\n    pass\n", "the metaclass Meta of Settings"),
        (
            CLASS,
            "class Settings:\n    def __getattr__(self, name): return load(name)\n",
            "__getattr__ of the settings",
        ),
        (
            CLASS,
            "class Settings:\n    @property\n    def task_acks_late(self): return True\n",
            "which a function gives",
        ),
        (
            CLASS.replace("(Settings)", "(Settings())"),
            "class Settings:\n    def __init__(self):\n        setattr(self, 'task_acks_late', True)\n",
            "setattr(self, 'task_acks_late', True)",
        ),
        (
            CLASS.replace("(Settings)", "(Settings())"),
            "class Settings:\n    def __init__(self):\n        for name in load(): setattr(self, name, True)\n",
            "setattr(self, name, True), which may give any setting",
        ),
    ],
)
def test_setting_that_no_assignment_gives_has_a_line(
    tmp_path: Path, code: str, settings: str, line: str
) -> None:
    imported = "ROUTES = {'depot.tasks.weigh': {'queue': 'slow'}}\ntask_acks_late = True\n"
    files = {
        "__init__.py": "",
        "tasks.py": TASKS,
        "others.py": imported,
        "cfg.py": settings + ("CELERY_TASK_ACKS_LATE = True\n" if code == NAMED else ""),
        "celery.py": APP + code,
    }
    _, report = of_application(tmp_path, files)
    assert any(text.startswith("cfg.py") and line in text for text in texts(report)), texts(report)


@pytest.mark.parametrize("settings", ["timezone, other = 'Asia/Tokyo', 1\n", "globals().update(load())\n"])
def test_schedule_is_disabled_where_its_zone_is_given_in_another_way(tmp_path: Path, settings: str) -> None:
    cron = "{'often': {'task': 'depot.tasks.weigh', 'schedule': crontab(hour=3, minute=0)}}"
    settings += f"from celery.schedules import crontab\nbeat_schedule = {cron}\n"
    files = {"__init__.py": "", "tasks.py": TASKS, "cfg.py": settings, "celery.py": APP + MODULE}
    project, _ = of_application(tmp_path, files)
    assert project.schedules["often"]["enabled"] is False
