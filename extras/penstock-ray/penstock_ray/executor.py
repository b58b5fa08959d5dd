"""The executor of functions on a Ray cluster. Each attempt is an actor, which does the work in a child process.

The child is ended as the process executor ends one: SIGTERM, grace, SIGKILL. The actor is named after its execution,
so that an execution never has two. A later attempt finds and ends an earlier one that has lost its worker. The actor
also ends when the Penstock worker is gone, which owns it. Ray never restarts it, so an attempt on a lost node is a
lost attempt.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import ray
import structlog
from ray.exceptions import RayActorError, RayError

from penstock.errors import ConfigurationError
from penstock.run.task_executors import ExecutorMetrics, Outcome, Run, Tally, TaskError
from penstock_ray.actor import RayAttempt
from penstock_worker.executors.cluster_attempt import (
    END_MARGIN,
    SealedJob,
    declared_options,
    sealed,
    unsealed,
)

log = structlog.get_logger()

NAMESPACE = "penstock"
"""The Ray namespace in which the names of actors are looked up."""


class RayExecutor:
    def __init__(self, *, address: str, capacity: int = 100) -> None:
        """Create the executor. `address` is that of the cluster: `ray://host:10001` from outside, or `auto` or
        `host:6379` if this machine is one of its nodes. `capacity` is the number of actors at a time; the cluster
        queues those for which it has no room."""
        self.name = "ray"
        self._tally = Tally(self.name, capacity)
        self.has_capacity = self._tally.has_capacity
        self._address = address
        self._open = False

    async def open(self) -> None:
        """Connect to the cluster. Raises ConfigurationError if there is no cluster. A process has one connection to
        Ray."""
        try:
            await asyncio.to_thread(
                ray.init,
                address=self._address,
                namespace=NAMESPACE,
                log_to_driver=False,
                logging_level=logging.WARNING,
            )
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            raise ConfigurationError(
                f"the ray executor does not reach the cluster at {self._address}: {error}",
                hint="Start it with `ray start --head`, or correct `address` in PENSTOCK_EXECUTORS.",
            ) from None
        self._open = True

    async def execute(self, run: Run) -> Outcome:
        return await self._tally.counted(self._run, run)

    def metrics(self) -> ExecutorMetrics:
        return self._tally.metrics()

    async def close(self, grace: float) -> None:
        """Close the connection. Ray ends running actors."""
        if self._open:
            await asyncio.to_thread(ray.shutdown)
            self._open = False

    async def _run(self, run: Run) -> Outcome:
        assert self._open, "open() comes first"
        try:
            options, job = declared_options(run, self.name), sealed(run)
        except (
            Exception
        ) as error:  # invalid options or parameters, or a function that other machines cannot import
            return Outcome.raised(error, retryable=False)
        actor = _Actor(run)
        try:
            await actor.end_earlier()
            return await actor.outcome(options, job)
        except asyncio.CancelledError:
            run.cancelled = True
            await actor.end()
            raise
        finally:
            await actor.kill()


class _Actor:
    """The actor of one attempt, from its creation to its outcome."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._name = f"{run.action.ref}-{run.event.execution_id}"
        self._handle: Any = None
        self._answer: asyncio.Future[Any] | None = None

    async def end_earlier(self) -> None:
        """End the actor of an earlier attempt and wait for its end, as its worker may have died without doing so."""
        if self._run.event.attempt == 1:
            return
        deadline = time.monotonic() + self._run.grace + END_MARGIN
        requested = False
        while (earlier := await asyncio.to_thread(_find, self._name)) is not None:
            if not requested:
                earlier.stop.remote()
                requested = True
            if time.monotonic() > deadline - END_MARGIN:
                await asyncio.to_thread(_kill, earlier)
            if time.monotonic() > deadline:
                return  # the name of the earlier actor is still taken, which Ray then reports
            await asyncio.sleep(0.2)

    async def outcome(self, options: Mapping[str, Any], job: SealedJob) -> Outcome:
        try:
            self._handle = await asyncio.to_thread(_made, self._name, options)
            await _of(self._handle.ready.remote())
        except (RayError, ValueError, ConnectionError) as error:
            return Outcome.failed(
                TaskError(
                    "RayRefused",
                    f"the cluster of Ray does not start it: {error}. Is penstock-ray installed there?",
                )
            )
        try:
            self._answer = _of(self._handle.run.remote(job))
            return unsealed(await asyncio.shield(self._answer), self._run)
        except (RayActorError, ConnectionError) as error:
            return Outcome.lost(f"the node or process of Ray that ran this attempt is gone: {error}")
        except RayError as error:
            return Outcome.failed(TaskError("RayRefused", f"the cluster of Ray cannot run it: {error}"))

    async def end(self) -> None:
        """Stop the work, and wait until it has ended, at most as long as that should take. Work that has not begun
        needs no stop."""
        if self._answer is None:
            return
        try:
            self._handle.stop.remote()
            async with asyncio.timeout(self._run.grace + END_MARGIN):
                unsealed(await self._answer, self._run)
        except TimeoutError:
            log.warning("ray.actor_not_ended", job=self._name, reason="it does not end, and is killed")
        except Exception as error:
            log.warning("ray.actor_not_ended", job=self._name, reason=str(error))

    async def kill(self) -> None:
        if self._handle is not None:
            with suppress(Exception):  # the actor or the cluster is gone
                await asyncio.to_thread(_kill, self._handle)


def _made(name: str, options: Mapping[str, Any]) -> Any:
    resources = {option: value for option, value in options.items() if value is not None}
    actor_class = ray.remote(RayAttempt).options(
        name=name, namespace=NAMESPACE, max_restarts=0, max_task_retries=0, **resources
    )
    return actor_class.remote()


def _find(name: str) -> Any:
    try:
        return ray.get_actor(name, namespace=NAMESPACE)
    except ValueError:
        return None


def _kill(actor: Any) -> None:
    ray.kill(actor, no_restart=True)


def _of(ref: Any) -> asyncio.Future[Any]:
    return asyncio.wrap_future(ref.future())
