"""The recent ends of executions, shared by all readers of the overview in this process: each slice of time is counted
once.

Counting a quarter of an hour of a busy installation takes seconds. Slices of the past do not change, so only the
newest ones are read again. Slices that were not read yet are read in small steps, the newest first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from itertools import takewhile

from penstock.store.admission import waiting_work
from penstock.store.admission.waiting_work import RouteWork, WaitingLine
from penstock.store.processes import processes
from penstock.store.processes.processes import Process
from penstock.store.session import clock
from penstock.store.session.database import Session
from penstock.store.upkeep import overview
from penstock.store.upkeep.overview import OpenExecutions, Slice

Sessions = Callable[[], AbstractAsyncContextManager[Session]]
"""A callable that opens a session. It is called only if figures have to be read."""

SECONDS = 15
"""The length of a slice in seconds."""
SLICES = 60
LATE = 2
"""Slices that are read again: a move is visible only after its commit, which may come later."""
LATELY = 4
"""Slices of the summary, a minute in all. Each read counts them completely, however long that takes."""
FRESH, TIMES = 0.9, 40
"""The shortest time in seconds for which a result is reused; and its length as a multiple of the time that the read
took. If counting is expensive, it is done less often, since it takes database time from the work."""
PATIENCE = 0.05
"""Seconds, roughly, that one read may spend on older slices."""
KEYS = 8
"""The number of lines that are shown."""


@dataclass(frozen=True, slots=True)
class Activity:
    """The recent activity. `slices` are in the order of time, without the oldest ones that are not counted yet; `seconds` of the
    last one have passed."""

    slices: Sequence[Slice]
    seconds: float
    standing: Sequence[OpenExecutions]
    lines: Sequence[WaitingLine]
    routes: Sequence[RouteWork]
    processes: Sequence[Process]


@dataclass(slots=True)
class ActivityWatch:
    """A cache of the activity, one for each process."""

    _counted: dict[int, Slice] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _cached: Activity | None = None
    _until: float = 0.0

    async def look(self, sessions: Sessions, stale: float) -> Activity:
        """Return the present activity, or a recent one. `stale`: seconds after which a silent worker does not count."""
        loop = asyncio.get_running_loop()
        async with self._lock:
            began = loop.time()
            if self._cached is None or began >= self._until:
                self._cached = await self._look(sessions, stale)
                self._until = loop.time() + max(FRESH, TIMES * (loop.time() - began))
            return self._cached

    async def _look(self, sessions: Sessions, stale: float) -> Activity:
        async with sessions() as session:
            now = (await clock.now(session)).timestamp()
            last = int(now // SECONDS)
            await self._count(session, last)
            newest_first = range(last, last - SLICES, -1)
            counted = [self._counted[n] for n in takewhile(self._counted.__contains__, newest_first)]
            return Activity(
                counted[::-1],
                now - last * SECONDS,
                await overview.standing(session),
                await waiting_work.lines(session, KEYS),
                await waiting_work.routes(session, stale),
                await processes.all(session),
            )

    async def _count(self, session: Session, last: int) -> None:
        """Count the newest slices, and as many uncounted ones as there is time for."""
        loop = asyncio.get_running_loop()
        oldest = last - SLICES + 1
        self._counted = {n: entry for n, entry in self._counted.items() if oldest <= n <= last - LATE}
        until, many, upto = loop.time() + PATIENCE, LATE, last + 1
        while upto > oldest:
            first = max(oldest, upto - many)
            await self._read(session, first, upto)
            if first <= last + 1 - LATELY and loop.time() > until:
                return
            upto, many = first, many * 2
            while upto - 1 in self._counted:
                upto -= 1

    async def _read(self, session: Session, first: int, last: int) -> None:
        by_number = {entry.number: entry for entry in await overview.slices(session, first, last, SECONDS)}
        for n in range(first, last):
            self._counted[n] = by_number.get(n, Slice(n, 0, 0, 0, {}))
