"""The children of durable functions that ended without an attempt that could cancel them."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from penstock import DurableContext, action
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

GATE = asyncio.Event()
BOTH_WAIT = """
select f.id from execution f join execution c on c.parent = f.id join execution g on g.parent = c.id
where f.id = $1 and f.status = 'running' and c.status = 'waiting' and g.status = 'waiting'
"""
LOSE = "select r.moved from execution e cross join lateral recover_executions(e.claim, array[e.id], 'lost') r where e.id = $1"
END = "select moved from end_executions(array[$1::uuid], '{requested}', 'failed', 'refused', '{\"type\": \"Refused\"}')"
OPEN = "select from execution where parent = $1 and finished_at is null"


@action(pack="left")
async def inmost(ctx: DurableContext) -> Any:
    return await ctx.signal("never")


@action(pack="left")
async def child(ctx: DurableContext) -> Any:
    return await ctx.run(inmost)


async def _begin_child(ctx: DurableContext) -> None:
    task = asyncio.create_task(ctx.run(child))
    await ctx.step("gate", GATE.wait)
    await task


@action(pack="left", on_worker_loss="fail")
async def once(ctx: DurableContext) -> None:
    await _begin_child(ctx)


@action(pack="left", max_recoveries=0)
async def never_again(ctx: DurableContext) -> None:
    await _begin_child(ctx)


@action(pack="left")
async def again(ctx: DurableContext) -> None:
    await _begin_child(ctx)


async def _begun(house: Installation, ref: str) -> UUID:
    """Start a function, and return its id once its child and the child of that one wait."""
    await house.start(inmost, child, once, never_again, again)
    id = await house.client.start(ref)
    await house.until(BOTH_WAIT, id)
    return id


async def _are_cancelled(house: Installation, function: UUID) -> None:
    """Wait until both children are cancelled, and check the reason."""
    rows = f"""with recursive inside as (
        select id, status, reason, finished_at from execution where parent = '{function}'
        union all select c.id, c.status, c.reason, c.finished_at from inside i join execution c on c.parent = i.id)
        select * from inside"""
    await house.until(f"select 1 where (select count(*) from ({rows}) r where finished_at is not null) = 2")
    reason = "the function that ran it has ended"
    assert {(row["status"], row["reason"]) for row in await house.rows(rows)} == {("cancelled", reason)}


@pytest.mark.parametrize(("ref", "status"), [("left.once", "failed"), ("left.never_again", "abandoned")])
async def test_children_are_cancelled_when_the_last_worker_is_lost(
    house: Installation, ref: str, status: str
) -> None:
    id = await _begun(house, ref)
    assert [row["moved"] for row in await house.rows(LOSE, id)] == [[id]]
    assert (await house.client.get(id)).status == status
    await _are_cancelled(house, id)


async def test_children_are_cancelled_when_the_next_attempt_is_refused(house: Installation) -> None:
    id = await _begun(house, "left.again")
    await house.client.holds.hold("action", "left.again", by="ada")
    await house.rows(LOSE, id)
    await house.until("select 1 from execution where id = $1 and status = 'requested'", id)
    assert await house.rows(OPEN, id)
    assert [row["moved"] for row in await house.rows(END, id)] == [[id]]
    await house.client.holds.release("action", "left.again")  # it covers the children, too
    await _are_cancelled(house, id)


async def test_children_of_a_function_that_runs_again_stay(house: Installation) -> None:
    id = await _begun(house, "left.again")
    await house.rows(LOSE, id)
    await house.until("select 1 from execution where id = $1 and status = 'running' and attempt = 2", id)
    assert await house.rows("select from timer where kind = 'orphan'") == []
    assert await house.rows(OPEN, id)
