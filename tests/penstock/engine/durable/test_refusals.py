"""Refusals: waits of asyncio without an order are refused however a durable function comes to them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock import DurableContext, action
from penstock.engine.durable.branches import BranchTask
from penstock.engine.durable.run_loop import RunLoop
from penstock.errors import ExecutionFailed
from penstock.testing import DurableRun

Wait = Callable[[DurableContext], Awaitable[Any]]


async def wait_for_a_gather(ctx: DurableContext) -> None:
    await asyncio.wait({asyncio.gather(ctx.sleep("1d"), ctx.sleep("2d"))})


async def wait_for_a_future(ctx: DurableContext) -> None:
    await asyncio.wait({asyncio.Future()})


async def take_as_completed(ctx: DurableContext) -> None:
    for wait in asyncio.as_completed([ctx.sleep("1d"), ctx.sleep("2d")]):
        await wait


async def take_tasks_that_ended_before(ctx: DurableContext) -> None:
    """Nothing is waited for here: only the order of a set decides."""
    tasks = [asyncio.create_task(ctx.step(name, str)) for name in ("a", "b", "c")]
    for wait in asyncio.as_completed(tasks):
        await ctx.sleep("1d")
        await wait


UNORDERED_WAITS: dict[str, Wait] = {
    "a gather within asyncio.wait": wait_for_a_gather,
    "a future within asyncio.wait": wait_for_a_future,
    "coroutines within as_completed": take_as_completed,
    "tasks that end before as_completed waits": take_tasks_that_ended_before,
}


@pytest.mark.parametrize("name", UNORDERED_WAITS)
async def test_unordered_wait_names_its_replacement(name: str) -> None:
    with pytest.raises(
        ExecutionFailed, match=r"DefinitionError: asyncio\.(wait|as_completed) cannot .*Use ctx\.first"
    ):
        await _run(UNORDERED_WAITS[name])


@pytest.mark.parametrize("name", UNORDERED_WAITS)
async def test_wrapper_does_not_hide_unordered_wait(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tracer or a mutant puts frames of its own between asyncio and the loop."""
    create_future, add_callback = RunLoop.create_future, BranchTask.add_done_callback

    def traced_create(loop: RunLoop) -> asyncio.Future[Any]:
        return (lambda: create_future(loop))()

    def traced_add(task: BranchTask, *args: Any, **options: Any) -> None:
        (lambda: add_callback(task, *args, **options))()

    monkeypatch.setattr(RunLoop, "create_future", traced_create)
    monkeypatch.setattr(BranchTask, "add_done_callback", traced_add)
    with pytest.raises(ExecutionFailed, match=r"DefinitionError: asyncio\.(wait|as_completed) cannot"):
        await _run(UNORDERED_WAITS[name])


async def test_waits_with_an_order_are_allowed() -> None:
    async def all_of(ctx: DurableContext) -> Any:
        queue: asyncio.Queue[int] = asyncio.Queue()

        async def put() -> None:
            await ctx.sleep("1d")
            queue.put_nowait(7)

        task = asyncio.create_task(put())
        seen: list[str] = []
        task.add_done_callback(lambda task: seen.append(type(task).__name__))
        taken = await queue.get()
        await asyncio.wait_for(task, None)
        await asyncio.gather(ctx.sleep(1), asyncio.shield(ctx.sleep(2)))
        await asyncio.sleep(0)
        return [taken, *seen]

    assert await _run(all_of) == [7, "BranchTask"]


async def _run(wait: Wait) -> Any:
    @action(pack="t")
    async def waits(ctx: DurableContext) -> Any:
        return await wait(ctx)

    return await DurableRun()(waits)
