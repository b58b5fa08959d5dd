"""Settings and commands of Celery's workers decide which options of a task are in force: limits of rates and of time."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject
from penstock_import.project import Project
from penstock_import.report import Report

APP = "from celery import Celery\napp = Celery('depot')\n"
RATED = "@app.task(rate_limit='10/h')\ndef weigh(): ...\n@app.task\ndef stack(): ...\n"


def imported(folder: Path, text: str, **files: str) -> tuple[Project, Report]:
    (folder / "depot").mkdir()
    for name, content in {"tasks.py": text, **files}.items():
        (folder / "depot" / name).write_text(content)
    source = CeleryProject(folder / "depot")
    return source.mapped(), source.report


def subjects(report: Report) -> list[str]:
    return [gap.what for gap in report.gaps]


@pytest.mark.parametrize(
    "setting",
    ["app.conf.worker_disable_rate_limits = {}\n", "app.conf.update(worker_disable_rate_limits={})\n"],
)
@pytest.mark.parametrize("value", [True, False])
def test_disabled_rates_are_no_limits(tmp_path: Path, setting: str, value: bool) -> None:
    default = "app.conf.task_default_rate_limit = '1/m'\n"
    project, report = imported(tmp_path, APP + setting.format(value) + default + RATED)
    rates = {name: action.get("limits") for name, action in project.actions.items()}
    if value:
        assert rates == {"weigh": None, "stack": None}
        assert not [text for text in subjects(report) if "rate" in text]
    else:
        assert rates == {
            "weigh": [{"rate": {"count": 1, "seconds": 360}}],
            "stack": [{"rate": {"count": 1, "seconds": 60}}],
        }
        assert not [text for text in subjects(report) if "worker_disable_rate_limits" in text]


@pytest.mark.parametrize(
    "setting",
    [
        "app.conf.worker_disable_rate_limits = load()\n",
        "if DEBUG:\n    app.conf.worker_disable_rate_limits = True\n",
        "app.conf.worker_disable_rate_limits = True\napp.conf.worker_disable_rate_limits = False\n",
    ],
)
def test_rates_that_may_be_disabled_are_named(tmp_path: Path, setting: str) -> None:
    project, report = imported(tmp_path, APP + setting + RATED)
    assert "limits" in project.actions["weigh"]
    (hint, *_) = [gap.by_hand for gap in report.gaps if "worker_disable_rate_limits" in gap.what]
    assert hint.startswith("If it is true, no rate limit is in force")


LIMITED = "@app.task(time_limit=60)\ndef weigh(): ...\n@app.task\ndef stack(): ...\n"


@pytest.mark.parametrize(
    ("text", "files", "pool"),
    [
        ("app.conf.worker_pool = 'threads'\n", {}, "the pool threads of tasks.py:3"),
        ("app.conf.worker_pool = POOL\n", {}, "a pool that is computed of tasks.py:3"),
        ("", {"run.sh": "celery -A depot worker -P solo\n"}, "the pool solo of run.sh:1"),
        ("", {"run.sh": "celery -A depot worker --pool=eventlet\n"}, "the pool eventlet of run.sh:1"),
        ("", {"run.sh": "celery -A depot worker -Pgevent -c 9\n"}, "the pool gevent of run.sh:1"),
        ("app.worker_main(['worker', '--pool', 'own:Pool'])\n", {}, "the pool own:Pool of tasks.py:3"),
    ],
)
def test_time_limit_beside_a_pool_without_limits_is_named(
    tmp_path: Path, text: str, files: dict[str, str], pool: str
) -> None:
    _, report = imported(tmp_path, APP + text + LIMITED, **files)
    assert f"time_limit of weigh, beside {pool}" in subjects(report)
    assert "stack" in report.names["tasks"]
    assert "weigh" not in report.names["tasks"]


@pytest.mark.parametrize("pool", ["prefork", "processes"])
def test_time_limit_in_a_pool_of_processes_is_mapped(tmp_path: Path, pool: str) -> None:
    _, report = imported(
        tmp_path,
        f"{APP}app.conf.worker_pool = '{pool}'\n{LIMITED}",
        **{"run.sh": f"celery worker -P {pool}\n"},
    )
    assert report.names["tasks"] == {"weigh", "stack"}
    assert not [text for text in subjects(report) if "beside the pool" in text]


@pytest.mark.parametrize("setting", ["task_time_limit", "task_soft_time_limit"])
def test_limit_of_all_tasks_beside_a_pool_of_threads_is_named(tmp_path: Path, setting: str) -> None:
    _, report = imported(
        tmp_path, f"{APP}app.conf.{setting} = 9\n{RATED}", **{"run.sh": "celery worker -P threads\n"}
    )
    assert f"{setting}, beside the pool threads of run.sh:1" in subjects(report)


def test_soft_limit_beside_a_pool_is_named(tmp_path: Path) -> None:
    text = f"{APP}@app.task(soft_time_limit=5)\ndef weigh(): ...\n"
    _, report = imported(tmp_path, text, **{"run.sh": "celery worker -P gevent\n"})
    assert "soft_time_limit of weigh, beside the pool gevent of run.sh:1" in subjects(report)
