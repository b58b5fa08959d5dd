"""Workflows of no-ops: one after the other, and all at once with a step before and one after."""

from __future__ import annotations

import statistics

from bench.figures import Measured
from bench.session import Session
from bench.works.effort import Effort

SIZE = 100


async def seconds(session: Session, order: str, tasks: int) -> float:
    """From the submit to the end of the last task."""
    first = session.take(tasks)
    began: float = (await session.order(order, first=first, count=SIZE))["began"]
    return max(await session.ended(first, tasks)) - began


async def chain(session: Session, effort: Effort) -> Measured:
    """100 steps, each after the one before."""
    took = statistics.median([await seconds(session, "chain", SIZE) for _ in range(effort.flows)])
    return {"seconds": (took, "s"), "ms_per_step": (1000 * took / SIZE, "ms")}


async def fanout(session: Session, effort: Effort) -> Measured:
    """One step, 100 at once, and one when all of these are done."""
    tasks = SIZE + 2
    took = statistics.median([await seconds(session, "fanout", tasks) for _ in range(effort.flows)])
    return {"seconds": (took, "s"), "tasks_per_second": (tasks / took, "1/s")}
