"""The heartbeats of a process: one write each interval, in a thread and on a connection of their own. So a coroutine
that blocks the event loop does not make a healthy process look dead. That connection holds a lock, by which others
know within seconds that the process has ended (docs/decisions/0014)."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import random
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from uuid import UUID

import asyncpg
import orjson
import structlog

from penstock.errors import NotMigrated, ServerFull
from penstock.language.moves.processes import ACTIVE
from penstock.messaging.supervision import Supervisor
from penstock.settings import Settings
from penstock.store.processes import heartbeats
from penstock.store.processes.heartbeats import Identity, Pulse
from penstock.store.schema import functions
from penstock.store.session import notifications
from penstock.store.session.database import Database, Row, Session, is_transient

log = structlog.get_logger()

__all__ = ["Heartbeat", "Identity", "Pulse"]

PATIENCE = 5.0
"""The shortest timeout of a heartbeat in seconds, if there is time for it."""


class Heartbeat:
    """A thread that sends heartbeats. `holding` returns the held attempts (copied atomically). All other callbacks run
    on the event loop. `answer` receives each answer. `silent` is called once, with the seconds without a successful
    heartbeat, before other processes take over. `share` receives the number of connections to PostgreSQL that this
    process may have. `hears` maps channels to functions, which receive each text of their channel. `listens` is called
    each time the session begins to listen.

    The session listens before it takes its lock. So this process receives every text that is sent while its lock is
    held. Behind a pooler it has no lock, and does not listen.

    Its commits are relaxed: a heartbeat that is lost in a crash of the server is soon followed by another. While
    commits wait for a standby that is away, a live process can still send heartbeats.
    """

    def __init__(
        self,
        settings: Settings,
        identity: Identity,
        supervisor: Supervisor,
        *,
        holding: Callable[[], Mapping[UUID, int]] = dict,
        answer: Callable[[Pulse], None] = lambda _: None,
        silent: Callable[[float], None] = lambda _: None,
        share: Callable[[int], None] = lambda _: None,
        hears: Mapping[str, Callable[[str], None]] | None = None,
        listens: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._supervisor = supervisor
        self._holding = holding
        self._answer = answer
        self._silent = silent
        self._share = share
        self._hears = hears or {}
        self._listens = listens
        self._loop = asyncio.get_running_loop()
        self._beating: asyncio.AbstractEventLoop | None = None
        self._woken = asyncio.Event()
        self._ended = threading.Event()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        # Log lines of the thread, and of the functions that it calls, name this process too.
        beating = partial(contextvars.copy_context().run, self._run)
        self._thread = threading.Thread(target=beating, name="heartbeat", daemon=True)
        self._state = ACTIVE
        self._executors: str | None = None
        self._lock: int | None = None
        self._random = random.Random()
        """The generator of this thread. That of the module may be seeded, and belongs to the main thread."""

    async def start(self) -> None:
        """Register the process. Return when it is registered and knows its share of the connections."""
        self._thread.start()
        await self._ready

    async def stop(self) -> None:
        """Delete the registration, so that others need not wait until this process is stale."""
        self._ended.set()
        if self._beating is not None:
            with contextlib.suppress(RuntimeError):  # its thread has just ended
                self._beating.call_soon_threadsafe(self._woken.set)
        await asyncio.to_thread(self._thread.join, 5)

    def say(self, state: str) -> None:
        """Set the state of the process (`penstock.language.moves.processes`) with the next heartbeat."""
        self._state = state

    def tell(self, executors: Mapping[str, Mapping[str, float]]) -> None:
        """Send the figures of the task executors with the next heartbeat: attempts that each runs, has run, and so
        on."""
        self._executors = orjson.dumps(executors).decode()

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
        self._beating = asyncio.get_running_loop()
        settings, me = self._settings, self._identity
        database = Database(settings, role=me.kind, check=functions.check)
        opened = None if settings.database_pooler else self._hold_lock
        session = database.session_of_its_own(opened, relaxed=True)
        interval = settings.heartbeat_interval
        registered, reported, logged, state = False, False, False, ACTIVE
        through = time.monotonic()
        failing: float | None = None
        while True:
            self._woken.clear()
            if self._ended.is_set():
                break
            began = time.monotonic()
            # The silence counts from the instant at which the next heartbeat was due: a thread that was not scheduled
            # in time did not send it.
            silent_at = (
                min(began, through + interval) if failing is None else failing
            ) + settings.silent_after
            patience = max(interval, PATIENCE)
            if not reported:
                patience = min(patience, max(0.05, silent_at - began))
            try:
                async with asyncio.timeout(patience):
                    if not registered:
                        registered = await self._register(session)
                        state = ACTIVE
                    pulse = await heartbeats.beat(
                        session, me.id, self._holding(), settings.silence, self._executors
                    )
                    if state != self._state:
                        state = self._state
                        await heartbeats.set_state(session, me.id, state)
                through, failing, reported, logged = began, None, False, False
                registered = registered and pulse.is_registered
                self._call(self._share, pulse.share)
                self._call(self._set_ready)
                self._call(self._answer, pulse)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(interval * self._random.uniform(0.9, 1.0)):
                        await self._woken.wait()
            except Exception as error:
                if not is_transient(error):
                    log.exception("heartbeat.failed")
                if isinstance(error, ServerFull | NotMigrated) and not logged:
                    logged = True
                    log.error("heartbeat.waits", reason=error.message, hint=error.hint)
                failing = silent_at - settings.silent_after
                if not reported and time.monotonic() >= silent_at:
                    reported = True
                    seconds = time.monotonic() - through
                    log.error("heartbeat.silent", seconds=round(seconds))
                    self._call(self._silent, seconds)
                await asyncio.sleep(min(1.0, interval / 4))
        try:
            async with asyncio.timeout(2):
                await heartbeats.leave(session, me.id)
        except Exception as error:
            log.debug("heartbeat.leave_failed", reason=str(error))
        await database.close()

    async def _register(self, session: Session) -> bool:
        """Register the process. Return False if its connection, and so its lock, was replaced meanwhile."""
        await heartbeats.note_silence(session, self._settings.silence)
        lock = self._lock
        await heartbeats.register(session, self._identity, lock)
        return lock == self._lock

    async def _hold_lock(self, connection: asyncpg.Connection[Row]) -> None:
        """Take the lock of a new connection. When the connection is lost, the next heartbeat opens another at once,
        before other processes assume that this one has ended."""
        connection.add_termination_listener(lambda _: self._woken.set())
        for channel, heard in self._hears.items():
            await notifications.listen(connection, channel, partial(self._call, heard))
        self._lock = await heartbeats.hold_lock(connection, self._identity.id)
        self._call(self._listens)

    def _set_ready(self) -> None:
        if not self._ready.done():
            self._ready.set_result(None)

    def _call(self, function: Callable[..., None], *args: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)
