"""Time limits for attempts that are cheap enough to set one on every attempt.

`asyncio.timeout` costs a timer each. Here all limits of an event loop share the timer of the earliest one, so that a
limit costs an insert into a set. A limit that was lifted leaves the timer alone, which then finds the next one. In
exchange an attempt may run up to TICK seconds too long. Without limits there is no timer.
"""

from __future__ import annotations

import asyncio
import math
import time
from weakref import WeakKeyDictionary

TICK = 0.1
TIME_IS_UP = "the attempt's time is up"
"""The message of the cancellation of a task whose time is up."""


class Deadline:
    """A time limit on a task. When it expires, the task is cancelled once."""

    __slots__ = ("at", "expired", "task")

    def __init__(self, task: asyncio.Task[object], at: float) -> None:
        self.task = task
        self.at = at
        self.expired = False


class Deadlines:
    """The time limits on one event loop."""

    def __init__(self) -> None:
        self._watched: set[Deadline] = set()
        self._due = math.inf
        """The instant of the next tick. Timers for other instants do nothing."""

    def watch(self, seconds: float) -> Deadline:
        """Cancel the calling task after `seconds`, unless `lift` comes first."""
        task = asyncio.current_task()
        assert task is not None, "a deadline needs a task to cancel"
        deadline = Deadline(task, time.monotonic() + seconds)
        self._watched.add(deadline)
        self._tick_at(deadline.at)
        return deadline

    def lift(self, deadline: Deadline) -> None:
        self._watched.discard(deadline)

    def _tick_at(self, at: float) -> None:
        """Look at the limits at the instant `at`, unless a look is due before."""
        if at < self._due:
            self._due = at
            asyncio.get_running_loop().call_later(max(0.0, at - time.monotonic()), self._tick, at)

    def _tick(self, due: float) -> None:
        if due != self._due:
            return  # an earlier limit was watched meanwhile, and has its own timer
        now = time.monotonic()
        for deadline in [candidate for candidate in self._watched if candidate.at <= now]:
            self._watched.remove(deadline)
            deadline.expired = True
            deadline.task.cancel(TIME_IS_UP)
        self._due = math.inf
        if self._watched:
            self._tick_at(max(now + TICK, min(deadline.at for deadline in self._watched)))


_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Deadlines] = WeakKeyDictionary()


def deadlines() -> Deadlines:
    """Return the time limits on the running event loop."""
    loop = asyncio.get_running_loop()
    limits = _of_loop.get(loop)
    if limits is None:
        limits = _of_loop[loop] = Deadlines()
    return limits
