"""Actions, triggers and rules of the rows about the executor."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from penstock import AskInquiry, Defer, Limit, NonRetryable, Rule, Trigger, action, current, each, workflow

ticked = Trigger("flow.ticked", schema={"type": "object", "required": ["n"]})


@action(pack="flow")
async def echo(n: int) -> int:
    return n


@action(pack="flow")
async def nap(seconds: float, n: int = 0) -> int:
    await asyncio.sleep(seconds)
    return n


Rule("flow.on_tick", trigger=ticked, action=echo, params={"n": "{{ payload.n }}"})
Rule(
    "flow.on_odd_tick",
    trigger=ticked,
    when="payload.n % 2 == 1",
    action=echo,
    params={"n": "{{ payload.n }}"},
)


@action(pack="flow", limits=[Limit(1, by="lane")], timeout="3s")
async def turn(lane: str, n: int = 0, seconds: float = 0.05, how: str = "complete") -> int:
    """One at a time in each lane; ends in whatever way it is told to."""
    first = current().state is None
    await asyncio.sleep(seconds)
    if how == "fail":
        raise NonRetryable("as told")
    if how == "defer" and first:
        raise Defer(delay=1.5, state="later")
    if how == "ask":
        return AskInquiry("May it end?", schema={"type": "integer"})  # type: ignore[return-value]
    return n


@action(pack="flow", limits=[Limit(1, by="lane")])
async def hold(lane: str) -> None:
    await asyncio.sleep(60)


@action(pack="flow", limits=[Limit(1, by="lane")], retry={"max_attempts": 2, "initial_delay": 1.5})
async def second_time(lane: str, n: int = 0, seconds: float = 0.05, how: str = "retry") -> int:
    await asyncio.sleep(seconds)
    if current().attempt == 1 and how == "retry":
        raise ConnectionError("as told")
    return n


@action(pack="flow", limits=[Limit(2)])
async def pair(n: int) -> int:
    await asyncio.sleep(0.3)
    return n


@action(pack="flow", limits=[Limit(1, when_full="cancel_new")])
async def refuse(n: int) -> int:
    await asyncio.sleep(1)
    return n


@action(pack="flow", limits=[Limit(1, when_full="cancel_running")])
async def replace(n: int) -> int:
    await asyncio.sleep(10 if n == 0 else 0.05)
    return n


@action(pack="flow", limits=[Limit(1, max_waiting=1)])
async def bounded(n: int) -> int:
    await asyncio.sleep(1)
    return n


@action(pack="flow", limits=[Limit(rate="2/3s")])
async def rated(n: int) -> int:
    return n


@action(pack="flow", limits=[Limit(3, by="customer"), Limit(1, by="order")])
async def twice_limited(customer: str, order: str) -> str:
    await asyncio.sleep(0.3)
    return order


@action(pack="flow", limits=[Limit(1)])
async def widened(n: int) -> int:
    await asyncio.sleep(20)
    return n


@action(pack="flow")
async def add(n: int) -> int:
    await asyncio.sleep(0.02)
    return n + 1


@workflow(pack="flow")
def fan(items: list[int]) -> Any:
    grown = add(n=each(items))
    joined = echo(n=1).after(grown)
    return {"grown": grown, "joined": joined}


@workflow(pack="flow")
def two_steps(seconds: float) -> Any:
    return echo(n=1).after(nap(seconds=seconds))


@action(pack="flow")
async def ask(question: str) -> Any:
    return AskInquiry(question, schema={"type": "boolean"})


@action(pack="flow", route="letters")
async def occupy() -> None:
    await asyncio.sleep(120)


@action(pack="flow", route="letters")
async def letter(n: int) -> int:
    return n


@action(pack="flow", route="letters", limits=[Limit(1, by="lane")])
async def limited_letter(lane: str) -> str:
    return lane


@workflow(pack="flow")
def posted() -> Any:
    sent = letter(n=7)
    sent.on("failed()", echo(n=70))
    return {}


@action(pack="flow", route="lost")
async def lost(n: int) -> int:
    return n


@action(pack="flow", route="nobody", timeouts={"schedule_to_start": "1s"})
async def unserved() -> None: ...


@action(pack="flow", timeouts={"total": "1s"})
async def endless() -> None:
    await asyncio.sleep(60)


@action(pack="flow", timeouts={"waiting": "1s"})
async def unanswered() -> Any:
    return AskInquiry("Is anybody there?")


@action(pack="flow", limits=[Limit(1)], timeouts={"queued": "1s"})
async def crowded() -> None:
    await asyncio.sleep(3)


@action(pack="flow", max_recoveries=5)
async def steady(seconds: float, n: int = 0) -> dict[str, Any]:
    """Takes a while, and survives its workers."""
    await asyncio.sleep(seconds)
    return {"n": n, "pid": os.getpid(), "at": time.time()}
