"""Fires are kept by the day they were due."""

from __future__ import annotations

from penstock_executor.loops import drop_expired
from tests.penstock.store.schedules.conftest import House

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
