"""What Penstock runs in the benchmark: a no-op that leaves marks, and a rule that starts it."""

from __future__ import annotations

from bench import marks
from penstock import Pack, Rule, Trigger, action

pack = Pack("bench")

ticked = Trigger("bench.ticked", schema={"type": "object", "properties": {"index": {"type": "integer"}}})
on_tick = Rule("bench.on_tick", trigger=ticked, action="bench.noop", params={"index": "{{ payload.index }}"})


@action
async def noop(index: int) -> int:
    return marks.noop(index)
