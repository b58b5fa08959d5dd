"""Holds: what they cover is stored, keeps its place and takes no worker, until it is released."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock import Limit, MissedFires, Schedule, action
from penstock.errors import InvalidInput, NotFound
from penstock.language.workflows import from_body
from penstock.operate import titles
from penstock.operate.executions import described
from penstock.store.admission.holds import KINDS
from penstock.store.executions.execution_list import ExecutionFilter
from tests.flows.installation import AS_USED, Installation

BEGUN: list[int] = []
GATE = asyncio.Event()

HELD = "select from held_execution having count(*) = $1"


@action(pack="holding")
async def note(n: int) -> int:
    BEGUN.append(n)
    return n


@action(pack="holding")
async def wait(n: int) -> int:
    BEGUN.append(n)
    await GATE.wait()
    return n


@action(pack="limited", limits=[Limit(1)])
async def one(n: int) -> int:
    BEGUN.append(n)
    return n


flow = from_body(
    {
        "ref": "flows.two",
        "tasks": [
            {"name": "first", "action": "holding.note", "input": {"n": 1}},
            {"name": "second", "action": "holding.note", "input": {"n": 2}, "needs": ["first"]},
        ],
    }
)


around = from_body({"ref": "flows.around", "tasks": [{"name": "both", "workflow": "flows.two"}]})


@pytest.fixture(autouse=True)
def fresh() -> None:
    BEGUN.clear()
    GATE.clear()


async def begin(house: Installation, **settings: Any) -> None:
    await house.start(note, wait, one, flow, **{**AS_USED, **settings})


async def test_held_execution_shows_no_instant_at_which_it_starts(house: Installation) -> None:
    await house.start(note)
    await house.client.holds.hold("action", "holding.note", by="ada", reason="an audit")
    id = await house.client.start("holding.note", {"n": 1})
    await house.until(HELD, 1)
    document = await described(house.session, id)
    assert document is not None
    assert (document["status"], document["not_before"], document["reason"]) == (
        "requested",
        None,
        "it is held",
    )


@pytest.mark.parametrize(
    ("kind", "name"),
    [("action", "holding.note"), ("pack", "holding"), ("route", "default"), ("tenant", "public")],
)
async def test_held_start_waits_until_it_is_released(house: Installation, kind: str, name: str) -> None:
    await begin(house)
    await house.client.run("holding.note", {"n": 0}, timeout=20)
    await house.client.holds.hold(kind, name, by="ada", reason="a bad release")
    ids = [await house.client.start("holding.note", {"n": n}) for n in range(1, 4)]
    await house.until(HELD, 3)
    [hold] = await house.client.holds.all()
    assert (hold.kind, hold.name, hold.by, hold.reason, hold.held) == (kind, name, "ada", "a bad release", 3)
    why = await house.client.why(ids[0])
    assert why.because == "held"
    assert why.says.startswith(f"Waits for the {kind} {name}, which is held by ada (a bad release).")
    assert BEGUN == [0]
    await house.client.holds.release(kind, name)
    await house.quiet()
    assert sorted(BEGUN) == [0, 1, 2, 3]
    assert not await house.client.holds.all()
    assert not await house.rows("select from held_execution")
    await house.sound()


async def test_start_of_a_new_namespace_is_held(house: Installation) -> None:
    await begin(house)
    await house.client.holds.hold("tenant", "acme", by="ada", force=True)
    await house.client.start("holding.note", {"n": 1}, tenant="acme")
    await house.client.run("holding.note", {"n": 2}, timeout=20)
    await house.until(HELD, 1)
    assert BEGUN == [2]


async def test_list_names_the_hold_of_a_task_and_no_instant(house: Installation) -> None:
    await begin(house)
    await house.client.holds.hold("action", "holding.note", by="ada")
    id = await house.client.start("flows.two")
    await house.until(HELD, 1)
    [row] = await titles.listed(house.session, ExecutionFilter())
    assert row.id == id
    assert row.waits_for is not None
    assert (row.waits_for.because, row.waits_for.text, row.waits_for.due_at) == (
        "held",
        "waits for the release of a hold",
        None,
    )


async def test_workflow_does_not_run_while_all_that_it_runs_is_held(house: Installation) -> None:
    await house.start(note, flow, around)
    await house.client.holds.hold("action", "holding.note", by="ada", reason="an audit")
    id = await house.client.start("flows.around")
    await house.until(HELD, 1)
    document = await described(house.session, id)
    assert document is not None
    assert (document["status"], document["ran"], document["tasks"][0].ran) == ("running", 0.0, 0.0)
    await house.client.holds.release("action", "holding.note")
    await house.client.result(id)
    document = await described(house.session, id)
    assert document is not None
    assert document["ran"] > 0
    assert document["tasks"][0].ran == document["ran"]


async def test_waiting_work_is_held_and_keeps_its_place(house: Installation) -> None:
    """One attempt runs, the others wait on the route or in line."""
    await begin(house, concurrency=1)
    running = await house.client.start("holding.wait", {"n": 0})
    await house.until("select from execution where status = 'running'")
    for n in range(1, 4):
        await house.client.start("holding.note", {"n": n})
        await house.client.start("limited.one", {"n": 10 + n})
    await house.client.holds.hold("route", "default", by="ada")
    await house.until(HELD, 6)
    assert not await house.rows("select from slot")
    assert not await house.rows("select from waiter")
    GATE.set()
    await house.client.result(running, timeout=20)
    assert BEGUN == [0]
    await house.client.holds.release("route", "default")
    await house.quiet()
    assert sorted(BEGUN) == [0, 1, 2, 3, 11, 12, 13]
    assert [n for n in BEGUN if n > 10] == [11, 12, 13]
    await house.sound()


async def test_tasks_of_a_held_action_wait_and_the_workflow_goes_on_later(house: Installation) -> None:
    await begin(house)
    await house.client.holds.hold("action", "holding.note", by="ada")
    id = await house.client.start("flows.two", {})
    await house.until(HELD, 1)
    await house.client.holds.release("action", "holding.note")
    await house.client.result(id, timeout=20)
    assert BEGUN == [1, 2]


async def test_hold_ends_by_itself(house: Installation) -> None:
    await begin(house)
    await house.client.holds.hold("pack", "holding", by="ada", until=datetime.now(UTC) + timedelta(seconds=2))
    id = await house.client.start("holding.note", {"n": 1})
    await house.client.result(id, timeout=30)
    assert not await house.client.holds.all()


async def test_release_at_a_rate_lets_go_a_few_at_a_time(house: Installation) -> None:
    """The instants are set back, instead of waiting."""
    await begin(house)
    await house.client.holds.hold("pack", "holding", by="ada")
    for n in range(5):
        await house.client.start("holding.note", {"n": n})
    await house.until(HELD, 5)
    await house.client.holds.release("pack", "holding", rate="1/hour")
    await house.until(HELD, 4)
    await house.client.start("holding.note", {"n": 9})
    await house.until(HELD, 5)
    await house.until("select from execution where status = 'completed'")
    assert BEGUN == [0]
    [hold] = await house.client.holds.all()
    assert (hold.rate_count, hold.rate_seconds, hold.held) == (1, 3600.0, 5)
    for held in reversed(range(5)):
        await hour_passes(house)
        await house.until(HELD, held)
    await house.quiet()
    assert BEGUN[:3] == [0, 1, 2]
    assert sorted(BEGUN) == [0, 1, 2, 3, 4, 9]
    await house.until("select where not exists (select from hold)")


async def hour_passes(house: Installation, hours: int = 1) -> None:
    """Set the releases back."""
    await house.rows(
        "update hold set releasing_since = releasing_since - make_interval(hours => $1) returning 1", hours
    )


async def released(house: Installation) -> int:
    """Let an executor release once, and return how many executions it released."""
    [[count]] = await house.rows("select released from release_held(100)")
    await house.rows("select end_holds()")
    return int(count)


async def held(house: Installation, *holds: tuple[str, str]) -> None:
    """Hold these, and start ten executions of two actions. No executor runs, so only the test releases."""
    await house.apply(note, wait, one, flow)
    for kind, name in holds:
        await house.client.holds.hold(kind, name, by="ada")
    for n in range(10):
        id = await house.client.start(("holding.note", "holding.wait")[n % 2], {"n": n})
        await house.rows("select * from schedule_executions(array[$1::uuid])", id)
    await house.until(HELD, 10)


async def test_executions_under_two_releases_keep_both_rates(house: Installation) -> None:
    await held(house, ("pack", "holding"), ("action", "holding.wait"))
    await house.client.holds.release("action", "holding.wait", rate="3/hour")
    assert await released(house) == 0, "the other hold still covers them"
    await house.client.holds.release("pack", "holding", rate="1/hour")
    assert [await released(house) for _ in range(3)] == [1, 0, 0]
    await hour_passes(house)
    assert [await released(house) for _ in range(3)] == [1, 0, 0]
    assert len(await house.client.holds.all()) == 2


async def test_release_makes_up_for_little_after_an_outage(house: Installation) -> None:
    await held(house, ("pack", "holding"))
    await house.client.holds.release("pack", "holding", rate="1/s")
    assert await released(house) == 1
    await hour_passes(house)
    assert await released(house) == 3
    assert await released(house) < 3


async def test_schedule_of_a_held_action_catches_up_after_the_release(house: Installation) -> None:
    catching_up = MissedFires(catch_up="all", at_most=1000)
    tick = Schedule("holding.tick", action=note, params={"n": 5}, every=1, missed=catching_up)
    await house.start(note, tick, **AS_USED)
    await house.until("select from fire")
    await house.client.holds.hold("pack", "holding", by="ada")
    await house.until("select from schedule where next_due < clock_timestamp() - interval '1 second'")
    fires = len(await house.rows("select from fire"))
    await house.until("select from schedule where next_due < clock_timestamp() - interval '3 seconds'")
    assert len(await house.rows("select from fire")) == fires
    await house.client.holds.release("pack", "holding")
    await house.until("select from fire having count(*) >= $1", fires + 3)


async def test_cancelled_execution_is_not_held_any_more(house: Installation) -> None:
    await begin(house)
    await house.client.holds.hold("pack", "holding", by="ada")
    id = await house.client.start("holding.note", {"n": 1})
    await house.until(HELD, 1)
    assert await house.client.cancel(id) == 1
    assert not await house.rows("select from held_execution")


async def test_wrong_holds_are_refused(house: Installation) -> None:
    assert set(KINDS) == {"action", "pack", "route", "tenant"}
    for kind, name in (("queue", "default"), ("action", "note"), ("pack", "a.b"), ("tenant", "a::b")):
        with pytest.raises(InvalidInput):
            await house.client.holds.hold(kind, name, by="ada")
    with pytest.raises(NotFound, match="is not held"):
        await house.client.holds.release("pack", "holding")
    with pytest.raises(NotFound, match="there is no pack 'holding'"):
        await house.client.holds.hold("pack", "holding", by="ada")
    await house.client.holds.hold("pack", "holding", by="ada", force=True)
    with pytest.raises(InvalidInput, match="rate"):
        await house.client.holds.release("pack", "holding", rate="often")
