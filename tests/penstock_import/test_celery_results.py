"""Results of starts that code keeps in a name: what it does with one has a line. The members are those of Celery's classes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from celery.result import AsyncResult, GroupResult

from tests.penstock_import.test_accounting import CASES
from tests.penstock_import.test_reviewed_changes import of_application, texts

HEAD = (
    "from celery import Celery, chain, group\nfrom celery.result import AsyncResult, GroupResult\nimport company\n"
    "app = Celery('depot')\n@app.task\ndef one(x=None): ...\n@app.task\ndef two(x=None): ...\n"
    "def pass_on(result): return result\n"
)
MEMBERS = sorted(
    name
    for name in {*dir(AsyncResult), *dir(GroupResult)}
    if not name.startswith("_") and name not in ("id", "task_id", "TimeoutError")
)
STARTS = [
    "one.delay(1)",
    "one.apply_async((1,))",
    "one.s(1).delay()",
    "app.send_task('depot.tasks.one')",
    "AsyncResult('id')",
    "app.AsyncResult('id')",
    "one.AsyncResult('id')",
    "GroupResult.restore('id')",
    "group(one.s(1), two.s(2))()",
    "group(one.s(1), two.s(2)).apply_async()",
    "chain(one.s(1), two.s()).delay()",
    "(one.s(1) | two.s())()",
]
HOLDERS = [
    "r = {start}\n{use}",
    "r = pass_on({start})\n{use}",
    "def run():\n    r = {start}\n    {use}",
    "def start():\n    return {start}\nr = start()\n{use}",
    "for r in [{start}]:\n    {use}",
    "parts = []\nparts.append({start})\nfor r in parts:\n    {use}",
    "parts = dict(a={start})\nr = parts['a']\n{use}",
    "def look(r):\n    {use}\nlook({start})",
    "q, r = 1, {start}\n{use}",
    "if (r := {start}):\n    {use}",
]


def lines_of(folder: Path, text: str) -> list[str]:
    _, report = of_application(folder, {"tasks.py": HEAD + text + "\n"})
    return texts(report)


@pytest.mark.parametrize(
    ("use", "advice"),
    [
        ("r.get(timeout=3)", "client.result(id"),
        ("r.revoke(terminate=True)", "client.cancel(id)"),
        ("r.ready()", "client.get(id)"),
        ("r.join()", "client.result(id"),
        ("r.save()", "Leave it out"),
        ("r.children[0].get()", "client.result(id"),
        ("company.watch(r)", "pass the id"),
    ],
)
def test_use_of_a_result_is_named(tmp_path: Path, use: str, advice: str) -> None:
    lines = lines_of(tmp_path, f"r = one.delay(1)\n{use}")
    assert any(f" {use}" in line and advice in line for line in lines), lines


def test_use_of_a_result_of_one_expression_is_named(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, "print(one.delay(1).get(timeout=3))")
    assert any("the call one.delay(1).get(timeout=3) of a result" in line for line in lines), lines


@pytest.mark.parametrize(
    "use", ["r.id", "str(r.task_id)", "print(r)", "log.info('%s', r)", "r is None", "return_value = r.colour"]
)
def test_id_of_a_result_needs_no_line(tmp_path: Path, use: str) -> None:
    lines = lines_of(tmp_path, f"import logging\nlog = logging.getLogger()\nr = one.delay(1)\n{use}")
    assert not any(line.startswith("tasks.py:13 ") for line in lines), lines


def test_member_of_another_object_is_no_result(tmp_path: Path) -> None:
    text = (
        "class Job:\n    def start(self):\n        self.result = one.delay(1)\n        return one.delay(2)\n"
        "def run(job):\n    job.result.get('colour')\n    job.state.save()\n    return job.start().name\n"
    )
    lines = lines_of(tmp_path, text)
    assert not any(" of a result" in line for line in lines), lines


def test_result_of_a_method_is_named_by_members_of_results_alone(tmp_path: Path) -> None:
    text = "class Job:\n    def start(self):\n        return one.delay(2)\n"
    text += "r = Job().start()\nr.revoke()\nr.get(timeout=2)\nr.name\n"
    lines = [line for line in lines_of(tmp_path, text) if " of a result" in line]
    assert sorted(line.partition(" of a")[0] for line in lines) == [
        "tasks.py:14 the call r.revoke()",
        "tasks.py:15 the call r.get(timeout=2)",
    ]


def test_random_use_of_a_result_is_named(tmp_path: Path) -> None:
    rng = random.Random(3)
    for case in range(CASES):
        member, is_called = rng.choice(MEMBERS), rng.random() < 0.6
        use = f"print(r.{member}{'(7)' if is_called else ''})"
        text = rng.choice(HOLDERS).format(start=rng.choice(STARTS), use=use)
        lines = lines_of(tmp_path / f"case{case}", text)
        assert any(f"r.{member}" in line and "of a result" in line for line in lines), (text, lines)


@pytest.mark.parametrize(
    "code",
    [
        "Kept = AsyncResult\nr = Kept('id')\nr.wait()",
        "Kept = company.Fake if company.TEST else app.AsyncResult\nr = Kept('id')\nr.wait()",
        "class Kept(AsyncResult): ...\nr = Kept('id')\nr.wait()",
        "def kept(): return AsyncResult\nr = kept()('id')\nr.wait()",
        "def look(kind):\n    r = kind('id')\n    r.wait()\nlook(AsyncResult)",
    ],
)
def test_result_of_a_renamed_class_is_followed(tmp_path: Path, code: str) -> None:
    (line,) = [text for text in lines_of(tmp_path, code) if "the call r.wait() of a result" in text]
    assert "client.result(id" in line


def test_result_of_a_class_that_another_file_names_is_followed(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "tasks.py": HEAD + "Kept = company.Fake if company.TEST else app.AsyncResult\n",
        "views.py": "from depot.tasks import Kept\ndef show(id):\n    r = Kept(id)\n    value = r.get()\n"
        "    return value.get('file')\n",
    }
    _, report = of_application(tmp_path, files)
    (line,) = [text for text in texts(report) if text.startswith("views.py")]
    assert line.startswith("views.py:4 the call r.get() of a result"), line
