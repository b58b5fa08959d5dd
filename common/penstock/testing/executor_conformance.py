"""The promises of a task executor, as tests. The tests of an executor subclass them:

    from penstock.testing.executor_conformance import LoggingExecutorConformance
    from penstock.testing.scenarios import coroutine_action

    class TestMyExecutor(LoggingExecutorConformance):
        def make(self, capacity):
            return MyExecutor(capacity=capacity)

        def action(self, scenario):
            return coroutine_action(scenario)

It needs pytest and pytest-asyncio in its auto mode (`asyncio_mode = "auto"`).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from penstock.errors import NoCapacity
from penstock.run import capture
from penstock.run.run_log import MARKER
from penstock.run.task_executors import (
    Outcome,
    Run,
    RunLog,
    RunnableAction,
    TaskExecutor,
    TaskReadyEvent,
    attempt,
)
from penstock.testing.scenarios import mark

PATIENCE = 30.0
"""The timeout of each wait in seconds, after which the test fails. No durations are measured."""
QUIET = 0.25
"""The seconds of silence after which work counts as ended."""

Lines = list[tuple[str, str]]


class ExecutorConformance(ABC):
    """The promises of every task executor, as tests. Subclass it as `Test...`, with methods that create the executor
    and its actions."""

    ends_work = True
    """False if cancelled work cannot be killed, as in threads. Then the work has to occupy its place until it ends."""
    ends_work_at_once = True
    """False if the work is elsewhere and is asked to end, as over HTTP. Such work may end a moment later."""

    @abstractmethod
    def make(self, capacity: int) -> TaskExecutor:
        """Return an executor that runs `capacity` attempts at a time, not opened yet."""

    @abstractmethod
    def action(self, scenario: str) -> RunnableAction:
        """Return the action for a scenario; see `penstock.testing.scenarios`."""

    async def test_it_has_a_name(self) -> None:
        assert self.make(1).name

    async def test_an_action_completes_with_its_result_and_knows_its_run(self) -> None:
        async with self._opened(1) as executor:
            run, _ = self._run("echo", value={"n": [1, 2.5, None, "ü"]})
            outcome = await attempt(executor, run)
            assert outcome.kind == "completed", outcome.error
            token = str(run.event.execution_id)
            assert outcome.result == {"value": {"n": [1, 2.5, None, "ü"]}, "attempt": 2, "token": token}

    async def test_a_failure_is_an_outcome_that_says_what_happened(self) -> None:
        async with self._opened(1) as executor:
            outcome = await self._attempt(executor, "fail")
            assert outcome.kind == "failed"
            assert outcome.error is not None
            assert outcome.error.type
            assert outcome.error.kinds
            assert "boom" in f"{outcome.error.message} {outcome.error.traceback} {outcome.error.answer}"

    async def test_a_result_that_is_not_json_fails_as_result_not_storable(self) -> None:
        async with self._opened(1) as executor:
            outcome = await self._attempt(executor, "unstorable")
            assert outcome.kind == "failed"
            assert outcome.error is not None
            assert outcome.error.type == "ResultNotStorable"

    async def test_a_result_over_the_limit_fails_as_result_not_storable(self) -> None:
        async with self._opened(1) as executor:
            run, _ = self._run("echo", value="x" * 1000)
            run.result_limit = 500
            outcome = await attempt(executor, run)
            assert outcome.error is not None
            assert outcome.error.type == "ResultNotStorable"

    async def test_cancellation_ends_the_work(self, tmp_path: Path) -> None:
        async with self._opened(1) as executor:
            path = tmp_path / "beats"
            task = self._start(executor, "beat", path=str(path))
            await _until(path.exists)
            await _cancelled(task)
            await self._ended(executor, path)
            assert executor.metrics().cancelled == 1

    async def test_a_timeout_ends_the_work(self, tmp_path: Path) -> None:
        async with self._opened(1) as executor:
            path = tmp_path / "beats"
            run, _ = self._run("beat", path=str(path))
            run.timeout = 0.05
            outcome = await attempt(executor, run)
            assert outcome.kind == "timed_out"
            await self._ended(executor, path)

    async def test_capacity_is_never_exceeded(self, tmp_path: Path) -> None:
        async with self._opened(2) as executor:
            assert executor.has_capacity()
            gate = tmp_path / "gate"
            tasks = [await self._held(executor, gate, tmp_path / f"{n}") for n in range(2)]
            assert not executor.has_capacity()
            assert (executor.metrics().active, executor.metrics().available) == (2, 0)
            with suppress(NoCapacity):
                await self._attempt(executor, "echo", value=1)
                raise AssertionError("a third attempt ran in an executor for two")
            gate.touch()
            assert [(await task).result for task in tasks] == ["released", "released"]
            assert executor.has_capacity()
            assert executor.metrics().executed == 2, "what was refused is not counted"

    async def test_metrics_add_up(self, tmp_path: Path) -> None:
        async with self._opened(3) as executor:
            await asyncio.gather(*(self._attempt(executor, "echo", value=n) for n in range(3)))
            await self._attempt(executor, "fail")
            metrics = executor.metrics()
            assert (metrics.active, metrics.executed, metrics.failed, metrics.cancelled) == (0, 4, 1, 0)
            assert (metrics.available, metrics.leaked) == (3, 0)
            assert metrics.average_duration > 0

    async def test_a_crash_fails_only_its_own_attempt(self, tmp_path: Path) -> None:
        async with self._opened(2) as executor:
            gate = tmp_path / "gate"
            other = await self._held(executor, gate, tmp_path / "other")
            outcome = await self._attempt(executor, "crash")
            assert outcome.kind == "failed"
            gate.touch()
            assert (await other).result == "released"
            assert (await self._attempt(executor, "echo", value=1)).kind == "completed"

    async def _ended(self, executor: TaskExecutor, path: Path) -> None:
        """Wait until the work that appends to `path` has ended. If it cannot be ended, check that it occupies its
        place."""
        if not self.ends_work:
            metrics = executor.metrics()
            assert (metrics.active, metrics.leaked, metrics.available) == (1, 1, 0)
            assert not executor.has_capacity()
            mark(f"{path}.stop")
            await _until(executor.has_capacity)
            assert executor.metrics().leaked == 0
            return
        for _ in range(int(PATIENCE / QUIET)):
            old_size = _size(path)
            await asyncio.sleep(QUIET)
            if _size(path) == old_size:
                break
            assert not self.ends_work_at_once, "the work goes on after it was cancelled"
        else:
            raise AssertionError("the work goes on after it was cancelled")
        assert executor.has_capacity()

    async def _held(self, executor: TaskExecutor, gate: Path, name: Path) -> asyncio.Task[Outcome]:
        """Return an attempt that really runs, and goes on until the file `gate` exists."""
        link = name.with_suffix(".gate")
        link.symlink_to(gate)
        task = self._start(executor, "hold", path=str(link))
        await _until(lambda: task.done() or Path(f"{link}.held").exists())
        return task

    def _start(self, executor: TaskExecutor, scenario: str, **params: Any) -> asyncio.Task[Outcome]:
        return asyncio.create_task(self._attempt(executor, scenario, **params))

    async def _attempt(self, executor: TaskExecutor, scenario: str, **params: Any) -> Outcome:
        return await attempt(executor, self._run(scenario, **params)[0])

    def _run(self, scenario: str, *, log_limit: int = 1_000_000, **params: Any) -> tuple[Run, Lines]:
        id = uuid4()
        event = TaskReadyEvent(id, 2, 3, f"public::scenario::{scenario}", f"scenario.{scenario}", root=id)
        lines: Lines = []
        log = RunLog(lambda stream, line: lines.append((stream, line)), log_limit)
        # Threads cannot be killed, so a long grace would only make the tests slow.
        grace = 5.0 if self.ends_work else 0.05
        return Run(event, params, self.action(scenario), log, grace=grace), lines

    @asynccontextmanager
    async def _opened(self, capacity: int) -> AsyncIterator[TaskExecutor]:
        executor, uninstall = self.make(capacity), capture.install()
        try:
            await executor.open()
            try:
                yield executor
            finally:
                await executor.close(0)
        finally:
            uninstall()


class LoggingExecutorConformance(ExecutorConformance):
    """The promises of executors with work that can log, which are all but those that only receive an answer."""

    async def test_log_lines_come_in_order(self) -> None:
        async with self._opened(1) as executor:
            run, lines = self._run("chatter", lines=200, word="line")
            outcome = await attempt(executor, run)
            assert outcome.result == 200
            assert _said(lines, "line") == [f"line {n}" for n in range(200)]

    async def test_attempts_at_the_same_time_keep_their_logs_apart(self) -> None:
        async with self._opened(2) as executor:
            runs = [self._run("chatter", lines=50, word=word) for word in ("left", "right")]
            await asyncio.gather(*(attempt(executor, run) for run, _ in runs))
            for (_, lines), word, other in zip(runs, ("left", "right"), ("right", "left"), strict=True):
                assert _said(lines, word) == [f"{word} {n}" for n in range(50)]
                assert not _said(lines, other)

    async def test_the_log_is_capped_and_says_so(self) -> None:
        async with self._opened(1) as executor:
            run, lines = self._run("chatter", log_limit=1000, lines=500, word="line")
            outcome = await attempt(executor, run)
            assert outcome.result == 500, "too much log is not a failure"
            assert lines[-1][0] == MARKER
            assert sum(len(line) + 1 for stream, line in lines if stream != MARKER) <= 1000


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _said(lines: Lines, word: str) -> list[str]:
    return [line for _, line in lines if line.startswith(f"{word} ")]


async def _until(true: Callable[[], bool]) -> None:
    for _ in range(int(PATIENCE / 0.01)):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


async def _cancelled(task: asyncio.Task[Outcome]) -> None:
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return
    raise AssertionError("a cancelled attempt must raise CancelledError")
