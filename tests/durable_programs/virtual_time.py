"""An event loop whose time moves on when nothing else can be done, and never by itself."""

from __future__ import annotations

import asyncio
import math
import selectors
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any


class Stuck(Exception):
    """Every task waits for another one."""


class _Selector(selectors.SelectSelector):
    """A selector that does not wait: the time that it would wait is over at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.ticks: list[float] = []
        """The instants at which something happened."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0:  # a callback is ready: what a thread sends comes as a callback, too
            return []
        ready = super().select(0)
        if not ready and timeout is None:
            raise Stuck
        if not ready and timeout:
            self.now += timeout
            self.ticks.append(self.now)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop with a clock of its own."""

    def __init__(self) -> None:
        self.clock = _Selector()
        super().__init__(self.clock)

    def time(self) -> float:
        return self.clock.now

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


def run_virtually(main: Coroutine[Any, Any, Any], ticks: list[float] | None = None) -> Any:
    """Run a coroutine to its end in a loop whose time is virtual. Add the instants at which something happened to `ticks`."""
    runner = asyncio.Runner(loop_factory=VirtualLoop)
    loop = runner.get_loop()
    assert isinstance(loop, VirtualLoop)
    if ticks is not None:
        loop.clock.ticks = ticks
    with _clock_of(loop), runner:  # its end cancels tasks, which read the clock
        return runner.run(main)
