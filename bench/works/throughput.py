"""The throughput of no-ops that are submitted while the processes run, from the first submit to the last committed end."""

from __future__ import annotations

import asyncio
import time

from bench import own
from bench.figures import Measured, cost_per_1000, latency
from bench.meters import between
from bench.session import SETTLE, Session
from bench.works.effort import Effort

FIRST_GUESS = 100


async def run(session: Session, order: str, count: int) -> tuple[float, Measured]:
    """Do `count` at once; gives the seconds that it took, and the figures."""
    first = session.take(count)
    reading, counted = await session.read(), await session.counted()
    answer = await session.order(order, first=first, count=count)
    answered_at = time.time()
    ends = await session.ended(first, count)
    recorded = None if order == "results" else await session.recorded(first, count)
    await asyncio.sleep(SETTLE)
    cost = between(reading, await session.read())
    seconds = (answered_at if order == "results" else max(recorded or ends)) - answer["began"]
    measured = cost_per_1000(cost, count) | own.between(counted, await session.counted())
    if order == "results":
        measured |= latency("result", answer["given"])
    return seconds, {"throughput": (count / seconds, "1/s")} | measured


async def as_many(session: Session, effort: Effort, order: str) -> Measured:
    """Find how many take about `effort.seconds` by doing more and more, then measure that many."""
    count, seconds = FIRST_GUESS, 0.0
    while True:
        seconds, measured = await run(session, order, count)
        target_count = min(effort.most, int(count / seconds * effort.seconds))
        if target_count < 2 * count:  # what was just measured is near enough to what was wanted
            return measured
        count = target_count if seconds > effort.seconds / 8 else min(target_count, 4 * count)


async def noop(session: Session, effort: Effort) -> Measured:
    """Submitted in the way that the system has for many."""
    return await as_many(session, effort, "send_many")


async def callers(session: Session, effort: Effort) -> Measured:
    """Submitted by 100 callers at once, each of which submits one and waits until it is durable."""
    measured = await as_many(session, effort, "callers")
    session.saturated = measured["throughput"][0]
    return measured


async def results(session: Session, effort: Effort) -> Measured:
    """100 callers at once, each of which starts one and waits for its result."""
    return await as_many(session, effort, "results")


async def events(session: Session, effort: Effort) -> Measured:
    """Events published; each matches one rule that starts one no-op."""
    return await as_many(session, effort, "events")


async def limits_hot(session: Session, effort: Effort) -> Measured:
    """Measure no-ops under a single limit of 100 at once: almost all of them wait."""
    return await as_many(session, effort, "limited")


async def limits_spread(session: Session, effort: Effort) -> Measured:
    """Measure no-ops under a limit of 100 for each of 1,000 values of a parameter: hardly any waits."""
    return await as_many(session, effort, "spread")
