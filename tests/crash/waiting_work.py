"""Durable functions that wait for children under limits of one, and keep or release their slots meanwhile."""

from __future__ import annotations

import asyncio

from penstock import AskInquiry, DurableContext, Limit, action, current

OFTEN = 1000
"""Losses after which an execution still runs again: its processes are killed on purpose."""


@action(pack="waits", max_recoveries=OFTEN)
async def child(n: int) -> int:
    await asyncio.sleep(0.03)
    return n


@action(pack="waits", max_recoveries=OFTEN)
async def keeper(ctx: DurableContext, n: int) -> int:
    first = await ctx.run(child, n=n)
    await ctx.sleep(0.2)
    return int(first + sum(await ctx.map(child, [{"n": 1}, {"n": 2}])))


@action(pack="waits", max_recoveries=OFTEN)
async def releaser(ctx: DurableContext, n: int) -> int:
    first = await ctx.run(child, n=n)
    await ctx.sleep(0.2)
    return int(first + sum(await ctx.map(child, [{"n": 1}, {"n": 2}])))


@action(pack="waits", max_recoveries=OFTEN)
async def nested(ctx: DurableContext, n: int) -> int:
    """Run functions of both kinds inside each other's wait."""
    results = await asyncio.gather(ctx.run(keeper, n=n), ctx.run(releaser, n=n))
    return int(sum(results))


@action(pack="waits", max_recoveries=OFTEN)
async def signalled(ctx: DurableContext, n: int) -> int:
    return int(n + await ctx.signal("go"))


@action(pack="waits", max_recoveries=OFTEN)
async def asking(n: int) -> int:
    if not current().answers:
        raise AskInquiry("Which number?", schema={"type": "integer"}, resume=True)
    return n + int(current().answers[0])


EXPECTED = {"keeper": 3, "releaser": 3, "signalled": 7, "asking": 7}
"""What is added to `n` in the result of each action."""
LIMITS = (
    Limit(1, ref="waits.one_child", scope="waits.child"),
    Limit(1, ref="waits.kept", scope="waits.keeper", while_waiting="keep"),
    Limit(1, ref="waits.released", scope="waits.releaser", while_waiting="release"),
    Limit(1, ref="waits.kept_signal", scope="waits.signalled", while_waiting="keep"),
    Limit(1, ref="waits.kept_answer", scope="waits.asking", while_waiting="keep"),
)
