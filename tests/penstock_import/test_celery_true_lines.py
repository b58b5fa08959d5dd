"""A line says what the code does: no line names what Celery does not read, and each says what is to be done."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject

APP = "from celery import Celery\n\napp = Celery('yard')\n\n\n@app.task(bind=True)\ndef weigh(self): ...\n"


def lines(folder: Path, files: dict[str, str]) -> list[tuple[str, str]]:
    """Return the place and subject of each gap, and its work by hand."""
    (folder / "src").mkdir()
    for name, text in files.items():
        (folder / "src" / name).write_text(text)
    source = CeleryProject(folder / "src")
    source.mapped()
    return [(f"{gap.file}:{gap.line} {gap.what}", gap.by_hand) for gap in source.report.gaps]


def test_fields_of_a_model_are_no_settings(tmp_path: Path) -> None:
    text = "from pydantic_settings import BaseSettings\n\n\nclass Base(BaseSettings):\n    CELERY_TASK_TIME_LIMIT: int = 30\n"
    text += "\n\nclass Mine(Base):\n    CELERY_WORKER_POOL: str = 'solo'\n"
    gaps = lines(tmp_path, {"depot.py": APP, "conf.py": text})
    assert not [gap for gap, _ in gaps if gap.startswith("conf.py")]


def test_fields_of_a_model_that_configures_are_settings(tmp_path: Path) -> None:
    text = "from pydantic_settings import BaseSettings\n\n\nclass Mine(BaseSettings):\n    worker_pool: str = 'solo'\n"
    app = APP.replace("@app", "from conf import Mine\n\napp.config_from_object(Mine)\n\n\n@app")
    gaps = lines(tmp_path, {"depot.py": app, "conf.py": text})
    assert [gap for gap, _ in gaps if gap.startswith("conf.py:5")], gaps


def test_part_of_a_request_that_is_set_is_told_so(tmp_path: Path) -> None:
    app = APP.replace("(self): ...", "(self):\n    self.request.chain = None\n")
    gaps = lines(tmp_path, {"depot.py": app})
    assert "depot.py:8 self.request.chain, which is set on a task as it runs" in [gap for gap, _ in gaps]
    assert not any("self.request.chain, which is read" in gap for gap, _ in gaps)


@pytest.mark.parametrize(
    ("setting", "package"),
    [
        ("app.conf.redbeat_redis_url", "RedBeat"),
        ("app.conf.redbeat_lock_timeout", "RedBeat"),
        ("CELERY_SINGLETON_LOCK_EXPIRY", "celery-singleton"),
        ("CELERY_EMAIL_TASK_CONFIG", "django-celery-email"),
    ],
)
def test_setting_of_a_package_beside_celery_names_it(tmp_path: Path, setting: str, package: str) -> None:
    gaps = lines(tmp_path, {"settings.py": f"{APP}{setting} = 1\n"})
    advice = [by_hand for gap, by_hand in gaps if f"the setting {setting}" in gap]
    assert [package in text for text in advice] == [True], gaps


@pytest.mark.parametrize(
    "text",
    [
        "from depot import app\napp.control.purge()\n",
        "from depot import app as yard\nyard.control.purge()\n",
        "import depot\ndepot.app.control.purge()\n",
        "import depot as yard\n\n\ndef clear():\n    return yard.app.control.purge()\n",
    ],
)
def test_use_of_application_in_a_file_without_its_words_is_named(tmp_path: Path, text: str) -> None:
    gaps = lines(tmp_path, {"depot.py": APP, "clear.py": text})
    named = [by_hand for gap, by_hand in gaps if gap.startswith("clear.py") and "control" in gap]
    assert ["penstock cancel" in text for text in named] == [True], gaps


@pytest.mark.parametrize(
    "text",
    [
        "import multiprocessing\n\npool = multiprocessing.Pool(4)\nx = pool.apply_async(f)\nx.get(timeout=3)\n",
        "from multiprocessing import Pool\n\nwith Pool() as pool:\n    pool.apply_async(f)\n",
        "from multiprocessing.pool import ThreadPool\n\nThreadPool(2).apply_async(f)\n",
        "import multiprocessing as mp\n\nmp.get_context('spawn').Pool().apply_async(f)\n",
        "from multiprocessing import Pool\n\n\nclass Yard:\n    def __init__(self):\n        self.pool = Pool()\n"
        "\n    def run(self):\n        self.pool.apply_async(f)\n",
    ],
)
def test_pool_of_processes_starts_no_task(tmp_path: Path, text: str) -> None:
    gaps = lines(tmp_path, {"depot.py": APP, "work.py": f"from depot import weigh\n{text}"})
    assert not [gap for gap, _ in gaps if gap.startswith("work.py")]


def test_task_beside_a_pool_is_started(tmp_path: Path) -> None:
    text = "from multiprocessing import Pool\nfrom depot import weigh\n\npool = Pool()\npool = weigh\npool.apply_async()\n"
    gaps = lines(tmp_path, {"depot.py": APP, "work.py": text})
    assert any("work.py:6 the call pool.apply_async()" in gap for gap, _ in gaps), gaps


def test_update_whose_entries_are_imported_has_no_line(tmp_path: Path) -> None:
    text = f"{APP}app.conf.beat_schedule = {{}}\n"
    text += "app.conf.beat_schedule.update({'often': {'task': 'depot.weigh', 'schedule': 30}})\n"
    gaps = lines(tmp_path, {"depot.py": text})
    assert not [gap for gap, _ in gaps if "beat_schedule" in gap], gaps
