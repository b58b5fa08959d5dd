"""The definitions of the scenarios: actions that take a moment, may lose any number of workers, and leave a trace of each
run."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

from penstock import (
    AskInquiry,
    DurableContext,
    Limit,
    RetryPolicy,
    Rule,
    Schedule,
    Trigger,
    Window,
    action,
    current,
    trigger,
)
from penstock.language.workflows import from_yaml

QUICK_RETRY = RetryPolicy(max_attempts=1000, initial_delay=0.01, max_delay=0.01)
placed = Trigger("pt.placed")


@action(pack="pt", max_recoveries=1000)
async def charge(order: int) -> int:
    print("charging")
    await asyncio.sleep(0.02)
    return order


@action(pack="pt", max_recoveries=1000)
async def one_at_a_time(n: int) -> int:
    await asyncio.sleep(0.02)
    return n


@action(pack="pt", max_recoveries=1000, retry=QUICK_RETRY)
async def flaky(n: int) -> int:
    if current().attempt < 2:
        raise ConnectionError("not yet")
    return n


@action(pack="pt", max_recoveries=1000)
async def bad() -> None:
    raise ValueError("as it should")


@action(pack="pt", max_recoveries=1000)
async def nap(seconds: float = 30) -> str:
    await asyncio.sleep(seconds)
    return "rested"


@action(pack="pt", max_recoveries=1000)
async def ask() -> None:
    raise AskInquiry("Go on?", schema={"type": "boolean"}, timeout=600)


@action(pack="pt", max_recoveries=1000)
async def told(execution: str, status: str, result: Any = None, error: Any = None) -> str:
    return status


async def make() -> str:
    return str(uuid4())


@action(pack="pt", max_recoveries=1000)
async def saga(ctx: DurableContext, n: int) -> list[Any]:
    """Return the results of its steps, which equal the recorded ones, whichever process was killed when."""
    first = await ctx.step("first", make)
    ctx.set("made", first)
    await ctx.sleep(0.05)
    child = await ctx.run(sort, n=n)
    items = await ctx.map(sort, [{"n": 1}, {"n": 2}])
    word = await ctx.signal("word")
    return [first, child, items, word, await ctx.step("last", make)]


@action(pack="pt", route="nowhere")
async def unserved() -> None:
    """No worker serves its route."""


@action(pack="pt", max_recoveries=1000)
async def sort(n: int) -> int:
    return n


@trigger(
    pack="pt",
    every=0.2,
    schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
)
async def letters(state: dict[str, Any]) -> list[dict[str, int]]:
    """Finds two letters in all."""
    state["n"] = min(2, state.get("n", 0) + 1)
    done, state["done"] = state.get("done", 0), state["n"]
    return [{"n": state["n"]}] if state["n"] > done else []


@trigger(pack="pt", every=0.2)
async def odd_letters(state: dict[str, Any]) -> list[dict[str, int]]:
    """Finds one each time, which the database refuses."""
    return [{"n": 1}]


on_letter = Rule("pt.on_letter", trigger="pt.letters", action=sort, params={"n": "{{ payload.n }}"})
on_placed = Rule(
    "pt.on_placed",
    trigger=placed,
    when="payload.id > 0",
    action=charge,
    params={"order": "{{ payload.id }}"},
)
one = Limit(1, ref="pt.one", scope="pt.one_at_a_time")
held = nap.with_options(ref="pt.held")
one_held = Limit(1, ref="pt.one_held", scope="pt.held")
followed = charge.with_options(ref="pt.followed", on_success=told)
ticking = Schedule("pt.ticking", action=charge, params={"order": 7}, every=1)
odd = Schedule("pt.odd", action=charge, params={"order": 8}, every=3600)
twice = Schedule("pt.twice", action=nap, params={"seconds": 0.1}, every="1d", overlap="replace")

flow = from_yaml("""
workflow: pt.flow
parameters: {numbers: {type: array, required: true}}
tasks:
  each: {action: pt.flaky, with_items: "{{ parameters.numbers }}", input: {n: "{{ item }}"}}
  broken:
    action: pt.bad
    next:
      - when: failed()
        publish: {why: "{{ error.message }}"}
        do: mend
  mend: {action: pt.charge, input: {order: 5}}
  last: {action: pt.charge, needs: [each, mend], input: {order: "{{ tasks.each.result | sum }}"}}
output: {sum: "{{ tasks.last.result }}", why: "{{ vars.why }}"}
""")
nested = from_yaml("""
workflow: pt.napping
tasks:
  nap: {action: pt.nap}
  after: {action: pt.charge, needs: [nap], input: {order: 1}}
""")
two_steps = from_yaml("""
workflow: pt.two_steps
parameters: {n: {type: integer}}
tasks:
  one: {action: pt.charge, input: {order: "{{ parameters.n }}"}}
  two: {action: pt.charge, needs: [one], input: {order: "{{ parameters.n + 10 }}"}}
""")

ACTIONS = (charge, one_at_a_time, flaky, bad, nap, ask, told, unserved, held, followed)
edited = Trigger("pt.edited")
on_edited = Rule(
    "pt.on_edited",
    trigger=edited,
    action="pt.charge",
    params={"order": "{{ payload.n }}"},
    debounce="300ms",
    max_descendants=5,
)
on_pairs = Rule(
    "pt.on_pairs",
    action="pt.charge",
    params={"order": "{{ events | map(attribute='payload.n') | sum }}"},
    window=Window(count=[edited], at_least=2, within="1h"),
)
ALL: tuple[Any, ...] = (*ACTIONS, placed, on_placed, one, one_held, twice, flow, nested)
