"""An event loop whose time moves on when nothing else can be done, and never by itself."""

from __future__ import annotations

import asyncio
import math
import selectors
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

TURN_LIMIT = 10.0
"""Seconds of the real clock that a turn of the loop may still take once the time limit of its test is over."""


class Stuck(Exception):
    """Every task waits for another one."""


class _Selector(selectors.SelectSelector):
    """A selector that does not wait: the time that it would wait is over at once. It has no files."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.ticks: list[float] = []
        """The instants at which something happened."""
        self.time_limit: Callable[[], object] | None = None
        """Raises the error of the test's time limit, which is over."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if (time_limit := self.time_limit) is not None:
            self.time_limit = None
            time_limit()
        if timeout == 0:  # a callback is ready
            return []
        if timeout is None:
            raise Stuck
        self.now += timeout
        self.ticks.append(self.now)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop with a clock of its own."""

    def __init__(self) -> None:
        self.clock = _Selector()
        self._made: list[asyncio.Task[Any]] = []
        super().__init__(self.clock)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = super().create_task(coro, **options)
        self._made.append(task)
        return task

    def open_tasks(self) -> list[asyncio.Task[Any]]:
        """Return the tasks that are not done. `asyncio.all_tasks` looks through those of all loops of the process, and those of
        durable runs that are over stay until their memory is freed."""
        return [task for task in self._made if not task.done()]

    def end(self) -> None:
        """Cancel the tasks that are left, and close the loop."""
        try:
            tasks = self.open_tasks()
            for task in tasks:
                task.cancel()
            if tasks:
                self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.run_until_complete(self.shutdown_asyncgens())
        finally:
            self._made.clear()
            self.close()

    def _make_self_pipe(self) -> None:
        """Make no pipe: no thread wakes the loop of a play, and a pipe takes as long as a short play."""
        self._ssock = self._csock = None

    def _close_self_pipe(self) -> None:
        """Close nothing."""

    def time(self) -> float:
        return self.clock.now

    @property
    def is_ready(self) -> bool:
        """Return whether a task or a callback is about to run, besides the one that asks. Timers that are due count from the next
        turn on."""
        return bool(self._ready)  # type: ignore[attr-defined]

    @property
    def _clock_resolution(self) -> float:
        """A timer that is due now runs, however late it is: a constant is rounded away after a hundred days."""
        return 2 * math.ulp(self.clock.now)

    @_clock_resolution.setter
    def _clock_resolution(self, _: float) -> None:
        """asyncio sets that of the real clock."""


@contextmanager
def _clock_of(loop: VirtualLoop) -> Iterator[None]:
    """Let `time.monotonic` show the loop's time."""
    monotonic = time.monotonic
    time.monotonic = loop.time
    try:
        yield
    finally:
        time.monotonic = monotonic


@contextmanager
def _time_limit_between_turns(clock: _Selector) -> Iterator[None]:
    """Let the time limit of the test end the loop between two of its turns. The alarm raises its error wherever the code is, and
    a durable run would take it for a failure of its function."""
    alarm = signal.getsignal(signal.SIGALRM)
    if not callable(alarm) or threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        if clock.time_limit is not None:  # this turn does not end
            alarm(number, frame)
        clock.time_limit = partial(alarm, number, frame)
        signal.setitimer(signal.ITIMER_REAL, TURN_LIMIT)

    signal.signal(signal.SIGALRM, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, alarm)


def run_virtually(main: Coroutine[Any, Any, Any], ticks: list[float] | None = None) -> Any:
    """Run a coroutine to its end in a loop whose time is virtual. Add the instants at which something happened to `ticks`, the
    beginning first."""
    loop = VirtualLoop()
    if ticks is not None:
        ticks.append(loop.time())
        loop.clock.ticks = ticks
    with _time_limit_between_turns(loop.clock), _clock_of(loop):
        try:
            return loop.run_until_complete(main)
        finally:
            loop.end()  # it cancels tasks, which read the clock
