"""The task executor for Dask keeps the promises of the interface, on a real scheduler and a real worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("distributed", reason="Dask is not installed: make test-compute", exc_type=ImportError)

from penstock.run.task_executors import RunnableAction, TaskExecutor
from penstock.testing import scenarios
from penstock.testing.executor_conformance import LoggingExecutorConformance
from penstock.testing.scenarios import coroutine_action, function_action
from penstock_dask.executor import DaskExecutor
from tests.compute.clusters import DaskCluster, dask_cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[DaskCluster]:
    with dask_cluster() as cluster:
        yield cluster


class TestDaskExecutor(LoggingExecutorConformance):
    @pytest.fixture(autouse=True)
    def _on(self, cluster: DaskCluster) -> None:
        self.address = cluster.address

    def make(self, capacity: int) -> TaskExecutor:
        return DaskExecutor(address=self.address, capacity=capacity)

    def action(self, scenario: str) -> RunnableAction:
        action = function_action(scenario)
        return replace(action, function=scenarios.crash_hard) if scenario == "crash" else action


class TestDaskExecutorWithCoroutines(TestDaskExecutor):
    def action(self, scenario: str) -> RunnableAction:
        return coroutine_action(scenario)
