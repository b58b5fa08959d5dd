"""What a function waits for that is not there yet, and when its attempt ends for that.

While anything is under way (a step's function, a record being written) the attempt stays. Once the function only waits, it stays
where what it waits for may come soon, and nobody else needs its slot; else it is suspended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from penstock.errors import PenstockError
from penstock.language.durable.attempt_over import AttemptOver, Stopped, Suspended, Verdict
from penstock.language.durable.backend import Backend
from penstock.language.durable.records import Awaited, Child, Key

QUIET_TURNS = 8
"""Turns of the event loop without anything asked for, after which a function that waits is taken to have nothing else to do."""
LOOK = 0.05
"""Seconds between two looks at whether the slot is needed by others."""


@dataclass(slots=True, eq=False)
class _Wait:
    future: asyncio.Future[Any]
    child: UUID | None = None
    until: datetime | None = None
    signal: Key | None = None
    slow: bool = False


class Waiting:
    """The waits of one attempt. `clock` gives the database's time; `warm`: seconds that a function may stay while it waits."""

    def __init__(self, backend: Backend, clock: Callable[[], datetime], warm: float) -> None:
        self._backend = backend
        self._clock = clock
        self._warm = warm
        self._waits: set[_Wait] = set()
        self._active = 0
        self._turn = 0
        self._changed = asyncio.Event()
        self._watcher: asyncio.Task[None] | None = None
        self.staying = False
        """Never suspend: the function cleans up after it was asked to end."""
        self.ends_as: str | None = None
        """What the run was asked to end as, until its function is told."""
        self.verdict: Verdict | None = None

    # -- what is under way ---------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises AttemptOver once there is a verdict."""
        self._turn += 1
        if self.verdict is not None:
            raise AttemptOver

    async def busy(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Await this; the attempt is not suspended meanwhile."""
        try:
            self._tell_end()
        except asyncio.CancelledError:
            work.close()
            raise
        self._active += 1
        try:
            return await work
        finally:
            self._active -= 1
            self._turn += 1
            self._changed.set()

    def _tell_end(self) -> None:
        """The function has come to where the attempt before was, and would go on: it is told that the run is to end, once."""
        if self.ends_as is not None:
            ends_as, self.ends_as = self.ends_as, None
            raise asyncio.CancelledError(f"the run was asked to end as {ends_as}")

    def end(self, verdict: Verdict) -> None:
        """The attempt is over: whoever waits, and whoever asks for more, is told."""
        if self.verdict is None:
            self.verdict = verdict
        for wait in self._waits:
            if not wait.future.done():
                # Not an exception: its frames would hold the future that holds it, until the garbage collector comes.
                wait.future.set_result(None)

    # -- waiting -------------------------------------------------------------------------------------------------

    async def for_child(self, child: UUID, *, slow: bool) -> Child:
        """The end of a child. `slow`: a human or the world outside is to answer, so nothing is gained by staying."""
        ended: Child = await self._wait(_Wait(self._future(), child=child, slow=slow))
        return ended

    async def for_child_until(self, child: UUID, until: datetime) -> Child | None:
        """The same, or None where that instant comes first."""
        ended: Child | None = await self._wait(_Wait(self._future(), child=child, until=until))
        return ended

    async def until(self, instant: datetime) -> None:
        if instant > self._clock():
            await self._wait(_Wait(self._future(), until=instant))

    async def for_signal(self, signal: Key, until: datetime | None = None) -> None:
        """Until that instant: a signal itself comes only to the next attempt."""
        if until is None or until > self._clock():
            await self._wait(_Wait(self._future(), signal=signal, until=until, slow=True))

    def _future(self) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    async def _wait(self, wait: _Wait) -> Any:
        self.check()
        self._tell_end()
        self._waits.add(wait)
        self._changed.set()
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.create_task(self._watch(), name="durable waits")
        try:
            answer = await wait.future
        finally:
            self._waits.discard(wait)
            self._turn += 1
            self._changed.set()
        self.check()
        return answer

    def close(self) -> None:
        """Nobody watches any more, and whoever still waits, in a task that the function has left behind, is cancelled."""
        if self._watcher is not None:
            self._watcher.cancel()
            self._watcher = None
        for wait in self._waits:
            wait.future.cancel()

    # -- the watcher ---------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        try:
            await self._look()
        except PenstockError as error:
            self.end(Stopped(error))

    async def _look(self) -> None:
        idle_since: float | None = None
        loop = asyncio.get_running_loop()
        while self._waits and self.verdict is None:
            self._changed.clear()
            if self._resolve_due():
                idle_since = None
                await asyncio.sleep(0)
                continue
            idle = await self._quiet()
            if not idle:
                idle_since = None
            elif idle_since is None:
                idle_since = loop.time()
            left = self._patience(idle_since)
            if left <= 0:
                self.end(Suspended(self._awaited()))
                return
            if await self._came(left):
                idle_since = None

    async def _quiet(self) -> bool:
        """Whether the function has nothing to do but wait."""
        turn = self._turn
        for _ in range(QUIET_TURNS):
            if self._active or turn != self._turn:
                return False
            await asyncio.sleep(0)
        return not self._active and turn == self._turn

    def _patience(self, idle_since: float | None) -> float:
        """Seconds to wait on before the next look; 0: suspend."""
        if self.staying or idle_since is None:
            return LOOK
        if not self._backend.may_stay() or not self._may_come_soon():
            return 0.0
        left = self._warm - (asyncio.get_running_loop().time() - idle_since)
        return min(LOOK, left)

    def _may_come_soon(self) -> bool:
        soon = self._clock() + timedelta(seconds=self._warm)
        return any(
            wait.until <= soon if wait.until is not None and wait.child is None else not wait.slow
            for wait in self._waits
        )

    async def _came(self, seconds: float) -> bool:
        """Whether one of the children has ended, of which those who wait are told."""
        now = self._clock()
        instants = [(wait.until - now).total_seconds() for wait in self._waits if wait.until is not None]
        seconds = max(0.0, min([seconds, *instants]))
        children = [wait.child for wait in self._waits if wait.child is not None]
        if not children:
            await asyncio.sleep(seconds)
            return False
        ended = await self._backend.ended(children, seconds)
        for wait in list(self._waits):
            if wait.child is not None and wait.child in ended and not wait.future.done():
                wait.future.set_result(ended[wait.child])
        return bool(ended)

    def _resolve_due(self) -> bool:
        now, due = self._clock(), False
        for wait in list(self._waits):
            if wait.until is not None and wait.until <= now and not wait.future.done():
                wait.future.set_result(None)
                due = True
        return due

    def _awaited(self) -> Awaited:
        return Awaited(
            children=tuple(wait.child for wait in self._waits if wait.child is not None),
            until=min((wait.until for wait in self._waits if wait.until is not None), default=None),
            signals=tuple(wait.signal for wait in self._waits if wait.signal is not None),
        )
