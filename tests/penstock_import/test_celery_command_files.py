"""Commands of workers in all files of an application, in each way a file spreads one: each has one line with all options."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.penstock_import.test_accounting import CASES
from tests.penstock_import.test_celery_commands import APP, TASK, commands
from tests.penstock_import.test_reviewed_changes import of_application, texts

WORDS = ["celery", "-A", "tasks", "worker", "--time-limit=300", "-Q", "high"]
WHOLE = " ".join(WORDS)
REST = '"--time-limit=300", "-Q", "high"'
QUOTED = ", ".join(f'"{word}"' for word in WORDS)
NAMES = [
    "Dockerfile.worker",
    "celery.Dockerfile",
    "Procfile.dev",
    ".ebextensions/01_celery.config",
    "run.bat",
    "run.cmd",
    "run.bash",
    "deploy/worker.template",
    "start.sh.example",
    "unit.tmpl",
    "unit.j2",
    "worker.service",
    "Makefile",
    "Justfile",
    "fabric.rb",
]
LINES = [
    "worker: {}\n",
    "CMD {}\n",
    "exec {}\n",
    "ExecStart=/usr/bin/env {}\n",
    "run:\n\t{}\n",
]
FORMS = {
    "continued line": "celery -A tasks worker \\\n  --time-limit=300 \\\n  -Q high\n",
    "continued line of a batch file": "celery -A tasks worker ^\n  --time-limit=300 ^\n  -Q high\n",
    "ini": "[program:worker]\ncommand=celery -A tasks worker\n    --time-limit=300\n    -Q high\nautostart=true\n",
    "ini, value below": "[program:worker]\ncommand =\n    celery -A tasks worker\n    --time-limit=300 -Q high\n",
    "flow of plain words": '  - name: w\n    args: [celery, -A, tasks, worker, "--time-limit=300", -Q, high]\n',
    "flow": f"  command: [{QUOTED}]\n",
    "args": '  - command: ["celery"]\n    args: ["-A", "tasks", "worker", "--time-limit=300", "-Q", "high"]\n',
    "args before": '    args: ["-A", "tasks", "worker", "--time-limit=300", "-Q", "high"]\n    command: ["celery"]\n',
    "args of a started worker": f'    command: ["celery", "-A", "tasks", "worker"]\n    args: [{REST}]\n',
    "args one per line": "    command:\n    - celery\n"
    "    args:\n    - -A\n    - tasks\n    - worker\n    - --time-limit=300\n    - -Q\n    - high\n",
    "args deeper": '    command:\n      - "celery"\n    image: x\n'
    '    args:\n      - "-A"\n      - "tasks"\n      - "worker"\n      - "--time-limit=300"\n      - "-Q"\n      - "high"\n',
    "flow over lines": f'    command: [\n      "celery", "-A",\n      "tasks"\n    ]\n    args: ["worker", {REST}]\n',
    "folded text in a list": "    command:\n      - /bin/sh\n      - '-c'\n      - >\n"
    "        HOME=/srv celery -A\n        tasks worker --time-limit=300 -Q high\n    ports: []\n",
    "folded text with a mark": "    - >-2\n        celery -A tasks\n        worker --time-limit=300 -Q high\n",
    "folded text with deeper options": "    command: >\n      celery -A tasks worker\n             --time-limit=300\n"
    "             -Q high\n    environment:\n      - CONCURRENCY=24\n",
    "plain text over lines": "    command: celery -A tasks worker\n      --time-limit=300\n      -Q high\n    ports: []\n",
    "args as a text": "    command: celery\n    args: -A tasks worker --time-limit=300 -Q high\n",
    "compose": "    entrypoint: celery\n    command: -A tasks worker --time-limit=300 -Q high\n",
    "docker": f'FROM x\nENTRYPOINT ["celery", "-A", "tasks"]\nEXPOSE 1\nCMD ["worker", {REST}]\n',
    "task definition": f'{{\n  "entryPoint": ["celery"],\n  "command": ["-A", "tasks", "worker", {REST}]\n}}\n',
    "terraform": '  entryPoint = ["celery"]\n  command = ["-A", "tasks", "worker", "--time-limit=300", "-Q", "high"]\n',
    "javascript": "module.exports = {\n  script: 'celery',\n  args: '-A tasks worker --time-limit=300 -Q high',\n}\n",
    "variable": 'CELERY="celery -A tasks"\n$CELERY worker --time-limit=300 -Q high\n',
    "variable in braces": "export CELERY='celery -A tasks'\nexec ${CELERY} worker --time-limit=300 -Q high\n",
    "list of a script": 'options=(\n    "--time-limit=300"\n)\nif [ -n "$Q" ]; then\n    options+=( "-Q" "high" )\nfi\n'
    'exec celery \\\n    -A tasks \\\n    worker "${options[@]}"\n',
    "options of a script": "OPTS='--time-limit=300'\nOPTS=\"$OPTS -Q high\"\nexec celery -A tasks worker $OPTS\n",
    "variable of make": "RUN := celery -A tasks\nworker:\n\t$(RUN) worker --time-limit=300 -Q high\n",
    "variable of a batch file": "set RUN=celery -A tasks\n%RUN% worker --time-limit=300 -Q high\n",
}
"""Texts of files with one command, by the way in which they hold it."""
OLD = {
    "celeryd --time-limit=300": "celeryd --time-limit=300",
    "exec /opt/bin/celeryd --time-limit=300": "celeryd --time-limit=300",
    "python manage.py celeryd --time-limit=300": "celeryd --time-limit=300",
    'CMD ["python", "manage.py", "celeryd", "--time-limit=300"]': "celeryd --time-limit=300",
    "${CELERY_BIN} -A tasks worker --time-limit=300": "${CELERY_BIN} -A tasks worker --time-limit=300",
}


@pytest.mark.parametrize("form", FORMS)
def test_command_is_one_line_with_all_options(tmp_path: Path, form: str) -> None:
    (line,) = commands(tmp_path, {"deploy/worker.yaml": FORMS[form]})
    assert f"the command {WHOLE} |" in line
    assert "Start `penstock worker`" in line
    assert "--time-limit is `timeout`" in line
    assert "-Q high is `penstock worker --routes high`" in line


@pytest.mark.parametrize("name", [*NAMES, "ecosystem.config.js", "main.tf"])
def test_file_of_any_name_is_read(tmp_path: Path, name: str) -> None:
    (line,) = commands(tmp_path, {name: f"run {WHOLE}\n"})
    assert line.startswith(f"{name}:1 the command {WHOLE} |")


@pytest.mark.parametrize("text", OLD)
def test_older_program_and_program_of_a_variable_are_named(tmp_path: Path, text: str) -> None:
    (line,) = commands(tmp_path, {"run.sh": f"#!/bin/sh\n{text}\n"})
    assert line.startswith(f"run.sh:2 the command {OLD[text]} | Start `penstock worker`")


@pytest.mark.parametrize(
    ("name", "text", "subject"),
    [
        (
            "etc/default/celeryd",
            'CELERYD_OPTS="--time-limit=300 -Q high"\n',
            "CELERYD_OPTS --time-limit=300 -Q high",
        ),
        (
            "etc/celeryd",
            "export CELERYD_OPTS='--time-limit=300 \\\n  -Q high'\n",
            "CELERYD_OPTS --time-limit=300 -Q high",
        ),
        (
            "docker-compose.yml",
            "      - CELERYD_OPTS=--time-limit=300 -Q high\n",
            "CELERYD_OPTS --time-limit=300 -Q high",
        ),
        (
            "deploy.yml",
            '      CELERY_WORKER_OPTS: "--time-limit=300 -Q high"\n',
            "CELERY_WORKER_OPTS --time-limit=300 -Q high",
        ),
        (
            "update.sh",
            "  sed -i 's/CELERYD_OPTS=.*/CELERYD_OPTS=\"--time-limit=300 -Q high\"/g' /etc/conf.d/celery.conf\n",
            "CELERYD_OPTS --time-limit=300 -Q high",
        ),
        (
            "setup.sh",
            "echo 'CELERYD_OPTS=\"--time-limit=300 -Q high\"' >> /etc/default/celeryd\n",
            "CELERYD_OPTS --time-limit=300 -Q high",
        ),
        (
            "site.yml",
            "    line: CELERYD_OPTS=--time-limit=300 -Q high\n",
            "CELERYD_OPTS --time-limit=300 -Q high",
        ),
        (
            "a.service",
            'Environment="CELERYD_OPTS=--time-limit=300 -Q high"\n',
            "CELERYD_OPTS --time-limit=300 -Q high",
        ),
    ],
)
def test_options_of_a_unit_are_named(tmp_path: Path, name: str, text: str, subject: str) -> None:
    _, report = of_application(tmp_path, {"tasks.py": APP + TASK, name: text})
    (line,) = [line for line in texts(report) if "the options" in line]
    assert line.startswith(f"{name}:1 the options {subject} of a command | Start `penstock worker`")
    assert "--time-limit is `timeout`" in line
    assert "-Q high is `penstock worker --routes high`" in line


def test_older_setting_of_a_unit_is_named(tmp_path: Path) -> None:
    text = "CELERYD_TASK_TIME_LIMIT=300\nCELERYD_USER=celery\n"
    _, report = of_application(tmp_path, {"tasks.py": APP + TASK, "etc/celeryd": text})
    lines = [line for line in texts(report) if line.startswith("etc/celeryd")]
    assert len(lines) == 1
    assert lines[0].startswith(
        "etc/celeryd:1 the variable CELERYD_TASK_TIME_LIMIT of a worker: 300 | Write `timeout`"
    )


@pytest.mark.parametrize(
    "call",
    [
        "app.Worker(time_limit=300, queues='high', beat=True)",
        "worker = app.Worker(time_limit=300, queues=['high'], beat=True)\nworker.start()",
        "app.WorkController(time_limit=300, queues='high', beat=True).start()",
    ],
)
def test_worker_of_python_code_is_named(tmp_path: Path, call: str) -> None:
    (line,) = commands(tmp_path, {"start.py": f"from depot.tasks import app\n{call}\n"})
    assert (
        "start.py:2 the command celery worker --time-limit=300 --queues=high --beat | Start `penstock" in line
    )
    assert "--queues high is `penstock worker --routes high`" in line


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("README.md", f"Run `{WHOLE}`.\n"),
        ("run.sh", f"# {WHOLE}\n"),
        ("run.bat", f"rem {WHOLE}\n"),
        ("main.js", f"// {WHOLE}\n"),
        ("run.sh", "service celeryd restart\nrm /var/run/celeryd.pid\n"),
        ("super.conf", "[program:celeryd]\nuser=celery\n"),
        ("deploy.yaml", "    command: ['celery']\n  - name: other\n    args: ['-A', 'tasks', 'worker']\n"),
        ("work.py", "import rq\nrq.Worker(queues=['a'], connection=None).work()\n"),
        ("data.bin", f"\0{WHOLE}\n"),
    ],
)
def test_text_that_starts_nothing_has_no_line(tmp_path: Path, name: str, text: str) -> None:
    assert commands(tmp_path, {name: text}) == []


def test_random_command_in_a_random_file_is_named(tmp_path: Path) -> None:
    rng = random.Random(2)
    for case in range(CASES):
        options = rng.sample(
            ["--time-limit=7", "-c 3", "-Q low", "-P solo", "--soft-time-limit=2", "-l info"], 3
        )
        command = " ".join(["celery", "-A", "tasks", rng.choice(["worker", "beat"]), *options])
        name, text = rng.choice(NAMES), rng.choice(LINES).format(command)
        lines = commands(tmp_path / f"case{case}", {name: text})
        assert [line for line in lines if f"the command {command} |" in line], (name, text, lines)


@pytest.mark.parametrize(
    ("text", "command", "advice"),
    [
        ("celery -A tasks purge -f", "celery -A tasks purge -f", "It removes all waiting messages"),
        (
            "celery --app tasks.app purge -f",
            "celery --app tasks.app purge -f",
            "It removes all waiting messages",
        ),
        (
            "test: ['CMD', 'celery', '-A', 'tasks', 'inspect', 'ping']",
            "celery -A tasks inspect ping",
            "Ask `/live`",
        ),
        ("celery inspect ping", "celery inspect ping", "Ask `/live`"),
        ("celery -b redis:// status", "celery -b redis:// status", "Ask `/live`"),
        (
            "celery -A tasks control rate_limit depot.weigh 1/m",
            "celery -A tasks control rate_limit depot.weigh 1/m",
            "See what it changes",
        ),
        ("celery -A tasks call depot.weigh", "celery -A tasks call depot.weigh", "Write `penstock run`"),
        ("celery -A tasks flower --port=5555", "celery -A tasks flower --port=5555", "Leave it out"),
    ],
)
def test_command_that_starts_no_worker_is_named(tmp_path: Path, text: str, command: str, advice: str) -> None:
    (line,) = commands(tmp_path, {"run.sh": f"{text}\n"})
    assert line.startswith(f"run.sh:1 the command {command} | {advice}"), line


def test_command_of_code_that_starts_no_worker_is_named(tmp_path: Path) -> None:
    code = (
        "import subprocess\nsubprocess.run(['celery', '-A', 'tasks', 'purge', '-f'])\n"
        "subprocess.run(['celery', 'inspect', 'ping'])\n"
    )
    purge, ping = commands(tmp_path, {"ops.py": code})
    assert purge.startswith("ops.py:2 the command celery -A tasks purge -f | It removes all waiting messages")
    assert ping.startswith("ops.py:3 the command celery inspect ping | Ask `/live`")


def test_text_about_the_status_of_celery_is_no_command(tmp_path: Path) -> None:
    text = "description: The celery status of a call, and what celery purge does - see the events\ncelery:\n  status: up\n"
    assert commands(tmp_path, {"about.yaml": text}) == []


@pytest.mark.parametrize(
    ("command", "held"),
    [
        ('celery -A tasks worker "$@"', ["$@"]),
        ("celery -A $APP worker -c $N $MORE", ["$MORE"]),
        ("celery -A tasks worker ${A} $(B) > $LOG", ["${A}", "$(B)"]),
        ("celery -A tasks worker -Q${QUEUES-a,b}", []),
    ],
)
def test_variable_of_a_command_that_may_hold_options_is_named(
    tmp_path: Path, command: str, held: list[str]
) -> None:
    (line,) = commands(tmp_path, {"run.sh": f"QUEUES=${{QUEUES-a,b}}\n{command}\n"})
    sentence = f"See which further options {' and '.join(held)} may hold."
    assert line.endswith(sentence) if held else "further options" not in line, line


def test_pool_that_a_script_gives_in_a_list_is_seen(tmp_path: Path) -> None:
    """Threads enforce no time limit, whatever the setting is."""
    script = (
        'options=("-l" "INFO")\noptions+=( "--pool=threads" )\ncelery -A depot.tasks worker "${options[@]}"\n'
    )
    files = {
        "tasks.py": "from celery import Celery\napp = Celery('depot')\napp.conf.task_time_limit = 900\n"
        "@app.task\ndef weigh(): ...\n",
        "worker.sh": script,
    }
    _, report = of_application(tmp_path, files)
    assert any("task_time_limit, beside the pool threads of worker.sh:3" in text for text in texts(report))


ITEMS = "    - celery{first}\n    - -A\n    - tasks\n    - worker{last}\n    - --time-limit=300{end}\n    - -Q\n    - high\n"
BROKEN = '["celery", "-A", "tasks", "worker",{end}\n   "--time-limit=300", "-Q", "high"'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("up.yml", "w:\n  command:\n" + ITEMS.format(first="   # a worker", last="", end="")),
        ("up.yml", "w:\n  command:\n" + ITEMS.format(first="", last="", end="   # seconds")),
        ("up.yml", "w:\n  command:\n" + ITEMS.format(first="", last="\n    # the hard limit", end="")),
        ("up.yml", "w:\n  command:\n" + ITEMS.format(first="", last="\n", end="\n\n    # routes")),
        ("up.yml", f"w:\n  command: {BROKEN.format(end='')}]\n"),
        ("up.yml", f"w:\n  command: {BROKEN.format(end='  # the hard limit')}]\n"),
        ("up.yml", f"w:\n  command: [\n    {BROKEN.format(end='')[1:]},\n  ]\n"),
        ("up.json", f'{{"containers": [{{"name": "w",\n  "command": {BROKEN.format(end="")}]}}]}}\n'),
        ("up.tf", f"resource {{\n  command = {BROKEN.format(end='')}]\n}}\n"),
        ("Dockerfile", "FROM x\nCMD " + BROKEN.format(end=" \\\n  # the hard limit") + "]\n"),
        (
            "launch.json",
            '[{\n  "module": "celery",\n  "args": ["-A", "tasks", "worker",\n   ' + REST + "]\n}]\n",
        ),
        ("launch.json", '[{\n  "runtimeExecutable": "celery",\n  "runtimeArgs": [' + QUOTED[10:] + "]\n}]\n"),
    ],
)
def test_list_with_comments_or_line_breaks_is_named_whole(tmp_path: Path, name: str, text: str) -> None:
    (line,) = commands(tmp_path, {name: text})
    assert f"the command {WHOLE} | " in line


@pytest.mark.parametrize(
    "text",
    [
        '[{"name": "w", "module": "celery",\n  "args": ["-A", "tasks", "worker"]}]\n',
        '[{"name": "w", "runtimeExecutable": "/srv/bin/celery",\n  "runtimeArgs": ["-A", "tasks"]}]\n',
    ],
)
def test_program_within_a_line_of_json_is_named(tmp_path: Path, text: str) -> None:
    _, report = of_application(tmp_path, {"tasks.py": APP + TASK, "launch.json": text})
    (line,) = [line for line in texts(report) if line.startswith("launch.json")]
    assert "Celery in lines without a known command: 1" in line
