"""The calls of a task are named as well if Python cannot parse the file of the task."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject

USES = (
    "def f(n):\n    work.s(n).apply()\ndef g(n):\n    t = work.s(n)\n    t.link(work.si(2))\n    t.link_error(fail.s(n))\n"
    "    t.apply_async()\n    work.map([n])\n    return work.signature((n,))\n"
)


def gaps(folder: Path, uses: str, print_: str) -> list[str]:
    tasks = (
        "from celery import Celery\napp = Celery('depot')\n@app.task\ndef work(n):\n    pass\n\n"
        f"@app.task(\n    name='a',\n)\n@log\ndef fail(n):\n    {print_}\ndef other(n): ...\n"
    )
    (folder / "tasks.py").write_text(tasks)
    (folder / "view.py").write_text(uses)
    source = CeleryProject(folder)
    source.mapped()
    return sorted(
        f"{gap.line} {gap.what}: {gap.by_hand}" for gap in source.report.gaps if gap.file == "view.py"
    )


@pytest.mark.parametrize(
    "uses",
    [
        f"from tasks import work, fail\n{USES}",
        "import tasks\n" + USES.replace("work.", "tasks.work.").replace("fail.", "tasks.fail."),
        "from tasks import work\nwork.max_retries = 7\njobs = [work]\nstart(work)\nfor job in jobs:\n    job.delay()\n",
    ],
)
def test_calls_of_tasks_of_unread_file_are_named(tmp_path: Path, uses: str) -> None:
    read, unread = tmp_path / "read", tmp_path / "unread"
    read.mkdir()
    unread.mkdir()
    assert gaps(unread, uses, "print 'old'") == gaps(read, uses, "print('new')") != []


def test_other_calls_of_unread_file_are_not_named(tmp_path: Path) -> None:
    assert gaps(tmp_path, "from tasks import other\nother.map([2])\nother(3)\n", "print 'old'") == []
