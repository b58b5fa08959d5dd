"""A fixed rate, one submit each: what waits is latency, and the cost is that of small batches."""

from __future__ import annotations

import asyncio

from bench import own
from bench.figures import Measured, cost_per_1000, latency
from bench.meters import between
from bench.session import SETTLE, Session
from bench.works.effort import Effort


async def at_rate(session: Session, rate: int, count: int) -> Measured:
    """`count` at `rate` a second: from just before the submit to the begin, and to the committed end."""
    await asyncio.sleep(1)  # what the work before this one left behind
    first = session.take(count)
    before, counted = await session.read(), await session.counted()
    sent = (await session.order("pace", first=first, count=count, rate=rate))["given"]
    await session.ended(first, count)
    recorded = await session.recorded(first, count)
    await asyncio.sleep(SETTLE)
    cost = between(before, await session.read())
    begun = session.marks.begun(first, count)
    measured = latency("start", [at - since for at, since in zip(begun, sent, strict=True)])
    if recorded:
        measured |= latency("recorded", [at - since for at, since in zip(recorded, sent, strict=True)])
    return measured | cost_per_1000(cost, count) | own.between(counted, await session.counted())


async def at_20(session: Session, effort: Effort) -> Measured:
    return await at_rate(session, 20, effort.samples)


async def at_200(session: Session, effort: Effort) -> Measured:
    return await at_rate(session, 200, 5 * effort.samples)
