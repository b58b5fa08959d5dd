"""Commands of Celery whose program or words are in another place: a variable, a substitution, a script or a template."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.penstock_import.test_celery_commands import APP, TASK, commands
from tests.penstock_import.test_reviewed_changes import of_application, texts

PASSED = "whose program passes its arguments to Celery | Start `penstock worker` and `penstock executor`."
OPEN = "See what its further words start: a worker is `penstock worker`, and beat is `penstock executor`."
LIMIT = "--time-limit is `timeout`"


@pytest.mark.parametrize(
    "text",
    [
        "BIN=$(which celery)\nexec $BIN -A depot worker --time-limit 4\n",
        "BIN=`which celery`\n$BIN -A depot worker --time-limit 4\n",
        "program=$(command -v celery)\nexec ${program} -A depot worker --time-limit 4\n",
        'BIN="$(type -p celery 2> /dev/null)"\nexec "$BIN" -A depot worker --time-limit 4\n',
        "exec $(which celery) -A depot worker --time-limit 4\n",
        '"$(command -v celery)" -A depot worker --time-limit 4\n',
        'exec "$BINARY" --app depot worker --time-limit 4\n',
        "python -m celery.__main__ -A depot worker --time-limit 4\n",
        "watchgod celery.__main__.main --args -A depot worker --time-limit 4\n",
        "python -m celery.bin.celery -A depot worker --time-limit 4\n",
    ],
)
def test_program_of_a_variable_or_a_module_is_named(tmp_path: Path, text: str) -> None:
    (line,) = commands(tmp_path, {"up.sh": text})
    assert "worker --time-limit 4 | Start `penstock worker` and `penstock executor`." in line
    assert LIMIT in line


@pytest.mark.parametrize(
    "script",
    [
        'celery "$@" &\nwait $!\n',
        'exec celery "$@"\n',
        "exec celery -A depot $*\n",
        'exec poetry run celery -A depot "${@}"\n',
        'exec gosu app celery -A depot "$@"\n',
        'set -- celery "$@"\nexec "$@"\n',
        'BIN=$(which celery)\nexec $BIN "$@"\n',
    ],
)
@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("start.sh", "case $ROLE in\n  w) exec ./w.sh worker --time-limit 4 ;;\nesac\n", 2),
        ("start.sh", "exec /srv/bin/w.sh --app=depot worker --time-limit=4\n", 1),
        ("up.yml", "  entrypoint: ./w.sh\n  command: [--app, depot, worker, --time-limit, '4']\n", 1),
        ("Dockerfile", 'FROM x\nENTRYPOINT ["/w.sh"]\nCMD ["worker", "--time-limit", "4"]\n', 2),
        ("Procfile", "w: bash w.sh worker --time-limit 4\n", 1),
    ],
)
def test_script_that_passes_its_arguments_is_named_with_its_caller(
    tmp_path: Path, script: str, name: str, text: str, line: int
) -> None:
    lines = commands(tmp_path, {"w.sh": script, name: text})
    (caller,) = [text for text in lines if text.startswith(f"{name}:{line} ")]
    assert PASSED in caller
    assert LIMIT in caller
    (own,) = [text for text in lines if text.startswith("w.sh:")]
    assert own.endswith(OPEN) or "See which further options" in own


def test_script_that_passes_its_arguments_on_twice_is_named(tmp_path: Path) -> None:
    files = {
        "inner.sh": 'celery "$@"\n',
        "outer.sh": 'exec ./inner.sh -A depot "$@"\n',
        "Procfile": "w: ./outer.sh worker --time-limit 4\n",
    }
    lines = commands(tmp_path, files)
    assert [line.partition(" ")[0] for line in lines] == ["Procfile:1", "inner.sh:1", "outer.sh:1"]
    assert LIMIT in lines[0]


@pytest.mark.parametrize(
    ("image", "text", "line"),
    [
        (
            'ENTRYPOINT ["/srv/w.sh"]\n',
            "  worker:\n    command: [--app, depot, worker, --time-limit, '4']\n",
            2,
        ),
        ('ENTRYPOINT ["celery", "-A", "depot"]\n', "  worker:\n    command: worker --time-limit 4\n", 2),
        ('ENTRYPOINT ["celery"]\n', "  - args:\n    - worker\n    - --time-limit\n    - '4'\n", 1),
    ],
)
def test_words_for_an_entry_point_of_another_file_are_named(
    tmp_path: Path, image: str, text: str, line: int
) -> None:
    files = {"w.sh": 'celery "$@"\n', "Dockerfile": image, "up.yml": text}
    (worker,) = [text for text in commands(tmp_path, files) if text.startswith(f"up.yml:{line} ")]
    assert "Start `penstock worker` and `penstock executor`." in worker
    assert LIMIT in worker


@pytest.mark.parametrize(
    ("image", "text"),
    [
        ('ENTRYPOINT ["/srv/run.sh"]\n', "  command: worker --time-limit 4\n"),
        ('ENTRYPOINT ["/srv/w.sh"]\n', "  entrypoint: rq\n  command: worker --time-limit 4\n"),
        ('ENTRYPOINT ["/srv/w.sh"]\n', "  command: serve --worker 4\n"),
    ],
)
def test_words_for_another_program_are_not_named(tmp_path: Path, image: str, text: str) -> None:
    lines = commands(tmp_path, {"w.sh": 'celery "$@"\n', "Dockerfile": image, "up.yml": text})
    assert [line for line in lines if line.startswith("up.yml")] == []


def test_options_for_a_script_of_a_worker_are_named(tmp_path: Path) -> None:
    files = {"w.sh": 'celery -A depot worker "$@"\n', "Procfile": "w: ./w.sh --time-limit 4\n"}
    caller, script = commands(tmp_path, files, "app.conf.task_default_queue = 'own'\n")
    assert caller.startswith("Procfile:1 the command ./w.sh --time-limit 4, whose program passes")
    assert LIMIT in caller
    assert "It serves the default queue: `penstock worker --routes own`." in caller
    assert "See which further options $@ may hold" in script


@pytest.mark.parametrize(
    "text",
    [
        'start() { celery -A depot "$@"; }\nstart worker --time-limit 4\n',
        'function start {\n  celery -A depot "$@"\n}\nif true; then\n  start worker --time-limit 4\nfi\n',
        "alias start='celery -A depot'\nstart worker --time-limit 4\n",
    ],
)
def test_function_that_passes_its_arguments_is_named_with_its_caller(tmp_path: Path, text: str) -> None:
    lines = commands(tmp_path, {"up.sh": text})
    (caller,) = [line for line in lines if "the command start worker --time-limit 4" in line]
    assert PASSED in caller
    assert LIMIT in caller


@pytest.mark.parametrize("text", ["celery -A depot $PART", "exec celery $PART", "celery -A depot report"])
def test_command_with_open_words_is_named(tmp_path: Path, text: str) -> None:
    (line,) = commands(tmp_path, {"up.sh": f"#!/bin/sh\n{text}\n"})
    assert line.startswith(f"up.sh:2 the command {text.removeprefix('exec ')} | {OPEN}")


@pytest.mark.parametrize(
    "options",
    [
        "--workdir src", "--workdir=src", "--loader x.y", "--result-backend redis://r", "--config x", "-b x", "--broker x",
        "-q", "--quiet", "--no-color", "-C", "--skip-checks",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "part",
    [
        "flower",
        "purge -f",
        "inspect ping",
        "control shutdown",
        "call depot.weigh",
        "status",
        "worker",
        "beat",
    ],
)
def test_options_of_all_commands_hide_none(tmp_path: Path, options: str, part: str) -> None:
    texts = [f"celery {options} -A depot {part}", f"celery -A depot {options} {part}"]
    lines = commands(tmp_path, {"up.sh": "".join(f"{text}\n" for text in texts)})
    assert [line.partition(" the command ")[2].partition(" | ")[0] for line in lines] == texts
    assert not [line for line in lines if OPEN in line]


@pytest.mark.parametrize(
    ("code", "command"),
    [
        (
            "cmd = 'python manage.py {cmd} {opts} &'.format\n"
            "subprocess.run(cmd(cmd='celery worker', opts='--time-limit 4'), shell=True)",
            "celery worker --time-limit 4 &",
        ),
        (
            "LINE = 'python manage.py {cmd} {opts}'\n"
            "subprocess.run(LINE.format(cmd='celery worker', opts=' '.join(['--time-limit=4'])), shell=True)",
            "celery worker --time-limit=4",
        ),
        (
            "class Command:\n    line = 'python manage.py {} {}'.format\n    def handle(self):\n"
            "        options = ['--time-limit=4']\n        options.append('-c 1')\n"
            "        local(self.line('celery worker', ' '.join(options)))",
            "celery worker --time-limit=4 -c 1",
        ),
        (
            "subprocess.run('%s -A depot worker --time-limit %s' % ('celery', 4), shell=True)",
            "celery -A depot worker --time-limit 4",
        ),
        ("subprocess.run('python manage.py celery worker', shell=True)", "celery worker"),
        (
            "BIN = shutil.which('celery')\nsubprocess.run([BIN, '-A', 'depot', 'worker', '-c', '1'])",
            "celery -A depot worker -c 1",
        ),
        (
            "subprocess.run([shutil.which('celery'), '-A', 'depot', 'worker', '-c', '1'])",
            "celery -A depot worker -c 1",
        ),
        (
            "subprocess.run([sys.executable, '-m', 'celery.__main__', '-A', 'depot', 'worker', '-c', '1'])",
            "celery.__main__ -A depot worker -c 1",
        ),
    ],
)
def test_command_that_code_makes_of_a_template_is_named(tmp_path: Path, code: str, command: str) -> None:
    (line,) = commands(tmp_path, {"up.py": f"import shutil, subprocess, sys\n{code}\n"})
    assert f"the command {command} | Start `penstock worker` and `penstock executor`." in line


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("up.sh", 'echo "Starting the celery worker -c 1 with its queue"\n'),
        ("up.sh", "printf '%s\\n' 'celery worker starts'; true\n"),
        ("Dockerfile", "RUN echo 'the celery beat' && true\n"),
        ("up.sh", "pip install celery --upgrade\nservice celery $1\ncelery --version\nuseradd celery -s /bin/sh\n"),
        ("up.sh", "exec \"$@\"\n# celery \"$@\"\n"),
        ("up.py", "log('the {} of {}'.format('celery worker', 'depot'))\n"),
    ],
)  # fmt: skip
def test_text_that_runs_no_program_has_no_line(tmp_path: Path, name: str, text: str) -> None:
    assert commands(tmp_path, {name: text}) == []


def test_text_that_a_script_writes_into_a_file_is_named(tmp_path: Path) -> None:
    text = "echo 'celery -A depot worker -c 1' > run.sh\necho begin; celery -A depot beat\n"
    written, beat = commands(tmp_path, {"up.sh": text})
    assert "the command celery -A depot worker -c 1" in written
    assert "the command celery -A depot beat" in beat


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess\nsubprocess.run(['./w.sh', 'worker', '--time-limit', '4'])\n",
        "import subprocess\nsubprocess.Popen(['bash', '/srv/w.sh', 'worker', '--time-limit', '4'])\n",
        "import os\nos.system('./w.sh worker --time-limit 4')\n",
        "import os\nos.execv('/srv/w.sh', ('/srv/w.sh', 'worker', '--time-limit', '4'))\n",
    ],
)
def test_python_code_that_calls_a_script_is_named(tmp_path: Path, text: str) -> None:
    lines = commands(tmp_path, {"w.sh": 'celery "$@"\n', "up.py": text})
    (caller,) = [line for line in lines if line.startswith("up.py:2 ")]
    assert PASSED in caller
    assert LIMIT in caller


@pytest.mark.parametrize("word", [".", "source"])
def test_function_of_a_sourced_script_is_named(tmp_path: Path, word: str) -> None:
    files = {
        "lib.sh": 'run_celery() {\n  celery -A depot "$@"\n}\n',
        "up.sh": f"{word} ./lib.sh\nrun_celery worker --time-limit 4\n",
    }
    (caller,) = [line for line in commands(tmp_path, files) if line.startswith("up.sh:2 ")]
    assert PASSED in caller
    assert LIMIT in caller


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("with_lock celery --app=depot $ROLE\n", "1"),
        ("a: 1\nrunner = my-runner celery -A depot $ROLE\n", "2"),
        ("first() { true; }\nwatch celery {{ role }}\nwatch celery $X\n", "2, 3"),
        ("pm3 start celery control\n", "1"),
        ("python -c 'from kombu import Connection; Connection(1).connect()'\n", "1"),
        ("python manage.py shell <<X\nfrom django_celery_beat.models import PeriodicTask\nX\n", "2"),
    ],
)
def test_line_that_may_start_celery_in_another_way_is_named(tmp_path: Path, text: str, numbers: str) -> None:
    (line,) = of_celery(tmp_path, text)
    assert f"Celery in lines without a known command: {numbers} | See whether" in line


@pytest.mark.parametrize(
    "text",
    [
        "# celery --app depot $ROLE\n",
        "echo celery $ROLE\n",
        "pip install celery redis\n",
        "  depends_on: [celery, redis]\n",
        "  celery:\n    image: celery\n",
        "chown celery:celery /srv\n",
    ],
)
def test_line_that_only_has_the_name_is_not_named(tmp_path: Path, text: str) -> None:
    assert of_celery(tmp_path, text) == []


def of_celery(folder: Path, text: str) -> list[str]:
    """Import an application with a file `up.conf`, and return what the report says about this file."""
    _, report = of_application(folder, {"tasks.py": APP + TASK, "up.conf": text})
    return [line for line in texts(report) if line.startswith("up.conf")]


def test_variable_that_changes_the_end_of_workers_is_named(tmp_path: Path) -> None:
    lines = of_celery(tmp_path, "w: REMAP_SIGTERM=SIGQUIT celery -A depot worker\n# REMAP_SIGTERM\n")
    (line,) = [line for line in lines if "REMAP_SIGTERM" in line]
    assert line.startswith("up.conf:1 the variable REMAP_SIGTERM, by which SIGTERM ends the tasks")


@pytest.mark.parametrize(
    ("code", "subject"),
    [
        (
            "import sentry.integrations.celery\nX = [sentry.integrations.celery.Extra(beat=True)]\n",
            "sentry.integrations.celery.Extra",
        ),
        (
            "INSTALLED_APPS = ['health', 'health.celery_ping']\n",
            "health.celery_ping, an application of Django",
        ),
        (
            "THIRD_PARTY_APPS = ('health.contrib.celery',)\n",
            "health.contrib.celery, an application of Django",
        ),
        (
            "def look(settings):\n    broker_url = str(getattr(settings, 'CELERY_BROKER_URL', ''))\n    return broker_url\n",
            "getattr(settings, 'CELERY_BROKER_URL', ''), which code reads",
        ),
        (
            "import os\nos.system('\"/srv/bin/celery\" --app=app worker')\n",
            "the command /srv/bin/celery --app=app worker",
        ),
    ],
)
def test_further_place_of_celery_in_code_is_named(tmp_path: Path, code: str, subject: str) -> None:
    _, report = of_application(tmp_path, {"tasks.py": APP + TASK, "more.py": code})
    assert any(subject in line for line in texts(report) if line.startswith("more.py"))
