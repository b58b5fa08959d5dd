"""The gateway of one process: its parts, and the tasks that run besides the calls of workers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import structlog

from penstock.messaging import worker_broadcasts
from penstock.messaging.messages import WorkParked
from penstock.messaging.outbox import Publisher
from penstock.store.processes import remote_workers
from penstock.store.session.database import Database, is_transient
from penstock_api.session_pool import SessionPool
from penstock_api.work.definitions import Definitions
from penstock_api.work.heartbeats import Beats
from penstock_api.work.held_attempts import HeldAttempts
from penstock_api.work.sessions import CACHED_S, Sessions, patience
from penstock_api.work.take_permits import TakePermits
from penstock_api.work.takes import Takes

log = structlog.get_logger()

PAUSE_S = 1.0
"""Seconds between two tries of a loop, while the broker or the database is away."""


class Gateway:
    """The work of a gateway. It starts with the first hello or take, and ends with `close`."""

    def __init__(self, database: Database, publisher: Publisher) -> None:
        settings = database.settings
        self._settings = settings
        self._publisher = publisher
        self.pool = SessionPool(database)
        self.definitions = Definitions()
        self.sessions = Sessions(settings, self.definitions)
        self.held = HeldAttempts(database, self.pool, publisher, self.definitions)
        self.permits = TakePermits(
            database,
            self.pool,
            self.definitions,
            self.held,
            self._start,
            behind=publisher.transport.outbox_is_queue,
        )
        self.takes = Takes(self.pool, publisher, self.definitions, self.held, self.permits, self._start)
        self.beats = Beats(self.pool, self.held, settings.silence)
        self._tasks: set[asyncio.Task[None]] = set()
        self._begun = False

    def begin(self) -> None:
        """Start the tasks that run besides the calls, unless they run already."""
        if not self._begun:
            self._begun = True
            self._start(self._hear(), "gateway broadcasts")
            self._start(self._beat(), "gateway heartbeats")
            self._start(self.permits.run(), "gateway permits")
            self._start(self.takes.look_for_parked(self._settings.poll_interval), "gateway parked work")

    def stop(self) -> None:
        """Answer all open calls. The workers then call another replica, or this one once it is back."""
        self.takes.stop()
        self.beats.stop()

    async def close(self) -> None:
        """Stop the tasks that run besides the calls."""
        self.stop()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("gateway.failed", part=task.get_name(), exc_info=error)

    async def _hear(self) -> None:
        """Pass on broadcasts: of cancellations to heartbeats, and of parked work to takes."""
        while True:
            try:
                subscription = await self._publisher.transport.listen()
                try:
                    while deliveries := await subscription.receive(100):
                        broadcasts = worker_broadcasts.read(deliveries)
                        for broadcast in broadcasts:
                            if isinstance(broadcast, WorkParked):
                                self.takes.parked_on(broadcast.queue)
                        if ids := worker_broadcasts.named(broadcasts):
                            self.beats.hear(ids)
                finally:
                    await subscription.close()
            except Exception as error:
                log.warning(
                    "gateway.hears_no_broadcasts", reason=str(error), exc_info=not is_transient(error)
                )
            await asyncio.sleep(PAUSE_S * random.uniform(0.5, 1.5))

    async def _beat(self) -> None:
        """Write heartbeats for the workers with a waiting take, since an open call is a sign of life.

        The same statement reads the states of these workers, so that the next take of an idle worker needs no query.
        The take of a lost worker is answered, so that the worker can begin another session."""
        every = self._settings.heartbeat_interval
        # Two heartbeats may fail before the worker counts as lost.
        older = max(every, patience(self._settings) / 3)
        while True:
            await asyncio.sleep(min(every, CACHED_S) * random.uniform(0.8, 1.0))
            workers = {take.worker.id: take.worker for take in self.takes.waiting}
            if not workers:
                continue
            try:
                began = asyncio.get_running_loop().time()
                async with self.pool.session() as session:
                    states = await remote_workers.beat_waiting(
                        session, sorted(workers), self._settings.silence, older
                    )
                lost_workers = {id for id, state in states.items() if state is None}
                self.sessions.refresh(
                    [worker for id, worker in workers.items() if id not in lost_workers],
                    states.keys() - lost_workers,
                    began,
                )
                if lost_workers:
                    self.sessions.forget(lost_workers)
                    self.takes.close_of(lost_workers)
            except Exception as error:
                log.warning("gateway.heartbeats_failed", reason=str(error), exc_info=not is_transient(error))
