"""The errors of a user's code that are not an Exception: each ends its attempt once, as failed, and its worker goes on."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from penstock import Batch, DurableContext, Item, action
from penstock.errors import ClaimLost, ExecutionFailed, NoCapacity
from penstock_worker.attempts.runner import Runner
from tests.flows.installation import AS_USED, Installation

pytestmark = pytest.mark.either_transport

CALLS: Counter[str] = Counter()


@dataclass
class Name:
    name: str


class OwnError(BaseException):
    """An error of an application that no `except Exception` catches."""


ERRORS: dict[str, BaseException] = {
    "GeneratorExit": GeneratorExit("no more"),
    "StopIteration": StopIteration(1),
    "CancelledError": asyncio.CancelledError("by the code"),
    "KeyboardInterrupt": KeyboardInterrupt("ctrl-c"),
    "SystemExit": SystemExit(2),
    "OwnError": OwnError("own"),
    "BaseExceptionGroup": BaseExceptionGroup("both", [OwnError(), GeneratorExit()]),
    "ClaimLost": ClaimLost("said the code"),
    "NoCapacity": NoCapacity("said the code"),
}


def fail(name: str, place: str) -> None:
    CALLS[place] += 1
    raise ERRORS[name]


async def fail_later(name: str, place: str) -> None:
    await asyncio.sleep(0)
    fail(name, place)


@action(pack="raises", timeout=None)
async def in_loop(name: str) -> None:
    await fail_later(name, "in_loop")


@action(pack="raises", timeout=None)
def in_thread(name: str) -> None:
    fail(name, "in_thread")


@action(pack="raises", timeout=None, executor="thread")
async def in_own_loop(name: str) -> None:
    await fail_later(name, "in_own_loop")


@action(pack="raises", timeout=None, executor="process")
def in_process(name: str) -> None:
    raise ERRORS[name]


@action(pack="raises", timeout=None)
async def in_body(ctx: DurableContext, name: str) -> None:
    fail(name, "in_body")


@action(pack="raises", timeout=None)
async def in_branch(ctx: DurableContext, name: str) -> None:
    async def branch() -> None:
        fail(name, "in_branch")

    await asyncio.gather(branch(), ctx.sleep(30))


@action(pack="raises", timeout=None)
async def in_step(ctx: DurableContext, name: str) -> None:
    await ctx.step("fails", fail_later, name, "in_step")


@action(pack="raises", timeout=None)
async def in_plain_step(ctx: DurableContext, name: str) -> None:
    await ctx.step("fails", fail, name, "in_plain_step")


@action(pack="raises", timeout=None)
async def in_undo(ctx: DurableContext, name: str) -> None:
    ctx.on_failure(fail, name, "in_undo")
    raise ValueError("undo this")


@action(pack="raises", timeout=None)
async def in_child(ctx: DurableContext, name: str) -> None:
    await ctx.run(in_loop, {"name": name})


@action(pack="raises", timeout=None, batch=Batch(2, within=0.01))
async def in_batch(items: list[Item[Name]]) -> list[Any]:
    fail(items[0].input.name, "in_batch")
    return []


@action(pack="raises", timeout=None, batch=Batch(2, within=0.01))
async def of_item(items: list[Item[Name]]) -> list[Any]:
    CALLS["of_item"] += 1
    return [ERRORS[item.input.name] for item in items]


async def cancel_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel("by itself")
    await asyncio.sleep(5)


@action(pack="raises", timeout=None)
async def cancels_itself() -> None:
    CALLS["cancels_itself"] += 1
    await cancel_itself()


@action(pack="raises", timeout=None, executor="thread")
async def cancels_itself_in_own_loop() -> None:
    CALLS["cancels_itself_in_own_loop"] += 1
    await cancel_itself()


@action(pack="raises", timeout=None)
async def cancels_itself_in_body(ctx: DurableContext) -> None:
    CALLS["cancels_itself_in_body"] += 1
    task = asyncio.current_task()
    assert task is not None
    task.cancel("by itself")
    await ctx.sleep(5)


@action(pack="raises", timeout=None)
async def cancels_itself_in_step(ctx: DurableContext) -> None:
    CALLS["cancels_itself_in_step"] += 1
    await ctx.step("cancel", cancel_itself)


@action(pack="raises", timeout=None, batch=Batch(2, within=0.01))
async def cancels_itself_in_batch(items: list[Item[Name]]) -> list[Any]:
    CALLS["cancels_itself_in_batch"] += 1
    await cancel_itself()
    return []


@action(pack="raises")
async def well() -> str:
    return "well"


RAISING = (
    in_loop, in_thread, in_own_loop, in_process, in_body, in_branch, in_step, in_plain_step, in_undo, in_child, in_batch,
    of_item,
)  # fmt: skip
CANCELLING = (
    cancels_itself, cancels_itself_in_own_loop, cancels_itself_in_body, cancels_itself_in_step, cancels_itself_in_batch,
)  # fmt: skip


async def outcome(house: Installation, id: UUID) -> str:
    try:
        return str(await house.client.result(id, timeout=10))
    except ExecutionFailed as error:
        return str(error)


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


@pytest.mark.parametrize("name", ERRORS)
async def test_error_of_code_fails_attempt_once(house: Installation, name: str) -> None:
    await house.start(*RAISING, well, **AS_USED)
    ids = {ran.ref: await house.client.start(ran.ref, {"name": name}) for ran in RAISING}
    for ref, id in ids.items():
        text = await outcome(house, id)
        [row] = await house.rows("select status, attempt from execution where id = $1", id)
        assert (row["status"], row["attempt"]) == ("failed", 1), f"{ref}: {text}"
        assert name in text, ref
    assert all(count == 1 or place == "in_loop" for place, count in CALLS.items()), CALLS
    assert await outcome(house, await house.client.start(well.ref)) == "well"
    await house.quiet()
    await house.sound()


async def test_task_that_cancels_itself_fails_attempt_once(house: Installation) -> None:
    await house.start(*CANCELLING, well, **AS_USED)
    ids = {
        ran.ref: await house.client.start(ran.ref, {"name": "x"} if ran is cancels_itself_in_batch else {})
        for ran in CANCELLING
    }
    for ref, id in ids.items():
        text = await outcome(house, id)
        [row] = await house.rows("select status, attempt from execution where id = $1", id)
        assert (row["status"], row["attempt"]) == ("failed", 1), f"{ref}: {text}"
        assert "CancelledError" in text, ref
    assert set(CALLS.values()) == {1}
    assert await outcome(house, await house.client.start(well.ref)) == "well"


async def test_attempt_that_its_worker_cannot_run_counts(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> None:
        CALLS["put_away"] += 1
        raise RuntimeError("a defect of the worker")

    monkeypatch.setattr(Runner, "_put_away", broken)
    await house.start(well, **AS_USED)
    assert "a defect of the worker" in await outcome(house, await house.client.start(well.ref))
    assert CALLS["put_away"] == 1
