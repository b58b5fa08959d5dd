"""Commands that start Celery, in Python code and in other files: each has a line with the options of the worker here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.penstock_import.test_reviewed_changes import of_application, texts

APP = "from celery import Celery\napp = Celery('depot')\n"
TASK = "@app.task\ndef weigh(): ...\n"


def commands(folder: Path, files: dict[str, str], setting: str = "") -> list[str]:
    _, report = of_application(folder, {"tasks.py": APP + TASK + setting, **files})
    return [text for text in texts(report) if " the command " in text]


@pytest.mark.parametrize(
    "code",
    [
        "subprocess.run(['celery', '-A', 'depot', 'worker', '-Q', 'celery', '--time-limit', '30'])",
        "subprocess.Popen(('celery', '-A', 'depot', 'worker', '-Q', 'celery', '--time-limit', '30'))",
        "os.execvp('celery', ['celery', '-A', 'depot', 'worker', '-Q', 'celery', '--time-limit', '30'])",
        "os.execlp('nice', 'celery', '-A', 'depot', 'worker', '-Q', 'celery', '--time-limit', '30')",
        "os.system('celery -A depot worker -Q celery --time-limit 30')",
        "cmd = 'celery -A depot worker -Q celery --time-limit 30'\nsubprocess.call(shlex.split(cmd))",
        "cmd = ['celery', '-A', 'depot', 'worker', '-Q', 'celery', '--time-limit', '30']\nsubprocess.call(cmd)",
        "def run():\n    cmd = ['celery', '-A', 'depot', 'worker', '-Q', 'celery']\n    cmd += ['--time-limit', '30']",
        "app.worker_main(['-A', 'depot', 'worker', '-Q', 'celery', '--time-limit', '30'])",
    ],
)  # fmt: skip
def test_command_of_python_code_is_named_once(tmp_path: Path, code: str) -> None:
    (line,) = commands(
        tmp_path, {"start.py": f"import os, shlex, subprocess\nfrom depot.tasks import app\n{code}\n"}
    )
    assert "the command celery -A depot worker -Q celery --time-limit 30 |" in line
    assert "-Q celery is `penstock worker --routes default`; --time-limit is `timeout`" in line


def test_texts_about_celery_are_no_commands(tmp_path: Path) -> None:
    code = '"""Start it by `celery -A depot worker`."""\nprint("the celery worker runs")\nPARTS = ["celery", "worker"]\n'
    assert commands(tmp_path, {"start.py": code}) == []


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        (
            "up.yml",
            "a:\n  command:\n    - celery\n    - -A\n    - depot\n    - worker\n    - -Q\n    - slow,celery\n",
            3,
        ),
        (
            "up.yml",
            'command: [\n  "celery",\n  "-A",\n  "depot",\n  "worker",\n  "-Q",\n  "slow,celery"\n]\n',
            1,
        ),
        ("up.yml", "a:\n  command: >\n    celery\n    -A depot worker\n    -Q slow,celery\n  b: 1\n", 2),
        ("up.sh", "#!/bin/sh\nexec celery -A depot \\\n  worker \\\n  -Q slow,celery\n", 2),
        ("Dockerfile", '# no\nCMD ["celery", "-A", "depot", "worker", "-Q", "slow,celery"]\n', 2),
        ("Procfile", "w: celery -A depot worker -Qslow,celery\n", 1),
        ("Procfile", "w: celery -A depot worker --queues=slow,celery\n", 1),
    ],
)
def test_command_of_a_file_is_named_with_its_routes(tmp_path: Path, file: str, text: str, line: int) -> None:
    (command,) = commands(tmp_path, {file: text})
    assert command.startswith(f"{file}:{line} the command celery -A depot worker ")
    assert "`penstock worker --routes slow,default`" in command


def test_lists_of_words_are_no_commands(tmp_path: Path) -> None:
    files = {"up.yml": "depends_on:\n  - celery\n  - worker\n", "keys.json": '[\n"celery",\n"worker"\n]\n'}
    assert commands(tmp_path, files) == []


@pytest.mark.parametrize(
    ("setting", "advice"),
    [
        ("", "Start `penstock worker` and `penstock executor`."),
        (
            "app.conf.task_default_queue = 'own'\n",
            "It serves the default queue: `penstock worker --routes own`.",
        ),
        (
            "from kombu import Queue\napp.conf.task_queues = [Queue('own')]\n",
            "It serves all queues of `task_queues`",
        ),
    ],
)
def test_worker_without_queues_serves_the_default_one(tmp_path: Path, setting: str, advice: str) -> None:
    (command,) = commands(tmp_path, {"Procfile": "w: celery -A depot worker\n"}, setting)
    assert advice in command
    assert "There," not in command


@pytest.mark.parametrize("option", ["--max-tasks-per-child 50", "--max-tasks-per-child=50"])
def test_tasks_of_a_child_are_named_as_option_of_its_executor(tmp_path: Path, option: str) -> None:
    (worker,) = commands(tmp_path, {"Procfile": f"w: celery -A depot worker {option}\n"})
    assert "In Penstock, --max-tasks-per-child is `jobs_per_child` of the executor `process`" in worker


def test_options_of_beat_are_sentences(tmp_path: Path) -> None:
    files = {"Procfile": "b: celery -A depot beat -S rows\nw: celery -A depot worker -B -Q $NAMES\n"}
    beat, worker = commands(tmp_path, files)
    assert (
        "Start `penstock executor`, which starts what is due. In Penstock, -S names a store of schedules"
        in beat
    )
    assert (
        "-B needs nothing, as executors start what is due; -Q is `penstock worker --routes`, where celery"
        in worker
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("app.worker_main(argv=argv)", "celery worker {argv}"),
        ("app.worker_main(argv)", "celery worker {argv}"),
        ("app.worker_main(load())", "celery worker {load()}"),
        ("app.worker_main()", "celery worker"),
        ("app.worker_main(argv=['worker', '-c', '2'])", "celery worker -c 2"),
        ("argv = ['worker', '-c', '2']\napp.worker_main(argv=argv)", "celery worker -c 2"),
    ],
)
def test_worker_that_code_starts_is_one_whatever_its_words(tmp_path: Path, call: str, words: str) -> None:
    lines = commands(tmp_path, {"start.py": f"from depot.tasks import app\n{call}\n"})
    (line,) = [line for line in lines if f"the command {words} |" in line]
    assert "Start `penstock worker` and `penstock executor`." in line
