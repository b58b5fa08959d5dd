"""The supervision of the parts without which a process must not go on: its consumers, loops and connection keepers.

A part that fails is run again. A part that ends in any other way ends the process, which its service manager starts
again: a part that returns without a stop, that another task cancels, or that fails repeatedly for reasons other than
an outage. That is better than a process that seems alive and does nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from penstock.errors import PartEnded
from penstock.store.session.database import is_transient

log = structlog.get_logger()

PAUSE = 1.0
"""Seconds between a failure of a part and its next run."""
FAILURES = 10
"""Consecutive failures, other than outages, after which a part and its process are given up."""
SOUND = 60.0
"""Seconds that a part has to run until its earlier failures do not count."""

Work = Callable[[], Coroutine[Any, Any, None]]


class Supervisor:
    """The parts of one process. `failure` names the part that has ended, with the reason."""

    def __init__(self, *, pause: float = PAUSE) -> None:
        self._pause = pause
        self._parts: dict[asyncio.Task[None], tuple[str, asyncio.Event | None]] = {}
        self._failed = asyncio.Event()
        self.failure: PartEnded | None = None

    def start(self, name: str, work: Work, *, until: asyncio.Event | None = None) -> asyncio.Task[None]:
        """Run a part until it is stopped or released. It may end by itself once `until` is set."""
        task = asyncio.create_task(self._run(name, work), name=name)
        self._parts[task] = (name, until)
        task.add_done_callback(self._ended)
        return task

    def release(self, *tasks: asyncio.Task[None]) -> None:
        """Let these parts end: they were told to finish."""
        for task in tasks:
            self._parts.pop(task, None)

    async def stop(self, *tasks: asyncio.Task[None]) -> None:
        """Cancel these parts, and wait until they have ended."""
        self.release(*tasks)
        for task in tasks:
            task.cancel()
        for task in tasks:
            while not task.done():
                await asyncio.wait([task], timeout=5)
                task.cancel()  # a library may have swallowed the cancellation
            if not task.cancelled():
                task.exception()  # retrieve the exception, so that asyncio does not log it

    def fail(self, name: str, reason: str) -> None:
        """Record that this part has ended, so that the process ends. Only the first failure counts: later ones are
        consequences."""
        if self.failure is None:
            self.failure = PartEnded(
                f"{name} has ended: {reason}",
                hint="The process ends, too. Start it again. Please report the error, with the log of the process.",
            )
            log.critical("service.part_ended", part=name, reason=reason)
            self._failed.set()

    async def until(self, stopped: asyncio.Event) -> None:
        """Wait until `stopped` is set. Raises PartEnded if a part ends before that."""
        waits = [asyncio.ensure_future(event.wait()) for event in (stopped, self._failed)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self.failure is not None:
            raise self.failure

    async def _run(self, name: str, work: Work) -> None:
        failures = 0
        task = asyncio.current_task()
        assert task is not None
        while True:
            began = time.monotonic()
            try:
                return await work()
            except asyncio.CancelledError:
                if task.cancelling():
                    raise
                # A library that loses its connection may raise this in the task that waits for its answer.
                failures = self._failures(name, began, failures, ConnectionError("cancelled by nobody"))
            except Exception as error:
                failures = self._failures(name, began, failures, error)
                if failures >= FAILURES:
                    raise
            await asyncio.sleep(self._pause)

    def _failures(self, name: str, began: float, failures: int, error: Exception) -> int:
        if is_transient(error):
            log.warning("service.part_failed", part=name, reason=f"{type(error).__name__}: {error}")
            return 0
        log.error("service.part_failed", part=name, exc_info=error)
        if time.monotonic() - began > SOUND:
            return 1
        return failures + 1

    def _ended(self, task: asyncio.Task[None]) -> None:
        name, until = self._parts.pop(task, (None, None))
        if name is None or (until is not None and until.is_set()):
            return
        with contextlib.suppress(asyncio.CancelledError):
            error = task.exception()
            return self.fail(name, f"{type(error).__name__}: {error}" if error else "it returned")
        self.fail(name, "it was cancelled")
