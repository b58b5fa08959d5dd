"""Lines about values that packages beside Celery read, and about code that only looks like Celery's."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject

APP = "from celery import Celery, shared_task\n\napp = Celery('yard')\n\n\n@app.task(bind=True)\ndef weigh(self): ...\n"


def imported(folder: Path, files: dict[str, str]) -> CeleryProject:
    """Return the mapped source of these files."""
    for name, text in files.items():
        (folder / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "src" / name).write_text(text)
    source = CeleryProject(folder / "src")
    source.mapped()
    return source


def lines(source: CeleryProject) -> list[str]:
    """Return the place, subject and work by hand of each gap."""
    return [f"{gap.file}:{gap.line} {gap.what} | {gap.by_hand}" for gap in source.report.gaps]


@pytest.mark.parametrize(
    ("option", "package"),
    [
        ("raise_on_duplicate=True", "celery-singleton"),
        ("unique_on=['a']", "celery-singleton"),
        ("lock_expiry=3", "celery-singleton"),
        ("once={'graceful': True}", "celery-once"),
        ("request_context=True", "the class of the task"),
    ],
)
def test_option_of_a_task_class_names_its_reader(tmp_path: Path, option: str, package: str) -> None:
    source = imported(tmp_path, {"depot.py": APP.replace("bind=True", f"bind=True, {option}")})
    name = option.partition("=")[0]
    assert [package in line for line in lines(source) if f" {name} of weigh" in line] == [True], lines(source)


@pytest.mark.parametrize(
    "call",
    [
        "start_it -Q celery,auto -n default-worker@%h",
        "start_it --queues celery,auto -n default-worker@%h",
        "start_it --queues=celery,auto -n default-worker@%h",
        "start_it -Q 'celery,auto' -n default-worker@%h",
        "start_it -A celery -n default-worker@%h",
    ],
)
def test_value_of_an_option_is_not_a_program(tmp_path: Path, call: str) -> None:
    script = f'#!/bin/bash\nstart_it(){{\n  exec celery -A shop worker -l INFO "$@"\n}}\n{call} "$@"\n'
    source = imported(tmp_path, {"depot.py": APP, "run.sh": script})
    hits = [line for line in lines(source) if line.startswith("run.sh:5")]
    assert ["the command start_it -" in line for line in hits] == [True], hits


def test_value_of_an_option_in_a_list_is_not_a_program(tmp_path: Path) -> None:
    text = f"{APP}\n\nwords = ['start', '-Q', 'celery', '-n', 'worker']\n"
    text += "own = ['celery', '-A', 'celery', 'worker', '-Q', 'celery']\n"
    hits = [line for line in lines(imported(tmp_path, {"depot.py": text})) if "the command" in line]
    assert [line.partition(" |")[0] for line in hits] == [
        "depot.py:11 the command celery -A celery worker -Q celery"
    ]


def test_class_of_results_from_another_module_is_no_application(tmp_path: Path) -> None:
    files = {"yard/celery.py": f"{APP}\nAsyncResult = app.AsyncResult\n"}
    files["yard/views.py"] = (
        "from other.celery import AsyncResult\n\n\ndef show(id):\n    res = AsyncResult(id)\n"
    )
    hits = lines(imported(tmp_path, files))
    assert not [line for line in hits if "the application AsyncResult" in line], hits


def test_method_of_an_extended_cache_reads_no_queue(tmp_path: Path) -> None:
    cache = "from redis import RedisError\n\n\nclass Cache(Base):\n    def delete(self, key):\n        super().delete(key)\n"
    use = "from cache import Cache\n\nCache().delete('celery')\n"
    hits = lines(imported(tmp_path, {"depot.py": APP, "cache.py": cache, "use.py": use}))
    assert not [line for line in hits if line.startswith("cache.py")], hits


@pytest.mark.parametrize("zone", [", timezone='Asia/Kolkata'", ""])
def test_enable_utc_beside_a_mapped_zone_has_no_line(tmp_path: Path, zone: str) -> None:
    text = f"{APP}\n\napp.conf.update(enable_utc=False{zone})\n"
    text += "app.conf.beat_schedule = {'a': {'task': 'depot.weigh', 'schedule': crontab(hour=3)}}\n"
    text = f"from celery.schedules import crontab\n{text}"
    hits = lines(imported(tmp_path, {"depot.py": text}))
    assert bool([line for line in hits if "the setting enable_utc" in line]) is (not zone), hits


def test_task_that_a_call_makes_of_a_method_is_counted(tmp_path: Path) -> None:
    text = f"{APP}\n\nclass Lane:\n    def task(self):\n        return shared_task(**self.config)(self.run)\n"
    source = imported(tmp_path, {"depot.py": text})
    assert source.report.found["tasks"] == 2
    assert source.report.mapped["tasks"] == 1


def test_equal_uses_of_a_bound_task_have_one_line(tmp_path: Path) -> None:
    body = "(self):\n    self.log.info('a')\n    self.log.info('b')\n    self.session()\n    self.log.info('c')\n"
    body += "    self.session()\n\n\n@app.task(bind=True)\ndef ship(self):\n    self.log.info('a')\n"
    hits = lines(imported(tmp_path, {"depot.py": APP.replace("(self): ...\n", body)}))
    named = [line.partition(" |")[0] for line in hits if "self." in line]
    assert sorted(named, key=lambda line: int(line.partition(":")[2].partition(" ")[0])) == [
        "depot.py:8 self.log.info, which is read from a task, also at lines 9, 11",
        "depot.py:10 the call self.session(), also at line 12",
        "depot.py:17 self.log.info, which is read from a task",
    ]
