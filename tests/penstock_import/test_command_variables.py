"""Variables of the environment that Celery 5 reads as options of its commands. The oracle is Celery's own command."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from celery.bin.beat import beat
from celery.bin.celery import celery
from celery.bin.worker import worker

from penstock_import.command_variables import option_of, variables
from tests.penstock_import.test_celery_commands import APP, TASK
from tests.penstock_import.test_reviewed_changes import of_application, texts

LIMIT = "the variable CELERY_WORKER_TIME_LIMIT of the environment, which is --time-limit=300 of celery worker"
FORMS = {
    "mapping": "    environment:\n      CELERY_WORKER_TIME_LIMIT: 300\n",
    "list": '    environment:\n      - "CELERY_WORKER_TIME_LIMIT=300"\n',
    "kubernetes": '  - name: CELERY_WORKER_TIME_LIMIT\n    value: "300"\n',
    "task definition": '{"name": "CELERY_WORKER_TIME_LIMIT", "value": "300"},\n',
    "json": '{\n  "CELERY_WORKER_TIME_LIMIT": "300",\n}\n',
    "env file": "CELERY_WORKER_TIME_LIMIT=300 # seconds\n",
    "shell": "export CELERY_WORKER_TIME_LIMIT='300'\n",
    "before the command": "CELERY_WORKER_TIME_LIMIT=300 celery -A depot worker\n",
    "docker": "ENV CELERY_WORKER_TIME_LIMIT=300\n",
    "old docker": "ENV CELERY_WORKER_TIME_LIMIT 300\n",
    "unit": 'Environment="CELERY_WORKER_TIME_LIMIT=300"\n',
}


def lines_of(folder: Path, files: dict[str, str]) -> list[str]:
    _, report = of_application(folder, {"tasks.py": APP + TASK, **files})
    return texts(report)


@pytest.mark.parametrize(("part", "command"), [("worker", worker), ("beat", beat)])
def test_variables_are_those_that_celery_reads(part: str, command: click.Command) -> None:
    above = click.Context(celery, info_name="celery", auto_envvar_prefix="CELERY")
    context = click.Context(command, info_name=part, parent=above)
    for parameter in command.params:
        names = {word.replace("-", "_").lstrip("_") for word in parameter.opts}
        option = option_of(f"{context.auto_envvar_prefix}_{str(parameter.name).upper()}")
        assert option is not None, parameter.name
        assert option[0] == part
        assert option[1].replace("-", "_").lstrip("_") in names | {"purge", "task_events"}, parameter.opts


@pytest.mark.parametrize("form", FORMS)
def test_variable_of_a_file_has_a_line(tmp_path: Path, form: str) -> None:
    lines = [line for line in lines_of(tmp_path, {"deploy/app.env": FORMS[form]}) if LIMIT in line]
    assert len(lines) == 1, lines
    assert (
        "does not have this option. In Penstock, --time-limit is `timeout` and `executor: process`"
        in lines[0]
    )


@pytest.mark.parametrize(
    "text",
    [
        "celery -A depot worker -c $CELERY_WORKER_CONCURRENCY\n",
        "celery -A depot worker -c ${CELERY_WORKER_CONCURRENCY:-4}\n",
        "celery -A depot worker -c %CELERY_WORKER_CONCURRENCY%\n",
        "# CELERY_WORKER_CONCURRENCY=4 of celery\n",
        "MY_CELERY_WORKER_CONCURRENCY=4\n",
        "CELERY_WORKER_CONCURRENCY_MAX=4\n",
    ],
)
def test_read_variable_has_no_line_of_its_own(text: str) -> None:
    assert list(variables(text)) == []


def test_queues_of_a_variable_are_routes(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, {".env": "CELERY_WORKER_QUEUES=celery,slow\nCELERY_WORKER_LOGLEVEL=debug\n"})
    assert any("--queues celery,slow is `penstock worker --routes default,slow`" in line for line in lines)
    assert any("CELERY_WORKER_LOGLEVEL" in line and "docs/configuration.md" in line for line in lines)


def test_pool_of_a_variable_is_seen_beside_a_time_limit(tmp_path: Path) -> None:
    task = "@app.task(time_limit=5)\ndef sort(): ...\n"
    lines = lines_of(tmp_path, {"sort.py": APP + task, ".env": "CELERY_WORKER_POOL=solo\n"})
    assert any("time_limit of sort, beside the pool solo" in line for line in lines), lines


@pytest.mark.parametrize(
    "code",
    [
        "os.environ['CELERY_WORKER_TIME_LIMIT'] = '300'",
        "os.environ.setdefault('CELERY_WORKER_TIME_LIMIT', '300')",
        "os.putenv('CELERY_WORKER_TIME_LIMIT', '300')",
        "subprocess.run(['x'], env={'CELERY_WORKER_TIME_LIMIT': '300'})",
    ],
)
def test_variable_of_python_code_has_one_line(tmp_path: Path, code: str) -> None:
    lines = lines_of(tmp_path, {"start.py": f"import os, subprocess\nfrom depot.tasks import app\n{code}\n"})
    assert [LIMIT in line for line in lines if "CELERY_WORKER_TIME_LIMIT" in line] == [True], lines
