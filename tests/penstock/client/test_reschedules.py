"""The change of the start of an execution that has not begun."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from penstock import Limit, action
from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.terms.ids import new_id
from penstock.language.workflows import from_body
from tests.flows.installation import AS_USED, Installation

GATE = asyncio.Event()
FAR = datetime(2100, 1, 31, 9, tzinfo=UTC)
TIMERS = "select kind, due_at from timer where execution_id = $1 order by kind, due_at"
ROW = "select status, not_before, ready_at, attempt, reason from execution where id = $1"


@action(pack="moved", limits=[Limit(1)])
async def limited(n: int) -> int:
    await GATE.wait()
    return n


@action(pack="moved")
async def plain(n: int) -> int:
    return n


@action(pack="moved", timeouts={"total": 60})
async def bounded(n: int) -> int:
    return n


@action(pack="moved", retry={"max_attempts": 2, "initial_delay": 3600, "max_delay": 3600})
async def flaky(n: int) -> int:
    if not GATE.is_set():
        raise ConnectionError("away")
    return n


ALL = (limited, plain, bounded, flaky)


@pytest.fixture(autouse=True)
def closed() -> None:
    GATE.clear()


async def timers(house: Installation, id: UUID, kind: str = "ready") -> list[datetime]:
    return [row["due_at"] for row in await house.rows(TIMERS, id) if row["kind"] == kind]


async def test_delayed_start_is_moved_and_starts_at_once(house: Installation) -> None:
    await house.start(*ALL, **AS_USED)
    id = await house.client.start("moved.plain", {"n": 7}, delay=3600)
    assert await house.client.reschedule(id, at=FAR, reason="ada is away", by="ada") == FAR
    [row] = await house.rows(ROW, id)
    assert (row["status"], row["not_before"], row["ready_at"]) == ("requested", FAR, FAR)
    assert row["reason"] == "ada is away"
    assert await timers(house, id) == [FAR]
    await house.sound()
    await house.client.reschedule(id, delay=timedelta(hours=2), by="ada")
    assert len(await timers(house, id)) == 1
    await house.client.reschedule(id, by="ada")
    assert await house.client.result(id, timeout=30) == 7
    assert await timers(house, id) == []
    await house.quiet()
    await house.sound()


async def test_start_within_a_moment_is_not_missed(house: Installation) -> None:
    """The timer is due before an executor looks by itself."""
    await house.start(*ALL, **AS_USED)
    id = await house.client.start("moved.plain", {"n": 7}, delay=3600)
    instant = await house.client.reschedule(id, delay=0.3, by="ada")
    assert await house.client.result(id, timeout=30) == 7
    [begun] = await house.rows("select min(at) from history where execution_id = $1 and new = 'running'", id)
    assert begun[0] >= instant


async def test_retry_that_waits_is_moved(house: Installation) -> None:
    await house.start(*ALL, **AS_USED)
    id = await house.client.start("moved.flaky", {"n": 3})
    await house.until("select from execution where id = $1 and status = 'requested' and attempt = 1", id)
    await house.client.reschedule(id, at=FAR, by="ada")
    assert (await house.client.why(id)).sentence.startswith("Waits for attempt 2, which is due in ")
    GATE.set()
    await house.client.reschedule(id, delay=0, by="ada")
    assert await house.client.result(id, timeout=30) == 3
    assert (await house.client.get(id)).attempt == 2
    await house.sound()


async def test_queued_execution_leaves_its_line_and_joins_it_last(house: Installation) -> None:
    await house.start(*ALL, **AS_USED)
    holder = await house.client.start("moved.limited", {"n": 0})
    await house.until("select from execution where status = 'running'")
    ids = [await house.client.start("moved.limited", {"n": n}) for n in range(1, 4)]
    await house.client.reschedule(ids[0], delay=3600, by="ada")
    waiting = await house.rows("select execution_id from waiter")
    assert {row["execution_id"] for row in waiting} == set(ids[1:])
    await house.sound()
    with pytest.raises(Conflict, match="has begun"):
        await house.client.reschedule(holder, delay=1, by="ada")
    await house.client.reschedule(ids[0], delay=0, by="ada")
    await house.until("select from waiter having count(*) = 3")
    GATE.set()
    await house.quiet()
    rows = await house.rows("select execution_id from admission order by seq")
    assert [row["execution_id"] for row in rows] == [holder, ids[1], ids[2], ids[0]]
    await house.sound()


async def test_due_execution_keeps_its_place(house: Installation) -> None:
    await house.start(*ALL, **AS_USED)
    await house.client.start("moved.limited", {"n": 0})
    await house.until("select from execution where status = 'running'")
    ids = [await house.client.start("moved.limited", {"n": n}) for n in range(1, 3)]
    before = await house.rows(ROW, ids[0])
    await house.client.reschedule(ids[0], delay=0, by="ada")
    assert await house.rows(ROW, ids[0]) == before
    GATE.set()
    await house.quiet()
    rows = await house.rows("select execution_id from admission order by seq")
    assert [row["execution_id"] for row in rows][1:] == ids


async def test_scheduled_execution_is_not_claimed_before(house: Installation) -> None:
    await house.apply(*ALL)
    await house.executor(**AS_USED)
    id = await house.client.start("moved.plain", {"n": 1})
    await house.until("select from execution where id = $1 and status = 'scheduled'", id)
    await house.client.reschedule(id, at=FAR, by="ada")
    other = await house.client.start("moved.plain", {"n": 2})
    await house.worker(*ALL, **AS_USED)
    assert await house.client.result(other, timeout=30) == 2
    [row] = await house.rows(ROW, id)
    assert (row["status"], row["attempt"]) == ("requested", 0)
    await house.client.reschedule(id, delay=0, by="ada")
    assert await house.client.result(id, timeout=30) == 1
    await house.quiet()
    await house.sound()


async def test_total_time_moves_with_the_first_start(house: Installation) -> None:
    await house.apply(*ALL)
    id = await house.client.start("moved.bounded", {"n": 1}, at=FAR)
    await house.client.reschedule(id, at=FAR + timedelta(days=1), by="ada")
    [total] = await timers(house, id, "total")
    assert abs((total - FAR - timedelta(days=1, seconds=60)).total_seconds()) < 1
    await house.sound()


async def test_task_of_a_workflow_is_moved(house: Installation) -> None:
    flow = from_body(
        {
            "ref": "moved.flow",
            "tasks": [{"name": "late", "action": "moved.plain", "input": {"n": 4}, "delay": 3600}],
        }
    )
    await house.start(*ALL, flow, **AS_USED)
    run = await house.client.start("moved.flow", {})
    [[task]] = await house.until("select id from execution where parent = $1", run)
    with pytest.raises(Conflict, match="has begun"):
        await house.client.reschedule(run, delay=1, by="ada")
    await house.client.reschedule(task, delay=0, by="ada")
    await house.client.result(run, timeout=30)
    await house.sound()


async def test_wrong_and_impossible_changes_are_refused(house: Installation) -> None:
    await house.apply(*ALL)
    id = await house.client.start("moved.plain", {"n": 1}, delay=3600, expires_at=FAR)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"at": FAR, "delay": 1}, "both given"),
        ({"delay": -1}, "between 0 and 100 years"),
        ({"at": datetime(2030, 1, 1)}, "offset"),
        ({"at": datetime(9001, 1, 1, tzinfo=UTC)}, "calendar"),
    ]
    for options, message in wrong:
        with pytest.raises(InvalidInput, match=message):
            await house.client.reschedule(id, **options, by="ada")
    with pytest.raises(Conflict, match="expires"):
        await house.client.reschedule(id, at=FAR, by="ada")
    await house.client.reschedule(id, at=FAR - timedelta(seconds=1), by="ada")
    await house.client.holds.hold("action", "moved.plain", by="ada")
    held = await house.client.start("moved.plain", {"n": 2})
    await house.executor(**AS_USED)
    await house.until("select from held_execution where execution_id = $1", held)
    with pytest.raises(Conflict, match="is held"):
        await house.client.reschedule(held, delay=1, by="ada")
    await house.client.cancel(id)
    with pytest.raises(Conflict, match="has ended"):
        await house.client.reschedule(id, delay=1, by="ada")
    with pytest.raises(NotFound):
        await house.client.reschedule(new_id(), delay=1, by="ada")
    await house.sound()
