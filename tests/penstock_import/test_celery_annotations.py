"""The setting `task_annotations`, compared with what Celery makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from celery import Celery

from tests.penstock_import.test_reviewed_changes import APP, named, of_application, texts


@pytest.mark.parametrize(
    "key", ["depot.tasks.*", "depot.tasks.weig?", "*.weigh", "depot[.]tasks[.]weigh", "^depot"]
)
def test_pattern_of_an_annotation_changes_no_task(tmp_path: Path, key: str) -> None:
    app = Celery("depot", task_annotations={key: {"rate_limit": "10/m"}}, set_as_current=False)

    def weigh() -> None: ...

    app.task(weigh, name="depot.tasks.weigh")
    assert app.tasks["depot.tasks.weigh"].rate_limit is None
    text = f"{APP}app.conf.task_annotations = {{{key!r}: {{'rate_limit': '10/m'}}}}\n@app.task\ndef weigh(): ...\n"
    project, report = of_application(tmp_path, {"tasks.py": text, "__init__.py": ""})
    assert "limits" not in project.actions["weigh"]
    assert named(
        report, f"tasks.py:3 the annotation of {key}, which is a pattern | Celery takes only the exact name"
    ), texts(report)


@pytest.mark.parametrize("key", ["depot.tasks.weigh", "*"])
def test_exact_name_of_an_annotation_is_no_pattern(tmp_path: Path, key: str) -> None:
    text = f"{APP}app.conf.task_annotations = {{{key!r}: {{'rate_limit': '10/m'}}}}\n@app.task\ndef weigh(): ...\n"
    project, report = of_application(tmp_path, {"tasks.py": text, "__init__.py": ""})
    assert "limits" in project.actions["weigh"]
    assert not any("pattern" in line for line in texts(report))
