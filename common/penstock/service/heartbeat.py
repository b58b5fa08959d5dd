"""Heartbeats of a process: one write an interval, in a thread and on a connection of their own, so that a coroutine
that blocks the event loop does not get a healthy process swept."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import structlog

from penstock.messaging.supervision import Supervisor
from penstock.settings import Settings
from penstock.store import heartbeats
from penstock.store.database import Database, is_transient
from penstock.store.heartbeats import Identity, Pulse

log = structlog.get_logger()

__all__ = ["Heartbeat", "Identity", "Pulse"]


class Heartbeat:
    """Beats from a thread. `holding` gives what is held (copied atomically); `answer` is called on the event loop.
    `silent` is called there too, once, when no beat got through for so long that others will take over."""

    def __init__(
        self,
        settings: Settings,
        identity: Identity,
        supervisor: Supervisor,
        *,
        holding: Callable[[], Mapping[UUID, int]] = dict,
        answer: Callable[[Pulse], None] = lambda _: None,
        silent: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._supervisor = supervisor
        self._holding = holding
        self._answer = answer
        self._silent = silent
        self._loop = asyncio.get_running_loop()
        self._ended = threading.Event()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._state = "active"
        self.last = time.monotonic()

    async def start(self) -> None:
        """Register; returns when the process is known to the others."""
        self._thread.start()
        await self._ready

    async def stop(self) -> None:
        """Leave, so that the others need not wait until this process is stale."""
        self._ended.set()
        await asyncio.to_thread(self._thread.join, 5)

    def say(self, state: str) -> None:
        """Tell others with the next beat that this process is `active`, `cordoned` or `draining`."""
        self._state = state

    def _run(self) -> None:
        try:
            asyncio.run(self._beat())
        except BaseException as error:
            self._call(self._failed, f"{type(error).__name__}: {error}")
            raise

    def _failed(self, reason: str) -> None:
        self._supervisor.fail("heartbeat", reason)
        if not self._ready.done() and self._supervisor.failure is not None:
            self._ready.set_exception(self._supervisor.failure)

    async def _beat(self) -> None:
        database = Database(self._settings, role=self._identity.kind)
        session = database.session()
        me, interval = self._identity, self._settings.heartbeat_interval
        margin = self._settings.stale_threshold - interval
        patience = max(interval, min(5.0, margin))
        registered, reported, state = False, False, "active"
        while not self._ended.is_set():
            try:
                async with asyncio.timeout(patience):
                    if not registered:
                        await heartbeats.register(session, me)
                        registered = True
                        self._call(self._set_ready)
                    pulse = await heartbeats.beat(session, me.id, self._holding(), self._silence())
                    if state != self._state:
                        state = self._state
                        await heartbeats.set_state(session, me.id, state)
                self.last, reported = time.monotonic(), False
                registered = pulse.known
                self._call(self._answer, pulse)
                wait = interval * random.uniform(0.9, 1.0)
            except Exception as error:
                if not is_transient(error):
                    log.exception("heartbeat.failed", process=me.name)
                wait = min(1.0, interval / 4)
                if not reported and time.monotonic() - self.last > margin:
                    reported = True
                    log.error(
                        "heartbeat.silent", process=me.name, seconds=round(time.monotonic() - self.last)
                    )
                    self._call(self._silent)
            await asyncio.to_thread(self._ended.wait, wait)
        try:
            async with asyncio.timeout(2):
                await heartbeats.leave(session, me.id)
        except Exception as error:
            log.debug("heartbeat.leave_failed", error=str(error))
        await database.close()

    def _silence(self) -> float:
        return self._settings.stale_threshold / 2

    def _set_ready(self) -> None:
        if not self._ready.done():
            self._ready.set_result(None)

    def _call(self, function: Callable[..., None], *args: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)
