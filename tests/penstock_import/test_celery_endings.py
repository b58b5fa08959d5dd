"""A module that may end its process while it is imported has a line with the condition."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_import.celery import CeleryProject

APP = (
    "from celery import Celery\napp = Celery('depot')\n"
    "app.conf.beat_schedule = {'n': {'task': 'tasks.weigh', 'schedule': 60.0}}\n@app.task\ndef weigh(): ...\n"
)


def gaps(folder: Path, **files: str) -> list[str]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    source = CeleryProject(folder)
    source.mapped()
    return [
        f"{gap.file}:{gap.line} {gap.what}"
        for gap in source.report.gaps
        if "ends the import of a module" in gap.what
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "import sys\nif OFF:\n    sys.exit()\n",
            "3 sys.exit(), which ends the import of a module where OFF",
        ),
        (
            "if OFF:\n    raise SystemExit\n",
            "2 raise SystemExit, which ends the import of a module where OFF",
        ),
        (
            "if ON:\n    pass\nelse:\n    raise SystemExit(3)\n",
            "4 raise SystemExit(3), which ends the import of a module where not ON",
        ),
        ("if OFF: exit()\n", "1 exit(), which ends the import of a module where OFF"),
        ("OFF and quit(0)\n", "1 quit(0), which ends the import of a module where OFF"),
        (
            "import os\nif OFF:\n    os._exit(0)\n",
            "3 os._exit(0), which ends the import of a module where OFF",
        ),
        ("from sys import exit as end\nif OFF:\n    end()\n", "which ends the import of a module where OFF"),
        (
            "import sys\ntry:\n    import fast\nexcept ImportError:\n    sys.exit(1)\n",
            "5 sys.exit(1), which ends the import of a module after ImportError",
        ),
        (
            "import sys\ndef check():\n    if OFF:\n        sys.exit()\nif PROD:\n    check()\n",
            "4 sys.exit() in a function that tasks.py:6 calls, which ends the import of a module where PROD and where OFF",
        ),
    ],
)
def test_end_of_import_is_named_with_its_condition(tmp_path: Path, text: str, line: str) -> None:
    named = gaps(tmp_path, tasks=text + APP)
    assert [line in gap for gap in named] == [True], named


def test_end_in_imported_module_is_named(tmp_path: Path) -> None:
    own = "import sys\ndef check():\n    if OFF:\n        sys.exit()\n"
    named = gaps(
        tmp_path, tasks=f"import start, stop\nstop.check()\n{APP}", stop=own, start=f"{own}check()\n"
    )
    assert [gap.partition(" ")[0] for gap in named] == ["start.py:4", "stop.py:4"]


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nif __name__ == '__main__':\n    sys.exit(main())\n",
        "import sys\ndef stop():\n    sys.exit()\n",
        "import sys\nstop = lambda: sys.exit()\n",
        "def exit(): ...\nexit()\nclass Door:\n    def quit(self):\n        raise SystemExit\n",
    ],
)
def test_end_that_no_import_runs_is_not_named(tmp_path: Path, text: str) -> None:
    assert gaps(tmp_path, tasks=text + APP, other="import sys\nsys.exit()\n") == []
