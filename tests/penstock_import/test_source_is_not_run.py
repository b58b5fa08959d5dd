"""The command `penstock import` reads its source and runs none of it, in whatever folder it is called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RAISING = "import pathlib\n\npathlib.Path(__file__).with_name('ran').touch()\nraise RuntimeError('boom')\n"
CELERY = "from celery import Celery\n\napp = Celery('yard')\n\n\n@app.task\ndef weigh(): ...\n"
STACKSTORM = {
    "pack.yaml": "name: yard\ndescription: d\nauthor: a\nversion: 1.0.0\nref: yard\n",
    "actions/weigh.yaml": "name: weigh\nrunner_type: python-script\nentry_point: weigh.py\n",
    "actions/weigh.py": RAISING,
}
ATTUNE = {
    "pack.yaml": "label: Yard\nref: yard\n",
    "actions/weigh.yaml": "ref: yard.weigh\nlabel: Weigh\nrunner_type: python\nentry_point: weigh.py\n",
    "actions/weigh.py": RAISING,
}
CLOACA = (
    f"import cloaca\n\n{RAISING.partition('raise')[0]}\n\n@cloaca.task(id='weigh')\ndef weigh(context): ...\n"
)
DOCUMENT = """openapi: 3.0.0
info: {title: Yard, version: '1'}
servers: [{url: 'https://yard.example.org'}]
paths: {/weigh: {get: {operationId: weigh, responses: {'200': {description: ok}}}}}
"""


@pytest.mark.parametrize(
    ("system", "source", "files"),
    [
        ("celery", "yard", {"yard/__init__.py": RAISING, "yard/tasks.py": CELERY}),
        ("celery", "yard.py", {"yard.py": f"{CELERY}\n{RAISING}"}),
        ("celery", "src/yard", {"yard/__init__.py": RAISING, "src/yard/tasks.py": CELERY}),
        (
            "celery",
            "yard",
            {
                "yard/__init__.py": RAISING,
                "yard/tasks.py": CELERY,
                "yard/yard_actions.py": RAISING,
            },
        ),
        ("celery", "src", {"src/tasks.py": CELERY, "src.py": RAISING, "src_actions.py": RAISING}),
        (
            "stackstorm",
            "yard",
            {"yard/__init__.py": RAISING, **{f"yard/{name}": text for name, text in STACKSTORM.items()}},
        ),
        (
            "attune",
            "yard",
            {"yard/__init__.py": RAISING, **{f"yard/{name}": text for name, text in ATTUNE.items()}},
        ),
        ("cloaca", "yard.py", {"yard.py": CLOACA}),
        ("openapi", "yard.yaml", {"yard.yaml": DOCUMENT, "yard/__init__.py": RAISING}),
    ],
)
def test_import_in_the_folder_of_a_source_runs_none_of_it(
    tmp_path: Path, system: str, source: str, files: dict[str, str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "penstock", "import", system, source, "--into", "out", "--json"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ, check=False)
    assert run.returncode == 0, run.stderr
    assert not list(tmp_path.rglob("ran"))
    counts = json.loads(run.stdout)
    if system != "cloaca":  # its file is not linted
        page = (tmp_path / "out" / "IMPORT.md").read_text()
        assert "boom" not in page
        assert "refuse" not in page
        assert sum(counts["applied"].values()) >= 1, counts
