"""Branches of durable functions: what they are told after a replay is what they were told before."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from penstock import DurableContext, action
from penstock.errors import ExecutionFailed
from penstock.testing import DurableRun, crash_everywhere


async def fetch(name: str, turns: int) -> str:
    for _ in range(turns):
        await asyncio.sleep(0)
    return name


@crash_everywhere
async def test_tasks_made_early_keep_their_own_results(run: DurableRun) -> None:
    @action(pack="t")
    async def product(ctx: DurableContext) -> dict[str, str]:
        photos = asyncio.create_task(ctx.step("photos", fetch, "photos", 50))
        reviews = asyncio.create_task(ctx.step("reviews", fetch, "reviews", 0))

        async def summarise(source: asyncio.Task[str]) -> Any:
            return await ctx.step("summarise", fetch, f"summary of {await source}", 0)

        a, b = await asyncio.gather(summarise(photos), summarise(reviews))
        await ctx.sleep(3)
        return {"photos": a, "reviews": b}

    assert await run(product) == {"photos": "summary of photos", "reviews": "summary of reviews"}


@crash_everywhere
async def test_workers_of_a_queue_keep_their_items_on_replay(run: DurableRun) -> None:
    called: Counter[str] = Counter()

    async def work(item: int) -> int:
        called[f"{item}"] += 1
        for _ in range((7 * item) % 5 * 10):
            await asyncio.sleep(0)
        return item * item

    @action(pack="t")
    async def pool(ctx: DurableContext) -> list[Any]:
        queue: asyncio.Queue[int] = asyncio.Queue()
        results: dict[int, int] = {}

        async def worker() -> None:
            while True:
                item = await queue.get()
                results[item] = await ctx.step("work", work, item)
                queue.task_done()

        workers = [asyncio.create_task(worker()) for _ in range(3)]
        for item in range(9):
            queue.put_nowait(item)
        await queue.join()
        for one in workers:
            one.cancel()
        await ctx.sleep("1d")
        return [results[item] for item in range(9)]

    assert await run(pool) == [item * item for item in range(9)]
    assert sum(called.values()) <= 9 + 3  # those whose record was lost in the crash


@crash_everywhere
async def test_a_lock_is_taken_in_the_same_order_again(run: DurableRun) -> None:
    @action(pack="t")
    async def locked(ctx: DurableContext) -> list[str]:
        lock, order = asyncio.Lock(), list[str]()

        async def one(name: str, turns: int) -> None:
            await ctx.step("get ready", fetch, name, turns)
            async with lock:
                order.append(str(await ctx.step("inside", fetch, f"{name}{len(order)}", 0)))

        await asyncio.gather(one("a", 30), one("b", 0), one("c", 10))
        before = list(order)
        await ctx.sleep("1h")
        assert order == before
        return sorted(text[0] for text in order)

    assert await run(locked) == ["a", "b", "c"]
    if not run.crashed:
        assert [name for name in run.told if "inside" in name] == ["2/inside", "3/inside", "1/inside"]


@crash_everywhere
async def test_the_last_registered_is_undone_first(run: DurableRun) -> None:
    undone: list[str] = []
    registered: list[str] = []

    async def release(item: str) -> None:
        undone.append(item)

    async def fail() -> None:
        raise OSError("away")

    @action(pack="t")
    async def order(ctx: DurableContext) -> None:
        registered.clear()

        async def book(item: str, turns: int) -> None:
            await ctx.step("book", fetch, item, turns)
            ctx.on_failure(release, item)
            registered.append(item)

        await asyncio.gather(book("slow", 40), book("quick", 0))
        await ctx.step("charge", fail)

    with pytest.raises(ExecutionFailed, match="step charge failed: OSError: away"):
        await run(order)
    assert list(dict.fromkeys(undone)) == registered[::-1]
    assert len(undone) <= 2 + bool(run.crashed)


async def test_open_branches_are_cancelled_before_any_undo() -> None:
    happened: list[str] = []

    async def note(name: str) -> None:
        happened.append(name)

    async def fail() -> None:
        raise OSError("away")

    @action(pack="t")
    async def left(ctx: DurableContext) -> None:
        ctx.on_failure(note, "undone")

        async def sibling() -> None:
            try:
                await ctx.sleep("1d")
            finally:
                await ctx.step("clean", note, "clean")

        await asyncio.gather(sibling(), ctx.step("fail", fail))

    with pytest.raises(ExecutionFailed, match="away"):
        await DurableRun()(left)
    assert happened == ["clean", "undone"]


@pytest.mark.parametrize(
    "wait",
    [
        lambda ctx: asyncio.sleep(1),
        lambda ctx: asyncio.wait_for(ctx.sleep("1d"), 5),
        lambda ctx: asyncio.wait([asyncio.ensure_future(ctx.sleep("1d"))]),
        lambda ctx: next(iter(asyncio.as_completed([ctx.sleep("1d")]))),
        lambda ctx: asyncio.to_thread(print),
    ],
    ids=["sleep", "wait_for", "wait", "as_completed", "to_thread"],
)
async def test_waits_with_another_clock_are_refused(wait: Any) -> None:
    @action(pack="t")
    async def waits(ctx: DurableContext) -> None:
        await wait(ctx)

    with pytest.raises(
        ExecutionFailed, match=r"DefinitionError: .*cannot be used in a durable function.*Use "
    ):
        await DurableRun()(waits)


async def test_a_timeout_of_asyncio_is_refused() -> None:
    @action(pack="t")
    async def waits(ctx: DurableContext) -> None:
        async with asyncio.timeout(5):
            await ctx.sleep("1d")

    with pytest.raises(ExecutionFailed, match=r"ctx\.timeout"):
        await DurableRun()(waits)


async def test_tasks_that_wait_for_nothing_end_the_run() -> None:
    @action(pack="t")
    async def stuck(ctx: DurableContext) -> None:
        await asyncio.Event().wait()

    with pytest.raises(ExecutionFailed, match="so none of them can continue"):
        await DurableRun()(stuck)


async def test_tasks_that_spin_end_the_run() -> None:
    @action(pack="t")
    async def spins(ctx: DurableContext) -> None:
        task = asyncio.create_task(ctx.sleep("1d"))
        while not task.done():
            await asyncio.sleep(0)

    with pytest.raises(ExecutionFailed, match="without waiting"):
        await DurableRun()(spins)


@crash_everywhere
async def test_the_first_wins_and_the_others_are_cancelled(run: DurableRun) -> None:
    @action(pack="t")
    async def reminds(ctx: DurableContext) -> list[Any]:
        paid = await ctx.first(paid=ctx.signal("paid"), late=ctx.sleep("14d"))
        more = await ctx.first(more=ctx.signal("paid"), late=ctx.sleep("14d"))
        return [*paid, *more]

    run.signal("paid", 7, after="13d")
    assert await run(reminds) == ["paid", 7, "late", None]


@crash_everywhere
async def test_a_time_limit_counts_from_the_first_entry(run: DurableRun) -> None:
    @action(pack="t")
    async def limited(ctx: DurableContext) -> str:
        from penstock.errors import StepTimedOut

        async with ctx.timeout("3d"):
            await ctx.sleep("2d")
        try:
            async with ctx.timeout("3d"):
                await ctx.sleep("2d")
                await ctx.sleep("2d")
        except StepTimedOut:
            return str(await ctx.step("late", fetch, "late", 0))
        return "in time"

    assert await run(limited) == "late"


@crash_everywhere
async def test_a_signal_sent_before_the_deadline_is_received(run: DurableRun) -> None:
    from penstock.errors import StepTimedOut

    @action(pack="t")
    async def listens(ctx: DurableContext) -> list[Any]:
        heard: list[Any] = []
        for _ in range(4):
            try:
                heard.append(await ctx.signal("word", timeout=10))
            except StepTimedOut:
                heard.append(None)
        await ctx.sleep(30)
        for _ in range(2):
            try:
                heard.append(await ctx.signal("word", timeout=0))
            except StepTimedOut:
                heard.append(None)
        return heard

    run.signal("word", "a", after=15)
    run.signal("word", "b", after=50)
    assert await run(listens) == [None, "a", None, None, "b", None]


@crash_everywhere
async def test_step_cancelled_before_it_began_ends_at_once(run: DurableRun) -> None:
    @action(pack="t")
    async def cancels(ctx: DurableContext) -> list[bool]:
        task = asyncio.create_task(ctx.step("never", fetch, "never", 0))
        await asyncio.sleep(0)  # the step is asked for
        task.cancel()
        await asyncio.sleep(0)
        ended = task.cancelled()
        await ctx.step("after", fetch, "after", 0)
        await ctx.sleep("1d")
        return [ended, task.cancelled()]

    assert await run(cancels) == [True, True]
    assert run.recorded == ["after", "sleep"]


@crash_everywhere
async def test_step_cancelled_while_it_runs_ends_after_earlier_results(run: DurableRun) -> None:
    """A result is recorded before the function of the cancelled step has ended. A crash then keeps the order of both."""

    async def goes_on() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await fetch("slow", 200)
            raise

    @action(pack="t")
    async def cancels(ctx: DurableContext) -> list[str]:
        queue: asyncio.Queue[str] = asyncio.Queue()

        async def queued(name: str, function: Any, *args: Any) -> None:
            try:
                await ctx.step(name, function, *args)
            finally:
                queue.put_nowait(name)

        slow = asyncio.create_task(queued("slow", goes_on))
        await ctx.step("before", fetch, "before", 10)
        slow.cancel()
        quick = asyncio.create_task(queued("quick", fetch, "quick", 0))
        names = [await queue.get()]
        await ctx.step(f"first is {names[0]}", fetch, names[0], 0)
        names.append(await queue.get())
        await asyncio.gather(slow, quick, return_exceptions=True)
        return names

    names = await run(cancels)
    assert sorted(names) == ["quick", "slow"]
    assert (
        names == ["quick", "slow"] or run.crashed
    )  # a crash before the record of the quick step forgets the slow one
