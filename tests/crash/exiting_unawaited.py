"""Actions that exit where nothing waits for it: the module of a worker."""

from __future__ import annotations

import asyncio
import sys

from penstock import DurableContext, action


async def _exit() -> None:
    await asyncio.sleep(0)
    sys.exit(3)


async def _wait_in_vain() -> None:
    asyncio.create_task(_exit())  # noqa: RUF006
    await asyncio.Event().wait()


@action(pack="unawaited")
async def on_loop() -> None:
    await _wait_in_vain()


@action(pack="unawaited", executor="thread")
async def in_thread() -> None:
    await _wait_in_vain()


@action(pack="unawaited", executor="process")
async def in_process() -> None:
    await _wait_in_vain()


@action(pack="unawaited")
async def in_step_of_durable(ctx: DurableContext) -> None:
    await ctx.step("exits", _exit)


@action(pack="unawaited")
async def beside_step_of_durable(ctx: DurableContext) -> None:
    await ctx.step("waits", _wait_in_vain)


@action(pack="unawaited")
async def works(n: int) -> int:
    await asyncio.sleep(0.2)
    return n


EXITING = (on_loop, in_thread, in_process, in_step_of_durable, beside_step_of_durable)
