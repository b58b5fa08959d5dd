"""The names of settings and zones that count, by the namespace that an application is given: compared with Celery itself."""

from __future__ import annotations

import ast
import random
import types
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.app.defaults import SETTING_KEYS
from celery.exceptions import ImproperlyConfigured

from penstock_import.celery import CeleryProject
from penstock_import.celery_setting_names import MAPPED, today
from penstock_import.celery_settings import unread_names

HEAD = """\
from celery import Celery
from celery.schedules import crontab
app = Celery('depot', set_as_current=False)
@app.task
def weigh(): ...
app.conf.beat_schedule = {'n': {'task': 'tasks.weigh', 'schedule': crontab(hour=3, minute=0)}}
"""
VALUES: dict[str, tuple[str, ...]] = {
    "'dq'": ("task_default_queue", "TASK_DEFAULT_QUEUE", "CELERY_TASK_DEFAULT_QUEUE", "CELERY_DEFAULT_QUEUE"),
    "True": ("task_acks_late", "TASK_ACKS_LATE", "CELERY_TASK_ACKS_LATE", "CELERY_ACKS_LATE",
             "celery_task_acks_late", "CELERY_task_acks_late", "DEPOT_TASK_ACKS_LATE"),
    "7": ("task_time_limit", "TASK_TIME_LIMIT", "CELERY_TASK_TIME_LIMIT", "CELERYD_TASK_TIME_LIMIT"),
    "'Europe/Paris'": ("timezone", "TIMEZONE", "CELERY_TIMEZONE", "celery_timezone", "TIME_ZONE",
                       "CELERY_TIME_ZONE", "DEPOT_TIMEZONE"),
}  # fmt: skip
"""By a value: the names that may give it."""
NAMES = {name: value for value, names in VALUES.items() for name in names}
READS = (
    "app.config_from_object('settings')",
    "app.config_from_object('settings', namespace='CELERY')",
    "app.config_from_object('settings', False, False, 'CELERY')",
    "app.config_from_object('settings', namespace='celery')",
    "app.config_from_object('settings', namespace='DEPOT')",
    "app.config_from_object('settings', False, False, 'DEPOT')",
    "app = Celery('depot', namespace='CELERY', set_as_current=False)\napp.config_from_object('settings')",
)


def as_celery(settings: str, read: str) -> tuple[Any, ...] | None:
    """Return queue, loss, limit and zone as Celery has them; None where it refuses the mixture."""
    module: dict[str, Any] = {}
    exec(settings, module)
    names: dict[str, Any] = {"app": Celery("depot", set_as_current=False), "Celery": Celery}
    exec(read.replace("'settings'", "source"), names | {"source": types.SimpleNamespace(**module)}, names)
    app = names["app"]
    try:
        queue, zone = app.conf.task_default_queue, str(app.timezone)
    except ImproperlyConfigured:
        return None
    return (
        None if queue == "celery" else queue,
        "rerun" if app.conf.task_acks_late else "fail",
        app.conf.task_time_limit,
        None if zone in ("UTC", "Etc/UTC") else zone,
    )


def imported(folder: Path, settings: str, read: str) -> tuple[tuple[Any, ...], bool, list[str]]:
    """Return the same of the import, whether its schedule is enabled, and the gaps of the settings."""
    (folder / "tasks.py").write_text(HEAD + read + "\n")
    (folder / "settings.py").write_text(settings)
    source = CeleryProject(folder)
    project = source.mapped()
    action, schedule = project.actions["weigh"], project.schedules["n"]
    gaps = [
        f"{gap.file}:{gap.line} {gap.what}"
        for gap in source.report.gaps
        if gap.file == "settings.py" or gap.line > HEAD.count("\n")
    ]
    values = (action.get("route"), action["on_worker_loss"], action["timeout"], schedule.get("timezone"))
    return values, schedule.get("enabled", True), gaps


def check(folder: Path, settings: str, read: str) -> None:
    theirs = as_celery(settings, read)
    ours, is_enabled, gaps = imported(folder, settings, read)
    if theirs is None:
        return
    for number, (mapped, value) in enumerate(zip(ours, theirs, strict=True)):
        is_zone_open = number == 3 and not is_enabled
        is_named = bool(gaps) and mapped in (None, "fail")
        assert mapped == value or is_zone_open or is_named, (settings, read, ours, theirs, gaps)


@pytest.mark.parametrize("read", READS)
def test_each_name_counts_as_in_celery(tmp_path: Path, read: str) -> None:
    for name, value in NAMES.items():
        check(tmp_path, f"{name} = {value}\n", read)


@pytest.mark.parametrize("seed", range(10))
def test_names_together_count_as_in_celery(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for read in READS:
        names = chance.sample(sorted(NAMES), chance.randrange(2, 5))
        check(tmp_path, "".join(f"{name} = {NAMES[name]}\n" for name in names), read)


@pytest.mark.parametrize("read", READS[:3])
@pytest.mark.parametrize("name", ["task_acks_late", "task_default_queue", "task_time_limit", "TIME_ZONE"])
def test_plain_name_beside_a_namespace_is_mapped(tmp_path: Path, read: str, name: str) -> None:
    settings = f"{name} = {NAMES[name]}\n"
    ours, is_enabled, gaps = imported(tmp_path, settings, read)
    assert (ours, is_enabled) == (as_celery(settings, read), True)
    assert not any(gap.startswith("settings.py") for gap in gaps)


DJANGO = "app.config_from_object('django.conf:settings', namespace='CELERY')"


@pytest.mark.parametrize(
    ("settings", "zone", "is_enabled"),
    [
        ("TIME_ZONE = 'Europe/Paris'\nUSE_TZ = True\n", "Europe/Paris", True),
        ("TIME_ZONE = 'Europe/Paris'\nUSE_TZ = False\n", "Europe/Paris", True),
        ("TIME_ZONE = 'UTC'\n", None, True),
        ("TIME_ZONE = 'Europe/Paris'\nCELERY_TIMEZONE = 'Asia/Tokyo'\n", "Asia/Tokyo", True),
        ("TIME_ZONE = 'Europe/Paris'\nCELERY_TIMEZONE = TIME_ZONE\n", "Europe/Paris", True),
        ("class Base:\n    TIME_ZONE = 'Europe/Paris'\n", "Europe/Paris", True),
        ("if PROD:\n    TIME_ZONE = 'Europe/Paris'\n", None, False),
        ("TIME_ZONE = zone()\n", None, False),
        ("USE_TZ = True\n", None, False),
    ],
)
def test_zone_of_django_counts_without_one_of_celery(
    tmp_path: Path, settings: str, zone: str | None, is_enabled: bool
) -> None:
    ours, enabled, _ = imported(tmp_path, settings, DJANGO)
    assert (ours[3], enabled) == (zone, is_enabled)


def test_zone_of_a_module_that_is_no_source_does_not_count(tmp_path: Path) -> None:
    ours, enabled, _ = imported(tmp_path, "TIME_ZONE = 'Europe/Paris'\n", "")
    assert (ours[3], enabled) == (None, True)


@pytest.mark.parametrize(
    "text",
    [
        "app.conf[name()] = 'Europe/Paris'",
        "app.conf.update({f'{name()}': 'Europe/Paris'})",
        "app.conf.update(**load())",
        "app.conf.update(load())",
        "app.conf.update({**load()})",
        "app.add_defaults(load())",
        "setattr(app.conf, name(), 'Europe/Paris')",
        "app.conf.setdefault(name(), 'Europe/Paris')",
        "vars(app.conf)[name()] = 'Europe/Paris'",
        "getattr(app, 'conf')[name()] = 'Europe/Paris'",
        "cfg = app.conf\nwith open('x') as opened:\n    cfg.update(load(opened))",
        "def tune(cfg):\n    cfg[name()] = 'Europe/Paris'\ntune(app.conf)",
        "def tune(cfg):\n    setattr(cfg, name(), 'Europe/Paris')\ntune(app.conf)",
    ],
)
def test_setting_of_a_computed_name_may_be_the_zone(tmp_path: Path, text: str) -> None:
    _, enabled, gaps = imported(tmp_path, "", text)
    assert gaps
    assert not enabled


PREFIXES = (
    "CELERY_",
    "CELERYD_",
    "CELERYBEAT_",
    "CELERY_TASK_",
    "CELERYD_TASK_",
    "CELERY_WORKER_",
    "CELERY_RESULT_",
    "",
)


def spellings(setting: str) -> set[str]:
    """Return the names in capitals that a reader may take for a setting."""
    parts = setting.split("_", 1)
    return {f"{prefix}{part.upper()}" for prefix in PREFIXES for part in {setting, parts[-1]}}


def is_read_by_celery(setting: str, name: str, namespace: str | None) -> bool:
    app = Celery("depot", set_as_current=False)
    value = object()
    app.config_from_object(types.SimpleNamespace(**{name: value}), namespace=namespace)
    return app.conf.get(setting) is value


@pytest.mark.parametrize("letter", sorted({setting[0] for setting in SETTING_KEYS}))
def test_each_spelling_of_each_setting_is_read_as_in_celery(letter: str) -> None:
    unread = {
        namespace: unread_names(
            {"a.py": ast.parse(f"app.config_from_object('settings', namespace={namespace!r})")}, True
        )
        for namespace in (None, "CELERY")
    }
    for setting in sorted(key for key in SETTING_KEYS if key[0] == letter):
        for name in sorted(spellings(setting)):
            theirs = {
                namespace for namespace in (None, "CELERY") if is_read_by_celery(setting, name, namespace)
            }
            if name.startswith("CELERY"):
                assert (today(name) == setting) == bool(theirs), (name, setting, today(name))
            if today(name) == setting and name.startswith("CELERY") and setting in MAPPED:
                ours = {namespace for namespace in (None, "CELERY") if name not in unread[namespace]}
                assert ours == theirs, name


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("CELERY_TIME_LIMIT", READS[0]),
        ("CELERY_TIME_LIMIT", READS[1]),
        ("CELERY_SOFT_TIME_LIMIT", READS[1]),
        ("CELERYD_TASK_TIME_LIMIT", READS[1]),
        ("CELERY_REJECT_ON_WORKER_LOST", READS[1]),
        ("CELERY_TASK_REJECT_ON_WORKER_LOST", READS[0]),
    ],
)
def test_name_that_celery_does_not_read_changes_no_task(tmp_path: Path, name: str, read: str) -> None:
    (tmp_path / "tasks.py").write_text(HEAD.replace("@app.task", "@app.task(acks_late=True)") + read + "\n")
    (tmp_path / "settings.py").write_text(f"{name} = 7\n")
    source = CeleryProject(tmp_path)
    action = source.mapped().actions["weigh"]
    assert (action["timeout"], action["executor"]) == (None, "process")
    assert any(gap.file == "settings.py" and name in gap.what for gap in source.report.gaps)
