"""Fires are kept by the day they were due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from penstock_executor.loops import drop_expired
from tests.flows import shop
from tests.penstock.store.schedules.conftest import House, every_minute

FIRE = """
insert into fire (schedule, due_at, status, kind, definition_id, made_at)
values ('clock.s', date_trunc('day', now()) + make_interval(days => $1, hours => 5), 'created', 'due', 1,
    now() + make_interval(days => $1))
"""
WHERE = "select tableoid::regclass::text as kept, due_at from fire order by due_at"


async def test_rows_of_the_default_partition_move_to_a_new_day(house: House) -> None:
    for day in (9, 10, 40):
        await house.rows(FIRE, day)
    assert {row["kept"] for row in await house.rows(WHERE)} == {"fire_default"}
    await house.rows("select make_partitions(10)")
    first, second, third = await house.rows(WHERE)
    assert first["kept"] == f"fire_{first['due_at']:%Y%m%d}"
    assert second["kept"] == f"fire_{second['due_at']:%Y%m%d}"
    assert third["kept"] == "fire_default"
    # It is a partition like any other: unique, indexed, and found.
    assert await house.rows(
        "select from pg_indexes where tablename = $1 and indexdef like '%brin%'", first["kept"]
    )
    assert (
        len(await house.rows("select from fire where schedule = 'clock.s' and due_at = $1", first["due_at"]))
        == 1
    )


async def test_old_fires_are_dropped_those_of_old_backfills_too(house: House) -> None:
    for day in (-400, -1):
        await house.rows(FIRE, day)
    parts = await house.parts()
    await drop_expired.turn(parts, parts.database.session())
    assert len(await house.rows("select from fire")) == 1


async def test_fire_of_a_backfill_outlives_the_retention_of_its_day(house: House) -> None:
    await house.apply(*shop.ALL, every_minute("clock.daily", cron="0 12 * * *"))
    due = (datetime.now(UTC) - timedelta(days=40)).replace(hour=12, minute=0, second=0, microsecond=0)
    await house.rows(
        f"create table fire_{due:%Y%m%d} partition of fire for values "
        f"from ('{due:%Y-%m-%d} 00:00+00') to ('{due + timedelta(days=1):%Y-%m-%d} 00:00+00')"
    )
    parts = await house.parts()
    for _ in range(2):
        await house.client.schedules.backfill("clock.daily", due, due)
        await house.end()
        await house.rows("select * from settle_fires(10)")
        await drop_expired.turn(parts, parts.database.session())
        assert [row["outcome"] for row in await house.fires("clock.daily")] == ["completed"]
    [row] = await house.rows("select count(*) as count from execution")
    assert row["count"] == 1
    await house.rows("update fire set made_at = made_at - interval '31 days'")
    await drop_expired.turn(parts, parts.database.session())
    assert await house.fires("clock.daily") == []
