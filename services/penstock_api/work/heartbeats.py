"""The heartbeats of workers, and their answers: attempts that are lost or to be cancelled, and whether the worker must
take no more work."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from penstock.errors import UnknownSession
from penstock.store.processes import remote_workers
from penstock.store.session.database import retried
from penstock_api.session_pool import SessionPool
from penstock_api.work.held_attempts import PATIENCE_S, HeldAttempts
from penstock_api.work.remote_worker import RemoteWorker

REMEMBERED_S = 10.0
"""Seconds for which a cancellation of work that no worker held is remembered, since the claim of the work may not be
committed yet."""
MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class BeatAnswer:
    """The answer to a heartbeat: executions of which the worker has lost the attempt, those that it has to `cancel`, and
    whether it must take no more work (`drain`)."""

    lost_attempts: Sequence[UUID]
    cancel: Sequence[UUID]
    drain: bool


class Beats:
    """The open heartbeats. Each is answered when there is something new to report to its worker."""

    def __init__(self, pool: SessionPool, held: HeldAttempts, silence: float) -> None:
        self._pool = pool
        self._held = held
        self._silence = silence
        self._waiting: dict[UUID, asyncio.Event] = {}
        self._canceled: dict[UUID, float] = {}
        self.stopping = asyncio.Event()

    async def beat(
        self,
        worker: RemoteWorker,
        holding: Mapping[UUID, int],
        cancelling: Collection[UUID],
        *,
        drains: bool,
        seconds: float,
    ) -> BeatAnswer:
        """Write a heartbeat. Return its answer as soon as it tells the worker something new, and after `seconds` at the
        latest. The worker knows that it cancels `cancelling`, and whether it `drains`. Raises UnknownSession if the
        session has ended."""
        news = asyncio.Event()
        self._waiting[worker.id] = news
        try:
            answer = await self._write(worker, holding)
            if self._tells(answer, cancelling, drains=drains):
                return answer
            until = time.monotonic() + seconds
            while not self.stopping.is_set() and (remaining := until - time.monotonic()) > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(remaining):
                        await news.wait()
                if not news.is_set():
                    break
                news.clear()
                cancel = await self._canceling(worker)
                if set(cancel) - set(cancelling):
                    return BeatAnswer((), cancel, worker.cordoned)
            return BeatAnswer((), (), worker.cordoned)
        finally:
            if self._waiting.get(worker.id) is news:
                del self._waiting[worker.id]

    def hear(self, ids: Sequence[UUID]) -> None:
        """Note that executions are to be cancelled. The waiting heartbeats read from the database which workers run
        them."""
        now = time.monotonic()
        self._canceled = {id: until for id, until in self._canceled.items() if until > now}
        self._canceled |= dict.fromkeys(ids[-MOST_REMEMBERED:], now + REMEMBERED_S)
        while len(self._canceled) > MOST_REMEMBERED:
            del self._canceled[next(iter(self._canceled))]
        self.wake()

    def wake(self) -> None:
        """Let the open heartbeats look again."""
        for news in self._waiting.values():
            news.set()

    def stop(self) -> None:
        """Answer all open heartbeats."""
        self.stopping.set()
        self.wake()

    async def _write(self, worker: RemoteWorker, holding: Mapping[UUID, int]) -> BeatAnswer:
        async def write() -> BeatAnswer:
            async with self._pool.session() as session:
                pulse = await remote_workers.beat(session, worker.id, holding, self._silence)
            if not pulse.is_registered:
                raise UnknownSession(
                    "this worker was declared lost, since no heartbeat came for too long",
                    hint="Send another hello. The worker no longer owns its attempts: end them without a report.",
                )
            worker.cordoned = pulse.cordoned
            self._held.forget(worker.id, pulse.lost_attempts)
            return BeatAnswer(list(pulse.lost_attempts), pulse.canceling, pulse.cordoned)

        return await retried(write, deadline=PATIENCE_S)

    def _tells(self, answer: BeatAnswer, cancelling: Collection[UUID], *, drains: bool) -> bool:
        return bool(answer.lost_attempts or set(answer.cancel) - set(cancelling) or answer.drain != drains)

    async def _canceling(self, worker: RemoteWorker) -> list[UUID]:
        now = time.monotonic()
        ids = [id for id, until in self._canceled.items() if until > now]
        if not ids:
            return []
        async with self._pool.session() as session:
            return (await remote_workers.canceling(session, ids, [worker.id])).get(worker.id, [])
