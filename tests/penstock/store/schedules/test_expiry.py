"""The priority and the expiry of the executions of schedules, for each way to a fire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from penstock import MissedFires
from penstock.store.schedules import statements
from penstock.store.schedules.fire_ends import settle
from tests.flows import shop
from tests.penstock.store.schedules.conftest import House, every_minute

REF = "clock.minutely"
HOUR, TEN_MINUTES = timedelta(hours=1), timedelta(minutes=10)
OPTIONS: dict[str, Any] = {"priority": 7, "expires": 600}
STARTS = """
select f.due_at, f.kind, f.made_at, e.status, e.priority, e.timed, e.created_at, e.reason, t.due_at as expires_at
from fire f join execution e on e.id = f.execution_id
left join timer t on t.execution_id = e.id and t.kind = 'expires' order by f.due_at
"""


async def test_due_fire_has_priority_and_expiry(house: House) -> None:
    await house.apply(*shop.ALL, every_minute(**OPTIONS), every_minute("clock.plain"))
    for ref in (REF, "clock.plain"):
        await house.sleep(ref, timedelta(minutes=1))
    await house.fire()
    plain = [row for row in await house.rows(STARTS) if not row["priority"]]
    fired = [row for row in await house.rows(STARTS) if row["priority"]]
    assert fired
    assert {row["priority"] for row in fired} == {7}
    assert all(row["expires_at"] == row["due_at"] + TEN_MINUTES for row in fired)
    assert all(row["timed"] for row in fired)
    assert {(row["expires_at"], row["timed"]) for row in plain} == {(None, False)}


async def test_missed_fire_past_its_expiry_ends_at_once(house: House) -> None:
    policy = MissedFires(catch_up="all", grace=0)
    await house.apply(*shop.ALL, every_minute(missed=policy, **OPTIONS))
    await house.sleep(REF, HOUR)
    await house.fire()
    fired = await house.rows(STARTS)
    late = [row for row in fired if row["due_at"] + TEN_MINUTES <= row["made_at"]]
    assert len(late) >= 49
    assert {(row["status"], row["reason"]) for row in late} == {
        ("timeout", "it had not begun when it expired")
    }
    others = [row for row in fired if row not in late]
    assert len(others) >= 9
    assert {row["status"] for row in others} == {"scheduled"}
    assert {row["priority"] for row in fired} == {7}
    await house.sound()


async def test_fire_by_hand_expires_after_the_command(house: House) -> None:
    await house.apply(*shop.ALL, every_minute(**OPTIONS))
    fire = await house.client.schedules.run(REF)
    [row] = await house.rows(STARTS)
    assert (row["priority"], row["expires_at"]) == (7, fire.due_at + TEN_MINUTES)


async def test_backfill_expires_after_its_start(house: House) -> None:
    await house.apply(*shop.ALL, every_minute(overlap="queue", **OPTIONS))
    first = datetime(2026, 3, 27, tzinfo=UTC)
    await house.client.schedules.backfill(REF, first, first + timedelta(minutes=1))
    await house.end()
    await house.change(lambda tx: settle(tx, 10))
    assert await house.change(lambda tx: statements.start_waiting(tx, 10))
    rows = await house.rows(STARTS)
    assert len(rows) == 2
    assert rows[1]["status"] == "scheduled"
    for row in rows:
        assert row["priority"] == 7
        assert abs(row["expires_at"] - row["created_at"] - TEN_MINUTES) < timedelta(seconds=9)


async def test_waiting_fire_keeps_its_priority_and_expiry(house: House) -> None:
    await house.apply(*shop.ALL, every_minute(overlap="queue", **OPTIONS))
    fires = [await house.client.schedules.run(REF) for _ in range(3)]
    assert [fire.status for fire in fires] == ["created", "queued", "queued"]
    await house.rows(
        "update waiting_fire set origin = jsonb_set(origin, '{due}', '\"2026-01-05T00:00:00+00:00\"') where due_at = $1",
        fires[1].due_at,
    )
    for status in ("timeout", "scheduled"):
        await house.end()
        await house.change(lambda tx: settle(tx, 10))
        assert await house.change(lambda tx: statements.start_waiting(tx, 10))
        row = (await house.rows(STARTS))[-1]
        assert (row["status"], row["priority"]) == (status, 7)
    assert row["expires_at"] == row["due_at"] + TEN_MINUTES


async def test_replacement_of_a_lost_run_keeps_both(house: House) -> None:
    await house.apply(*shop.ALL, every_minute(**OPTIONS))
    fire = await house.client.schedules.run(REF)
    for table, column in (
        ("timer", "execution_id"),
        ("live", "execution_id"),
        ("payload", "execution_id"),
        ("execution", "id"),
    ):
        await house.rows(f"delete from {table} where {column} = $1", fire.execution_id)
    await house.change(lambda tx: settle(tx, 10))
    [row] = await house.rows(STARTS)
    assert (row["priority"], row["expires_at"]) == (7, fire.due_at + TEN_MINUTES)
