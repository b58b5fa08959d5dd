from __future__ import annotations

import pytest

from penstock.errors import NoCapacity
from penstock.run.outcomes import Outcome
from penstock.run.task_executors import ExecutorMetrics, Run, Tally, TaskExecutor, attempt
from tests.penstock_worker.executors.runs import run_of


class Broken:
    """An executor with a bug."""

    name = "broken"

    async def open(self) -> None: ...

    async def execute(self, run: Run) -> Outcome:
        raise TimeoutError("the executor's own")

    def has_capacity(self) -> bool:
        return True

    def metrics(self) -> ExecutorMetrics:
        return Tally(self.name, 1).metrics()

    async def close(self, grace: float) -> None: ...


@pytest.mark.parametrize("timeout", [None, 30.0])
async def test_a_fault_of_the_executor_fails_the_attempt_and_closes_its_log(timeout: float | None) -> None:
    executor: TaskExecutor = Broken()
    run, lines = run_of(print, timeout=timeout)
    outcome = await attempt(executor, run)
    assert outcome.kind == "failed"
    assert outcome.error is not None
    assert outcome.error.message == "the executor's own"
    run.log("log", "late")
    assert lines == []


def test_a_tally_counts_ends_and_their_kinds() -> None:
    tally = Tally("test", 2)
    tally.end(tally.start(), Outcome.returned(1))
    tally.end(tally.start(), Outcome.failed(ValueError()))
    tally.end(tally.start(), None)
    assert tally.start() > 0
    metrics = tally.metrics()
    assert (metrics.active, metrics.executed, metrics.failed, metrics.cancelled) == (1, 3, 1, 1)
    assert (metrics.available, metrics.leaked) == (1, 0)


def test_a_tally_gives_no_more_places_than_there_are() -> None:
    tally = Tally("test", 1)
    started = tally.start()
    with pytest.raises(NoCapacity):
        tally.start()
    tally.end(started, None)
    assert tally.has_capacity()


def test_an_executor_for_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Tally("test", 0)
