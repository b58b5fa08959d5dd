"""The program on a Ray cluster: an actor for one attempt. It is pickled by name, so penstock-ray must be installed
there."""

from __future__ import annotations

import asyncio
import os

import ray

from penstock_worker.executors.cluster_attempt import Answer, SealedJob, perform


class RayAttempt:
    """The actor of one attempt. A child process does the work, so that it can be ended gently, and its log survives a
    crash."""

    def __init__(self) -> None:
        self._stop = asyncio.Event()

    async def ready(self) -> None:
        """Return once the cluster has placed the actor."""

    async def run(self, job: SealedJob) -> Answer:
        return await perform(job, self._stopped(), {"RAY_ADDRESS": _address()})

    async def stop(self) -> None:
        """Stop the work. `run` ends it and then returns its answer."""
        self._stop.set()

    async def _stopped(self) -> None:
        await self._stop.wait()


def _address() -> str:
    """Return the address with which `ray.init()` in an action connects to this cluster."""
    return str(ray.get_runtime_context().gcs_address) or os.environ.get("RAY_ADDRESS", "auto")
