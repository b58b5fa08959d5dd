"""What Penstock runs in the benchmark: no-ops that leave marks, free and under limits, and a rule that starts one."""

from __future__ import annotations

from bench import marks
from penstock import Limit, Pack, Rule, Trigger, action

pack = Pack("bench")

ticked = Trigger("bench.ticked", schema={"type": "object", "properties": {"index": {"type": "integer"}}})
on_tick = Rule("bench.on_tick", trigger=ticked, action="bench.noop", params={"index": "{{ payload.index }}"})


@action
async def noop(index: int) -> int:
    return marks.noop(index)


@action(limits=[Limit(100)])
async def limited(index: int) -> int:
    return marks.noop(index)


@action(limits=[Limit(100, by="customer")])
async def spread(index: int, customer: int) -> int:
    return marks.noop(index)
