"""A call of a function that builds a command of Celery has a line with the options that the call gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject

ROUTE = "-Q slow is `penstock worker --routes slow`"


def gaps(folder: Path, text: str, **files: str) -> list[str]:
    (folder / "tasks.py").write_text("from celery import Celery\napp = Celery('depot')\n")
    (folder / "worker.sh").write_text("#!/bin/bash\nexec celery $*\n")
    for name, lines in {"deploy": text, **files}.items():
        (folder / f"{name}.py").write_text(lines)
    source = CeleryProject(folder)
    source.mapped()
    return [f"{gap.file}:{gap.line} {gap.what}: {gap.by_hand}" for gap in source.report.gaps]


@pytest.mark.parametrize(
    ("head", "call"),
    [
        ("def run(q): return ['celery', '-A', 'tasks', 'worker', '-Q', q]\n", "run('slow')"),
        ("def run(q): return ['celery', 'worker', '-l', 'INFO', *q.split(' ')]\n", "run('-c 1 -Q slow')"),
        ("def run(q):\n    return ['celery', 'worker', '-E', *q]\n", "run(['-Q', 'slow'])"),
        ("def run(*q):\n    return ['celery', 'worker', '-E', *q]\n", "run('-Q', 'slow')"),
        ("def run(q='slow'):\n    return ['celery', 'worker', '-Q', q]\n", "run()"),
        ("def run(*, q):\n    return f'celery worker -A tasks -Q {q}'\n", "run(q='slow')"),
        ("def run(q): return f'celery worker -A tasks {q}'\n", "run('-Q slow')"),
        (
            "import shlex\ndef run(q):\n    own = shlex.split(q)\n    return ['celery', 'worker', '-E', *own]\n",
            "run('-Q slow')",
        ),
        ("def run(q): return ['/app/worker.sh', '-A', 'tasks', 'worker', *q.split()]\n", "run('-Q slow')"),
        (
            "class Make:\n    def run(self, q):\n        return ['celery', 'worker', '-Q', q]\n",
            "Make().run('slow')",
        ),
        (
            "def make(q): return ['celery', 'worker', '-Q', q]\ndef run(q): return make(q)\n",
            "run('slow')",
        ),
    ],
)
def test_call_that_gives_options_is_named(tmp_path: Path, head: str, call: str) -> None:
    named = gaps(tmp_path, f"{head}SERVICES = [{call}]\n")
    line = f"deploy.py:{head.count(chr(10)) + 1} the call {call}, which gives the command of deploy.py:"
    assert [gap for gap in named if gap.startswith(line) and ROUTE in gap], named


@pytest.mark.parametrize("head", ["from deploy import run\n", "import deploy\nrun = deploy.run\n"])
def test_call_in_another_module_is_named(tmp_path: Path, head: str) -> None:
    call = "run('slow')" if "from" in head else "deploy.run('slow')"
    text = "def run(q): return ['celery', 'worker', '-Q', q]\n"
    named = gaps(tmp_path, text, other=f"{head}x = {call}\n")
    assert [gap for gap in named if gap.startswith("other.py:") and ROUTE in gap], named


def test_computed_argument_is_named(tmp_path: Path) -> None:
    text = "def run(q): return ['celery', 'worker', '-E', *q.split()]\nx = run(load())\n"
    named = gaps(tmp_path, text)
    assert any(gap.startswith("deploy.py:2 the call run(load())") for gap in named), named
    assert any("See which further options {*q.split()} may hold" in gap for gap in named), named


def test_call_of_another_function_is_not_named(tmp_path: Path) -> None:
    text = "def run(q): return ['celery', 'worker', '-Q', 'fast']\nx = run('slow')\n"
    assert not any("the call run" in gap for gap in gaps(tmp_path, text))
    text = "def run(q): return ['celery', 'worker', '-Q', q]\n"
    other = "from shop import run\nrun('slow')\n"
    assert not any(gap.startswith("other.py") for gap in gaps(tmp_path, text, other=other))
