"""Retries of durable functions: the next attempt calls the steps again that caused the failure, and nothing else."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from penstock import DurableContext, NonRetryable, action
from penstock.engine.durable.records import (
    CANCELLED,
    FAILED,
    RUN,
    STARTED,
    STEP,
    SUPERSEDED,
    Child,
    Failure,
    History,
    Key,
    Record,
)
from penstock.engine.durable.retried_history import forget_failure
from penstock.errors import ExecutionFailed, StepFailed
from penstock.language.terms.ids import new_id
from penstock.testing import DurableRun, crash_everywhere
from penstock.testing.durable_run import BEGIN

CALLS: Counter[str] = Counter()
RETRIED: dict[str, Any] = {"pack": "t", "retry": {"max_attempts": 4, "initial_delay": 0}}


async def flaky(name: str, times: int = 1) -> str:
    CALLS[name] += 1
    if CALLS[name] <= times:
        raise OSError(f"{name} is away")
    return name


async def ok(name: str, turns: int = 0) -> str:
    CALLS[name] += 1
    for _ in range(turns):
        await asyncio.sleep(0)
    return name


class Mine(Exception):
    """An error of the function's own."""


def checked(run: DurableRun, **calls: int) -> None:
    """Each was called so often; once more where the run was crashed."""
    for name, times in calls.items():
        assert times <= CALLS[name] <= times + bool(run.crashed), (name, CALLS)


@crash_everywhere
async def test_a_step_beside_a_failed_one_is_kept(run: DurableRun) -> None:
    CALLS.clear()

    @action(**RETRIED)
    async def beside(ctx: DurableContext) -> Any:
        return await asyncio.gather(
            ctx.step("flaky", flaky, "flaky"), ctx.step("ok", ok, "ok"), ctx.step("slow", ok, "slow", 60)
        )

    assert await run(beside) == ["flaky", "ok", "slow"]
    checked(run, flaky=2, ok=1, slow=1)


@crash_everywhere
async def test_steps_that_each_fail_once_are_all_called_again(run: DurableRun) -> None:
    CALLS.clear()

    @action(**RETRIED)
    async def four(ctx: DurableContext) -> Any:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ctx.step("flaky", flaky, name)) for name in "abcd"]
        return [task.result() for task in tasks]

    assert await run(four) == list("abcd")


@crash_everywhere
async def test_a_cause_behind_another_error_is_called_again(run: DurableRun) -> None:
    CALLS.clear()

    @action(**RETRIED)
    async def wraps(ctx: DurableContext) -> Any:
        await ctx.step("before", ok, "before")
        try:
            return await ctx.step("flaky", flaky, "flaky", 2)
        except StepFailed as error:
            await ctx.step("report", ok, "report")
            raise Mine("no luck") from error

    assert await run(wraps) == "flaky"
    checked(run, before=1, flaky=3)
    assert CALLS["report"] == 2 or run.crashed


@crash_everywhere
async def test_a_branch_that_goes_on_beside_a_failure_is_kept(run: DurableRun) -> None:
    CALLS.clear()

    @action(**RETRIED)
    async def pipeline(ctx: DurableContext) -> Any:
        async def two() -> Any:
            await ctx.step("one", ok, "one", 20)
            return await ctx.step("two", ok, "two")

        got = await asyncio.gather(ctx.step("flaky", flaky, "flaky"), two(), return_exceptions=True)
        for one in got:
            if isinstance(one, BaseException):
                raise one
        return got

    assert await run(pipeline) == ["flaky", "two"]
    checked(run, flaky=2, one=1, two=1)


@crash_everywhere
async def test_a_child_beside_a_failed_step_goes_on(run: DurableRun) -> None:
    CALLS.clear()

    @action(**RETRIED)
    async def child(ctx: DurableContext) -> Any:
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(ctx.ask("Well?"))
            group.create_task(ctx.step("flaky", flaky, "flaky"))
        return asked.result()

    run.answer("yes", after="1d")
    assert await run(child) == "yes"


@pytest.mark.parametrize("inside", [True, False])
async def test_a_step_that_is_not_to_be_retried_ends_the_run(inside: bool) -> None:
    CALLS.clear()

    async def refuses() -> None:
        CALLS["refuses"] += 1
        raise NonRetryable("no such customer")

    @action(**RETRIED)
    async def fails(ctx: DurableContext) -> None:
        if inside:
            async with asyncio.TaskGroup() as group:
                group.create_task(ctx.step("refuses", refuses))
                group.create_task(ctx.step("flaky", flaky, "flaky"))
        else:
            await ctx.step("refuses", refuses)

    with pytest.raises(ExecutionFailed):
        await DurableRun()(fails)
    assert CALLS["refuses"] == 1


@crash_everywhere
async def test_failures_of_two_branches_are_not_brought_back(run: DurableRun) -> None:
    CALLS.clear()

    async def unlucky(name: str, times: int, turns: int) -> str:
        await ok(f"{name} begins", turns)
        return await flaky(name, times)

    @action(**RETRIED)
    async def late(ctx: DurableContext) -> Any:
        both = asyncio.gather(
            ctx.step("slow", unlucky, "slow", 1, 20), ctx.step("quick", unlucky, "quick", 2, 0)
        )
        await ctx.sleep("3d")
        return await both

    assert await run(late) == ["slow", "quick"]
    checked(run, slow=2, quick=3)


@crash_everywhere
async def test_tries_of_cancelled_step_count_in_next_attempt(run: DurableRun) -> None:
    CALLS.clear()
    delay = {"max_attempts": 3, "initial_delay": 60, "jitter": 0}

    @action(**RETRIED)
    async def group(ctx: DurableContext) -> Any:
        async with asyncio.TaskGroup() as tasks:
            patient = tasks.create_task(ctx.step("patient", flaky, "patient", 2, retry=delay))
            tasks.create_task(ctx.step("flaky", late_flaky))
        return patient.result()

    async def late_flaky() -> str:
        await ok("late", 20)
        return await flaky("flaky")

    assert await run(group) == "patient"
    checked(run, patient=3, flaky=2)
    assert run.crashed or run.now >= BEGIN + timedelta(seconds=2 * 60)


@crash_everywhere
async def test_calls_after_forgotten_failure_are_superseded(run: DurableRun) -> None:
    CALLS.clear()

    async def unlucky(name: str, times: int, turns: int) -> str:
        await ok(f"{name} begins", turns)
        return await flaky(name, times)

    @action(**RETRIED)
    async def reports(ctx: DurableContext) -> Any:
        tasks = [
            asyncio.create_task(ctx.step("slow", unlucky, "slow", 1, 20)),
            asyncio.create_task(ctx.step("quick", unlucky, "quick", 2, 0)),
        ]
        try:
            return await asyncio.gather(*tasks)
        except StepFailed as error:
            await ctx.step(f"report {error.name}", ok, "report")
            await ctx.sleep("1d")
            raise Mine("no luck") from error

    assert await run(reports) == ["slow", "quick"]


@crash_everywhere
async def test_child_cancelled_after_failure_is_started_again(run: DurableRun) -> None:
    CALLS.clear()

    @action(**RETRIED)
    async def races(ctx: DurableContext) -> Any:
        try:
            arms = {"flaky": ctx.step("flaky", flaky, "flaky"), "asked": ctx.ask("Well?")}
            return list(await ctx.first(**arms))
        except StepFailed:
            await ctx.sleep("1d")
            raise

    assert await run(races) == ["flaky", "flaky"]
    checked(run, flaky=2)
    asked = [name for name in run.recorded if "ask" in name]
    assert asked == ["ask", "ask (2)"] or run.crashed


@pytest.mark.parametrize(
    ("child", "status"),
    [("started", STARTED), ("completed", STARTED), ("canceling", SUPERSEDED), ("cancelled", SUPERSEDED)],
)
def test_cancellation_is_taken_back_unless_child_was_cancelled(child: str, status: str) -> None:
    flaky_step = Record(Key("flaky", 1), 1, STEP, FAILED, told=4, attempt=1)
    run_call = Record(Key("1/run", 1), 1, RUN, CANCELLED, told=5, attempt=1)
    history = History(
        BEGIN,
        {record.key: record for record in (flaky_step, run_call)},
        {run_call.key: Child(new_id(), child, child in ("completed", "cancelled"))},
        failure=Failure((flaky_step.key,), told=5, attempt=1),
    )
    tentative, changed = forget_failure(history)
    assert (tentative, changed) == (set(), [flaky_step, run_call])
    assert (flaky_step.status, flaky_step.told) == (STARTED, None)
    assert (run_call.status, run_call.told) == (status, None)


async def test_branches_cancelled_in_the_last_attempt_go_on_in_that_order() -> None:
    """An attempt that fails between a cancellation and its delivery does not record the former."""
    CALLS.clear()
    ends: list[list[str]] = []

    @action(**RETRIED)
    async def cancels(ctx: DurableContext) -> list[str]:
        order: list[str] = []
        ends.append(order)

        async def branch(name: str, turns: int) -> None:
            task = asyncio.create_task(ctx.step("flaky", flaky, name))
            await ctx.step("before", ok, "before", turns)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                order.append(name)

        await asyncio.gather(branch("first", 60), branch("second", 90), branch("third", 120))
        return order

    run = DurableRun()
    assert await run(cancels) == ["first", "second", "third"]
    assert len(ends) == 4, "each branch fails an attempt"
