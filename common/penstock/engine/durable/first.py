"""The first of several things that a durable function waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, NamedTuple

from penstock.engine.durable.run_loop import RunLoop


class First(NamedTuple):
    """The name of the arm of `ctx.first` that ended first, and its result."""

    name: str
    value: Any


async def first_of(loop: RunLoop, arms: Mapping[str, Awaitable[Any]]) -> First:
    """Wait for the first of these arms, and cancel the others. The result that was delivered first decides, so it is
    the same in every attempt."""
    tasks: dict[asyncio.Task[Any], str] = {asyncio.ensure_future(arm): name for name, arm in arms.items()}
    first: asyncio.Future[asyncio.Task[Any]] = loop.create_future()

    def done(task: asyncio.Task[Any]) -> None:
        if not first.done():
            first.set_result(task)

    for task in tasks:
        task.add_done_callback(done)
    try:
        winner = await first
    finally:
        for task in tasks:
            task.remove_done_callback(done)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return First(tasks[winner], winner.result())
