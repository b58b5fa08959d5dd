"""Durations of a workflow's tasks in a terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from penstock.cli.workflow_tree import print_tree
from penstock.language.workflows.progress import TaskProgress

DAYS = timedelta(days=31).total_seconds()


def test_duration_of_an_open_task_does_not_follow_the_local_clock(capsys: pytest.CaptureFixture[str]) -> None:
    began = datetime.now(UTC) - timedelta(minutes=6)  # on the clock of a database that is 31 days ahead
    task = TaskProgress("pay", "a.pay", [], "running", begun=began, waited=DAYS, ran=60.0, critical=True)
    print_tree([task], began)
    text = capsys.readouterr().out
    assert "critical path, 31 d" in text
    assert "6 min" not in text
