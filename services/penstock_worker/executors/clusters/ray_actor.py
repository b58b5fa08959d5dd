"""The program on a Ray cluster: an actor of one attempt. It is pickled by name, so Penstock is installed there too."""

from __future__ import annotations

import asyncio
import os

from penstock_worker.executors.clusters.cluster_attempt import Answer, SealedJob, perform


class RayAttempt:
    """Has a child process do the work, so that it can be ended gently and its log outlives its crash."""

    def __init__(self) -> None:
        self._stop = asyncio.Event()

    async def ready(self) -> None:
        """Answered once there is room for it somewhere."""

    async def run(self, job: SealedJob) -> Answer:
        return await perform(job, self._stopped(), {"RAY_ADDRESS": _address()})

    async def stop(self) -> None:
        """`run` ends the work, and gives its answer then."""
        self._stop.set()

    async def _stopped(self) -> None:
        await self._stop.wait()


def _address() -> str:
    """With which `ray.init()` of an action comes to this very cluster."""
    import ray

    return str(ray.get_runtime_context().gcs_address) or os.environ.get("RAY_ADDRESS", "auto")
