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


@action(pack="ranked", retry={"max_attempts": 3, "initial_delay": 3600, "max_delay": 3600})
async def fragile(n: int) -> None:
    raise ConnectionError("away")


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


async def test_held_execution_is_released_by_its_new_priority(house: Installation) -> None:
    await house.apply(plain)
    await house.executor(**AS_USED)
    await house.client.holds.hold("action", "ranked.plain", by="ada")
    ids = [await house.client.start("ranked.plain", {"n": n}) for n in range(3)]
    await house.until("select from held_execution having count(*) = 3")
    assert await house.client.set_priority(ids[2], 5) == 1
    rows = await house.rows("select execution_id from held_execution order by rank, ready_at")
    assert [row["execution_id"] for row in rows] == [ids[2], ids[0], ids[1]]
    await house.client.holds.release("action", "ranked.plain")
    await house.until("select from execution where status = 'scheduled' having count(*) = 3")
    [row] = await house.rows("select rank from backlog where execution_id = $1", ids[2])
    assert row["rank"] == -5
    await house.sound()


async def test_retry_that_waits_has_the_new_priority(house: Installation) -> None:
    await house.start(fragile, **AS_USED)
    id = await house.client.start("ranked.fragile", {"n": 1})
    await house.until("select from execution where id = $1 and status = 'requested' and attempt = 1", id)
    assert await house.client.set_priority(id, 5) == 1
    assert len(await house.rows("select from timer where execution_id = $1 and kind = 'ready'", id)) == 1
    await house.client.reschedule(id, delay=0, by="ada")
    await house.until("select from execution where id = $1 and attempt = 2", id)
    [row] = await house.rows("select priority from execution where id = $1", id)
    assert row["priority"] == 5
    await house.sound()


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
