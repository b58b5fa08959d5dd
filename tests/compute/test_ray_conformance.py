"""The task executor for Ray keeps the promises of the interface, on a real cluster of one node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("ray", reason="Ray is not installed: make test-compute", exc_type=ImportError)

from penstock.run.task_executors import RunnableAction, TaskExecutor
from penstock.testing import scenarios
from penstock.testing.executor_conformance import LoggingExecutorConformance
from penstock.testing.scenarios import coroutine_action, function_action
from penstock_ray.executor import RayExecutor
from tests.compute.clusters import RayCluster, ray_cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster() as cluster:
        yield cluster


class TestRayExecutor(LoggingExecutorConformance):
    @pytest.fixture(autouse=True)
    def _on(self, cluster: RayCluster) -> None:
        self.address = cluster.address

    def make(self, capacity: int) -> TaskExecutor:
        return RayExecutor(address=self.address, capacity=capacity)

    def action(self, scenario: str) -> RunnableAction:
        action = function_action(scenario)
        return replace(action, function=scenarios.crash_hard) if scenario == "crash" else action


class TestRayExecutorWithCoroutines(TestRayExecutor):
    def action(self, scenario: str) -> RunnableAction:
        return coroutine_action(scenario)
