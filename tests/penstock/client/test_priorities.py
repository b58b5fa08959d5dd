"""The change of the priority of an execution that waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock import Limit, action
from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.terms.ids import new_id
from penstock.language.workflows import from_body
from tests.flows.installation import AS_USED, Installation

GATE = asyncio.Event()
WAITING = "select w.execution_id from waiter w order by rank, turn, ready_at, execution_id"


@action(pack="ranked", limits=[Limit(1)])
async def limited(n: int) -> int:
    await GATE.wait()
    return n


@action(pack="ranked")
async def plain(n: int) -> int:
    return n


async def test_queued_execution_has_its_new_place_in_line(house: Installation) -> None:
    GATE.clear()
    await house.start(limited, **AS_USED)
    holder = await house.client.start("ranked.limited", {"n": 0})
    await house.until("select from execution where status = 'running'")
    ids = [await house.client.start("ranked.limited", {"n": n}) for n in range(1, 4)]
    assert await house.client.set_priority(ids[2], 5) == 1
    assert [row["execution_id"] for row in await house.rows(WAITING)] == [ids[2], ids[0], ids[1]]
    assert await house.client.set_priority(ids[0], -5) == 1
    assert [row["execution_id"] for row in await house.rows(WAITING)] == [ids[2], ids[1], ids[0]]
    await house.sound()
    GATE.set()
    await house.quiet()
    rows = await house.rows("select execution_id from admission order by seq")
    assert [row["execution_id"] for row in rows] == [holder, ids[2], ids[1], ids[0]]
    await house.sound()


async def test_delayed_execution_keeps_its_instant(house: Installation) -> None:
    await house.apply(plain, limited)
    for ref in ("ranked.plain", "ranked.limited"):
        id = await house.client.start(ref, {"n": 1}, delay=3600)
        assert await house.client.set_priority(id, 5) == 1
        [row] = await house.rows("select status, priority from execution where id = $1", id)
        assert (row["status"], row["priority"]) == ("requested", 5)
        assert len(await house.rows("select from timer where execution_id = $1", id)) == 1


async def test_tasks_of_a_run_change_with_it(house: Installation) -> None:
    tasks = [{"name": f"t{n}", "action": "ranked.plain", "input": {"n": n}} for n in range(2)]
    await house.apply(plain, from_body({"ref": "ranked.flow", "tasks": tasks}))
    await house.executor()
    id = await house.client.start("ranked.flow", {})
    await house.until("select from execution where status = 'scheduled' having count(*) = 2")
    assert await house.client.set_priority(id, 4) == 3
    rows = await house.rows("select rank from backlog")
    assert [row["rank"] for row in rows] == [-4, -4]


@pytest.mark.parametrize("wrong", [2**15, -(2**15), True, "3", 1.5, None])
async def test_wrong_priority_is_refused(house: Installation, wrong: Any) -> None:
    await house.apply(plain)
    id = await house.client.start("ranked.plain", {"n": 1})
    with pytest.raises(InvalidInput, match="whole number"):
        await house.client.set_priority(id, wrong)


async def test_ended_and_missing_executions_are_refused(house: Installation) -> None:
    await house.apply(plain)
    id = await house.client.start("ranked.plain", {"n": 1})
    await house.client.cancel(id)
    with pytest.raises(Conflict, match="has ended"):
        await house.client.set_priority(id, 1)
    with pytest.raises(NotFound):
        await house.client.set_priority(new_id(), 1)
