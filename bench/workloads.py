"""The actions of the benchmark: no-ops that leave marks, free, under limits and in workflows, and a rule that
starts one."""

from __future__ import annotations

from bench import marks
from penstock import DurableContext, Limit, Pack, Rule, Trigger, Workflow, action

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


async def step(index: int) -> int:
    return marks.noop(index)


@action
async def durable(ctx: DurableContext, first: int, count: int) -> None:
    """`count` no-op steps, each recorded before the next one begins."""
    for index in range(first, first + count):
        await ctx.step("noop", step, index)


@action
async def doze(ctx: DurableContext, index: int, until: float) -> None:
    """Sleeps until an instant, in seconds since the epoch, and leaves its mark then."""
    await ctx.sleep(max(0.0, until - ctx.now().timestamp()))
    marks.noop(index)


def chained(ref: str, steps: int) -> Workflow:
    """`steps` no-ops, each after the one before; their indexes go up from the parameter `first`."""
    tasks = [
        {
            "name": f"step{n}",
            "action": "bench.noop",
            "needs": [f"step{n - 1}"] if n else [],
            "input": {"index": f"{{{{ parameters.first + {n} }}}}"},
        }
        for n in range(steps)
    ]
    return Workflow.model_validate({"ref": ref, "parameters": {"first": {"type": "integer"}}, "tasks": tasks})


chain_100 = chained("bench.chain_100", 100)
chain_10 = chained("bench.chain_10", 10)
fanout = Workflow.model_validate(
    {
        "ref": "bench.fanout",
        "parameters": {"first": {"type": "integer"}, "after": {"type": "integer"}},
        "tasks": [
            {"name": "before", "action": "bench.noop", "input": {"index": "{{ parameters.first }}"}},
            {
                "name": "each",
                "action": "bench.noop",
                "needs": ["before"],
                "with_items": "{{ range(parameters.first + 1, parameters.after) }}",
                "input": {"index": "{{ item }}"},
            },
            {
                "name": "after",
                "action": "bench.noop",
                "needs": ["each"],
                "input": {"index": "{{ parameters.after }}"},
            },
        ],
    }
)
