"""The work that runs under chaos. The right result of each execution follows from its parameters, whatever happened on the
way."""

from __future__ import annotations

import asyncio
import os
import time

from penstock import DurableContext, Limit, RetryPolicy, Rule, Schedule, Trigger, action, current
from penstock.language.definitions.schedule import MissedFires
from penstock.language.workflows import from_yaml
from penstock.run.steering import Defer

PACK = "chaos"
STARTS = "CHAOS_STARTS"
"""The variable that names the file where work that must run at most once writes down that it began."""
CALLS = "CHAOS_CALLS"
"""The variable that names the file where each call of a step of a durable function is written down."""
LOSSES = 1_000_000
"""Recoveries are not capped: each execution must complete, however many workers it loses."""


@action(pack=PACK, max_recoveries=LOSSES)
async def double(n: int) -> int:
    await asyncio.sleep(0.05)
    return 2 * n


@action(pack=PACK, max_recoveries=LOSSES)
def square(n: int) -> int:
    time.sleep(0.02)
    return n * n


@action(pack=PACK, max_recoveries=LOSSES, limits=Limit(5))
async def limited(n: int) -> int:
    await asyncio.sleep(0.01)
    return n + 1


@action(pack=PACK, max_recoveries=LOSSES, limits=Limit(2, by="customer"))
async def ordered(n: int, customer: int) -> int:
    await asyncio.sleep(0.3)
    return n + customer


@action(pack=PACK, max_recoveries=LOSSES, retry=RetryPolicy(max_attempts=4, initial_delay=0.2))
async def flaky(n: int) -> int:
    await asyncio.sleep(0.2)
    if current().attempt <= 2:
        raise ConnectionError(f"attempt {current().attempt} fails")
    return n + 2


@action(pack=PACK, max_recoveries=LOSSES)
async def later(n: int) -> int:
    if current().state is None:
        raise Defer(delay=0.3, state={"n": n})
    return int(current().state["n"]) + 3


@action(pack=PACK, max_recoveries=LOSSES)
async def total(numbers: list[int]) -> int:
    await asyncio.sleep(0.2)
    return sum(numbers)


@action(pack=PACK, max_recoveries=LOSSES)
async def react(n: int) -> int:
    await asyncio.sleep(0.5)
    return n + 4


@action(pack=PACK, max_recoveries=LOSSES)
async def tick() -> str:
    return "ticked"


def _began(n: int) -> None:
    """Write down that this piece has begun: what the database says of that is what is in question."""
    _write_down(STARTS, str(n))


def _write_down(variable: str, line: str) -> None:
    with open(os.environ[variable], "ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


@action(pack=PACK, on_worker_loss="fail")
async def once(n: int, seconds: float) -> int:
    _began(n)
    await asyncio.sleep(seconds)
    return n + 5


@action(pack=PACK, on_worker_loss="fail")
def once_in_a_thread(n: int, seconds: float) -> int:
    _began(n)
    time.sleep(seconds)
    return n + 5


@action(pack=PACK, on_worker_loss="fail", executor="process")
def once_in_a_process(n: int, seconds: float) -> int:
    _began(n)
    time.sleep(seconds)
    return n + 5


@action(pack=PACK, max_recoveries=LOSSES, limits=Limit(1, by="line"))
async def in_line(n: int, line: int) -> int:
    await asyncio.sleep(0.4)
    return n + line


async def _called(n: int, step: int) -> int:
    """Write down that an attempt calls this step of this piece."""
    _write_down(CALLS, f"{n} {step} {current().attempt}")
    await asyncio.sleep(0.05)
    return n + step


STEPS = 6


@action(pack=PACK, max_recoveries=LOSSES)
async def story(ctx: DurableContext, n: int) -> int:
    """Steps one after the other, with two children and a sleep between them, which give the worker back."""
    first = [await ctx.step("call", _called, n, step) for step in range(STEPS // 2)]
    children = await asyncio.gather(ctx.run(double, n=n), ctx.run(square, n=3))
    await ctx.sleep(0.2)
    last = [await ctx.step("call", _called, n, step) for step in range(STEPS // 2, STEPS)]
    total: int = sum(first) + sum(children) + sum(last)
    return total


happened = Trigger("chaos.happened", schema={"type": "object", "required": ["n"]})
even = Rule(
    "chaos.even",
    trigger=happened,
    when="payload.n % 2 == 0",
    action=react,
    params={"n": "{{ payload.n }}"},
)
flow = from_yaml("""
workflow: chaos.flow
parameters: {numbers: {type: array, required: true}}
tasks:
  each: {action: chaos.double, with_items: "{{ parameters.numbers }}", input: {n: "{{ item }}"}}
  sum: {action: chaos.total, needs: [each], input: {numbers: "{{ tasks.each.result }}"}}
  again: {action: chaos.flaky, needs: [sum], input: {n: "{{ tasks.sum.result }}"}}
output: "{{ tasks.again.result }}"
""")
ITEMS = 8
"""Of each run of the workflow."""
CHILDREN = ITEMS + 2
clocks = tuple(
    Schedule(
        f"chaos.clock{n}",
        action=tick,
        every=1,
        missed=MissedFires(catch_up="all", at_most=10_000),
    )
    for n in range(3)
)
ONCE = (once, once_in_a_thread, once_in_a_process)
"""Work that must run at most once."""
ALL = (
    *(double, square, limited, ordered, in_line, flaky, later, total, react, tick, story, *ONCE),
    *(happened, even, flow, *clocks),
)
