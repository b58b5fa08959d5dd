"""Every task executor that comes with Penstock keeps the promises of the interface."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.run.task_executors import RunnableAction, TaskExecutor
from penstock.testing import scenarios
from penstock.testing.executor_conformance import ExecutorConformance, LoggingExecutorConformance
from penstock.testing.scenarios import ScenarioAction, coroutine_action, function_action, program_command
from penstock_worker.executors.http.http import HttpExecutor
from penstock_worker.executors.kubernetes.kubernetes import KubernetesExecutor
from penstock_worker.executors.processes.command import CommandExecutor
from penstock_worker.executors.python.async_ import AsyncExecutor
from penstock_worker.executors.python.process import ProcessExecutor
from penstock_worker.executors.python.thread import ThreadExecutor
from tests.penstock_worker.executors import fake_kubernetes, web


class TestAsyncExecutor(LoggingExecutorConformance):
    def make(self, capacity: int) -> TaskExecutor:
        return AsyncExecutor(capacity=capacity)

    def action(self, scenario: str) -> RunnableAction:
        return coroutine_action(scenario)


class TestThreadExecutor(LoggingExecutorConformance):
    ends_work = False

    def make(self, capacity: int) -> TaskExecutor:
        return ThreadExecutor(capacity=capacity)

    def action(self, scenario: str) -> RunnableAction:
        return function_action(scenario)


class TestProcessExecutor(LoggingExecutorConformance):
    def make(self, capacity: int) -> TaskExecutor:
        return ProcessExecutor(capacity=capacity)

    def action(self, scenario: str) -> RunnableAction:
        action = function_action(scenario)
        return replace(action, function=scenarios.crash_hard) if scenario == "crash" else action


class TestProcessExecutorWithCoroutines(TestProcessExecutor):
    def action(self, scenario: str) -> RunnableAction:
        return coroutine_action(scenario)


class TestCommandExecutor(LoggingExecutorConformance):
    def make(self, capacity: int) -> TaskExecutor:
        return CommandExecutor(capacity=capacity)

    def action(self, scenario: str) -> RunnableAction:
        return ScenarioAction(f"scenario.{scenario}", options={"command": program_command(scenario)})


class TestHttpExecutor(ExecutorConformance):
    ends_work_at_once = False

    @pytest.fixture(autouse=True)
    async def _serve(self) -> AsyncIterator[None]:
        async with web.serving() as self.web:
            web.serve_scenarios(self.web)
            yield

    def make(self, capacity: int) -> TaskExecutor:
        return HttpExecutor(capacity=capacity, allow=["127.0.0.1"])

    def action(self, scenario: str) -> RunnableAction:
        return ScenarioAction(f"scenario.{scenario}", options={"url": self.web.url(f"/{scenario}")})


class TestKubernetesExecutor(LoggingExecutorConformance):
    @pytest.fixture(autouse=True)
    def _serve(self, tmp_path: Path) -> Iterator[None]:
        with fake_kubernetes.serving() as fake:
            self.config = tmp_path / "kubeconfig"
            self.config.write_text(fake_kubernetes.kubeconfig(fake))
            yield

    def make(self, capacity: int) -> TaskExecutor:
        return KubernetesExecutor(capacity=capacity, kubeconfig=str(self.config), poll=0.1)

    def action(self, scenario: str) -> RunnableAction:
        options = {"image": "scenarios", "command": program_command(scenario)}
        return ScenarioAction(f"scenario.{scenario}", options=options)
