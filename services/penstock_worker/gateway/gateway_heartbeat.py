"""The heartbeats of a worker that calls a gateway, in a thread and on connections of their own. So an action that blocks
the event loop does not make a healthy worker look dead."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import math
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import structlog

from penstock.messaging.supervision import Supervisor
from penstock_worker.gateway.gateway_client import GatewayClient, Refused
from penstock_worker.gateway.gateway_session import UNKNOWN_SESSION, GatewaySession

log = structlog.get_logger()

SHORTEST_S = 0.05
"""The minimum seconds between two heartbeats. An answer may already name an attempt that is still on its way to this
worker."""
FIRST_BEAT_S = 0.2
"""The seconds from the arrival of attempts to the first heartbeat that names them. A shorter attempt needs no
heartbeat. A longer one learns of its cancellation from then on."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a heartbeat. `lost_attempts` are attempts that are lost: execution to number, as the heartbeat named
    them. `cancel` are executions with an attempt that is to be cancelled. `drain`: the worker has to take no more work."""

    lost_attempts: Mapping[UUID, int]
    cancel: Sequence[UUID]
    drain: bool


class GatewayHeartbeat:
    """A thread that sends heartbeats. `holding` returns the held attempts (copied atomically), and `is_cordoned` whether the
    worker takes no work. `is_taking` returns whether a take waits, which is a sign of life of a worker without attempts.
    `answer`, `silent` and `unknown` run on the event loop. `silent` is called once, with the seconds without an answer, before
    other workers get the attempts. `unknown` is called with a session that has ended."""

    def __init__(
        self,
        servers: Sequence[str],
        token: str,
        session: GatewaySession,
        supervisor: Supervisor,
        *,
        holding: Callable[[], Mapping[UUID, int]],
        is_cordoned: Callable[[], bool],
        is_taking: Callable[[], bool],
        answer: Callable[[Answer], None],
        silent: Callable[[float], None],
        unknown: Callable[[GatewaySession], None],
    ) -> None:
        self._servers = servers
        self._token = token
        self._session = session
        self._supervisor = supervisor
        self._holding = holding
        self._is_cordoned = is_cordoned
        self._is_taking = is_taking
        self._answer = answer
        self._silent = silent
        self._unknown = unknown
        self._loop = asyncio.get_running_loop()
        self._beating: asyncio.AbstractEventLoop | None = None
        self._woken = asyncio.Event()
        self._ended = threading.Event()
        self._has_taken = False
        """True from the arrival of attempts to the next heartbeat."""
        self._told: set[tuple[UUID, int]] = set()
        """The attempts that the worker has been told to cancel."""
        beating = partial(contextvars.copy_context().run, self._run)
        self._thread = threading.Thread(target=beating, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def begin(self, session: GatewaySession) -> None:
        """Send the heartbeats of another session from now on."""
        self._session = session
        self.look()

    def note_taken(self) -> None:
        """Send a heartbeat soon if the worker still holds the attempts that have arrived."""
        self._has_taken = True
        self.look()

    def look(self) -> None:
        """Send a heartbeat at once if the worker holds attempts."""
        if self._beating is not None:
            with contextlib.suppress(RuntimeError):  # its thread has just ended
                self._beating.call_soon_threadsafe(self._woken.set)

    async def stop(self) -> None:
        self._ended.set()
        self.look()
        await asyncio.to_thread(self._thread.join, 5)

    def _run(self) -> None:
        try:
            asyncio.run(self._beat())
        except BaseException as error:
            self._call(self._supervisor.fail, "heartbeat", f"{type(error).__name__}: {error}")
            raise

    async def _beat(self) -> None:
        self._beating = asyncio.get_running_loop()
        client = GatewayClient(self._servers, self._token)
        try:
            while not self._ended.is_set():
                await self._beat_session(client, self._session)
        finally:
            await client.close()

    async def _beat_session(self, client: GatewayClient, session: GatewaySession) -> None:
        """Send the heartbeats of a session until it has ended or another one has begun."""
        answered_at, is_silent = time.monotonic(), False
        sent_at = -math.inf
        while session is self._session and not self._ended.is_set():
            self._woken.clear()
            holding = self._holding()
            began = time.monotonic()
            # A waiting take is a sign of life only while the worker has no attempts. A worker that often has some for a
            # moment also sends heartbeats.
            is_due = self._has_taken and began > sent_at + session.beat_every
            if not holding and not is_due and self._is_taking():
                answered_at, is_silent = began, False
                await self._wait(session.beat_every)
                await self._wait_for_stop(FIRST_BEAT_S if self._has_taken else 0.0)
                continue
            sent_at, self._has_taken = began, False
            try:
                calling = self._call_gateway(client, session, holding)
                if is_silent:
                    answer = await self._unless_stopped(calling)
                else:
                    async with asyncio.timeout(max(SHORTEST_S, answered_at + session.silent_after - began)):
                        answer = await self._unless_stopped(calling)
            except TimeoutError:
                is_silent = True
                seconds = time.monotonic() - answered_at
                log.error("heartbeat.silent", seconds=round(seconds))
                self._call(self._silent, seconds)
                continue
            except Refused as refused:
                if refused.kind == UNKNOWN_SESSION:
                    self._call(self._unknown, session)
                else:
                    log.error("heartbeat.refused", reason=refused.message, hint=refused.hint)
                await self._wait(session.beat_every)
                continue
            if answer is None:
                return
            answered_at, is_silent = began, False
            self._told = {key for key in self._told if key in holding.items()}
            self._told |= {(id, holding[id]) for id in answer.cancel if id in holding}
            self._call(self._answer, answer)
            if not holding:
                await self._wait(session.beat_every)
            elif (pause := SHORTEST_S - (time.monotonic() - began)) > 0:
                await asyncio.sleep(pause)

    async def _call_gateway(
        self, client: GatewayClient, session: GatewaySession, holding: Mapping[UUID, int]
    ) -> Answer:
        # While the worker holds attempts, the gateway delays its answer until there is something to say. So a
        # cancellation arrives at once.
        wait = session.beat_every if holding else 0.0
        message = {
            "holding": [
                {"execution": id, "attempt": attempt, "cancelling": (id, attempt) in self._told}
                for id, attempt in holding.items()
            ],
            "draining": self._is_cordoned(),
            "wait": wait,
        }
        answer = await client.call("beat", message, session.secret, wait=wait)
        lost_attempts = {id: holding[id] for id in map(UUID, answer["lost"]) if id in holding}
        return Answer(lost_attempts, [UUID(id) for id in answer["cancel"]], answer["drain"])

    async def _unless_stopped(self, work: Coroutine[Any, Any, Answer]) -> Answer | None:
        """Return the answer, or None if this heartbeat is stopped before it comes."""
        working = asyncio.ensure_future(work)
        try:
            while not working.done():
                self._woken.clear()
                woken = asyncio.ensure_future(self._woken.wait())
                await asyncio.wait({working, woken}, return_when=asyncio.FIRST_COMPLETED)
                woken.cancel()
                if self._ended.is_set() and not working.done():
                    return None
            return working.result()
        finally:
            working.cancel()

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()

    async def _wait_for_stop(self, seconds: float) -> None:
        """Wait `seconds`, or until this heartbeat is stopped or another session has begun."""
        session, until = self._session, time.monotonic() + seconds
        while (
            not self._ended.is_set()
            and session is self._session
            and (remaining := until - time.monotonic()) > 0
        ):
            self._woken.clear()
            await self._wait(remaining)

    def _call(self, function: Callable[..., None], *args: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)
