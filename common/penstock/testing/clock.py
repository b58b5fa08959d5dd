"""A simulated clock that moves only on request, and the timers that are due on it."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count


@dataclass(slots=True)
class Timer:
    """An action that is due at an instant, unless it is cancelled before."""

    due: datetime
    action: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass(slots=True)
class Clock:
    """A clock with timers. They fire in the order in which they are due, and those of one instant in the order in
    which they were set."""

    now: datetime
    _timers: list[tuple[datetime, int, Timer]] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)

    def call_at(self, due: datetime, action: Callable[[], None]) -> Timer:
        timer = Timer(due, action)
        heapq.heappush(self._timers, (due, next(self._numbers), timer))
        return timer

    def call_in(self, seconds: float, action: Callable[[], None]) -> Timer:
        return self.call_at(self.now + timedelta(seconds=seconds), action)

    def fire_next(self, until: datetime | None = None) -> bool:
        """Move the clock to the next timer, and fire it. Return False if no timer is due, or none until `until`."""
        while self._timers:
            due, _, timer = self._timers[0]
            if until is not None and due > until:
                return False
            heapq.heappop(self._timers)
            if not timer.cancelled:
                self.now = max(self.now, due)
                timer.action()
                return True
        return False
