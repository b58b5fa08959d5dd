"""The executor of functions on a Dask cluster. Each attempt is a task, and runs in its own child process on a Dask
worker.

The child is ended as in the process executor: SIGTERM, grace, SIGKILL. It is also ended when the Penstock worker is
gone, as Dask then releases its tasks. A later attempt ends earlier ones before it starts. An attempt on a Dask worker
that is lost is a lost attempt. Dask itself would run it again, which task.py prevents.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import structlog
from distributed import CancelledError, Client, Future, KilledWorker

from penstock.errors import ConfigurationError
from penstock.run.task_executors import ExecutorMetrics, Outcome, Run, Tally, TaskError
from penstock_dask import task
from penstock_worker.executors.cluster_attempt import (
    END_MARGIN,
    SealedJob,
    declared_options,
    sealed,
    unsealed,
)

log = structlog.get_logger()

LOOK = 2.0
"""The seconds between two checks whether the Dask worker that started a task still has it."""
AT_WORK = ("processing", "memory", "erred")
EARLIER = 3
"""The number of earlier attempts that may still run somewhere."""


class DaskExecutor:
    def __init__(self, *, address: str, capacity: int = 100, patience: float = 60.0) -> None:
        """Create the executor. `address` is that of the scheduler: `tcp://host:8786`, or `tls://` with the
        certificates of Dask's own configuration. `capacity` is the number of tasks at a time; the cluster queues those
        for which it has no room. `patience` is the number of seconds that the scheduler may take to answer at the
        start."""
        self.name = "dask"
        self._tally = Tally(self.name, capacity)
        self.has_capacity = self._tally.has_capacity
        self._address = address
        self._patience = patience
        self._client: Client | None = None

    async def open(self) -> None:
        """Connect to the scheduler. Raises ConfigurationError if there is no scheduler."""
        try:
            self._client = await Client(
                self._address,
                asynchronous=True,
                name="penstock",
                set_as_default=False,
                timeout=self._patience,
                direct_to_workers=False,
            )
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"the dask executor does not reach the scheduler at {self._address}: {error}",
                hint="Start `dask scheduler` there, or correct `address` in PENSTOCK_EXECUTORS.",
            ) from None

    async def execute(self, run: Run) -> Outcome:
        return await self._tally.counted(self._run, run)

    def metrics(self) -> ExecutorMetrics:
        return self._tally.metrics()

    async def close(self, grace: float) -> None:
        """Close the connection. The cluster ends running tasks."""
        if self._client is not None:
            await self._client.close(timeout=max(grace, 1.0))
            self._client = None

    async def _run(self, run: Run) -> Outcome:
        assert self._client is not None, "open() comes first"
        try:
            options, job = declared_options(run, self.name), sealed(run)
        except (
            Exception
        ) as error:  # invalid options or parameters, or a function that other machines cannot import
            return Outcome.raised(error, retryable=False)
        try:
            await self._end_earlier(run)
        except OSError as error:
            return _unreachable(error)
        submitted = _Task(self._client, run, job, options["resources"])
        try:
            return await submitted.outcome()
        except asyncio.CancelledError:
            run.cancelled = True
            await submitted.end()
            raise
        except OSError as error:
            return (
                _unreachable(error)
                if not submitted.begun
                else Outcome.lost(f"the scheduler of Dask is away: {error}")
            )
        finally:
            await submitted.forget()

    async def _end_earlier(self, run: Run) -> None:
        """End earlier attempts that still run, as their workers may have died without doing so."""
        for attempt in range(max(1, run.event.attempt - EARLIER), run.event.attempt):
            key = _key(run, attempt)
            started_event, stop = task.started(key, self._client), task.stop(key, self._client)
            if await started_event.is_set():
                await stop.set()
                deadline = time.monotonic() + run.grace + END_MARGIN
                while await started_event.is_set() and time.monotonic() < deadline:
                    await asyncio.sleep(0.2)
                await started_event.clear()
                await stop.clear()


class _Task:
    """The task of one attempt, from its submission to its outcome. `begun`: it may have had effects."""

    def __init__(self, client: Client, run: Run, job: SealedJob, resources: Mapping[str, Any]) -> None:
        self._client = client
        self._run = run
        self._key = _key(run, run.event.attempt)
        self.begun = False
        self._started, self._stop = task.started(self._key, client), task.stop(self._key, client)
        self._future: Future = client.submit(
            task.run_once, job, self._key, key=self._key, pure=False, resources=resources or None
        )

    async def outcome(self) -> Outcome:
        answer = asyncio.ensure_future(self._answer())
        try:
            while not answer.done():
                await asyncio.wait((answer,), timeout=LOOK)
                if not answer.done() and await self._gone():
                    return Outcome.lost("the worker of Dask that ran this attempt is gone")
            return answer.result()
        finally:
            answer.cancel()

    async def end(self) -> None:
        """Stop the task, and wait until it has ended, for its grace period plus END_MARGIN at most."""
        try:
            async with asyncio.timeout(self._run.grace + END_MARGIN):
                await self._stop.set()
                if await self._started.is_set():
                    await self._answer()
        except (TimeoutError, OSError) as error:
            log.warning("dask.task_not_ended", job=self._key, reason=str(error) or "it does not end")

    async def forget(self) -> None:
        """Release Dask's copy of the task, and then clear its events. While the copy exists, Dask runs the task again if a
        worker is lost."""
        with suppress(OSError):
            await self._future.cancel()
            await self._started.clear()
            await self._stop.clear()

    async def _answer(self) -> Outcome:
        try:
            answer = await self._future
        except CancelledError:
            waiting = asyncio.current_task()
            if waiting is not None and waiting.cancelling():
                raise
            return Outcome.lost("the scheduler of Dask has let go of this attempt")
        except KilledWorker:
            return Outcome.lost("the worker of Dask that ran this attempt is gone")
        except Exception as error:  # the worker of Dask could not even unpickle the task
            return Outcome.failed(
                TaskError(
                    "DaskRefused",
                    f"the worker of Dask cannot run it: {error!r}. Is penstock-dask installed there?",
                )
            )
        if answer == task.LOST:
            return Outcome.lost("a worker of Dask that had begun this attempt is gone")
        return unsealed(answer, self._run)

    async def _gone(self) -> bool:
        """Return whether the begun attempt is on no worker any more. A task on another worker finds that out by
        itself."""
        if not self.begun:
            self.begun = await self._started.is_set()
            return False
        statuses = await self._client.scheduler.get_task_status(keys=[self._key])
        return statuses.get(self._key) not in AT_WORK


def _key(run: Run, attempt: int) -> str:
    """Return the task's name, which Dask's pages show."""
    return f"{run.action.ref}-{run.event.execution_id}-{attempt}"


def _unreachable(error: OSError) -> Outcome:
    return Outcome.failed(
        TaskError("DaskUnreachable", f"the scheduler of Dask does not answer: {error}", retryable=True)
    )
