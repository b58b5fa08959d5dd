"""The recent ends for all readers of the overview in this process: each slice of time is counted once.

Counting a quarter of an hour of a busy installation takes seconds. What is over does not change any more, so only the newest
slices are read again; those that are still to be read are, for a moment at each look, the newest first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from penstock.store.admission import waiting_work
from penstock.store.admission.waiting_work import Line, RouteWork
from penstock.store.processes import processes
from penstock.store.processes.processes import Process
from penstock.store.session import clock
from penstock.store.session.database import Session
from penstock.store.upkeep import overview
from penstock.store.upkeep.overview import Slice, Standing

Sessions = Callable[[], AbstractAsyncContextManager[Session]]
"""Opens a session, once it is this look's turn."""

SECONDS = 15
"""Of a slice."""
SLICES = 60
LATE = 2
"""Slices that are read again: a move is seen once its transaction commits, and that may be later."""
LATELY = 4
"""Slices that the figures are of, a minute: counted at every look, however long that takes, so that one look tells them."""
FRESH, TIMES = 0.9, 40
"""Seconds for which a look serves everybody, at the least; and so many times what it took: of much work the counting is dear, and
what it costs the database is taken from that work."""
PATIENCE = 0.05
"""Seconds of one look that reading older slices may take, or about that."""
KEYS = 8
"""Lines that are shown."""


@dataclass(frozen=True, slots=True)
class Activity:
    """`slices` in the order of time, the last is not over yet: `seconds` of it are."""

    slices: Sequence[Slice]
    seconds: float
    standing: Sequence[Standing]
    lines: Sequence[Line]
    routes: Sequence[RouteWork]
    processes: Sequence[Process]


@dataclass(slots=True)
class ActivityWatch:
    """One for each process."""

    _counted: dict[int, Slice] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _seen: Activity | None = None
    _until: float = 0.0

    async def look(self, sessions: Sessions, stale: float) -> Activity:
        """Return the activity of this moment, or of a moment ago. `stale`: seconds after which a silent worker does
        not count."""
        loop = asyncio.get_running_loop()
        async with self._lock:
            began = loop.time()
            if self._seen is None or began >= self._until:
                self._seen = await self._look(sessions, stale)
                self._until = loop.time() + max(FRESH, TIMES * (loop.time() - began))
            return self._seen

    async def _look(self, sessions: Sessions, stale: float) -> Activity:
        async with sessions() as session:
            now = (await clock.now(session)).timestamp()
            last = int(now // SECONDS)
            await self._count(session, last)
            return Activity(
                [
                    self._counted.get(n, Slice(n, 0, 0, None, None))
                    for n in range(last - SLICES + 1, last + 1)
                ],
                now - last * SECONDS,
                await overview.standing(session),
                await waiting_work.lines(session, KEYS),
                await waiting_work.routes(session, stale),
                await processes.all(session),
            )

    async def _count(self, session: Session, last: int) -> None:
        """Count the newest slices, and as many of the uncounted ones as there is time for."""
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
            self._counted[n] = by_number.get(n, Slice(n, 0, 0, None, None))
