"""A fixed rate, one submit each: what waits is latency, and the cost is that of small batches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from bench import own
from bench.figures import Measured, cost_per_1000, latency
from bench.meters import between
from bench.session import SETTLE, Session
from bench.works import throughput
from bench.works.effort import Effort

STEPS = 10


async def paced(session: Session, call: str, rate: float, count: int, steps: int = 0) -> Measured:
    """`call`, `count` times at `rate` a second, each a no-op or a chain of `steps`. From just before the submit to the
    begin and to the committed end of a no-op, or to the result in the client's hands, or to the end of the chain."""
    await asyncio.sleep(1)  # what the work before this one left behind
    tasks = count * (steps or 1)
    first = session.take(tasks)
    reading, counted = await session.read(), await session.counted()
    order = {"call": call, "first": first, "count": count, "rate": rate, "steps": steps}
    answer = (await session.order("pace", **order))["given"]
    end_times = await session.ended(first, tasks)
    recorded = await session.recorded(first, count) if call == "send" else None
    await asyncio.sleep(SETTLE)
    cost = between(reading, await session.read())

    def since_sent(name: str, times: list[float]) -> Measured:
        return latency(name, [at - sent for at, sent in zip(times, answer["sent"], strict=True)])

    if call == "result":
        measured = since_sent("result", answer["done"])
    elif steps:
        measured = since_sent("workflow", [max(end_times[n : n + steps]) for n in range(0, tasks, steps)])
    else:
        measured = since_sent("start", session.marks.begun(first, count))
        measured |= since_sent("recorded", recorded) if recorded else {}
    return measured | cost_per_1000(cost, tasks) | own.between(counted, await session.counted())


async def at_20(session: Session, effort: Effort) -> Measured:
    return await paced(session, "send", 20, effort.samples)


def at(rate: int) -> Callable[[Session, Effort], Awaitable[Measured]]:
    """Return the work that submits `rate` times a second. A system takes no part if 100 callers get less done."""

    async def work(session: Session, effort: Effort) -> Measured:
        if session.saturated is None and session.can("callers"):
            await throughput.callers(session, effort)
        if session.saturated is not None and session.saturated < rate:
            return {}
        return await paced(session, "send", rate, rate * effort.samples // 40)

    return work


async def at_half(session: Session, effort: Effort) -> Measured:
    """At half of what 100 callers at once get done."""
    if session.saturated is None:
        await throughput.callers(session, effort)
    assert session.saturated
    rate = session.saturated / 2
    count = min(effort.most, max(effort.samples, int(rate * effort.seconds)))
    return {"rate": (rate, "1/s")} | await paced(session, "send", rate, count)


async def results_at_20(session: Session, effort: Effort) -> Measured:
    return await paced(session, "result", 20, effort.samples)


async def workflows_at_20(session: Session, effort: Effort) -> Measured:
    """Workflows of ten steps, one after the other in each."""
    return await paced(session, "chain", 20, effort.samples, STEPS)
