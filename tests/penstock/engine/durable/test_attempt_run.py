"""An ended attempt of a durable function leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from penstock import DurableContext, action
from penstock.engine.durable.branches import Branch
from penstock.engine.durable.core import Core
from penstock.engine.durable.deliveries import Deliveries
from penstock.engine.durable.journal import Journal
from penstock.engine.durable.run_loop import RunLoop
from penstock.engine.durable.waiting import Waiting
from penstock.errors import ExecutionFailed, StepFailed
from penstock.testing import DurableRun


@contextmanager
def without_collector() -> Iterator[None]:
    """Python's garbage collector looks for no circles of objects."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def ours() -> list[object]:
    """The objects of attempts that there are."""
    return [
        one
        for one in gc.get_objects()
        if isinstance(one, Core | Waiting | Journal | Branch | Deliveries | RunLoop)
    ]


async def note(name: str) -> str:
    return name


async def fail() -> None:
    raise OSError("away")


async def steps_and_sleep(ctx: DurableContext) -> None:
    await ctx.step("a", note, "a")
    await ctx.sleep("1d")


async def many_branches(ctx: DurableContext) -> None:
    """Some that are awaited, one that fails, and one that is still at it in the end."""
    await asyncio.gather(ctx.step("a", note, "a"), ctx.step("b", note, "b"), ctx.sleep("1h"))
    with pytest.raises(StepFailed):
        await ctx.step("fail", fail)
    asyncio.create_task(ctx.sleep("30d"))  # noqa: RUF006
    await asyncio.sleep(0)


async def fails(ctx: DurableContext) -> None:
    await ctx.step("fail", fail)


@pytest.mark.parametrize("function", [steps_and_sleep, many_branches, fails])
async def test_an_attempt_that_is_over_leaves_nothing_for_the_garbage_collector(
    function: Callable[..., Any],
) -> None:
    """Circles of objects cost a worker half of its time, and twice its memory, if thousands wake at once."""
    with without_collector():
        before = ours()  # what other tests of this process still hold
        with suppress(ExecutionFailed):
            await DurableRun()(action(pack="t", ref="t.over")(function))
        await asyncio.sleep(0.01)  # what was cancelled ends
        known = {id(one) for one in before}
        assert [one for one in ours() if id(one) not in known] == []
