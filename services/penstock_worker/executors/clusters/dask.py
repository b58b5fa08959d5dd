"""Runs functions on a Dask cluster: each attempt is a task, and runs in a child process of its own on some worker of Dask.

The child is ended as the process executor ends one: SIGTERM, grace, SIGKILL. It is ended too when the worker of Penstock is
gone, as Dask then lets go of its tasks; and before a later attempt starts, which looks for earlier ones. What runs on a worker of
Dask that is lost is an attempt that was lost: Dask would run it again by itself, and does not (dask_task.py).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from penstock.errors import ConfigurationError
from penstock.extras import require
from penstock.language.definitions.program_actions import DaskOptions
from penstock.run.task_executors import ExecutorMetrics, Outcome, Run, Tally, TaskError
from penstock_worker.executors.clusters.cluster_attempt import END_MARGIN, SealedJob, sealed, unsealed
from penstock_worker.executors.options import options_of

if TYPE_CHECKING:
    from distributed import Client, Future

log = structlog.get_logger()

LOOK = 2.0
"""Seconds between two looks at a task: whether the worker that had started it still has it."""
AT_WORK = ("processing", "memory", "erred")
EARLIER = 3
"""Attempts before this one that may still run somewhere."""


class DaskExecutor:
    def __init__(self, *, address: str, capacity: int = 100, patience: float = 60.0) -> None:
        """`address`: of the scheduler, `tcp://host:8786`, or `tls://` with what Dask's own configuration says of certificates.
        `capacity`: tasks at a time; those that the cluster has no room for wait there. `patience`: seconds that the scheduler may
        take to answer at the start."""
        self.name = "dask"
        self._tally = Tally(self.name, capacity)
        self.has_capacity = self._tally.has_capacity
        self._address = address
        self._patience = patience
        self._client: Client | None = None

    async def open(self) -> None:
        """Raises MissingExtra, and ConfigurationError if there is no scheduler."""
        require("dask")
        from distributed import Client

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
        """Close the connection; the cluster ends what still runs."""
        if self._client is not None:
            await self._client.close(timeout=max(grace, 1.0))
            self._client = None

    async def _run(self, run: Run) -> Outcome:
        assert self._client is not None, "open() comes first"
        try:
            options, job = options_of(run, DaskOptions), sealed(run)
        except (
            Exception
        ) as error:  # bad options, bad parameters, or a function that no other machine can find
            return Outcome.raised(error, retryable=False)
        try:
            await self._end_earlier(run)
        except OSError as error:
            return _unreachable(error)
        task = _Task(self._client, run, job, options)
        try:
            return await task.outcome()
        except asyncio.CancelledError:
            run.cancelled = True
            await task.end()
            raise
        except OSError as error:
            return (
                _unreachable(error)
                if not task.begun
                else Outcome.lost(f"the scheduler of Dask is away: {error}")
            )
        finally:
            await task.forget()

    async def _end_earlier(self, run: Run) -> None:
        """End the attempts before this one that still run: their worker may have died without doing so."""
        from penstock_worker.executors.clusters import dask_task

        for attempt in range(max(1, run.event.attempt - EARLIER), run.event.attempt):
            key = _key(run, attempt)
            started_event, stop = dask_task.started(key, self._client), dask_task.stop(key, self._client)
            if await started_event.is_set():
                await stop.set()
                deadline = time.monotonic() + run.grace + END_MARGIN
                while await started_event.is_set() and time.monotonic() < deadline:
                    await asyncio.sleep(0.2)
                await started_event.clear()
                await stop.clear()


class _Task:
    """The task of one attempt, from when it is submitted to its outcome. `begun`: it may have had effects."""

    def __init__(self, client: Client, run: Run, job: SealedJob, options: DaskOptions) -> None:
        from penstock_worker.executors.clusters import dask_task

        self._client = client
        self._run = run
        self._key = _key(run, run.event.attempt)
        self.begun = False
        self._started, self._stop = dask_task.started(self._key, client), dask_task.stop(self._key, client)
        self._future: Future = client.submit(
            dask_task.run_once, job, self._key, key=self._key, pure=False, resources=options.resources or None
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
        """Have it stop, and wait until it has, or as long as that should take."""
        try:
            async with asyncio.timeout(self._run.grace + END_MARGIN):
                await self._stop.set()
                if await self._started.is_set():
                    await self._answer()
        except (TimeoutError, OSError) as error:
            log.warning("dask.task_not_ended", job=self._key, reason=str(error) or "it does not end")

    async def forget(self) -> None:
        """First of all Dask's copy, as it is run again while that is there, and a worker is lost."""
        with suppress(OSError):
            await self._future.cancel()
            await self._started.clear()
            await self._stop.clear()

    async def _answer(self) -> Outcome:
        from distributed import CancelledError, KilledWorker

        from penstock_worker.executors.clusters.dask_task import LOST

        try:
            answer = await self._future
        except CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return Outcome.lost("the scheduler of Dask has let go of this attempt")
        except KilledWorker:
            return Outcome.lost("the worker of Dask that ran this attempt is gone")
        except Exception as error:  # it could not even be unpacked there
            return Outcome.failed(
                TaskError(
                    "DaskRefused",
                    f"the worker of Dask cannot run it: {error!r}. Is Penstock installed there?",
                )
            )
        if answer == LOST:
            return Outcome.lost("a worker of Dask that had begun this attempt is gone")
        return unsealed(answer, self._run)

    async def _gone(self) -> bool:
        """Return true if the begun attempt is with no worker any more. A task on another worker finds that out by
        itself."""
        if not self.begun:
            self.begun = await self._started.is_set()
            return False
        statuses = await self._client.scheduler.get_task_status(keys=[self._key])
        return statuses.get(self._key) not in AT_WORK


def _key(run: Run, attempt: int) -> str:
    """Return the name that Dask's pages show."""
    return f"{run.action.ref}-{run.event.execution_id}-{attempt}"


def _unreachable(error: OSError) -> Outcome:
    return Outcome.failed(
        TaskError("DaskUnreachable", f"the scheduler of Dask does not answer: {error}", retryable=True)
    )
