"""Retries that a task asks for in any way: the policy bounds them as Celery does. The oracle is Celery itself, which runs
each task eagerly."""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.penstock_import.test_accounting import CASES
from tests.penstock_import.test_reviewed_changes import of_application, texts

HEAD = """
from functools import partial
from operator import attrgetter, methodcaller
from celery import Celery, Task, current_task, shared_task
app = Celery('depot', broker='memory://', set_as_current=False)
app.conf.task_always_eager = True

class Again(Task):
    def again(self, error): raise self.retry(exc=error)
class Quiet(Task):
    def note(self, error): raise error
class Called(Task):
    def __call__(self, *args):
        try: return self.run(*args)
        except KeyError as error: raise self.retry(exc=error)
class Runner:
    task = None
    def __init__(self, task=None, context=None): self.own = task or context and context['task']
    def go(self): raise self.own.retry()
def geoprocess(how, data, retry): raise retry()
def go(task): raise task.retry()
def by_current(): raise current_task.retry()
def through(): return by_current()
def by_name(parts): raise parts['self'].retry()
def fails(): raise KeyError('no')
def retrying(function):
    def run(self):
        try: return function(self)
        except KeyError as error: raise self.retry(exc=error)
    return run
def keep(task):
    Runner.task = task
    raise Runner.task.retry()
"""
ASKING = {
    "raise self.retry()": "",
    "self.retry(exc=KeyError('no'))": "",
    "geoprocess('run', 1, self.retry)": "",
    "geoprocess('run', 1, retry=self.retry)": "",
    "geoprocess('run', 1, partial(self.retry, throw=True))": "",
    "partial(self.retry, exc=None)()": "",
    "j = self.retry\n    raise j()": "",
    "j = self\n    raise j.retry()": "",
    "weigh.retry()": "",
    "geoprocess('run', 1, weigh.retry)": "",
    "go(self)": "",
    "go(task=self)": "",
    "go(weigh)": "",
    "go(current_task)": "",
    "go(app.current_task)": "",
    "go(app.tasks[self.name])": "",
    "go(self.app.current_task)": "",
    "current_task.retry()": "",
    "app.current_task.retry()": "",
    "by_current()": "",
    "through()": "",
    "by_name(locals())": "",
    "Runner(self).go()": "",
    "Runner(None, {'task': self}).go()": "",
    "Runner.task = self\n    raise Runner.task.retry()": "",
    "keep(self)": "",
    "getattr(self, 'retry')()": "",
    "attrgetter('retry')(self)()": "",
    "methodcaller('retry')(self)": "",
    "(lambda: self.retry())()": "",
    "[one.retry() for one in [self]]": "",
    "self.again(KeyError('no'))": "base=Again",
    "raise KeyError(1)": "base=Called",
}
"""The bodies of tasks that ask for a retry, each with the option that it needs."""
SILENT = {
    "raise KeyError('no')": "",
    "fails()": "",
    "print(self.request.retries, self.name, current_task.request.id)\n    fails()": "",
    "self.note(KeyError('no'))": "base=Quiet",
    "retry = 1\n    raise KeyError(retry)": "",
}
"""The bodies of tasks that fail and ask for none."""


def source(body: str, options: str, decorator: str = "") -> str:
    extra = ASKING.get(body, "") or SILENT.get(body, "")
    words = ", ".join(part for part in ("bind=True", extra, options) if part)
    lines = [
        f"@app.task({words})",
        *([f"@{decorator}"] if decorator else []),
        "def weigh(self):",
        f"    {body}",
    ]
    return HEAD + "\n".join(lines) + "\n"


def tries_of_celery(text: str, most: int = 12) -> int:
    """Return how often Celery runs the task of a module; `most` if it goes on."""
    module = ModuleType("depot")
    sys.modules["depot"] = module
    runs: list[int] = []
    try:
        exec(text, module.__dict__)
        task = module.__dict__["weigh"]._get_current_object()
        before = type(task).before_start

        def counted(self: Any, *args: Any) -> None:
            runs.append(1)
            if len(runs) >= most:
                raise SystemExit
            before(self, *args)

        type(task).before_start = counted
        with suppress(SystemExit):
            task.apply()
    finally:
        del sys.modules["depot"]
    return len(runs)


def ours(folder: Path, text: str) -> tuple[int, dict[str, Any]]:
    project, _ = of_application(folder, {"tasks.py": text})
    policy = project.actions["weigh"].get("retry", {})
    return policy.get("max_attempts", 1), policy


@pytest.mark.parametrize("body", ASKING)
def test_task_that_asks_for_a_retry_has_the_policy_of_celery(tmp_path: Path, body: str) -> None:
    text = source(body, "default_retry_delay=1, max_retries=6")
    assert tries_of_celery(text) == 7
    attempts, policy = ours(tmp_path / "options", text)
    assert (attempts, policy["initial_delay"], policy["retry_on"]) == (7, 1, ["Retry"])
    text = source(body, "")
    assert tries_of_celery(text) == 4
    attempts, policy = ours(tmp_path / "none", text)
    assert (attempts, policy["initial_delay"], policy["retry_on"]) == (4, 180, ["Retry"])


@pytest.mark.parametrize("body", SILENT)
def test_task_that_asks_for_no_retry_has_none(tmp_path: Path, body: str) -> None:
    text = source(body, "")
    assert tries_of_celery(text) == 1
    assert ours(tmp_path, text) == (1, {})


def test_decorator_that_asks_for_retries_is_read(tmp_path: Path) -> None:
    text = source("fails()", "", "retrying")
    assert (tries_of_celery(text), ours(tmp_path, text)[0]) == (4, 4)


def test_random_tasks_are_tried_as_often_as_in_celery(tmp_path: Path) -> None:
    """A policy that retries `Retry` alone permits what Celery does. It may be there where no code asks for a retry."""
    rng = random.Random(11)
    for case in range(CASES):
        body = rng.choice([*ASKING, *SILENT])
        options = [f"max_retries={rng.choice([0, 1, 2, 5, None])}"] if rng.random() < 0.6 else []
        options += [f"default_retry_delay={rng.choice([0, 1, 30])}"] if rng.random() < 0.5 else []
        text = source(body, ", ".join(options), rng.choice(["", "", "retrying"]))
        theirs = tries_of_celery(text)
        attempts, policy = ours(tmp_path / f"case{case}", text)
        asks = theirs > 1 or "max_retries=0" in options
        assert (not asks and policy.get("retry_on", ["Retry"]) == ["Retry"]) or min(attempts, 12) == theirs, (
            text
        )


def test_task_that_a_foreign_object_keeps_is_named(tmp_path: Path) -> None:
    text = HEAD + "import company\n@app.task(bind=True)\ndef weigh(self):\n    company.Runner.task = self\n"
    project, report = of_application(tmp_path, {"tasks.py": text})
    assert any("company.Runner.task = self, which keeps a task" in line for line in texts(report)), texts(
        report
    )
    assert project.actions["weigh"]["retry"]["max_attempts"] == 4


@pytest.mark.parametrize("option", ["max_retries", "default_retry_delay"])
def test_retry_option_of_an_annotation_is_named_with_its_value(tmp_path: Path, option: str) -> None:
    text = f"app.conf.task_annotations = {{'*': {{'{option}': 6}}}}\n@app.task(bind=True)\ndef weigh(self): ...\n"
    _, report = of_application(tmp_path, {"tasks.py": HEAD + text})
    (line,) = [line for line in texts(report) if f"{option} of the annotation" in line]
    assert line.endswith("in Celery it is 6.")
