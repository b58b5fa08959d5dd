"""The template for authors keeps the promises, and is found by its name in the settings."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock.run.task_executors import RunnableAction, TaskExecutor
from penstock.testing.executor_conformance import LoggingExecutorConformance
from penstock.testing.scenarios import coroutine_action
from penstock_worker.executors import build

EXAMPLES = str(Path(__file__).parents[3] / "examples")


class TestCustomExecutor(LoggingExecutorConformance):
    @pytest.fixture(autouse=True)
    def _importable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "path", [*sys.path, EXAMPLES])

    def make(self, capacity: int) -> TaskExecutor:
        own = {"class": "custom_executor:PacedExecutor", "capacity": capacity, "per_second": 500}
        return build(9, {"till": own})["till"]

    def action(self, scenario: str) -> RunnableAction:
        return coroutine_action(scenario)
