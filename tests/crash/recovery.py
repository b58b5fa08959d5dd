"""Outages under load, one after the other, and how long it takes until everything is done that was asked for."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from penstock.errors import PenstockError
from tests.crash.processes import Fleet
from tests.flows.installation import Installation

REFS = ("shop.sturdy", "shop.narrow", "shop.in_steps")
"""What is started in turn: an action, one under a limit, a workflow with a fan-out."""
PAUSE = 0.1
"""Seconds between two submits: what waits after an outage is to be recovered, not to be worked off."""
LEAD = 1.0
"""Seconds of load before an outage and after it."""

WRONG = """
select p.execution_id from payload p join execution e on e.id = p.execution_id
left join result r on r.execution_id = p.execution_id
where (e.status, r.result ->> 'n') is distinct from ('completed', p.params ->> 'n')
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """The figures of an outage. `seconds`: from the return of all servers to the end of the last execution."""

    outage: str
    out: float
    submitted: int
    left: int
    seconds: float


@dataclass
class Recovery:
    """An installation under load."""

    house: Installation
    fleet: Fleet
    patience: float
    """Seconds until what is not done is given up."""
    figures: list[Figure] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def through(self, outage: str, cause: Callable[[], Awaitable[None]]) -> Figure:
        """Have the outage under load; `cause` returns when everything is back."""
        self._stop.clear()
        load = asyncio.create_task(self._load())
        await asyncio.sleep(LEAD)
        began = time.monotonic()
        await cause()
        back = time.monotonic()
        await asyncio.sleep(LEAD)
        self._stop.set()
        submitted = await load
        unfinished = await self._done(back)
        figure = Figure(outage, back - began, submitted, unfinished, time.monotonic() - back)
        self.figures.append(figure)
        return figure

    async def _load(self) -> int:
        """Start executions, each under a key; a caller that gets an error tries again with the same key, as callers do."""
        count = 0
        while not self._stop.is_set():
            n = next(self._numbers)
            count += 1
            await self._start(n)
            await asyncio.sleep(PAUSE)
        return count

    async def _start(self, n: int) -> None:
        while True:
            try:
                await self.house.client.start(REFS[n % len(REFS)], {"n": n}, key=f"n-{n}")
                return
            except (PenstockError, OSError):
                await asyncio.sleep(0.2)

    async def _done(self, back: float) -> int:
        """Wait until all is done. Returns how many executions are not."""
        unfinished = -1
        while time.monotonic() < back + self.patience:
            try:
                rows = await self.house.rows("select count(*) from execution where finished_at is null")
            except (PenstockError, OSError):
                await asyncio.sleep(0.2)
                continue
            unfinished = rows[0][0]
            if not unfinished:
                return 0
            await asyncio.sleep(0.1)
        return unfinished

    async def wrong(self) -> list[object]:
        """Executions that did not end as completed with the right result."""
        return [row[0] for row in await self.house.rows(WRONG)]

    def table(self, bound: float) -> str:
        lines = [
            f"{'outage':44} {'out s':>6} {'started':>8} {'not done':>8} {'done after s':>12}  within {bound:g} s"
        ]
        lines += [
            f"{f.outage:44} {f.out:6.1f} {f.submitted:8} {f.left:8} {f.seconds:12.1f}  "
            f"{'yes' if not f.left and f.seconds <= bound else 'NO'}"
            for f in self.figures
        ]
        return "\n".join(lines)


async def in_thread(*steps: Callable[[], object]) -> None:
    """Do what blocks, step by step."""
    for step in steps:
        await asyncio.to_thread(step)
