"""Enforcements as a list and as announcements, local callbacks, recoveries and totals, of a live installation."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from penstock import Context, Limit, Rule, Trigger, action, task, workflow
from penstock.errors import InvalidInput
from penstock.messaging import envelope
from penstock.operate.enforcements import listed
from penstock.store.admission.limits import totals
from penstock.store.events.enforcement_list import EnforcementFilter
from penstock.store.executions import recoveries
from penstock.store.outbox.announcements import announce
from tests.flows.installation import Installation

CALLS: list[tuple[Any, ...]] = []
placed = Trigger("seen.placed")


@action(pack="seen", limits=[Limit(2)])
async def charge(order: int) -> int:
    return order


charged = Rule("seen.charged", trigger=placed, action=charge, params={"order": "{{ payload.order }}"})
broken = Rule("seen.broken", trigger=placed, action=charge, params={"order": "{{ payload.nothing.at_all }}"})


def note(task_id: str, context: Context) -> None:
    CALLS.append(("note", task_id, dict(context)))


def alert(task_id: str, error: str, context: Context) -> None:
    CALLS.append(("alert", task_id, error, dict(context)))


@task(ref="seen.extract", on_success=note, on_failure=alert)
def extract(context: Context) -> Context:
    context.set("rows", [context["day"], 2])
    return context


@task(ref="seen.load", dependencies=[extract], on_success=note, on_failure=alert)
async def load(context: Context) -> Context:
    raise ValueError("no room for rows")


flow = workflow("seen.flow", tasks=[extract, load])


@pytest.mark.either_transport
async def test_enforcements_are_listed_by_rule_event_and_status(house: Installation) -> None:
    await house.start(placed, charge, charged, broken)
    ids = [await house.client.publish("seen.placed", {"order": n}) for n in range(3)]
    await house.until("select 1 from enforcement having count(*) = 6")
    rows, following = await listed(house.session, EnforcementFilter())
    assert following is None
    assert [(row.event, row.rule) for row in rows] == [
        (id, rule) for id in sorted(ids, reverse=True) for rule in ("seen.charged", "seen.broken")
    ]
    by_rule, _ = await listed(house.session, EnforcementFilter(rule="seen.broken"))
    assert {(row.status, row.execution, row.trigger, row.tenant) for row in by_rule} == {
        ("failed", None, "seen.placed", "public")
    }
    assert all("nothing" in str(row.error) for row in by_rule)
    of_event, _ = await listed(house.session, EnforcementFilter(event=ids[1], status="executed"))
    [one] = of_event
    assert one.id == one.execution
    assert (await house.client.result(one.id, timeout=20)) == 1
    first, following = await listed(house.session, EnforcementFilter(), limit=4)
    rest, end = await listed(house.session, EnforcementFilter(), cursor=following, limit=4)
    assert (first + rest, end) == (rows, None)
    others, _ = await listed(house.session, EnforcementFilter(tenants={"acme"}))
    assert others == []
    with pytest.raises(InvalidInput, match="'done' is not a status of an enforcement"):
        await listed(house.session, EnforcementFilter(status="done"))
    with pytest.raises(InvalidInput, match="is not a cursor of this list"):
        await listed(house.session, EnforcementFilter(), cursor="x")


async def test_enforcement_is_announced_where_it_is_asked_for(database: str) -> None:
    heard: list[Any] = []
    async with Installation(database, None) as house:
        await house.start(placed, charge, charged, broken)
        connection = await asyncpg.connect(database)
        try:
            await connection.add_listener(
                "penstock.status", lambda *args: heard.append(envelope.decode(str(args[-1]).encode()))
            )
            await house.client.publish("seen.placed", {"order": 0})
            await house.until("select 1 from enforcement having count(*) = 2")
            assert await announce(house.session, ["enforcement.created"]) == ["enforcement.created"]
            second = await house.client.publish("seen.placed", {"order": 1})
            await house.until("select 1 from enforcement where event_id = $1 having count(*) = 2", second)
            rows, _ = await listed(house.session, EnforcementFilter(event=second))
            async with asyncio.timeout(30):
                while len({id for told in heard for id in told.ids}) < 2:
                    await asyncio.sleep(0.05)
        finally:
            await connection.close()
        assert {told.type for told in heard} == {"enforcement.created"}
        assert {id for told in heard for id in told.ids} == {row.id for row in rows}
        await house.sound()


@pytest.mark.either_transport
async def test_local_callbacks_are_told_of_the_end_of_their_task(house: Installation) -> None:
    CALLS.clear()
    await house.start(extract, load, flow)
    id = await house.client.start("seen.flow", {"day": 7})
    await house.until("select 1 from execution where id = $1 and status = 'failed'", id)
    await house.until(
        "select 1 from execution e join definition d on d.id = e.definition_id"
        " where d.ref like 'seen.%_on_%' and e.status = 'completed' having count(*) = 2"
    )
    assert sorted(CALLS) == [
        ("alert", "load", "no room for rows", {"day": 7, "rows": [7, 2]}),
        ("note", "extract", {"day": 7, "rows": [7, 2]}),
    ]


@pytest.mark.either_transport
async def test_totals_of_a_limit_add_up(house: Installation) -> None:
    await house.start(charge)
    ids = await house.client.start_many("seen.charge", [{"order": n} for n in range(7)])
    for id in ids:
        await house.client.result(id, timeout=20)
    since = datetime.now(UTC) - timedelta(hours=1)
    await house.until("select 1 where not exists (select from slot)")
    [row] = await totals(house.session, since)
    assert (row.ref, row.enqueued, row.admitted, row.completed) == ("seen.charge.all", 7, 7, 7)
    assert (row.held, row.waiting) == (0, 0)
    assert await totals(house.session, since, "seen.nothing") == []


@pytest.mark.either_transport
async def test_lost_attempt_is_listed_as_a_recovery(house: Installation) -> None:
    await house.start(charge)
    id = await house.client.start("seen.charge", {"order": 1})
    await house.client.result(id, timeout=20)
    since = datetime.now(UTC) - timedelta(hours=1)
    assert await recoveries.newest(house.session, since) == []
    await house.rows(
        "insert into attempt (execution_id, attempt, outcome, worker, error)"
        ' values ($1, 9, \'lost\', \'w-1\', \'{"type": "WorkerLost", "message": "it left"}\')',
        id,
    )
    [row] = await recoveries.newest(house.session, since)
    assert (row.kind, row.execution, row.subject, row.tenant) == ("attempt", id, "seen.charge", "public")
    assert (row.number, row.worker, row.why, row.status) == (9, "w-1", "it left", "completed")
    assert await recoveries.newest(house.session, since, worker="another") == []
    assert await recoveries.newest(house.session, since, kind="fire") == []
    assert await recoveries.newest(house.session, since, tenants={"acme"}) == []
