"""The waits of a function, and the suspension of its attempt. The attempt stays on its worker while work is under way:
a step's function, a write, or a task of the function that can run. When the function only waits, the attempt stays if a
result may come soon and its slot is not needed. Otherwise it is suspended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from penstock.engine.durable.attempt_over import AttemptOver, Stopped, Suspended, Verdict
from penstock.engine.durable.backend import Backend
from penstock.engine.durable.records import Awaited, Child, cause_of_signal
from penstock.engine.durable.signal_queues import SignalLines
from penstock.errors import NothingAwaited, PenstockError

LOOK = 0.05
"""Seconds between two looks at whether the slot is needed."""
SIGNAL_LOOK = 0.5
"""Seconds between two looks for signals, while the function stays for something else."""


class WaitDeliveries(Protocol):
    """The part of the deliveries of an attempt that its waits use."""

    signals: SignalLines

    @property
    def idle(self) -> bool: ...

    @property
    def has_cancels(self) -> bool: ...

    def end_attempt(self) -> None: ...

    def expect_children(self, ends: Mapping[UUID, Child]) -> None: ...

    async def carry_out_cancels(self) -> None: ...


class Attempted(Protocol):
    """The part of an attempt that its waits use."""

    backend: Backend
    clock: Callable[[], datetime]

    @property
    def deliveries(self) -> WaitDeliveries: ...

    @property
    def has_values(self) -> bool: ...

    async def look(self) -> None: ...

    async def write_values(self) -> None: ...


@dataclass(slots=True, eq=False)
class _Wait:
    future: asyncio.Future[Any]
    cause: str | None
    child: UUID | None = None
    until: datetime | None = None
    slow: bool = False


class Waiting:
    """The waits of one attempt. `warm`: seconds that a function may stay while it waits."""

    def __init__(self, core: Attempted, warm: float) -> None:
        self._core: Attempted | None = core
        self._warm = warm
        self._waits: set[_Wait] = set()
        self._active = 0
        self._changed = asyncio.Event()
        self._watcher: asyncio.Task[None] | None = None
        self.staying = False
        """Never suspend: the function cleans up after it was asked to end."""
        self.verdict: Verdict | None = None

    # -- the work under way --------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check that the attempt is not over. Raises AttemptOver once there is a verdict."""
        if self.verdict is not None:
            raise AttemptOver

    def begin_work(self) -> None:
        """Note that work is under way, until `end_work`."""
        self._active += 1

    def end_work(self) -> None:
        self._active -= 1
        self._changed.set()

    async def busy(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Await this work. The attempt is not suspended meanwhile."""
        self.begin_work()
        try:
            return await work
        finally:
            self.end_work()

    def end(self, verdict: Verdict) -> None:
        """End the attempt: all waits are notified, and later calls raise AttemptOver."""
        if self.verdict is None:
            self.verdict = verdict
        for wait in list(self._waits):
            # Resolve with None instead of an exception: the frames of an exception would keep the future alive, and the
            # future the exception, until a garbage collection.
            self._resolve(wait, None)
        if self._core is not None:
            self._core.deliveries.end_attempt()

    # -- waits for answers ---------------------------------------------------------------------------------------

    async def for_child(self, child: UUID, cause: str, *, slow: bool) -> Child:
        """Wait for the end of a child, and return it. `cause` names the wait for people. `slow`: a human or the outside world
        has to answer, so the worker gains nothing by staying."""
        end: Child = await self._wait(_Wait(self._future(), cause, child=child, slow=slow))
        return end

    async def until(self, instant: datetime, cause: str) -> None:
        """Wait until an instant. `cause` names the wait for people."""
        assert self._core is not None, "an attempt that is not over"
        if instant > self._core.clock():
            await self._wait(_Wait(self._future(), cause, until=instant))

    async def for_signal(self, until: datetime | None = None) -> None:
        """Wait until the instant `until`, or without an end (None). A signal that arrives before cancels this wait with
        its call."""
        assert self._core is not None, "an attempt that is not over"
        if until is None or until > self._core.clock():
            await self._wait(_Wait(self._future(), None, until=until, slow=True))

    def _future(self) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    async def _wait(self, wait: _Wait) -> Any:
        """Wait for an answer. Until it comes, the waiting task does not count as work under way."""
        self.check()
        self._waits.add(wait)
        self._active -= 1
        self.changed()
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.create_task(self._watch(), name="durable waits")
        try:
            answer = await wait.future
        finally:
            if wait in self._waits:  # the waiting task was cancelled
                self._waits.discard(wait)
                self._active += 1
        self.check()
        return answer

    def _resolve(self, wait: _Wait, answer: Any) -> None:
        """Resolve a wait. The waiting task counts as work under way from now on, even before it runs."""
        if wait in self._waits:
            self._waits.discard(wait)
            self._active += 1
            if not wait.future.done():
                wait.future.set_result(answer)

    def resolve_children(self, ends: dict[UUID, Child]) -> None:
        """Resolve the waits for these ended children."""
        if self._core is not None:
            self._core.deliveries.expect_children(ends)
        for wait in list(self._waits):
            if wait.child is not None and wait.child in ends:
                self._resolve(wait, ends[wait.child])

    def changed(self) -> None:
        """Wake the watcher."""
        self._changed.set()

    def close(self) -> None:
        """Stop the watcher, because the attempt is over."""
        if self._watcher is not None:
            self._watcher.cancel()
        for wait in self._waits:
            wait.future.cancel()
        self._core = None

    # -- the watcher, which suspends an idle attempt -------------------------------------------------------------

    async def _watch(self) -> None:
        try:
            await self._look()
        except PenstockError as error:
            self.end(Stopped(error))
        except AttemptOver:
            """A write has told that the claim is lost."""

    async def _look(self) -> None:
        idle_since: float | None = None
        core, loop = self._core, asyncio.get_running_loop()
        looked = loop.time()
        assert core is not None, "an attempt that is not over"
        while self._waits and self.verdict is None:
            self._changed.clear()
            self._resolve_due(core)
            if not self._is_idle(core):
                idle_since = None
            elif idle_since is None:
                idle_since = loop.time()
            remaining = self._patience(core, idle_since)
            if remaining <= 0:
                if core.deliveries.has_cancels:
                    await self.busy(core.deliveries.carry_out_cancels())
                    continue
                if core.has_values:
                    await self.busy(core.write_values())
                    continue
                self.suspend(self._awaited(core))
                return
            if core.deliveries.signals.awaited() and loop.time() - looked >= SIGNAL_LOOK:
                looked = loop.time()
                await self.busy(core.look())
                continue
            if await self._came(core, remaining):
                idle_since = None

    def _is_idle(self, core: Attempted) -> bool:
        """Return whether the attempt only waits. A resolved wait counts as work under way, even before its task runs."""
        resolved = any(wait.future.done() for wait in self._waits)
        return not self._active and not resolved and core.deliveries.idle

    def suspend(self, awaited: Awaited) -> None:
        """Suspend the run. A run that awaits nothing would never go on: it fails."""
        if awaited == Awaited():
            self.end(Stopped(NothingAwaited("an attempt is to be suspended, and nothing would end its wait")))
        else:
            self.end(Suspended(awaited))

    def _patience(self, core: Attempted, idle_since: float | None) -> float:
        """Return the seconds until the next look; 0 means suspend."""
        if self.staying or idle_since is None:
            return LOOK
        if not core.backend.may_stay() or not self._may_come_soon(core):
            return 0.0
        remaining = self._warm - (asyncio.get_running_loop().time() - idle_since)
        return min(LOOK, remaining)

    def _may_come_soon(self, core: Attempted) -> bool:
        soon = core.clock() + timedelta(seconds=self._warm)
        return any(
            wait.until <= soon
            if wait.until is not None and wait.child is None and not wait.slow
            else not wait.slow
            for wait in self._waits
        )

    async def _came(self, core: Attempted, seconds: float) -> bool:
        """Wait at most `seconds` for the end of an awaited child. Return whether one has ended, and resolve the waits
        for those that have. If no child is awaited, return False, early if the state of the waits has changed."""
        now = core.clock()
        instants = [(wait.until - now).total_seconds() for wait in self._waits if wait.until is not None]
        seconds = max(0.0, min([seconds, *instants]))
        children = [wait.child for wait in self._waits if wait.child is not None]
        if children:
            ends = await core.backend.ended(children, seconds)
            self.resolve_children(dict(ends))
            return bool(ends)
        if self._is_idle(core):
            await asyncio.sleep(seconds)
        else:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), seconds)
        return False

    def _resolve_due(self, core: Attempted) -> None:
        now = core.clock()
        for wait in list(self._waits):
            if wait.until is not None and wait.until <= now:
                self._resolve(wait, None)

    def _awaited(self, core: Attempted) -> Awaited:
        signals = core.deliveries.signals.awaited()
        causes = {wait.cause for wait in self._waits if wait.cause is not None}
        causes |= {cause_of_signal(key) for key in signals}
        return Awaited(
            children=tuple(wait.child for wait in self._waits if wait.child is not None),
            until=min((wait.until for wait in self._waits if wait.until is not None), default=None),
            signals=signals,
            causes=tuple(sorted(causes)),
        )
