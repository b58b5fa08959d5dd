"""The program on a Dask worker, which runs one attempt, once. It is pickled by name, so penstock-dask must be
installed there.

Dask runs a task again elsewhere when its worker is gone, even after the task has ended. An attempt must not run twice
unnoticed. So the process that starts it sets an event on the scheduler. A process that finds the event set runs
nothing and returns `LOST`.
"""

from __future__ import annotations

import asyncio

from distributed import Client, Event, Worker, get_client, get_worker

from penstock_worker.executors.cluster_attempt import Answer, SealedJob, perform

LOST = "lost"
LOOK = 0.2
"""The seconds between two checks whether the result is still wanted. They send nothing over the network."""


def started(key: str, client: Client | None = None) -> Event:
    """Return the event that the runner of an attempt sets, until the attempt has ended or its result was fetched."""
    return Event(f"{key}-started", client=client)


def stop(key: str, client: Client | None = None) -> Event:
    """Return the event that is set to stop the attempt."""
    return Event(f"{key}-stop", client=client)


async def run_once(job: SealedJob, key: str) -> Answer | str:
    worker, client = get_worker(), get_client()
    started_event, ending = started(key, client), stop(key, client)
    if await started_event.is_set():
        return LOST
    await started_event.set()
    # Check `stop` after setting `started`: the stopper sets `stop` first, and then checks `started`.
    if await ending.is_set():
        await started_event.clear()
        return LOST
    stop_request = _Told(worker, ending, key)
    answer = await perform(job, stop_request.to_stop(), {"DASK_SCHEDULER_ADDRESS": worker.scheduler.address})
    if stop_request.so:
        await (
            started_event.clear()
        )  # a process that waits for the end waits for this event, since the Penstock worker may be gone
    return answer


class _Told:
    def __init__(self, worker: Worker, ending: Event, key: str) -> None:
        self._worker, self._ending, self._key = worker, ending, key
        self.so = False

    async def to_stop(self) -> None:
        """Wait until the attempt has to stop: the event is set, or its result is no longer wanted, since it was
        cancelled or the Penstock worker is gone."""
        stop_wait = asyncio.ensure_future(self._ending.wait())
        try:
            while not stop_wait.done() and self._wanted():
                await asyncio.wait((stop_wait,), timeout=LOOK)
            self.so = True
        finally:
            stop_wait.cancel()

    def _wanted(self) -> bool:
        task = self._worker.state.tasks.get(self._key)
        return task is not None and task.state != "cancelled"
