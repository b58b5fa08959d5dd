"""Workflows of no-ops: one after the other, all at once with a step before and one after, and many workflows."""

from __future__ import annotations

import asyncio
import statistics

from bench.figures import Measured, cost_per_1000
from bench.meters import between
from bench.session import SETTLE, Session
from bench.works.effort import Effort

SIZE = 100
WIDE = 10_000
SIZES = (1_000, 10_000, 50_000)
MANY, STEPS = 1_000, 10


async def seconds(session: Session, order: str, tasks: int, count: int = SIZE) -> float:
    """Return the seconds from the submit to the end of the last task."""
    first = session.take(tasks)
    began: float = (await session.order(order, first=first, count=count))["began"]
    return max(await session.ended(first, tasks)) - began


async def chain(session: Session, effort: Effort) -> Measured:
    """100 steps, each after the one before."""
    median = statistics.median([await seconds(session, "chain", SIZE) for _ in range(effort.flows)])
    return {"seconds": (median, "s"), "ms_per_step": (1000 * median / SIZE, "ms")}


async def durable(session: Session, effort: Effort) -> Measured:
    """100 steps of one durable function, each recorded before the next one begins."""
    median = statistics.median([await seconds(session, "durable", SIZE) for _ in range(effort.flows)])
    return {"seconds": (median, "s"), "ms_per_step": (1000 * median / SIZE, "ms")}


async def durables(session: Session, effort: Effort) -> Measured:
    """1,000 durable functions at once, of 10 steps each."""
    return await with_costs(session, "durables", MANY, MANY * STEPS)


async def fanout(session: Session, effort: Effort) -> Measured:
    """One step, 100 at once, and one when all of these are done."""
    tasks = SIZE + 2
    median = statistics.median([await seconds(session, "fanout", tasks) for _ in range(effort.flows)])
    return {"seconds": (median, "s"), "tasks_per_second": (tasks / median, "1/s")}


async def with_costs(session: Session, order: str, count: int, tasks: int) -> Measured:
    """Once, with what it costs for each 1,000 of its tasks."""
    first = session.take(tasks)
    reading = await session.read()
    began: float = (await session.order(order, first=first, count=count))["began"]
    duration = max(await session.ended(first, tasks)) - began
    await asyncio.sleep(SETTLE)
    cost = between(reading, await session.read())
    figures: Measured = {"seconds": (duration, "s"), "tasks_per_second": (tasks / duration, "1/s")}
    return figures | cost_per_1000(cost, tasks)


async def wide(session: Session, effort: Effort) -> Measured:
    """One step, 10,000 at once, and one when all of these are done."""
    return await with_costs(session, "wide", WIDE, WIDE + 2)


async def linear(session: Session, effort: Effort) -> Measured:
    """Measure wide workflows of 1,000, 10,000 and 50,000 tasks, three times each. Return the time of a task for each size, and
    the ratio of that among 10,000 to that among 1,000."""
    per_task = {}
    for count in SIZES:
        tasks = count + 2
        durations = [await seconds(session, "wide", tasks, count) for _ in range(3)]
        per_task[count] = 1e6 * statistics.median(durations) / tasks
    figures: Measured = {f"us_per_task_{count}": (value, "us") for count, value in per_task.items()}
    return figures | {"ratio": (per_task[SIZES[1]] / per_task[SIZES[0]], "1")}


async def workflows(session: Session, effort: Effort) -> Measured:
    """1,000 workflows at once, of 10 steps one after the other."""
    figures = await with_costs(session, "workflows", MANY, MANY * STEPS)
    return figures | {"ms_per_step": (1000 * figures["seconds"][0] / STEPS, "ms")}
