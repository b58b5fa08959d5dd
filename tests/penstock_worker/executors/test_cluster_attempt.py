"""An executor of another package, made of `cluster_attempt` alone, keeps all promises, and shows a cluster no value."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import replace

import pytest

from penstock.errors import DefinitionError
from penstock.run.task_executors import ExecutorMetrics, Outcome, Run, RunnableAction, Tally, TaskExecutor
from penstock.testing.executor_conformance import LoggingExecutorConformance
from penstock.testing.scenarios import coroutine_action, crash_hard, function_action
from penstock_worker.executors.cluster_attempt import (
    END_MARGIN,
    declared_options,
    perform,
    sealed,
    unsealed,
)
from tests.penstock_worker.executors.runs import run_of
from tests.penstock_worker.executors.victims import own_pid


class PickleExecutor:
    """An executor whose cluster is this process. Jobs and answers reach it as a pickle, as they reach a real cluster."""

    def __init__(self, capacity: int) -> None:
        self.name = "pickle"
        self._tally = Tally(self.name, capacity)
        self.has_capacity = self._tally.has_capacity

    async def open(self) -> None: ...

    async def execute(self, run: Run) -> Outcome:
        return await self._tally.counted(self._run, run)

    def metrics(self) -> ExecutorMetrics:
        return self._tally.metrics()

    async def close(self, grace: float) -> None: ...

    async def _run(self, run: Run) -> Outcome:
        try:
            job = pickle.dumps(sealed(run))
        except Exception as error:
            return Outcome.raised(error, retryable=False)
        stop = asyncio.Event()
        work = asyncio.ensure_future(_on_the_cluster(job, stop))
        try:
            return unsealed(pickle.loads(await asyncio.shield(work)), run)
        except asyncio.CancelledError:
            run.cancelled = True
            stop.set()
            async with asyncio.timeout(run.grace + END_MARGIN):
                unsealed(pickle.loads(await work), run)
            raise


async def _on_the_cluster(job: bytes, stop: asyncio.Event) -> bytes:
    return pickle.dumps(await perform(pickle.loads(job), stop.wait()))


class TestClusterAttempt(LoggingExecutorConformance):
    def make(self, capacity: int) -> TaskExecutor:
        return PickleExecutor(capacity)

    def action(self, scenario: str) -> RunnableAction:
        action = function_action(scenario)
        return replace(action, function=crash_hard) if scenario == "crash" else action


class TestClusterAttemptOfCoroutines(TestClusterAttempt):
    def action(self, scenario: str) -> RunnableAction:
        return coroutine_action(scenario)


async def test_job_and_answer_show_no_value() -> None:
    run, lines = run_of(said, {"word": "tulip"})
    job = sealed(run)
    answer = await perform(job, asyncio.Event().wait())
    assert unsealed(answer, run).result_json == b'"tulip"'
    assert lines == [("stdout", "tulip")]
    assert "tulip" not in repr(job) + repr(answer)


def said(word: str) -> str:
    print(word)
    return word


def test_function_without_an_importable_name_is_refused() -> None:
    with pytest.raises(DefinitionError, match="no name to import it by"):
        sealed(run_of(lambda: None)[0])


def test_options_have_defaults_and_unknown_ones_are_refused() -> None:
    assert declared_options(run_of(own_pid)[0], "dask") == {"resources": {}}
    asked = run_of(own_pid, options={"num_gpus": 2.0})[0]
    assert declared_options(asked, "ray") == {"num_cpus": 1, "num_gpus": 2.0, "memory": None, "resources": {}}
    with pytest.raises(DefinitionError, match="num_gpu"):
        declared_options(run_of(own_pid, options={"num_gpu": 2})[0], "ray")
