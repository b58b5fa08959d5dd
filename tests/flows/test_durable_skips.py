"""The skips of awaited values of durable functions by people."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from penstock import DurableContext, action
from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport


@action(pack="dur")
async def patient(ctx: DurableContext) -> Any:
    await ctx.sleep("1d")
    return await ctx.signal("word", timeout="1d")


@action(pack="dur")
async def told(ctx: DurableContext, count: int = 1, timeout: str | None = None) -> Any:
    if count == 0:
        await ctx.sleep("1d")
    return [await ctx.signal("go", timeout=timeout) for _ in range(max(count, 1))]


VERSIONS: list[bool] = []
GATE = asyncio.Event()


async def note(word: str) -> str:
    return word


@action(pack="dur")
async def changed(ctx: DurableContext) -> Any:
    await ctx.sleep("1d")
    is_new = ctx.version("change")
    VERSIONS.append(is_new)
    word = await ctx.step("way", note, "new" if is_new else "old")
    await ctx.sleep(0.3)
    return word


@action(pack="dur")
async def impatient(ctx: DurableContext) -> Any:
    await ctx.sleep("1d")
    return [await ctx.signal("go", timeout=1), await ctx.signal("go", timeout=0)]


@action(pack="dur")
async def soon_asleep(ctx: DurableContext) -> str:
    await ctx.step("gate", GATE.wait)
    await ctx.sleep("1d")
    return "awake"


@action(pack="dur")
async def asks(ctx: DurableContext) -> Any:
    return await ctx.ask("How many?", schema={"type": "integer"})


approves = from_yaml("""
workflow: dur.approves
tasks:
  amount: {inquiry: {prompt: "How many?", schema: {type: integer}}}
output: "{{ tasks.amount.result }}"
""")


async def is_suspended(house: Installation, id: UUID, ordinal: int = 1) -> None:
    await house.until(
        "select 1 from suspended where execution_id = $1 and signals @> $2::text::jsonb",
        id,
        f'[["signal/go", {ordinal}]]',
    )


async def test_awaited_signal_is_skipped_or_given(house: Installation) -> None:
    await house.start(told)
    command, signal = house.client.command, house.client.signal
    skipped = await house.client.start("dur.told")
    await is_suspended(house, skipped)
    await command(skipped, "skip", task="go", by="ada")
    assert await house.client.result(skipped, timeout=20) == [None]
    timed = await house.client.start("dur.told", {"timeout": "1d"})
    await is_suspended(house, timed)
    await command(timed, "set_result", task="go", value={"by": "hand"}, by="ada")
    assert await house.client.result(timed, timeout=20) == [{"by": "hand"}]
    several = await house.client.start("dur.told", {"count": 3})
    await is_suspended(house, several)
    await command(several, "set_result", task="go:2", value="second", by="ada")  # waits for the first
    await signal(several, "go", "first")
    await is_suspended(house, several, 3)
    with pytest.raises(Conflict, match="the step go is over"):
        await command(several, "skip", task="go", by="ada")
    await signal(several, "go", "third")
    assert await house.client.result(several, timeout=20) == ["first", "second", "third"]
    await house.quiet()
    await house.sound()


async def test_signal_is_given_before_it_is_awaited(house: Installation) -> None:
    await house.start(told)
    id = await house.client.start("dur.told", {"count": 0})
    await house.until("select 1 from suspended where execution_id = $1", id)
    await house.client.command(id, "set_result", task="go", value="early", by="ada", ahead=True)
    await house.until("select 1 from suspended where execution_id = $1", id)  # the command woke it
    await house.client.command(id, "skip", task="sleep", by="ada")
    assert await house.client.result(id, timeout=20) == ["early"]
    await house.sound()


async def test_a_sleep_and_a_deadline_are_skipped(house: Installation) -> None:
    await house.start(patient)
    id = await house.client.start("dur.patient")
    for step in ("sleep", "timeout of word"):
        await house.until("select 1 from suspended where execution_id = $1", id)
        await house.until("select 1 from step where name = $1", step)
        await house.client.command(id, "skip", task=step, by="ada")
    await house.until("select 1 from suspended where until is null")
    await house.client.signal(id, "word", "go")
    assert await house.client.result(id, timeout=20) == "go"
    await house.quiet()
    await house.sound()


@pytest.mark.parametrize(
    ("kind", "value", "way"),
    [("skip", None, "old"), ("set_result", False, "old"), ("set_result", True, "new")],
)
async def test_version_is_given_once_for_all_attempts(
    house: Installation, kind: str, value: Any, way: str
) -> None:
    VERSIONS.clear()
    await house.start(changed, suspend_after=0.1)
    id = await house.client.start("dur.changed")
    await house.until("select 1 from suspended where execution_id = $1", id)
    await house.client.command(id, kind, task="change", value=value, by="ada", ahead=True)
    await house.client.command(id, "skip", task="sleep", by="ada")
    assert await house.client.result(id, timeout=20) == way
    assert set(VERSIONS) == {way == "new"}
    assert len(VERSIONS) > 1
    with pytest.raises(Conflict):
        await house.client.command(id, kind, task="change", value=value, by="ada")
    await house.quiet()
    await house.sound()


async def test_version_that_was_passed_takes_no_result(house: Installation) -> None:
    VERSIONS.clear()
    await house.start(changed, suspend_after=0.1)
    id = await house.client.start("dur.changed")
    await house.until("select 1 from suspended where execution_id = $1", id)
    await house.client.command(id, "skip", task="sleep", by="ada")
    await house.until("select 1 from step where execution_id = $1 and name = 'change'", id)
    with pytest.raises(Conflict, match="the step change is over"):
        await house.client.command(id, "set_result", task="change", value=False, by="ada")
    assert await house.client.result(id, timeout=20) == "new"
    assert set(VERSIONS) == {True}


async def test_signals_without_patience_are_skipped(house: Installation) -> None:
    await house.start(impatient)
    id = await house.client.start("dur.impatient")
    await house.until("select 1 from suspended where execution_id = $1", id)
    await house.client.command(id, "set_result", task="go", value="first", by="ada", ahead=True)
    await house.client.command(id, "set_result", task="go:2", value="second", by="ada", ahead=True)
    await house.client.command(id, "skip", task="sleep", by="ada")
    assert await house.client.result(id, timeout=20) == ["first", "second"]
    await house.quiet()
    await house.sound()


async def test_sleep_is_skipped_while_its_function_runs(house: Installation) -> None:
    GATE.clear()
    await house.start(soon_asleep)
    id = await house.client.start("dur.soon_asleep")
    await house.until("select 1 from execution where id = $1 and status = 'running'", id)
    await asyncio.sleep(0.3)  # its attempt has read the records
    await house.client.command(id, "skip", task="sleep", by="ada", ahead=True)
    GATE.set()
    assert await house.client.result(id, timeout=20) == "awake"
    [row] = await house.rows("select attempt from execution where id = $1", id)
    assert row["attempt"] <= 3
    await house.quiet()
    await house.sound()


async def test_result_of_later_step_wakes_no_function_again_and_again(house: Installation) -> None:
    GATE.clear()
    await house.start(soon_asleep)
    id = await house.client.start("dur.soon_asleep")
    await house.until("select 1 from execution where id = $1 and status = 'running'", id)
    await house.client.command(id, "set_result", task="never", value=1, by="ada", ahead=True)
    GATE.set()
    await house.until("select 1 from suspended where execution_id = $1", id)
    await asyncio.sleep(1)
    [row] = await house.rows("select attempt, status from execution where id = $1", id)
    assert (row["attempt"] <= 3, row["status"]) == (True, "waiting")
    await house.client.command(id, "skip", task="sleep", by="ada")
    assert await house.client.result(id, timeout=20) == "awake"


async def test_name_that_was_never_asked_for_needs_ahead(house: Installation) -> None:
    await house.start(patient, told)
    id = await house.client.start("dur.patient")
    await house.until("select 1 from suspended where execution_id = $1", id)
    for kind in ("skip", "set_result"):
        for name in ("sleeep", "word", "sleep:3", "1/sleep"):
            with pytest.raises(NotFound, match="has no recorded request for a step"):
                await house.client.command(id, kind, task=name, by="ada")
    assert not await house.rows("select 1 from step where execution_id = $1 and kind = 'given'", id)
    with pytest.raises(NotFound) as refused:
        await house.client.command(id, "skip", task="sleeep", by="ada")
    assert "sleep" in (refused.value.hint or "")
    await house.client.command(id, "set_result", task="word", value="early", by="ada", ahead=True)
    await house.client.command(id, "skip", task="sleep", by="ada")
    assert await house.client.result(id, timeout=20) == "early"
    await house.sound()


@pytest.mark.parametrize(
    "name", ["", "a/b", "1/", "0/a", "go:99999999999999999999", "x" * 201, "signal/go", "a\nb"]
)
async def test_name_that_no_step_has_is_refused(house: Installation, name: str) -> None:
    await house.start(told)
    id = await house.client.start("dur.told")
    await is_suspended(house, id)
    for kind in ("skip", "set_result"):
        with pytest.raises(InvalidInput, match="no step can have the name"):
            await house.client.command(id, kind, task=name, by="ada")


@pytest.mark.parametrize(("asking", "task"), [(asks, "ask"), (approves, "amount")])
async def test_answer_that_is_given_fits_its_schema(house: Installation, asking: Any, task: str) -> None:
    await house.start(asks, approves)
    id = await house.client.start(asking.ref)
    await house.until("select 1 from inquiry where status = 'created'")
    with pytest.raises(InvalidInput, match="response: expected integer"):
        await house.client.command(id, "set_result", task=task, value="many", by="ada")
    await house.client.command(id, "set_result", task=task, value=3, by="ada")
    assert await house.client.result(id, timeout=20) == 3
    await house.quiet()
    await house.sound()
