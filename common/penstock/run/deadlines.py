"""Time limits for attempts that are cheap enough to set one on every attempt.

`asyncio.timeout` costs a timer each. Here all limits of an event loop share one tick, so that a limit costs an insert
into a dict. In exchange an attempt may run up to TICK seconds too long. Without limits there is no tick.
"""

from __future__ import annotations

import asyncio
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
        self._ticking = False

    def watch(self, seconds: float) -> Deadline:
        """Cancel the calling task after `seconds`, unless `lift` comes first."""
        task = asyncio.current_task()
        assert task is not None, "a deadline needs a task to cancel"
        deadline = Deadline(task, time.monotonic() + seconds)
        self._watched.add(deadline)
        if not self._ticking:
            self._ticking = True
            asyncio.get_running_loop().call_later(min(TICK, max(0.0, seconds)), self._tick)
        return deadline

    def lift(self, deadline: Deadline) -> None:
        self._watched.discard(deadline)

    def _tick(self) -> None:
        now = time.monotonic()
        for deadline in [candidate for candidate in self._watched if candidate.at <= now]:
            self._watched.remove(deadline)
            deadline.expired = True
            deadline.task.cancel(TIME_IS_UP)
        self._ticking = bool(self._watched)
        if self._ticking:
            asyncio.get_running_loop().call_later(TICK, self._tick)


_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Deadlines] = WeakKeyDictionary()


def deadlines() -> Deadlines:
    """Return the time limits on the running event loop."""
    loop = asyncio.get_running_loop()
    limits = _of_loop.get(loop)
    if limits is None:
        limits = _of_loop[loop] = Deadlines()
    return limits
